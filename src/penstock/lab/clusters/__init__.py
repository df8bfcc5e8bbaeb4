"""Clusters that run on this machine."""
