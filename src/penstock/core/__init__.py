"""The domain: model, loop, guards, ports, journal, errors. Standard library and numpy only."""
