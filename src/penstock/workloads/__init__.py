"""What arrives: rate patterns and recorded traffic."""
