"""Budgets of speed and exactness, each measured by a command; not part of the package."""
