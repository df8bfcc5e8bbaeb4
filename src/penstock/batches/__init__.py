"""Batches, stages and executors as one ``Snapshot``: pure, the same for Spark and its simulator."""
