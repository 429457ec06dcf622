"""Entry point of ``python -m likewise``, the same command as ``likewise``."""

from likewise.cli import main

if __name__ == "__main__":
    main()
