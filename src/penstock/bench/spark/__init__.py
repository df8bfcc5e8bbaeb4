"""Benches on a real local Spark cluster, in compressed time (docs/decisions/0006)."""
