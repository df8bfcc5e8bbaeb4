"""Frames between instances: in order, each once, over connections that may break."""
