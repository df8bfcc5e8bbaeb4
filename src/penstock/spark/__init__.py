"""Penstock on real Spark: a local cluster, metrics, executors and the Autoscaler."""
