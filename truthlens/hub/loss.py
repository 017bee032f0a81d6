"""What the classifier learns from: its tokens where people marked them, and the answer as a whole."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from truthlens.hub.batches import IGNORED, Batch

_POSITIVE_WEIGHT = 2.0
_EXAMPLE_SHARE = 0.5
_TOP_TOKENS = 3


def batch_loss(logits: Tensor, batch: Batch) -> Tensor:
    """Token cross-entropy where spans are marked, plus half the example's on its three worst tokens.

    Args:
        logits: shape (batch, tokens, 2).
        batch: the labels.
    """
    known = batch.token_labels != IGNORED
    weights = batch.weight[:, None] * torch.where(batch.token_labels == 1, _POSITIVE_WEIGHT, 1.0) * known
    losses = functional.cross_entropy(
        logits.flatten(0, 1), batch.token_labels.flatten(), ignore_index=IGNORED, reduction="none"
    ).view_as(batch.token_labels)
    token = (losses * weights).sum() / weights.sum().clamp(min=1.0)
    margin = (logits[..., 1] - logits[..., 0]).masked_fill(~batch.answer_mask, -torch.inf)
    top = margin.topk(min(_TOP_TOKENS, margin.shape[1]), dim=1).values
    finite = torch.isfinite(top)
    mean = top.masked_fill(~finite, 0.0).sum(dim=1) / finite.sum(dim=1).clamp(min=1)
    example = functional.binary_cross_entropy_with_logits(mean, batch.label, reduction="none")
    whole = (example * batch.weight).sum() / batch.weight.sum().clamp(min=1e-6)
    return token + _EXAMPLE_SHARE * whole
