"""The number types that a training's products are fastest in on this machine."""

from __future__ import annotations

import time
from functools import cache

import torch
from torch import Tensor

_PIECE = 256
_TOKENS, _WIDTH = 512, 768


ScaledWeights = tuple[Tensor, Tensor]
"""Whole numbers in -127..127, shape (in, out), and what each column is multiplied with, shape (out,)."""


def scaled(weight: Tensor) -> ScaledWeights:
    """Return weights of shape (in, out) as 8-bit whole numbers, each column with a scale of its own."""
    scale = weight.abs().amax(dim=0).clamp_min(1e-12) / 127
    return (weight / scale).round().to(torch.int8).contiguous(), scale


def int8_product(states: Tensor, weights: ScaledWeights) -> Tensor:
    """Return the product of states (..., in) and weights, shape (..., out), off by about a hundredth of its size."""
    weight, columns = weights
    rows = states.reshape(-1, states.shape[-1])
    out = rows.new_empty(len(rows), len(columns))
    # In pieces that stay in the cache; each row has a scale of its own, and no row of zeros is divided by zero.
    for piece, into in zip(torch.split(rows, _PIECE), torch.split(out, _PIECE), strict=True):
        scale = piece.abs().amax(dim=1, keepdim=True).clamp_min_(1e-30) / 127
        # Torch has no public name for it.
        product = torch._int_mm((piece / scale).round_().to(torch.int8), weight)  # noqa: SLF001
        torch.mul(product, scale, out=into).mul_(columns)
    return out.reshape(*states.shape[:-1], -1)


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
    rows, weights = torch.ones(_TOKENS, _WIDTH), torch.ones(_WIDTH, _WIDTH)
    whole, other = scaled(weights), weights.to(kind)
    times = []
    for _ in range(16):
        begun = time.thread_time()
        if kind is torch.int8:
            int8_product(rows, whole)
        else:
            torch.nn.functional.linear(rows.to(kind), other)
        times.append(time.thread_time() - begun)
    return min(times)
