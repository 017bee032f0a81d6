"""Memory, file descriptors and threads of the processes while the soak runs, and the slope of memory with its interval."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from bench.gateway.run import rss_mb
from bench.soak.deployment import Deployment

EVERY_S, BLOCK = 2.0, 10
# What a sidecar takes in its first exchanges (model, caches, pools) is no leak.
WARM_UP = 1000


@dataclass
class Life:
    """One process from its start to its end: samples of exchanges done by then, MiB, descriptors, threads, in flight."""

    name: str
    pid: int
    samples: list[tuple[int, float, int, int]] = field(default_factory=list)


@dataclass
class Sampler:
    """Samples the processes of a deployment; every start of a process begins a life."""

    deployment: Deployment
    done: Callable[[], int]
    lives: list[Life] = field(default_factory=list)

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            for name, pid in self._processes():
                self._sample(name, pid)
            await asyncio.sleep(EVERY_S)

    def _processes(self) -> list[tuple[str, int]]:
        envoy = self.deployment.front.envoy
        assert envoy is not None
        return [*((each.name, each.process.pid) for each in self.deployment.replicas), ("envoy", envoy.pid)]

    def _sample(self, name: str, pid: int) -> None:
        life = next((each for each in reversed(self.lives) if each.name == name), None)
        if life is None or life.pid != pid:
            life = Life(name, pid)
            self.lives.append(life)
        try:
            fds, threads = (sum(1 for _ in Path(f"/proc/{pid}/{name}").iterdir()) for name in ("fd", "task"))
            life.samples.append((self.done(), rss_mb(pid), fds, threads))
        except (OSError, StopIteration):
            return  # it has just ended


@dataclass(frozen=True, slots=True)
class Slope:
    """MiB per 1,000 exchanges, with its 95 % interval; ``blocks`` means of samples were fitted, of ``lives`` processes."""

    value: float
    low: float
    high: float
    blocks: int
    lives: int


def slope(lives: Sequence[Life], *, warm_up: int = WARM_UP) -> Slope | None:
    """Fit memory to exchanges, each life with a level of its own; ``None`` where too little is left behind the warm-up.

    Samples that follow one another are not independent: what is fitted are means of blocks of them.
    """
    parts = []
    for life in lives:
        first = life.samples[0][0] if life.samples else 0
        kept = np.array([(done, mb) for done, mb, _, _ in life.samples if done - first >= warm_up])
        means = [kept[at : at + BLOCK].mean(axis=0) for at in range(0, len(kept) - BLOCK + 1, BLOCK)]
        if len(means) > 2:
            part = np.array(means)
            parts.append(part - part.mean(axis=0))
    if not parts:
        return None
    x, y = np.concatenate(parts).T
    spread, free = float((x * x).sum()), len(x) - len(parts) - 1
    if spread == 0 or free < 1:
        return None
    value = float((x * y).sum()) / spread
    error = float(np.sqrt(((y - value * x) ** 2).sum() / free / spread)) * _student(free)
    return Slope(value * 1000, (value - error) * 1000, (value + error) * 1000, len(x), len(parts))


def _student(free: int) -> float:
    """Return the 97.5 % quantile of Student's t with so many degrees of freedom (expansion by the normal one's)."""
    z = NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)


def figures(lives: Sequence[Life], name: str) -> dict[str, Any]:
    """Return what is told of the lives of one process."""
    own = [each for each in lives if each.name == name and each.samples]
    longest = max(own, key=lambda each: len(each.samples))
    # From the warm-up on, or from the middle of a life that was shorter.
    steady = longest.samples[-max(1, len(longest.samples) // 2) :]
    fitted = slope(own)
    return {
        "process": name,
        "lives": len(own),
        "rss_mb": [
            longest.samples[0][1],
            longest.samples[-1][1],
            max(mb for life in own for _, mb, _, _ in life.samples),
        ],
        "fds": [
            min(fds for _, _, fds, _ in steady),
            longest.samples[-1][2],
            max(fds for life in own for _, _, fds, _ in life.samples),
        ],
        "threads": [longest.samples[-1][3], max(threads for life in own for *_, threads in life.samples)],
        "slope_mb_per_1000": fitted and [fitted.value, fitted.low, fitted.high],
        "blocks": fitted and fitted.blocks,
    }


async def at_rest(deployment: Deployment, patience_s: float) -> dict[str, float]:
    """Return what is left of exchanges in all replicas once nobody asks any more, as soon as that is nothing."""
    names = ("truthlens_inflight", "truthlens_streams", "truthlens_held_bytes")
    until = time.monotonic() + patience_s
    while True:
        left = {
            f"{each.name} {name}": value
            for each in deployment.replicas
            for name in names
            if (value := await asyncio.to_thread(each.metric, name))
        }
        if not left or time.monotonic() > until:
            return left
        await asyncio.sleep(0.5)
