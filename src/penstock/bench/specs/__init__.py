"""A bench as a TOML file: reading it, sweeps in it, and errors that say where."""
