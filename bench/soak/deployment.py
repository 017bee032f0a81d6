"""What the soak drives: Envoy before two sidecars that a supervisor keeps alive, a backend, a Redis and a PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx
import yaml

from bench.streaming.gateways import BackendProcess
from tests.fakes.auto_redis_server import RedisServer
from tests.fakes.postgres_server import PostgresServer
from tests.integration.support.backend import Backend
from tests.integration.support.chaos.rounds import chaos_policy
from tests.integration.support.mutual_tls import MutualTls, reconnecting
from tests.integration.support.stack import Stack, wait_for
from tests.integration.support.streams.gateway import policy as stream_policy
from truthlens.core.net import Address
from truthlens.envoy.config import EnvoySettings

MODE_DEADLINE_S = 6.0
NOTICES = ("Check this (1).", "Check this (2).")
"""The warning of plan ``edited``, which edits of the policy change from one to the other."""
_PLANS = {
    "plain": {},
    "details": {"details": True},
    "strict": {"on_unchecked": "block"},
    "shadow": {"shadow": True, "on_unchecked": "block"},
    "edited": {"warning_template": NOTICES[0]},
    "agentic": {
        "mode": "agentic",
        "retrieval": {"sources": ["handbook"]},
        "mitigation": {"deadline_s": MODE_DEADLINE_S},
    },
}
_FAKETIME = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
_PAGE = "# Fees\n\nA domestic wire transfer costs 12 dollars. An international one costs 40 dollars.\n"


def policy(detectors: Sequence[str] = ()) -> str:
    """Return a policy with the plans of both kinds of chaos, by ``x-plan`` and ``x-domain``, and those of plain exchanges."""
    modes, streams = (yaml.safe_load(text) for text in (chaos_policy(MODE_DEADLINE_S), stream_policy()))
    domains = [{"name": name, "headers": {"x-plan": [name]}} for name in _PLANS]
    decisions = [
        {
            "name": name,
            "priority": 50,
            "rules": {"type": "domain", "name": name},
            "plugins": [{"type": "hallucination", "configuration": keys}],
        }
        for name, keys in _PLANS.items()
    ]
    modes["trusted_headers"] = ["x-plan", "x-domain", "x-truthlens-details"]
    # Cores are shared with whatever else runs: what is slow is no fault here, what is wrong is.
    modes["hallucination"]["timeout_s"] = 20
    if detectors:
        modes["hallucination"]["detectors"] = list(detectors)
    modes["sources"] = [{"name": "handbook", "type": "folder", "path": "../pages"}]
    modes["review"] = {"keep_text": True, "rules": [{"name": "flagged"}]}
    modes["signals"]["domains"] += streams["signals"]["domains"] + domains
    modes["decisions"] += streams["decisions"] + decisions
    return yaml.safe_dump(modes, sort_keys=False, width=1000)


@dataclass
class Exit:
    """One end of a sidecar: when, its status, and whether a fault asked for it."""

    at: float
    status: int
    wanted: bool


@dataclass
class Replica:
    """One sidecar, started again whenever it ends, as by a kubelet or systemd."""

    name: str
    stack: Stack
    exits: list[Exit] = field(default_factory=list)
    ending: bool = False
    """Whether a fault has asked it to end."""
    held: bool = False
    """Whether the supervisor leaves it alone."""

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process that runs, or ran last."""
        assert self.stack.sidecar is not None
        return self.stack.sidecar

    def end(self, number: signal.Signals) -> None:
        """Send the signal that ends it; the supervisor starts it again."""
        self.ending = True
        self.process.send_signal(number)

    async def supervise(self) -> None:
        """Start it again whenever it has ended, until cancelled."""
        while True:
            await asyncio.sleep(0.1)
            status = self.process.poll()
            if status is None or self.held:
                continue
            self.exits.append(Exit(time.time(), status, self.ending))
            self.ending = False
            await asyncio.to_thread(self.stack.start_sidecar)

    def policy_version(self) -> str:
        """Return which policy it says is in force."""
        version: str = httpx.get(f"{self.stack.console_url}/readyz", timeout=30).json()["policy"]["version"]
        return version

    def metric(self, name: str) -> float:
        """Return the sum of a metric's series."""
        lines = httpx.get(f"{self.stack.console_url}/metrics", timeout=30).text.splitlines()
        return sum(
            float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name}{{", f"{name} "))
        )


class _Stack(Stack):
    def bootstrap(self, settings: EnvoySettings) -> str:
        return reconnecting(super().bootstrap(settings))


class Deployment:
    """Two replicas, of which the second has a clock that can jump and keeps its reviews in a file; the first in PostgreSQL."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        *,
        detectors: Sequence[str] = (),
        fail_open: bool = True,
        patient: bool = False,
        clock: bool = True,
    ) -> None:
        self.fail_open = fail_open
        self.redis, self.postgres = RedisServer(), PostgresServer()
        self.backend = BackendProcess("bench.soak.backend", str(seed))
        self.has_clock = clock and _FAKETIME is not None
        self.clock = folder / "clock"
        self.clock.write_text("+0")
        (folder / "tls").mkdir()
        # Valid at whatever time the second replica's clock jumps to.
        self.tls = MutualTls(folder / "tls", days=20 * 365)
        stacks = []
        for name, reviews in (("a", self.postgres.url()), ("b", f"sqlite:///{folder}/b/reviews.db")):
            (folder / name).mkdir(exist_ok=True)
            stacks.append(
                _Stack(
                    folder / name,
                    policy(detectors),
                    backend=cast("Backend", self.backend),
                    arguments=(
                        "--workers",
                        "1",
                        "--redis",
                        self.redis.url,
                        "--review-database",
                        reviews,
                        "--drain-grace",
                        "30",
                        *self.tls.arguments,
                    ),
                    environ=self._clock() if name == "b" else {},
                    patient=patient,
                )
            )
        self.front, second = stacks
        second.policy = self.front.policy
        (folder / "a" / "pages").mkdir(exist_ok=True)
        (folder / "a" / "pages" / "fees.md").write_text(_PAGE)
        self.replicas = [Replica("a", self.front), Replica("b", second)]
        options: dict[str, Any] = {
            "extproc": [stack.extproc for stack in stacks],
            "health": [stack.health for stack in stacks],
            "failure_mode_allow": fail_open,
            "message_timeout_s": 25.0,
            "sidecar_tls": self.tls.envoy,
        }
        self.front.envoy_settings(**options)
        self._supervisors: list[asyncio.Task[None]] = []

    def _clock(self) -> dict[str, str]:
        """Return what lets a file say the time, where libfaketime is installed; the monotonic clock goes on, as on a machine."""
        if not self.has_clock:
            return {}
        return {
            "LD_PRELOAD": str(_FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self.clock),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def start(self) -> None:
        """Start everything and wait until both replicas are in use."""
        self.redis.start()
        self.postgres.start()
        self.replicas[1].stack.start_sidecar()
        self.front.start(wait=False)
        wait_for(self.healthy, "two healthy sidecars")

    def stop(self) -> None:
        """End everything."""
        for stack in (each.stack for each in self.replicas):
            for process in (stack.envoy, stack.sidecar):
                if process is not None and process.poll() is None:
                    process.send_signal(signal.SIGCONT)
                    process.kill()
                    process.wait(20)
        self.backend.stop()
        self.redis.kill()
        self.postgres.remove()

    @contextlib.asynccontextmanager
    async def supervised(self) -> Any:
        """Keep the replicas alive within the block; an error of a supervisor ends it."""
        async with asyncio.TaskGroup() as group:
            self._supervisors = [group.create_task(each.supervise()) for each in self.replicas]
            try:
                yield
            finally:
                for task in self._supervisors:
                    task.cancel()

    def healthy(self) -> bool:
        """Return whether Envoy uses both replicas."""
        return self.front.stat("cluster.truthlens.membership_healthy") == len(self.replicas)

    async def recovered(self) -> None:
        """Wait until Envoy uses both replicas again."""
        await asyncio.to_thread(wait_for, self.healthy, "two healthy sidecars")

    def weather(self, kind: str) -> None:
        """Say how the models of the modes are."""
        httpx.post(
            f"http://127.0.0.1:{self.backend.port}/weather", content=kind, timeout=30
        ).raise_for_status()

    def edit(self, text: str) -> None:
        """Put another policy in its place, whole or not at all."""
        new = self.front.policy.with_suffix(".new")
        new.write_text(text)
        new.replace(self.front.policy)

    async def told(self, holds: Callable[[dict[str, Any]], bool], what: str) -> None:
        """Wait until both replicas say of their policy what ``holds``."""

        def all_say() -> bool:
            urls = [f"{each.stack.console_url}/readyz" for each in self.replicas]
            return all(holds(httpx.get(url, timeout=30).json()["policy"]) for url in urls)

        await asyncio.to_thread(wait_for, all_say, what)

    def tls_reloads(self) -> list[float]:
        """Return how often each replica, and Envoy, have taken over new certificates."""
        name = "cluster.truthlens.client_ssl_socket_factory.ssl_context_update_by_sds"
        taken = [each.metric('truthlens_tls_reloads_total{result="ok"}') for each in self.replicas]
        return [*taken, float(self.front.stat(name))]

    def connections(self) -> int:
        """Return how often Envoy has connected to the replicas."""
        return self.front.stat("cluster.truthlens.upstream_cx_total")

    def console(self, number: int) -> Address:
        """Return the console that an exchange which needs one asks."""
        return self.replicas[number % len(self.replicas)].stack.console


@contextlib.contextmanager
def deployed(seed: int, **options: Any) -> Iterator[Deployment]:
    """Start a deployment in a folder of its own, which goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="truthlens-soak-"))
    deployment = Deployment(folder, seed, **options)
    try:
        deployment.start()
        yield deployment
    finally:
        deployment.stop()
        shutil.rmtree(folder, ignore_errors=True)
