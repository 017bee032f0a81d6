"""Token probabilities of a trained classifier for whole answers, in torch (the workshop's own reading)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.detection.models.inputs.manifest import InputFormat
from truthlens.lab.data.dataset import Example
from truthlens.lab.train.batches import encode_examples, iterate, make_batches, merge_tokens
from truthlens.lab.train.model import TokenClassifier

_BATCH_TOKENS = 8_000


def predict(
    model: TokenClassifier, tokenizer: Tokenizer, examples: Sequence[Example], *, fmt: InputFormat
) -> list[NDArray[np.float64]]:
    """Return per example the margins (logit unsupported minus logit supported), shape (answer tokens,)."""
    items = encode_examples(tokenizer, examples, format_of=lambda _: fmt)
    parts: list[list[tuple[int, NDArray[np.float64]]]] = [[] for _ in examples]
    batches = make_batches(items, budget_tokens=_BATCH_TOKENS, seed=None)
    model.eval()
    with torch.inference_mode():
        for batch in iterate(items, batches, pad_id=tokenizer.token_to_id("[PAD]") or 0):
            logits = model(batch.input_ids, batch.attention_mask, batch.token_type_ids, batch.features)
            margins = (logits[..., 1] - logits[..., 0]).double().numpy()
            for row, item in enumerate(batch.items):
                parts[item.row].append((item.first, margins[row, item.answer]))
    model.train()
    return [
        merge_tokens(max((first + len(values) for first, values in found), default=0), found)
        for found in parts
    ]


def response_hazard(margins: NDArray[np.float64]) -> float:
    """Return the summed log-hazard Σ −log(1 − p) of the tokens: Noisy-OR before it saturates, for ranking."""
    return float(np.logaddexp(0.0, margins).sum())
