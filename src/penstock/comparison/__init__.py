"""Policies on a query and a load: runs, scores, the oracle, intervals."""
