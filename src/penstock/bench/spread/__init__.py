"""Simulated runs spread over the cores of a Spark cluster."""
