"""Read secrets from files that options name."""

from __future__ import annotations

from pathlib import Path

from truthlens.core.errors import StartError

_LEAST_SECRET_BYTES = 16


def read_secret(file: Path | None, flag: str) -> bytes | None:
    """Return the bytes of a file without the space around them; ``None`` without a file.

    Raises:
        StartError: there are fewer than 16; ``flag`` is the option to fix.
    """
    if file is None:
        return None
    secret = file.read_bytes().strip()
    if len(secret) < _LEAST_SECRET_BYTES:
        raise StartError(
            f"{flag} {file} holds {len(secret)} bytes, expected {_LEAST_SECRET_BYTES} or more:"
            " openssl rand -base64 32"
        )
    return secret


def read_text(file: Path, flag: str) -> str:
    """Return the text of a file.

    Raises:
        StartError: it is not to be read, or not UTF-8; ``flag`` is the option to fix.
    """
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"{flag} {file} cannot be read as text ({type(error).__name__})") from error
