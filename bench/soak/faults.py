"""The faults of the soak: what each does to the deployment, and what it may cost an exchange that it touches."""

from __future__ import annotations

import asyncio
import random
import resource
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench.soak.deployment import NOTICES, Deployment, Replica
from bench.soak.expectations import Cost
from tests.integration.support.stack import wait_for

Act = Callable[[Deployment, random.Random, float], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """One kind of fault: it begins, lasts about so many seconds, and has ended, with all as before, when ``act`` returns."""

    act: Act
    costs: frozenset[Cost] = frozenset()
    missing: Callable[[Deployment], str] = lambda _deployment: ""
    """Why it cannot be tried here, if so."""


@dataclass
class Window:
    """When a fault was at work (Unix time); ``until`` is ahead of all times as long as it is."""

    fault: str
    since: float
    until: float = float("inf")


@dataclass
class Calendar:
    """Which faults were at work when."""

    windows: list[Window] = field(default_factory=list)

    @contextmanager
    def during(self, fault: str) -> Iterator[Window]:
        """Note that a fault is at work within the block."""
        window = Window(fault, time.time())
        self.windows.append(window)
        try:
            yield window
        finally:
            window.until = time.time()

    def between(self, began: float, ended: float) -> list[str]:
        """Return the faults that were at work at some time of an exchange."""
        return [each.fault for each in self.windows if each.since <= ended and began <= each.until]


# --- processes --------------------------------------------------------------------------------------------


async def _ended(deployment: Deployment, replica: Replica, number: signal.Signals) -> None:
    """End a replica, and wait until the supervisor has started it again and Envoy uses it."""
    exits = len(replica.exits)
    replica.end(number)
    while len(replica.exits) == exits:
        await asyncio.sleep(0.05)
    # Envoy has to find out that it is gone before it can find it back.
    await asyncio.sleep(2.5)
    await deployment.recovered()


async def kill(deployment: Deployment, rng: random.Random, _seconds: float) -> None:
    """Kill the second replica with SIGKILL: the first one's memory is measured over its whole life."""
    await _ended(deployment, deployment.replicas[1], signal.SIGKILL)


async def restart(deployment: Deployment, rng: random.Random, _seconds: float) -> None:
    """Restart one replica after the other, each with its drain, as a rollout does."""
    for replica in rng.sample(deployment.replicas, len(deployment.replicas)):
        await _ended(deployment, replica, signal.SIGTERM)


async def freeze(deployment: Deployment, rng: random.Random, seconds: float) -> None:
    """Stop a replica for a while, and let it go on."""
    process = rng.choice(deployment.replicas).process
    process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(seconds)
    process.send_signal(signal.SIGCONT)
    await asyncio.sleep(2.5)
    await deployment.recovered()


async def freeze_backend(deployment: Deployment, _rng: random.Random, seconds: float) -> None:
    """Stop the backend, the models with it, for a while, and let it go on."""
    assert deployment.backend.process is not None
    deployment.backend.process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(seconds)
    deployment.backend.process.send_signal(signal.SIGCONT)


async def kill_backend(deployment: Deployment, _rng: random.Random, seconds: float) -> None:
    """Kill the backend; it comes back after a while."""
    deployment.backend.stop()
    await asyncio.sleep(seconds)
    await asyncio.to_thread(deployment.backend.start)


# --- what TruthLens asks ----------------------------------------------------------------------------------


async def models_down(deployment: Deployment, _rng: random.Random, seconds: float) -> None:
    """Let every model be slow, refuse, hang up or break off."""
    await asyncio.to_thread(deployment.weather, "down")
    await asyncio.sleep(seconds)
    await asyncio.to_thread(deployment.weather, "storm")


async def kill_redis(deployment: Deployment, _rng: random.Random, seconds: float) -> None:
    """Kill Redis; it comes back empty."""
    await asyncio.to_thread(deployment.redis.kill)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(deployment.redis.start)


async def kill_postgres(deployment: Deployment, _rng: random.Random, seconds: float) -> None:
    """End PostgreSQL without a checkpoint; it recovers when it comes back."""
    await asyncio.to_thread(deployment.postgres.stop)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(deployment.postgres.start)


async def freeze_postgres(deployment: Deployment, _rng: random.Random, seconds: float) -> None:
    """Let PostgreSQL keep its connections and answer nothing."""
    await asyncio.to_thread(deployment.postgres.freeze)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(deployment.postgres.thaw)


# --- the machine ------------------------------------------------------------------------------------------


async def fill_disk(deployment: Deployment, _rng: random.Random, seconds: float) -> None:
    """Let the second replica write nothing more: neither its log nor its review queue, as on a full disk.

    What a process without privileges can have is a limit on the size of files: writes fail with EFBIG in place of ENOSPC.
    """
    process = deployment.replicas[1].process.pid
    before = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (1024, before[1]))
    await asyncio.sleep(seconds)
    resource.prlimit(process, resource.RLIMIT_FSIZE, before)


