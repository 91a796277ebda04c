"""`python -m weighlock` is the `weighlock` command."""

from weighlock.cli import main

main()
