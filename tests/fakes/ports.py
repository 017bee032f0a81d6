"""Ports for servers of tests."""

from __future__ import annotations

import os
import random
import socket

_FIRST, _LAST, _SHARES = 15_000, 32_000, 8
# Hypothesis seeds the module's own generator, and workers of pytest-xdist would then all try the same ports.
_random = random.SystemRandom()
_given: set[int] = set()


def free_port() -> int:
    """A port that nothing listens on, given out once.

    Below the range from which systems take ports for outgoing connections: one of those could be taken by a client
    before the server that it is meant for starts. Each worker of pytest-xdist takes from a share of its own.
    """
    share = (_LAST - _FIRST) // _SHARES
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _SHARES
    while True:
        port = _FIRST + worker * share + _random.randrange(share)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _given:
            _given.add(port)
            return port
