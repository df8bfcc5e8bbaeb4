"""Changing a Spark application: its executors, and the CPU they may use."""
