"""A Spark standalone cluster on this machine: processes, control groups, sessions, cleaning up."""
