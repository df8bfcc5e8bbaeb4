"""Nexmark's queries as split pipelines: one application per operator."""
