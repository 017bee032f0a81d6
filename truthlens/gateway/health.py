"""Answer ``grpc.health.v1`` on a port and threads of its own, so that a busy event loop does not look like a dead process.

It says SERVING as long as the process takes exchanges, also while it refuses some by its own rules, and NOT_SERVING before
the start, while it drains, and where the event loop has not run for ``STUCK_S``: then it cannot answer at all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from truthlens.core.errors import StartError
from truthlens.core.net import Address

STUCK_S = 10.0
"""As long as Envoy waits for a reply (``message_timeout`` of our configurations): what takes longer is lost anyway."""
_BEAT_S = 0.25


class Pulse:
    """Whether the process takes exchanges: it was told to, and its event loop runs.

    Args:
        clock: monotonic, in seconds; read from several threads.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.serving = False
        self._clock = clock
        self._last = clock()

    @property
    def alive(self) -> bool:
        """Whether exchanges are taken and answered."""
        return self.serving and self._clock() - self._last < STUCK_S

    def beat(self) -> None:
        """Note that the event loop runs."""
        self._last = self._clock()

    async def keep_beating(self, late: Callable[[float], None] = lambda _late_s: None) -> None:
        """Note it again and again, until cancelled; tell ``late`` by how many seconds the loop was late each time."""
        while True:
            self.beat()
            due = self._clock() + _BEAT_S
            await asyncio.sleep(_BEAT_S)
            late(max(0.0, self._clock() - due))


class HealthServer(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """The health service of one process, on threads that do nothing else.

    Args:
        pulse: what it tells of.
        address: where it listens; not a unix socket.
        credentials: those of the ext_proc server, ``None`` for plaintext: Envoy's checks come as its exchanges do.
        services: names that it knows, with ``""`` for the process.

    Raises:
        StartError: it cannot listen there.
    """

    def __init__(
        self,
        pulse: Pulse,
        *,
        address: Address,
        credentials: grpc.ServerCredentials | None,
        services: frozenset[str],
    ) -> None:
        self._pulse = pulse
        self._services = services
        self._server = grpc.server(
            ThreadPoolExecutor(2, thread_name_prefix="truthlens-health"),
            options=[("grpc.so_reuseport", 0), ("grpc.http2.max_ping_strikes", 0)],
            maximum_concurrent_rpcs=64,
        )
        health_pb2_grpc.add_HealthServicer_to_server(self, self._server)
        try:
            if credentials is None:
                self.port = self._server.add_insecure_port(str(address))
            else:
                self.port = self._server.add_secure_port(str(address), credentials)
        except RuntimeError as error:
            raise StartError(
                f"cannot listen for health checks on {address}: another process is there. Choose another address with"
                " --health, and tell Envoy (truthlens envoy-config --health)"
            ) from error

    def start(self) -> None:
        """Answer from now on."""
        self._server.start()

    def stop(self) -> None:
        """Answer no more."""
        self._server.stop(0)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - the service's own name
        """Say whether the process takes exchanges."""
        if request.service not in self._services:
            context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        status = health_pb2.HealthCheckResponse
        return status(status=status.SERVING if self._pulse.alive else status.NOT_SERVING)
