"""`python -m warmprefix` is the command line."""

from warmprefix.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
