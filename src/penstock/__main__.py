"""``python -m penstock``."""

from penstock.cli import main

if __name__ == "__main__":
    main()
