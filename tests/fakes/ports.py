"""Ports for servers of tests."""

from __future__ import annotations

import random
import socket

_given: set[int] = set()


def free_port() -> int:
    """A port that nothing listens on, given out once.

    Below the range from which systems take ports for outgoing connections: one of those could be taken by a client
    before the server that it is meant for starts.
    """
    while True:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _given:
            _given.add(port)
            return port
