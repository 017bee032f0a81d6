"""Look at addresses of this machine: whether one is free to listen on, and whether somebody listens."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from pathlib import Path

from truthlens.core.errors import StartError
from truthlens.core.net import Address

_LONGEST_SOCKET_PATH = 107  # Linux, without the NUL at its end


def is_listening(address: Address) -> bool:
    """Return whether a connection to ``address`` is accepted."""
    family = (
        socket.AF_UNIX if not address.port else (socket.AF_INET6 if ":" in address.host else socket.AF_INET)
    )
    host = "127.0.0.1" if address.host == "0.0.0.0" else address.host  # noqa: S104
    with socket.socket(family) as probe:
        probe.settimeout(0.5)
        with contextlib.suppress(OSError):
            probe.connect(host if not address.port else (host, address.port))
            return True
    return False


def ensure_free(address: Address, *, flag: str) -> None:
    """Fail early, naming the flag to use, if the address cannot be used or is in use.

    Raises:
        StartError: the address is taken, not one of this machine's, or not allowed.
    """
    if not address.port:
        _ensure_free_socket(address, flag)
        return
    try:
        family, kind, _, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as probe:
            # As servers do: without it a port would count as taken for a minute after its process has ended.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            probe.listen()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise StartError(
                f"{address} is taken by another process; stop it, or choose another with {flag}"
            ) from error
        raise StartError(
            f"cannot listen on {address}: {error.strerror}; choose another address with {flag}"
        ) from error


def _ensure_free_socket(address: Address, flag: str) -> None:
    """Refuse a path at which a server still listens, for the next one would take its place unseen; what a dead one left is free."""
    path = Path(address.host)
    wrong = ""
    try:
        if not path.parent.is_dir():
            wrong = f"there is no folder {path.parent}"
        elif not os.access(path.parent, os.W_OK | os.X_OK):
            wrong = f"this process may not write into the folder {path.parent}"
        elif (size := len(os.fsencode(path))) > _LONGEST_SOCKET_PATH:
            wrong = f"its path has {size} bytes, and that of a socket may have {_LONGEST_SOCKET_PATH}"
        elif not stat.S_ISSOCK(path.lstat().st_mode):
            wrong = "there is something else than a socket"
        elif not _is_dead(path):
            wrong = "another server listens there; stop it"
    except FileNotFoundError:
        return
    except OSError as error:
        wrong = f"cannot be looked at ({error.strerror})"
    if wrong:
        raise StartError(f"{address}: {wrong}; choose another with {flag}")


def _is_dead(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(0.5)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except (TimeoutError, BlockingIOError):
            return False  # somebody listens, and has a full queue
    return False
