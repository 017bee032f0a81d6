"""Start what ``bench/streaming/run.py`` measures: one backend, and the Envoys before it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.common.envoys import another_envoy
from bench.streaming.texts import REQUEST
from tests.fakes.ports import free_port
from tests.integration.support.stack import Stack, wait_for
from truthlens.core.net import Address
from truthlens.envoy.ports import is_listening

ROOT = Path(__file__).parents[2]
MODES = ("observe", "gate", "buffer")
PATHS = ("bare echo", "off", "observe", "gate")
# Almost nothing is flagged, so that every path delivers the same text; the verdict is asked for as a chunk.
POLICY = """\
trusted_headers: [x-domain]
hallucination: {enabled: true, default_mode: lightweight, threshold: 0.999, details: true}
signals:
  domains:
    - {name: "off", headers: {x-domain: ["off"]}}
    - {name: observe, headers: {x-domain: [observe]}}
    - {name: gate, headers: {x-domain: [gate]}}
    - {name: buffer, headers: {x-domain: [buffer]}}
    - {name: json, headers: {x-domain: [json]}}
decisions:
  - name: "off"
    priority: 90
    rules: {type: domain, name: "off"}
    plugins: [{type: hallucination, configuration: {enabled: false}}]
  - name: observe
    priority: 80
    rules: {type: domain, name: observe}
    plugins: [{type: hallucination, configuration: {streaming: observe}}]
  - name: gate
    priority: 70
    rules: {type: domain, name: gate}
    plugins: [{type: hallucination, configuration: {streaming: gate, stream: {max_hold_s: MAX_HOLD}}}]
  - name: buffer
    priority: 60
    rules: {type: domain, name: buffer}
    plugins: [{type: hallucination, configuration: {streaming: buffer}}]
  - name: json
    priority: 50
    rules: {type: domain, name: json}
    plugins: [{type: hallucination, configuration: {on_unchecked: block}}]
"""


@dataclass(frozen=True)
class Route:
    """One way to the backend.

    ``envoy`` and ``processor`` are the processes whose CPU is counted. ``checked``: every stream must have a verdict.
    """

    name: str
    address: Address
    envoy: int
    processor: int
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def checked(self) -> bool:
        """Whether its streams have verdicts."""
        return self.name in MODES


class BackendProcess:
    """A module that is a backend, with a port as its first argument, as the backend of a ``Stack``."""

    def __init__(self, module: str = "bench.streaming.backend", *arguments: str) -> None:
        self.port = free_port()
        self._started = (module, str(self.port), *arguments)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it listens."""
        self.process = _module(*self._started)
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
def truthlens(
    folder: Path, *, max_hold_s: float, message_timeout_s: float = 10.0, tree: Path = ROOT
) -> Iterator[Stack]:
    """Start backend, sidecar and Envoy; the sidecar runs the code of ``tree``."""
    policy = POLICY.replace("MAX_HOLD", f"{max_hold_s:g}")
    code = {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
    stack = Stack(folder, policy, backend=BackendProcess(), environ=code, message_timeout_s=message_timeout_s)
    if not (tree / "truthlens" / "gateway" / "health.py").exists():
        stack.health = stack.extproc  # a tree from before health had a port of its own
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@contextlib.contextmanager
def routes(stack: Stack, names: Sequence[str]) -> Iterator[list[Route]]:
    """Return the paths of these names; Envoy with a processor that only acknowledges is started for its own."""
    assert stack.envoy is not None
    assert stack.sidecar is not None
    with contextlib.ExitStack() as processes:
        found = []
        if PATHS[0] in names:
            bare = Address("127.0.0.1", free_port())
            echo = _module("bench.streaming.bare", str(bare))
            processes.callback(echo.kill)
            wait_for(lambda: is_listening(bare), "the bare processor")
            address, envoy = another_envoy(stack, bare, processes, answers=_is_bare)
            found.append(Route(PATHS[0], address, envoy, echo.pid))
        found += [
            Route(name, stack.listen, stack.envoy.pid, stack.sidecar.pid, {"x-domain": name})
            for name in PATHS[1:]
            if name in names
        ]
        yield found


def _module(name: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", name, *arguments], cwd=ROOT)


def _is_bare(url: str) -> bool:
    reply = httpx.post(url, json={**REQUEST, "stream": True}, headers={"x-bench": '{"tokens": 1}'})
    return "x-bare" in reply.headers
