"""Tests of ``truthlens.lab.train.batches``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.fakes.tiny_base import VOCABULARY, labelled_rows
from tests.fakes.tiny_encoder import word_tokenizer
from truthlens.detection.models.inputs.manifest import InputFormat
from truthlens.lab.data.dataset import Example
from truthlens.lab.train.batches import (
    IGNORED,
    collate,
    encode_examples,
    make_batches,
    merge_tokens,
    token_labels,
)

TOKENIZER = word_tokenizer(VOCABULARY)
FMT = InputFormat(max_tokens=64, segment_ids=True, answer_tokens=16, answer_overlap=4, features="lexical-v2")


def _example(
    spans: tuple[tuple[int, int], ...] | None, *, label: int, response: str = "The tree is hazel."
) -> Example:
    return Example("1", "made", "qa", "tree", ("The tree is rowan.",), response, label, spans, "g")


def _examples(count: int) -> list[Example]:
    return [
        Example(
            row["id"], row["source"], "qa", row["query"], tuple(row["context"]), row["response"] * (1 + n % 3),
            row["label"], tuple((s["start"], s["end"]) for s in row["spans"]), row["group"],
        )
        for n, row in enumerate(labelled_rows(count))
    ]  # fmt: skip


def test_tokens_that_touch_a_mark_are_labelled() -> None:
    """A token is positive as soon as one of its characters is marked."""
    offsets = np.array([[0, 3], [4, 8], [9, 11], [12, 17], [17, 18]])
    assert token_labels(offsets, _example(((13, 15),), label=1)).tolist() == [0, 0, 0, 1, 0]


def test_unmarked_answers_have_unknown_tokens_unless_supported() -> None:
    """Nobody marked an unsupported answer: its tokens are unknown; a supported one has only zeros."""
    offsets = np.array([[0, 3], [4, 8]])
    assert token_labels(offsets, _example(None, label=1)).tolist() == [IGNORED, IGNORED]
    assert token_labels(offsets, _example(None, label=0)).tolist() == [0, 0]


def test_windows_of_a_marked_answer_have_their_own_label() -> None:
    """Only the window that holds the error is positive."""
    response = "The tree is hazel. " + "The tree is rowan. " * 12
    start = response.index("hazel")
    context = Example(
        "1", "made", "qa", "", ("the tree is rowan . " * 20,), response, 1, ((start, start + 5),), "g"
    )
    items = encode_examples(TOKENIZER, [context], format_of=lambda _: FMT)
    assert len(items) > 1
    assert [item.label for item in items] == [1] + [0] * (len(items) - 1)


def test_unmarked_windows_have_the_label_of_the_answer() -> None:
    """Without marks the answer's label is all that is known."""
    (item,) = encode_examples(TOKENIZER, [_example(None, label=1)], format_of=lambda _: FMT)
    assert item.label == 1


def test_every_item_is_in_one_batch_within_the_budget() -> None:
    """Batches are a partition, and padded they keep to the budget."""
    items = encode_examples(TOKENIZER, _examples(60), format_of=lambda _: FMT)
    for seed in (None, 3):
        batches = make_batches(items, budget_tokens=200, seed=seed)
        assert sorted(number for batch in batches for number in batch) == list(range(len(items)))
        assert all(len(b) * max(len(items[n].input_ids) for n in b) <= 200 for b in batches)
    assert make_batches(items, budget_tokens=200, seed=3) == make_batches(items, budget_tokens=200, seed=3)


def test_padding_is_masked_and_unlabelled() -> None:
    """Padded places have mask 0, no features, an ignored label and no part in the answer."""
    items = encode_examples(TOKENIZER, _examples(3), format_of=lambda _: FMT)
    batch = collate(items, pad_id=0)
    for row, item in enumerate(items):
        size = len(item.input_ids)
        assert batch.attention_mask[row].sum() == size
        assert batch.input_ids[row, :size].tolist() == item.input_ids.tolist()
        assert (batch.token_labels[row, size:] == IGNORED).all()
        assert not batch.features[row, size:].any()
        assert batch.answer_mask[row].sum() == item.answer.stop - item.answer.start
        assert batch.token_type_ids[row, item.answer].all()
        assert not batch.token_type_ids[row, : item.answer.start].any()


def test_the_two_of_a_pair_share_a_batch_and_are_its_contrast() -> None:
    """Rows of like length with one pair stand in one batch, the unsupported one first in the contrast."""
    rows = [
        replace(row, label=number % 2, spans=None, pair=f"p{number // 2}")
        for number, row in enumerate(replace(_examples(1)[0], id=str(n)) for n in range(40))
    ]
    items = encode_examples(TOKENIZER, rows, format_of=lambda _: FMT)
    size = len(items[0].input_ids)
    for seed in range(3):
        batches = make_batches(items, budget_tokens=4 * size, seed=seed)
        together = [collate([items[n] for n in batch], pad_id=0) for batch in batches]
        assert sum(len(batch.contrasts) for batch in together) >= 15
        for batch in together:
            for wrong, right in batch.contrasts.tolist():
                assert batch.items[wrong].pair == batch.items[right].pair
                assert (batch.items[wrong].label, batch.items[right].label) == (1, 0)


def test_doubtful_parts_are_unknown_and_the_rest_is_supported() -> None:
    """What differs from a supported answer may be wrong; what does not differ is supported."""
    offsets = np.array([[0, 3], [4, 8], [9, 11], [12, 17], [17, 18]])
    row = replace(_example(None, label=1), doubtful=((12, 17),))
    assert token_labels(offsets, row).tolist() == [0, 0, 0, IGNORED, 0]


def test_overlapping_scores_are_averaged() -> None:
    """A token in two windows gets the mean of its scores."""
    merged = merge_tokens(4, [(0, np.array([1.0, 1.0, 1.0])), (2, np.array([3.0, 5.0]))])
    assert merged.tolist() == [1.0, 1.0, 2.0, 5.0]
