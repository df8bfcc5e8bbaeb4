"""The configuration of an Autoscaler: its keys, where they are said, and what holds."""
