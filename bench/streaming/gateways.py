"""Start what ``bench/streaming/run.py`` measures: one backend, and three Envoys before it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.common.envoys import another_envoy
from bench.streaming.texts import REQUEST
from tests.fakes.ports import free_port
from tests.integration.support.stack import Stack, wait_for
from truthlens.core.net import Address
from truthlens.envoy.process import is_listening

ROOT = Path(__file__).parents[2]
MODES = ("observe", "gate", "buffer")
# Almost nothing is flagged, so that every path delivers the same text; the verdict is asked for as a chunk.
POLICY = """\
trusted_headers: [x-domain]
hallucination: {enabled: true, default_mode: lightweight, threshold: 0.999, details: true}
signals:
  domains:
    - {name: observe, headers: {x-domain: [observe]}}
    - {name: gate, headers: {x-domain: [gate]}}
    - {name: buffer, headers: {x-domain: [buffer]}}
decisions:
  - name: observe
    priority: 90
    rules: {type: domain, name: observe}
    plugins: [{type: hallucination, configuration: {streaming: observe}}]
  - name: gate
    priority: 80
    rules: {type: domain, name: gate}
    plugins: [{type: hallucination, configuration: {streaming: gate, stream: {max_hold_s: MAX_HOLD}}}]
  - name: buffer
    priority: 70
    rules: {type: domain, name: buffer}
    plugins: [{type: hallucination, configuration: {streaming: buffer}}]
"""


@dataclass(frozen=True)
class Route:
    """One way to the backend.

    ``envoy``, ``backend`` and ``processor`` are the processes whose CPU is counted.
    """

    name: str
    address: Address
    envoy: int
    backend: int
    processor: int | None = None
    headers: dict[str, str] = field(default_factory=dict)


class BackendProcess:
    """``bench/streaming/backend.py`` as the backend of a ``Stack``."""

    def __init__(self) -> None:
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it listens."""
        self.process = _module("stream_backend", str(self.port))
        wait_for(lambda: is_listening(Address("127.0.0.1", self.port)), "the backend")

    @property
    def pid(self) -> int:
        """Its process."""
        assert self.process is not None
        return self.process.pid

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def truthlens(folder: Path, *, max_hold_s: float, message_timeout_s: float = 10.0) -> Iterator[Stack]:
    """Start backend, sidecar and Envoy."""
    policy = POLICY.replace("MAX_HOLD", f"{max_hold_s:g}")
    stack = Stack(folder, policy, backend=BackendProcess(), message_timeout_s=message_timeout_s)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@contextlib.contextmanager
def paths(stack: Stack) -> Iterator[list[Route]]:
    """Start Envoy alone, Envoy with a processor that only acknowledges, and the immediate stream modes."""
    assert stack.envoy is not None
    assert stack.sidecar is not None
    backend = stack.backend.pid
    with contextlib.ExitStack() as processes:
        alone, alone_pid = another_envoy(stack, None, processes, answers=_is_bare)
        bare = Address("127.0.0.1", free_port())
        echo = _module("stream_bare", str(bare))
        processes.callback(echo.kill)
        wait_for(lambda: is_listening(bare), "the bare processor")
        echoed, echoed_pid = another_envoy(stack, bare, processes, answers=_is_bare)
        yield [
            Route("Envoy alone", alone, alone_pid, backend),
            Route("bare echo", echoed, echoed_pid, backend, echo.pid),
            *[
                Route(mode, stack.listen, stack.envoy.pid, backend, stack.sidecar.pid, {"x-domain": mode})
                for mode in ("observe", "gate")
            ],
        ]


def _module(name: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", f"bench.{name}", *arguments], cwd=ROOT)


def _is_bare(url: str) -> bool:
    reply = httpx.post(url, json={**REQUEST, "stream": True}, headers={"x-bench": '{"tokens": 1}'})
    return "x-bare" in reply.headers
