"""Share a secret between the processes of one user on one machine, without configuration.

A fleet usually runs one process a core, and their calls may meet where models are reached through the
gateway. Across machines the operator gives one (``--secret-file``).
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from pathlib import Path

_BYTES = 32


def host_secret(folder: Path | None = None) -> bytes | None:
    """Return the secret in ``folder``, created by the first process; ``None`` if none can be kept safely.

    Safe is a folder and a file that belong to this user and that no other user may read or write.

    Args:
        folder: where it is kept; left out, one of this user's own among the temporary files.
    """
    folder = folder or Path(tempfile.gettempdir()) / f"truthlens-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if not _is_ours(folder, directory=True):
            return None
        path = folder / "mark-secret"
        _make(path)
        return _read(path)
    except OSError:
        # A read-only file system, a full one: this process then has a secret of its own.
        return None


def _make(path: Path) -> None:
    """Write a fresh secret to ``path`` unless there is one.

    Complete from the first moment that others can see it.
    """
    if path.exists():
        return
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as draft:
        draft.write(secrets.token_bytes(_BYTES))
    try:
        # A link, and no renaming: whoever comes second must not replace what the first one reads already.
        os.link(draft.name, path)
    except FileExistsError:
        return
    finally:
        Path(draft.name).unlink()


def _read(path: Path) -> bytes | None:
    if not _is_ours(path, directory=False):
        return None
    secret = path.read_bytes()
    return secret if len(secret) == _BYTES else None


def _is_ours(path: Path, *, directory: bool) -> bool:
    found = path.lstat()
    kind = stat.S_ISDIR(found.st_mode) if directory else stat.S_ISREG(found.st_mode)
    return kind and found.st_uid == os.getuid() and not found.st_mode & 0o077
