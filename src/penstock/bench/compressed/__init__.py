"""A run whose time goes faster than the clock's, on Spark or on its twin: load, series, scores."""
