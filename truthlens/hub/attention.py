"""Attention as it is exported: head by head, with the padding mask folded into the product.

The stock export builds (tokens, tokens) masks and NaN guards for every layer and keeps the scores of all heads in
memory at once; on one core that costs as much as all matrix products of the int8 model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

_NAME = "truthlens_export"


def attention_by_head(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float | None = None,
    **_kwargs: Any,
) -> tuple[Tensor, None]:
    """Softmax attention, shape (batch, tokens, heads, width).

    Args:
        module: the attention layer; not used.
        query: shape (batch, heads, tokens, width); ``key`` and ``value`` likewise.
        key: see ``query``.
        value: see ``query``.
        attention_mask: additive, shape (batch, 1, 1, tokens).
        scaling: of the scores; by default one over the square root of the width.
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    # One more column: query 1 times key mask adds the mask to every score within the same product.
    ones = torch.ones_like(query[:, 0, :, :1])
    mask = attention_mask[:, 0].transpose(-1, -2)
    heads = []
    for head in range(query.shape[1]):
        left = torch.cat([query[:, head] * scale, ones], dim=-1)
        right = torch.cat([key[:, head], mask], dim=-1)
        weights = torch.softmax(torch.matmul(left, right.transpose(-1, -2)), dim=-1)
        heads.append(torch.matmul(weights, value[:, head]))
    return torch.stack(heads, dim=2), None


@contextmanager
def export_attention(encoder: nn.Module) -> Iterator[None]:
    """Within the block, ``encoder`` (of ``transformers``) attends by ``attention_by_head``."""
    ALL_ATTENTION_FUNCTIONS.register(_NAME, attention_by_head)
    config: Any = encoder.config
    before = config._attn_implementation  # noqa: SLF001  # the library has no public way to read it
    encoder.set_attn_implementation(_NAME)  # type: ignore[operator]
    try:
        yield
    finally:
        encoder.set_attn_implementation(before)  # type: ignore[operator]
