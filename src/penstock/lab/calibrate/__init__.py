"""What a query can do on this machine, measured: throughput by size, and profiles."""
