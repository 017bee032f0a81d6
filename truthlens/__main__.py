"""``python -m truthlens``."""

from truthlens.cli import main

main()
