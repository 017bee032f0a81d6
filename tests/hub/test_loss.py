"""Tests of ``truthlens.hub.loss`` against values worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from truthlens.hub.batches import IGNORED, Batch
from truthlens.hub.loss import batch_loss

LOG2 = math.log(2)


def _batch(token_labels: list[list[int]], label: list[float], *, answer: list[list[int]]) -> Batch:
    tokens = torch.tensor(token_labels)
    zeros = torch.zeros_like(tokens)
    return Batch(
        input_ids=zeros,
        attention_mask=torch.ones_like(tokens),
        token_type_ids=zeros,
        features=torch.zeros(*tokens.shape, 1),
        answer_mask=torch.tensor(answer, dtype=torch.bool),
        token_labels=tokens,
        label=torch.tensor(label),
        weight=torch.ones(len(label)),
        items=(),
    )


def _logits(margins: list[list[float]]) -> torch.Tensor:
    values = torch.tensor(margins)
    return torch.stack([torch.zeros_like(values), values], dim=-1)


def test_unsure_tokens_cost_log_two_and_half_of_it_again() -> None:
    """All margins 0: token loss ln 2, example loss ln 2 at half weight."""
    batch = _batch([[IGNORED, 0, 1]], [1.0], answer=[[0, 1, 1]])
    assert batch_loss(_logits([[9.0, 0.0, 0.0]]), batch).item() == pytest.approx(1.5 * LOG2)


def test_positive_tokens_count_twice() -> None:
    """One positive at ln 2 and one negative near 0 average to two thirds of ln 2."""
    batch = _batch([[0, 1]], [1.0], answer=[[1, 1]])
    found = batch_loss(_logits([[-40.0, 0.0]]), batch).item()
    example = math.log1p(math.exp(20.0))  # mean margin of the two tokens is -20, the label 1
    assert found == pytest.approx(2 / 3 * LOG2 + 0.5 * example, rel=1e-5)


def test_unmarked_answers_teach_by_their_worst_tokens() -> None:
    """Without marks only the mean of the three highest margins counts."""
    batch = _batch([[IGNORED] * 5], [0.0], answer=[[1] * 5])
    found = batch_loss(_logits([[3.0, -50.0, 2.0, 1.0, -50.0]]), batch).item()
    assert found == pytest.approx(0.5 * math.log1p(math.exp(2.0)), rel=1e-5)


def test_tokens_outside_of_the_answer_do_not_matter() -> None:
    """Evidence and padding change nothing, not even short answers' top tokens."""
    batch = _batch([[IGNORED, 0, IGNORED]], [0.0], answer=[[0, 1, 0]])
    first = batch_loss(_logits([[50.0, 1.0, 50.0]]), batch)
    second = batch_loss(_logits([[-50.0, 1.0, 0.0]]), batch)
    assert first.item() == pytest.approx(second.item())


def test_light_rows_count_less() -> None:
    """A row of weight 0 teaches nothing."""
    batch = _batch([[0], [1]], [0.0, 1.0], answer=[[1], [1]])
    light = replace(batch, weight=torch.tensor([1.0, 0.0]))
    alone = _batch([[0]], [0.0], answer=[[1]])
    assert batch_loss(_logits([[2.0], [-3.0]]), light).item() == pytest.approx(
        batch_loss(_logits([[2.0]]), alone).item()
    )
