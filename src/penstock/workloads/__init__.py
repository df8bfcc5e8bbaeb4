"""What arrives: rate patterns and, later, traces."""
