"""Throughput of the geo jobs on real executors, by parallelism."""
