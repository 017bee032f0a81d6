"""Look at addresses of this machine: whether one is free to listen on, and whether somebody listens."""

from __future__ import annotations

import contextlib
import errno
import socket
from pathlib import Path

from truthlens.core.errors import StartError
from truthlens.core.net import Address


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
        if not Path(address.host).parent.is_dir():
            raise StartError(
                f"{address}: there is no folder {Path(address.host).parent}; choose another with {flag}"
            )
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
