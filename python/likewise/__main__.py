"""``python -m likewise`` is the command ``likewise``."""

from likewise.cli import main

if __name__ == "__main__":
    main()
