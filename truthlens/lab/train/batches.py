"""Examples as encoder windows with token labels, in length-sorted batches of bounded size."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.detection.models.inputs.evidence_tokens import EvidenceTokens
from truthlens.detection.models.inputs.lexical import FEATURE_COUNT
from truthlens.detection.models.inputs.manifest import InputFormat
from truthlens.detection.models.inputs.windows import build_windows, read_evidence
from truthlens.lab.data.dataset import Example

IGNORED = -100


@dataclass(frozen=True, slots=True, eq=False)
class TrainingItem:
    """One window to learn from, or to score.

    ``labels`` has shape (answer tokens in the window,): 1 unsupported, 0 supported, ``IGNORED`` where no
    spans were marked. ``label`` is the window's own: of its tokens where they are marked, else of the answer.
    ``features`` has shape (answer tokens in the window, features), float16 to spare memory.
    """

    input_ids: NDArray[np.int32]
    first_type: int
    answer: slice
    first: int
    features: NDArray[np.float16]
    labels: NDArray[np.int8 | np.int16]
    label: int
    weight: float
    row: int
    pair: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Padded tensors of several items; see ``TokenClassifier.forward`` for the shapes.

    ``contrasts`` has shape (pairs, 2): an unsupported item and the supported one that it is a pair with.
    """

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    token_type_ids: torch.Tensor
    features: torch.Tensor
    answer_mask: torch.Tensor
    token_labels: torch.Tensor
    label: torch.Tensor
    weight: torch.Tensor
    contrasts: torch.Tensor
    items: tuple[TrainingItem, ...]


def encode_examples(
    tokenizer: Tokenizer,
    examples: Iterable[Example],
    *,
    format_of: Callable[[Example], InputFormat],
    weight_of: Callable[[Example], float] = lambda _: 1.0,
) -> list[TrainingItem]:
    """Return the windows of all ``examples``; ``TrainingItem.row`` counts the examples.

    Items are in order of their evidence and not of the examples: many answers share a text, which is read
    once.
    """
    items: list[TrainingItem] = []
    key: object = None
    evidence: EvidenceTokens | None = None
    for row, example in sorted(enumerate(examples), key=lambda pair: pair[1].context):
        fmt = format_of(example)
        if key != (example.context, fmt):
            key, evidence = (example.context, fmt), read_evidence(tokenizer, fmt, example.context)
        built = build_windows(
            tokenizer,
            fmt,
            query=example.query,
            passages=example.context,
            answer=example.response,
            evidence=evidence,
        )
        labels = token_labels(built.offsets, example)
        for window in built.windows:
            count = window.answer.stop - window.answer.start
            own = labels[window.first : window.first + count]
            known = example.spans is not None and count > 0
            items.append(
                TrainingItem(
                    input_ids=window.input_ids.astype(np.int32),
                    first_type=window.answer.start if fmt.segment_ids else len(window.input_ids),
                    answer=window.answer,
                    first=window.first,
                    features=_features(window.features, window.answer),
                    labels=own,
                    label=int((own == 1).any()) if known else example.label,
                    weight=weight_of(example),
                    row=row,
                    pair=example.pair,
                )
            )
    return items


def _features(features: NDArray[np.float32] | None, answer: slice) -> NDArray[np.float16]:
    """Return all columns, zero for those that the format leaves out."""
    table = np.zeros((answer.stop - answer.start, FEATURE_COUNT), dtype=np.float16)
    if features is not None:
        table[:, : features.shape[1]] = features[answer]
    return table


def token_labels(offsets: NDArray[np.int64], example: Example) -> NDArray[np.int16]:
    """Return labels, shape (answer tokens,): 1 in a marked span, else 0; ``IGNORED`` if unmarked.

    A supported answer needs no marks: all of its tokens are 0. In an answer without marks whose doubtful
    parts are known, those are ``IGNORED`` and the rest is 0.
    """
    labels = np.zeros(len(offsets), dtype=np.int16)
    if example.spans is None:
        if example.label and not example.doubtful:
            labels[:] = IGNORED
        for start, end in example.doubtful:
            labels[(offsets[:, 0] < end) & (offsets[:, 1] > start)] = IGNORED
        return labels
    for start, end in example.spans:
        labels[(offsets[:, 0] < end) & (offsets[:, 1] > start)] = 1
    return labels


