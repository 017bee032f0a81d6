"""The number types that a training's products are fastest in on this machine."""

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


def int8_is_faster(device: str) -> bool:
    """Return whether products with frozen weights take clearly less time on ``device`` in 8-bit whole numbers than in any other type."""
    return device == "cpu" and _seconds(torch.int8) < 0.8 * min(
        map(_seconds, (torch.float32, torch.bfloat16))
    )


@cache
def _bfloat16_is_faster() -> bool:
    return _seconds(torch.bfloat16) < _seconds(torch.float32)


@cache
def _seconds(kind: torch.dtype) -> float:
    rows, weights = torch.ones(_TOKENS, _WIDTH), torch.ones(_WIDTH, _WIDTH, dtype=kind)
    times = []
    for _ in range(16):
        begun = time.thread_time()
        if kind is torch.int8:
            whole = (rows / rows.abs().amax(dim=1, keepdim=True)).round_().to(kind)
            torch._int_mm(whole, weights)  # noqa: SLF001
        else:
            torch.nn.functional.linear(rows.to(kind), weights)
        times.append(time.thread_time() - begun)
    return min(times)
