"""Experiments: what is measured, how it is run, how fast it is."""
