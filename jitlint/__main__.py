"""`python -m jitlint`."""

from jitlint.cli import main

main()
