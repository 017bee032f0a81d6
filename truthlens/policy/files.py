"""Read and write the files that a policy consists of, whatever else may stand at their paths."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


class UnfitFileError(ValueError):
    """What is at the path can be no part of a policy."""


def read_start(path: Path | str, most_bytes: int) -> bytes:
    """Return the first bytes of the file at ``path``, ``most_bytes`` at most.

    Raises:
        UnfitFileError: it is no regular file, or its name cannot be one.
        OSError: it cannot be read.
    """
    # Without waiting: a pipe nobody writes to would hold up whoever opens it.
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except ValueError as error:  # a zero character in the name
        raise UnfitFileError("the name cannot be used") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UnfitFileError("it is no regular file")
        with open(handle, "rb", closefd=False) as stream:
            return stream.read(most_bytes)
    finally:
        os.close(handle)


def replace_file(path: Path, text: str) -> None:
    """Put ``text`` into ``path`` in one step: readers see the old contents or the new, never a part.

    Links stay links, and the file keeps its permissions.

    Raises:
        OSError: it cannot be written; the old contents are untouched.
    """
    target = path.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        fresh.chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o644)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
