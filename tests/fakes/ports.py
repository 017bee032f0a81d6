"""Ports for servers of tests."""

from __future__ import annotations

import os
import random
import socket
from collections import deque

_FIRST, _SHARES, _SHARE = 20_000, 6, 2_000
_HEALTH = 1_000  # a sidecar answers health checks this far above its port, unless it is given another
# Hypothesis seeds the module's own generator, and workers of pytest-xdist would then all try the same ports.
_random = random.SystemRandom()
_given: deque[int] = deque(maxlen=_HEALTH // 2)


def free_port() -> int:
    """A port that nothing listens on, on it or where a sidecar on it would answer health checks; not given again soon.

    Above the ports that a sidecar has by default, and below the range from which systems take those of outgoing
    connections: a client could have taken one of those before the server starts that it is meant for. Each worker of
    pytest-xdist draws from the lower half of a share of its own; the upper half is for health checks.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _SHARES
    while True:
        port = _FIRST + worker * _SHARE + _random.randrange(_HEALTH)
        if port not in _given and _is_free(port) and _is_free(port + _HEALTH):
            _given.append(port)
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
