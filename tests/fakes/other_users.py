"""Be another user than root for a while, and let that user reach a test's folder."""

from __future__ import annotations

import codecs
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def let_in(folder: Path) -> None:
    """Let every user pass through the folders above ``folder``, which pytest keeps for its own."""
    for each in (folder, *folder.parents):
        if each == Path(tempfile.gettempdir()):
            return
        each.chmod(0o755)


@contextmanager
def another_user() -> Iterator[None]:
    """Be nobody for a while, where this user is root: root writes to read-only files."""
    if os.geteuid() != 0:
        yield
        return
    # Whoever opens a connection needs it, and nobody may not read the standard library of a root's own Python.
    codecs.lookup("idna")
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)
