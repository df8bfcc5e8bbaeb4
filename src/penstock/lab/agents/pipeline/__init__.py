"""A pipeline of processes, one per instance, that records really flow through."""
