"""Files of recorded traffic as people have them, read, and what was understood of each."""
