"""Split pipelines: one Spark application per operator, joined by topics, one Penstock for all."""
