"""This machine: its processes, control groups, Java, and what it can do."""
