"""Benches on the micro-batch simulator, Spark's twin, and how close it comes to Spark."""
