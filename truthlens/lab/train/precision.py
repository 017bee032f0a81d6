"""The number type that a training's products are fastest in on this machine."""

from __future__ import annotations

import time
from functools import cache

import torch

_TOKENS, _WIDTH = 512, 768


def autocast(device: str) -> torch.autocast:
    """Return the context in which a model computes, with weights that stay float32.

    bfloat16 halves the time where the processor has products of it (GPUs, AMX, AVX512-BF16) and takes three times as long where it
    has none, so on a CPU both are timed once.
    """
    kind = device.partition(":")[0]
    return torch.autocast(kind, torch.bfloat16, enabled=kind != "cpu" or _bfloat16_is_faster())


@cache
def _bfloat16_is_faster() -> bool:
    return _seconds(torch.bfloat16) < _seconds(torch.float32)


def _seconds(kind: torch.dtype) -> float:
    rows, weights = torch.ones(_TOKENS, _WIDTH, dtype=kind), torch.ones(_WIDTH, _WIDTH, dtype=kind)
    times = []
    for _ in range(4):
        begun = time.thread_time()
        torch.nn.functional.linear(rows, weights)
        times.append(time.thread_time() - begun)
    return min(times)
