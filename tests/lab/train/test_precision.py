"""The number type of a training's products: the faster one on a CPU, bfloat16 on a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from truthlens.lab.train import precision


@pytest.fixture(autouse=True)
def _timed_anew() -> Iterator[None]:
    precision._bfloat16_is_faster.cache_clear()
    yield
    precision._bfloat16_is_faster.cache_clear()


def product_type(device: str) -> torch.dtype:
    with precision.autocast(device):
        return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else torch.float32


@pytest.mark.parametrize("faster", [torch.float32, torch.bfloat16])
def test_a_cpu_computes_in_the_type_that_it_is_faster_in(
    monkeypatch: pytest.MonkeyPatch, faster: torch.dtype
) -> None:
    monkeypatch.setattr(precision, "_seconds", lambda kind: 1.0 if kind == faster else 3.0)
    assert product_type("cpu") == faster


def test_a_gpu_computes_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, torch.dtype, bool]] = []
    monkeypatch.setattr(
        torch, "autocast", lambda kind, dtype, *, enabled: asked.append((kind, dtype, enabled))
    )
    precision.autocast("cuda:0")
    assert asked == [("cuda", torch.bfloat16, True)]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_both_types_are_timed_for_real(kind: torch.dtype) -> None:
    assert precision._seconds(kind) > 0
