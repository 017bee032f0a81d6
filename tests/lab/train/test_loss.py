"""Tests of ``truthlens.lab.train.trainer`` against values worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from truthlens.lab.train.batches import IGNORED, Batch
from truthlens.lab.train.trainer import batch_loss

LOG2 = math.log(2)


def _batch(
    token_labels: list[list[int]],
    label: list[float],
    *,
    answer: list[list[int]],
    contrasts: list[list[int]] | None = None,
) -> Batch:
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
        contrasts=torch.tensor(contrasts or [], dtype=torch.int64).reshape(-1, 2),
        items=(),
    )


def _loss(logits: torch.Tensor, batch: Batch, **options: float) -> float:
    """The loss without the hazard's part: its log-odds are so far on the right side that it costs nothing."""
    sure = torch.where(batch.label[0] > 0, 1.0, -1.0) * 1e4
    return batch_loss(logits, batch, torch.tensor([0.0, float(sure)]), **options).item()


def _logits(margins: list[list[float]]) -> torch.Tensor:
    values = torch.tensor(margins)
    return torch.stack([torch.zeros_like(values), values], dim=-1)


def test_unsure_tokens_cost_log_two_and_a_quarter_of_it_again() -> None:
    """All margins 0: token loss ln 2, the answer by its worst tokens ln 2 at a quarter's weight."""
    batch = _batch([[IGNORED, 0, 1]], [1.0], answer=[[0, 1, 1]])
    assert _loss(_logits([[9.0, 0.0, 0.0]]), batch) == pytest.approx(1.25 * LOG2)


def test_positive_tokens_count_twice() -> None:
    """One positive at ln 2 and one negative near 0 average to two thirds of ln 2."""
    batch = _batch([[0, 1]], [1.0], answer=[[1, 1]])
    found = _loss(_logits([[-40.0, 0.0]]), batch)
    example = math.log1p(math.exp(20.0))  # mean margin of the two tokens is -20, the label 1
    assert found == pytest.approx(2 / 3 * LOG2 + 0.25 * example, rel=1e-5)


def test_unmarked_answers_teach_by_their_worst_tokens() -> None:
    """Without marks only the mean of the three highest margins counts."""
    batch = _batch([[IGNORED] * 5], [0.0], answer=[[1] * 5])
    found = _loss(_logits([[3.0, -50.0, 2.0, 1.0, -50.0]]), batch)
    assert found == pytest.approx(0.25 * math.log1p(math.exp(2.0)), rel=1e-5)


def test_the_hazard_of_all_tokens_is_scored_too() -> None:
    """The second judgement is a logistic of the log of the summed hazard."""
    batch = _batch([[IGNORED] * 4], [1.0], answer=[[1] * 4])
    found = batch_loss(_logits([[0.0] * 4]), batch, torch.tensor([2.0, -1.0])).item()
    odds = 2.0 * math.log(4 * LOG2) - 1.0
    assert found == pytest.approx(0.25 * LOG2 + 0.25 * math.log1p(math.exp(-odds)), rel=1e-5)


def test_tokens_outside_of_the_answer_do_not_matter() -> None:
    """Evidence and padding change nothing, not even short answers' top tokens."""
    batch = _batch([[IGNORED, 0, IGNORED]], [0.0], answer=[[0, 1, 0]])
    response = torch.tensor([1.0, 0.0])
    first = batch_loss(_logits([[50.0, 1.0, 50.0]]), batch, response)
    second = batch_loss(_logits([[-50.0, 1.0, 0.0]]), batch, response)
    assert first.item() == pytest.approx(second.item())


def test_light_rows_count_less() -> None:
    """A row of weight 0 teaches nothing."""
    batch = _batch([[0], [1]], [0.0, 1.0], answer=[[1], [1]])
    light = replace(batch, weight=torch.tensor([1.0, 0.0]))
    alone = _batch([[0]], [0.0], answer=[[1]])
    response = torch.tensor([1.0, 0.0])
    assert batch_loss(_logits([[2.0], [-3.0]]), light, response).item() == pytest.approx(
        batch_loss(_logits([[2.0]]), alone, response).item()
    )


def test_pairs_are_set_against_each_other() -> None:
    """The wider the unsupported answer of a pair lies above the supported one, the less the pair costs."""
    tokens, answer = [[IGNORED], [IGNORED]], [[1], [1]]
    pair = _batch(tokens, [1.0, 0.0], answer=answer, contrasts=[[0, 1]])
    response = torch.tensor([0.0, 0.0])

    def cost(margins: list[list[float]]) -> float:
        whole = batch_loss(_logits(margins), pair, response, contrast=0.5)
        return (whole - batch_loss(_logits(margins), pair, response, contrast=0.0)).item()

    # The hazard's part is ln 2 whatever the margins are, as its slope is 0.
    assert cost([[3.0], [1.0]]) == pytest.approx(0.25 * (math.log1p(math.exp(-2.0)) + LOG2), rel=1e-5)
    assert cost([[1.0], [3.0]]) == pytest.approx(0.25 * (math.log1p(math.exp(2.0)) + LOG2), rel=1e-5)
