"""What Spark says of its queries, as one ``Snapshot``; figures are defined in docs/metrics.md."""
