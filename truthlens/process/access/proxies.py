"""Where a request comes from: the connection's own address, or what a trusted proxy says of it."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from starlette.datastructures import Headers
from starlette.types import Scope

_LOCAL_SOCKET = "unix"
# What one household or machine is given of IPv6.
_IPV6_PREFIX = 64


@dataclass(frozen=True, slots=True)
class Client:
    """Where a request comes from.

    Args:
        address: of the client, for the rate limits: an IPv6 address by its network of 64 bits.
        https: whether the client's connection is encrypted.
        behind_proxy: whether the connection is that of a trusted proxy, so that its headers are to be believed.
    """

    address: str
    https: bool
    behind_proxy: bool


def client_of(scope: Scope, headers: Headers, trusted: Sequence[IPv4Network | IPv6Network]) -> Client:
    """Return where a request comes from; ``X-Forwarded-For`` and ``-Proto`` are read of trusted proxies alone.

    Whoever can open a unix socket is trusted.
    """
    peer = _address(scope["client"][0]) if scope.get("client") else None
    behind_proxy = peer is None or _is_in(peer, trusted)
    https = scope.get("scheme") == "https"
    if behind_proxy:
        https = https or _items(headers, "x-forwarded-proto")[-1:] == ["https"]
        # The last ones were added by the proxies; the first that is none of them is the client as they saw it.
        for text in reversed(_items(headers, "x-forwarded-for")):
            said = _address(text)
            if said is None:
                break
            peer = said
            if not _is_in(said, trusted):
                break
    return Client(_key(peer), https, behind_proxy)


def _items(headers: Headers, name: str) -> list[str]:
    return [item.strip().lower() for value in headers.getlist(name) for item in value.split(",")]


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_in(address: IPv4Address | IPv6Address, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    return any(address in network for network in networks)


def _key(address: IPv4Address | IPv6Address | None) -> str:
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, _IPV6_PREFIX), strict=False))
    return str(address) if address else _LOCAL_SOCKET
