"""Streaming queries with a known answer."""
