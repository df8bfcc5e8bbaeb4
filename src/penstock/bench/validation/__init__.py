"""How close Spark's twin comes to Spark: figures, order of policies, verdicts, tables, picture."""
