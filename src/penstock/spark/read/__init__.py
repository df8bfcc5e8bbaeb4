"""What Spark says of its queries: progress events and REST answers, as typed values."""
