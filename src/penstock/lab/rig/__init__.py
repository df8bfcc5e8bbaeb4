"""A warm cluster that runs one query after another, and what was measured on it."""
