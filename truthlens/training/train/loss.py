"""Define what the classifier learns from: marked tokens, the whole answer, and pairs of answers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from truthlens.training.train.batches import IGNORED, Batch

_POSITIVE_WEIGHT = 2.0
_EXAMPLE_SHARE = 0.5
_CONTRAST_SHARE = 0.25
_TOP_TOKENS = 3


def batch_loss(
    logits: Tensor, batch: Batch, response: Tensor, *, contrast: float = _CONTRAST_SHARE
) -> Tensor:
    """Return the token cross-entropy where spans are marked, plus the answer's, plus that of pairs.

    The answer is scored twice: by its three worst tokens, and by the summed hazard of all, which is what the
    Noisy-OR of serving ranks by. In a pair, the unsupported answer is to score above the supported one.

    Args:
        logits: shape (batch, tokens, 2).
        batch: the labels.
        response: slope and intercept of the hazard's log, shape (2,).
        contrast: share of the pairs in the loss.
    """
    known = batch.token_labels != IGNORED
    weights = batch.weight[:, None] * torch.where(batch.token_labels == 1, _POSITIVE_WEIGHT, 1.0) * known
    losses = functional.cross_entropy(
        logits.flatten(0, 1), batch.token_labels.flatten(), ignore_index=IGNORED, reduction="none"
    ).view_as(batch.token_labels)
    total = (losses * weights).sum() / weights.sum().clamp(min=1.0)
    margin = (logits[..., 1] - logits[..., 0]).masked_fill(~batch.answer_mask, -1e4)
    count = batch.answer_mask.sum(dim=1).clamp(min=1)
    top = margin.topk(min(_TOP_TOKENS, margin.shape[1]), dim=1).values
    finite = torch.arange(top.shape[1])[None] < count[:, None]
    worst = (top * finite).sum(dim=1) / finite.sum(dim=1)
    hazard = response[0] * functional.softplus(margin).sum(dim=1).clamp(min=1e-6).log() + response[1]
    for score in (worst, hazard):
        example = functional.binary_cross_entropy_with_logits(score, batch.label, reduction="none")
        whole = (example * batch.weight).sum() / batch.weight.sum().clamp(min=1e-6)
        total = total + _EXAMPLE_SHARE / 2 * whole
        if len(batch.contrasts):
            gap = score[batch.contrasts[:, 0]] - score[batch.contrasts[:, 1]]
            total = total + contrast / 2 * functional.softplus(-gap).mean()
    return total
