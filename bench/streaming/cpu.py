"""Measure the CPU of a path from ``/proc``: its processes, and the whole machine."""

from __future__ import annotations

import os
from dataclasses import astuple, dataclass
from pathlib import Path

from bench.gateway.run import cpu_seconds
from bench.streaming.gateways import Route


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU seconds: of the processor, its event loop alone, and of Envoy; busy ones of the machine, and all it had."""

    processor: float
    loop: float
    envoy: float
    busy: float
    machine: float

    @classmethod
    def of(cls, route: Route) -> Spent:
        """Return what was spent up to now."""
        fields = [int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        tick = os.sysconf("SC_CLK_TCK")
        return cls(
            processor=cpu_seconds(route.processor),
            loop=_main_thread_seconds(route.processor),
            envoy=cpu_seconds(route.envoy),
            busy=(sum(fields) - fields[3] - fields[4]) / tick,
            machine=sum(fields) / tick,
        )

    def since(self, before: Spent) -> Spent:
        """Return what was spent since ``before``."""
        return Spent(*(now - then for now, then in zip(astuple(self), astuple(before), strict=True)))


def _main_thread_seconds(pid: int) -> float:
    """Return the CPU time of a process's first thread, on which its event loop runs."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def cpu_figures(spent: Spent, frames: int, *, others_s: float) -> dict[str, float]:
    """Return microseconds a frame of processor and Envoy, and the busy share of the machine (0..1).

    ``others_s``: CPU seconds of the processor that went to other exchanges.
    """
    return {
        "frame_us": (spent.processor - others_s) / frames * 1e6,
        "loop_frame_us": spent.loop / frames * 1e6,
        "envoy_frame_us": spent.envoy / frames * 1e6,
        "machine_busy": spent.busy / spent.machine,
        "frames_per_s": frames / spent.machine * (os.cpu_count() or 1),
    }
