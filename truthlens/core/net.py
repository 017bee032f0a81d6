"""Addresses: where a process listens, and where the backend is."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from truthlens.core.errors import StartError

_HEALTH_ABOVE = 1000
# All between :// and the last @: a password that was not quoted may hold anything.
_CREDENTIALS = re.compile(r"(?<=://)[^\s'\"]*@")


def without_credentials(text: str) -> str:
    """Return ``text`` without users and passwords of the URLs in it."""
    return _CREDENTIALS.sub("***@", text)


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port, or (``port`` 0 and ``host`` a path) a unix socket."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, *, name: str) -> Address:
        """Read ``HOST:PORT``, ``[V6]:PORT`` or ``unix:/PATH``.

        Raises:
            StartError: for anything else; ``name`` is the flag to fix.
        """
        if text.startswith("unix:"):
            return cls(text.removeprefix("unix:"), 0)
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdigit() or not 0 < int(port) < 65536:
            shown = without_credentials(repr(text))
            raise StartError(f"{name} is {shown}, expected HOST:PORT (127.0.0.1:10000) or unix:/PATH")
        return cls(host.strip("[]") or "0.0.0.0", int(port))  # noqa: S104 - an empty host means every interface

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it: a unix socket or a loopback address."""
        return not self.port or self.host == "localhost" or is_loopback(self.host)

    @property
    def health(self) -> Address | None:
        """Where the process that takes exchanges here answers health checks unless told otherwise.

        ``None`` for a unix socket, on which it answers them itself: Envoy can check another port, and no other socket.
        """
        if not self.port:
            return None
        above = self.port + _HEALTH_ABOVE
        return Address(self.host, above if above < 65536 else self.port - _HEALTH_ABOVE)

    def __str__(self) -> str:
        if not self.port:
            return f"unix:{self.host}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Return whether ``host`` is a loopback IP address; names are none."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Upstream:
    """The OpenAI-compatible backend: ``http(s)://host[:port][/prefix]``."""

    host: str
    port: int
    tls: bool
    prefix: str = ""

    @classmethod
    def parse(cls, url: str) -> Upstream:
        """Read a base URL; a trailing ``/v1`` is taken as the API's own prefix and dropped.

        Raises:
            StartError: for another scheme or a URL without a host.
        """
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = 0
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            shown = without_credentials(repr(url))
            raise StartError(f"--upstream is {shown}, expected http://HOST:PORT or https://HOST")
        prefix = parts.path.rstrip("/").removesuffix("/v1")
        tls = parts.scheme == "https"
        return cls(parts.hostname, port or (443 if tls else 80), tls, prefix)

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}{self.prefix}"