async def jump_clock(deployment: Deployment, rng: random.Random, seconds: float) -> None:
    """Set the second replica's clock a day ahead, ten years back, and right again; the monotonic clock goes on."""
    for jump in (*rng.sample(("+1d", "-10y", "+11y", "-1h"), 2), "+0"):
        deployment.clock.write_text(jump)
        await asyncio.sleep(seconds / 3)


# --- the policy -------------------------------------------------------------------------------------------


async def edit_policy(deployment: Deployment, _rng: random.Random, seconds: float) -> None:
    """Change a warning, and change it back; each time both replicas have to take it over."""
    before = deployment.front.policy.read_text()
    versions = {each.policy_version() for each in deployment.replicas}
    deployment.edit(before.replace(*NOTICES))
    await deployment.told(lambda said: said["version"] not in versions, "the other policy in force")
    await asyncio.sleep(seconds)
    deployment.edit(before)
    await deployment.told(lambda said: said["version"] in versions, "the first policy in force again")


async def break_policy(deployment: Deployment, rng: random.Random, seconds: float) -> None:
    """Write what is no policy in its place, and put it right; both replicas have to say so."""
    before = deployment.front.policy.read_text()
    cut = rng.randrange(len(before) // 4, len(before) // 2)
    deployment.edit(
        rng.choice(("hallucination: {threshold: soon}\n", "", before[:cut] + "\n- [", "\0" * 5000))
    )
    await deployment.told(lambda said: said["last_error"] is not None, "the fault of the policy")
    await asyncio.sleep(seconds)
    deployment.edit(before)
    await deployment.told(lambda said: said["last_error"] is None, "no fault of the policy any more")


async def rotate_certificates(deployment: Deployment, _rng: random.Random, seconds: float) -> None:
    """Renew the certificates of Envoy and of both replicas, twice; each time all have to take them over and connect anew."""
    for _ in range(2):
        await asyncio.to_thread(_renew, deployment)
        await asyncio.sleep(seconds / 2)


def _renew(deployment: Deployment) -> None:
    before = deployment.tls_reloads()

    def all_have_them() -> bool:
        return all(now > then for now, then in zip(deployment.tls_reloads(), before, strict=True))

    deployment.tls.renew()
    wait_for(all_have_them, "new certificates in use on both sides")
    least = deployment.connections() + 4
    wait_for(lambda: deployment.connections() >= least, "new connections")


# Costs are what an exchange may lose that overlaps with the fault. Where there are none, nothing may be different.
_DEAD = frozenset((Cost.VERDICT, Cost.CONSOLE, Cost.LATE))
FAULTS: dict[str, Fault] = {
    "kill": Fault(kill, _DEAD),
    "restart": Fault(restart, frozenset((Cost.CONSOLE,))),
    "freeze": Fault(freeze, _DEAD),
    "freeze-backend": Fault(freeze_backend),
    "kill-backend": Fault(kill_backend, frozenset((Cost.BACKEND,))),
    "models-down": Fault(models_down),
    "kill-redis": Fault(kill_redis),
    "kill-postgres": Fault(kill_postgres),
    "freeze-postgres": Fault(freeze_postgres),
    "fill-disk": Fault(fill_disk),
    "jump-clock": Fault(
        jump_clock,
        missing=lambda deployment: (
            ""
            if deployment.has_clock
            else "libfaketime is not installed (apt-get install faketime), or not wanted"
        ),
    ),
    "edit-policy": Fault(edit_policy),
    "break-policy": Fault(break_policy),
    "rotate-certificates": Fault(rotate_certificates),
}


async def weather_of(
    seed: int,
    deployment: Deployment,
    calendar: Calendar,
    names: list[str],
    *,
    pause_s: float,
    over: Callable[[], bool],
) -> None:
    """Try the faults one after the other in an order by lot, with pauses in which nothing fails, until all is over."""
    rng = random.Random(f"{seed} faults")
    left: list[str] = []
    while not over() and names:
        left = left or rng.sample(names, len(names))
        await asyncio.sleep(rng.uniform(0.5, 1.5) * pause_s)
        await strike(left.pop(), deployment, calendar, rng)


async def strike(name: str, deployment: Deployment, calendar: Calendar, rng: random.Random) -> None:
    """Let one fault happen."""
    with calendar.during(name):
        await FAULTS[name].act(deployment, rng, rng.uniform(3.0, 8.0))
        # What is still on its way ends within it.
        await asyncio.sleep(1.0)
