"""Agents as processes: how a host starts, feeds, hears and ends them, and what runs inside each."""
