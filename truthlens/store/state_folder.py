"""Name the folder in which a user's TruthLens keeps its files."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder(checkout: Path = Path(__file__).parents[2]) -> Path:
    """Return ``.truthlens`` of the checkout that the package is in, so that each has files of its own.

    Where TruthLens is installed, it is ``truthlens`` in the user's state folder.
    """
    if (checkout / "pyproject.toml").is_file():
        return checkout / ".truthlens"
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "truthlens"