def make_batches(items: Sequence[TrainingItem], *, budget_tokens: int, seed: int | None) -> list[list[int]]:
    """Return the item numbers in batches whose padded size stays near ``budget_tokens``.

    With a seed, items of like length are grouped at random and the batches are shuffled; without, plain
    order of length.
    """
    lengths = [float(len(item.input_ids)) for item in items]
    dice = random.Random(seed)  # noqa: S311  # no secret: repeatable draws
    if seed is not None:
        lengths = [length * dice.uniform(0.95, 1.05) for length in lengths]
    longest_of: dict[str, float] = {}
    for item, length in zip(items, lengths, strict=True):
        longest_of[item.pair] = max(longest_of.get(item.pair, 0.0), length)
    # The two of a pair sort as one length, so that they stand side by side and nearly always in one batch.
    keys = [
        (longest_of[item.pair] if item.pair else length, item.pair)
        for item, length in zip(items, lengths, strict=True)
    ]
    order = sorted(range(len(items)), key=keys.__getitem__)
    batches: list[list[int]] = []
    longest = 0
    for number in order:
        longest = max(longest, len(items[number].input_ids))
        if batches and longest * (len(batches[-1]) + 1) <= budget_tokens:
            batches[-1].append(number)
        else:
            batches.append([number])
            longest = len(items[number].input_ids)
    if seed is not None:
        dice.shuffle(batches)
    return batches


def collate(items: Sequence[TrainingItem], *, pad_id: int) -> Batch:
    """Return ``items`` padded to the longest of them."""
    rows, longest = len(items), max(len(item.input_ids) for item in items)
    input_ids = np.full((rows, longest), pad_id, dtype=np.int64)
    mask = np.zeros((rows, longest), dtype=np.int64)
    types = np.zeros((rows, longest), dtype=np.int64)
    features = np.zeros((rows, longest, FEATURE_COUNT), dtype=np.float32)
    labels = np.full((rows, longest), IGNORED, dtype=np.int64)
    for row, item in enumerate(items):
        size = len(item.input_ids)
        input_ids[row, :size] = item.input_ids
        mask[row, :size] = 1
        types[row, item.first_type : size] = 1
        features[row, item.answer] = item.features
        labels[row, item.answer] = item.labels
    answer = np.zeros((rows, longest), dtype=bool)
    for row, item in enumerate(items):
        answer[row, item.answer] = True
    return Batch(
        input_ids=torch.from_numpy(input_ids),
        attention_mask=torch.from_numpy(mask),
        token_type_ids=torch.from_numpy(types),
        features=torch.from_numpy(features),
        answer_mask=torch.from_numpy(answer),
        token_labels=torch.from_numpy(labels),
        label=torch.tensor([float(item.label) for item in items]),
        weight=torch.tensor([item.weight for item in items]),
        contrasts=torch.tensor(_contrasts(items), dtype=torch.int64).reshape(-1, 2),
        items=tuple(items),
    )


def _contrasts(items: Sequence[TrainingItem]) -> list[tuple[int, int]]:
    supported: dict[str, list[int]] = {}
    for row, item in enumerate(items):
        if item.pair and not item.label:
            supported.setdefault(item.pair, []).append(row)
    return [
        (row, other) for row, item in enumerate(items) if item.label for other in supported.get(item.pair, ())
    ]


def iterate(
    items: Sequence[TrainingItem], batches: Sequence[Sequence[int]], *, pad_id: int
) -> Iterator[Batch]:
    """Yield the batches, one after another."""
    for numbers in batches:
        yield collate([items[number] for number in numbers], pad_id=pad_id)


def merge_tokens(count: int, parts: Sequence[tuple[int, NDArray[np.float64]]]) -> NDArray[np.float64]:
    """Merge the scores of ``count`` answer tokens from those of overlapping windows: their mean.

    ``parts`` are pairs of the first token's number and scores of shape (tokens in the window,).
    """
    total = np.zeros(count)
    seen = np.zeros(count)
    for first, values in parts:
        total[first : first + len(values)] += values
        seen[first : first + len(values)] += 1
    return total / np.maximum(seen, 1)
