"""Entry point of `python -m prer`."""

from prer.cli.main import main

if __name__ == "__main__":
    main()
