"""Measure the CPU of a round of streams from ``/proc``: its processes, and the whole machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from bench.gateway.run import cpu_seconds
from bench.streaming.gateways import Route


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU seconds: of the processor, of Envoy, of backend and client.

    Busy ones of the machine, and all it had.
    """

    processor: float
    envoy: float
    bench: float
    busy: float
    machine: float

    @classmethod
    def of(cls, route: Route) -> Spent:
        """Return what was spent up to now."""
        fields = [int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        tick = os.sysconf("SC_CLK_TCK")
        return cls(
            processor=cpu_seconds(route.processor) if route.processor else 0.0,
            envoy=cpu_seconds(route.envoy),
            bench=cpu_seconds(route.backend) + cpu_seconds(os.getpid()),
            busy=(sum(fields) - fields[3] - fields[4]) / tick,
            machine=sum(fields) / tick,
        )

    def since(self, before: Spent) -> Spent:
        """Return what was spent since ``before``."""
        return Spent(*(now - then for now, then in zip(astuple(self), astuple(before), strict=True)))


def cpu_figures(rounds: Sequence[Spent], streams: int, route: Route) -> dict[str, float | None]:
    """Return milliseconds a stream of processor (``None`` if none) and Envoy, and busy shares (0..1).

    ``others_busy`` is the share that went to what is no part of the path: what disturbed the figures.
    """
    machine = sum(each.machine for each in rounds)
    own = sum(each.processor + each.envoy + each.bench for each in rounds)
    busy = sum(each.busy for each in rounds)
    processor = sum(each.processor for each in rounds) / streams * 1000
    return {
        "processor_cpu_ms": processor if route.processor else None,
        "envoy_cpu_ms": sum(each.envoy for each in rounds) / streams * 1000,
        "machine_busy": busy / machine,
        "others_busy": (busy - own) / machine,
    }
