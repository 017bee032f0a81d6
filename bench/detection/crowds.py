"""Labelled answers among irrelevant passages: the material for measuring long evidence.

Pure and seeded.

A row keeps its answer and its own passages, in their order; passages of other source texts are mixed in.
Claims can be planted in an answer, so that it is known where the unsupported part is. Nothing here scores
anything.
"""

from __future__ import annotations

import random
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from truthlens.detection.models.inputs.lexical import EvidenceIndex, index_evidence, keys_of
from truthlens.lab.data.dataset import Example
from truthlens.text.claims.non_claims import claimless_ranges
from truthlens.text.sentences import sentences
from truthlens.text.words import Word, words

PASSAGE_CHARACTERS = 500
"""Size of the passages that sentence lists are joined to and long documents are cut to."""
_LIST_OF_SENTENCES = 160
_LONG_DOCUMENT = 2 * PASSAGE_CHARACTERS
_SHORTEST = 40
# A passage that shares more of its words with one of the row's own may well support the answer too.
_NEAR_DUPLICATE = 0.6
_LENGTH_OFFSET = 5.0
_CLAIM_WORDS = 5
_SUPPORTED_SHARE = 0.7
# Sentences about the evidence or the question, which claim nothing of a topic.
_OF_EVIDENCE = re.compile(r"\b(?:passages?|context|questions?|unable|impossible)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Crowd:
    """An example with distractors in its context.

    ``own`` says of each passage whether it is the example's own.
    """

    example: Example
    own: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Planted:
    """A supported answer with one unsupported claim put into it.

    ``example`` has that claim as its only span. ``groups`` are the source texts that must not become
    distractors, because they support the claim.
    """

    example: Example
    groups: frozenset[str]


def as_passages(context: Sequence[str]) -> tuple[str, ...]:
    """Return ``context`` in passages of usual size: sentences joined, long documents cut at sentences."""
    if len(context) > 1 and statistics.median(map(len, context)) < _LIST_OF_SENTENCES:
        return tuple(_join(context))
    passages: list[str] = []
    for text in context:
        whole = len(text) <= _LONG_DOCUMENT
        passages.extend([text] if whole else _join(text[start:end] for start, end in sentences(text)))
    return tuple(passages)


def _join(parts: Iterable[str]) -> list[str]:
    joined: list[str] = []
    for part in parts:
        if joined and len(joined[-1]) + len(part) < PASSAGE_CHARACTERS:
            joined[-1] = f"{joined[-1]} {part}"
        else:
            joined.append(part)
    return joined


class DistractorPool:
    """The passages of many source texts, to draw distractors from.

    Args:
        examples: rows of one data set; each ``group`` is read once.
    """

    def __init__(self, examples: Iterable[Example]) -> None:
        contexts = {example.group: example.context for example in examples}
        self._passages = [
            (group, passage)
            for group, context in contexts.items()
            for passage in as_passages(context)
            if len(passage) >= _SHORTEST
        ]
        listed = [words(passage) for _, passage in self._passages]
        self._index = index_evidence(listed)
        self._stems = [_stems(passage) for passage in listed]

    def random(
        self, example: Example, count: int, *, seed: int, without: frozenset[str] = frozenset()
    ) -> list[str]:
        """Return ``count`` passages of other groups, at random; fewer if the pool has no more.

        Args:
            example: what they are drawn for.
            count: how many.
            seed: of the draw.
            without: further groups to leave out.
        """
        order = list(range(len(self._passages)))
        random.Random(f"{seed}:{example.id}").shuffle(order)  # no secret: repeatable draws
        return self._first(example, order, count, without)

    def hard(self, example: Example, count: int, *, without: frozenset[str] = frozenset()) -> list[str]:
        """Return ``count`` passages of other groups that share most with query and answer; see ``random``."""
        keys = _keys(words(f"{example.query}\n{example.response}"))
        shared = self._index.overlap(keys) / np.sqrt(_LENGTH_OFFSET + self._index.lengths)
        return self._first(example, np.argsort(-shared, kind="stable"), count, without)

    def _first(
        self, example: Example, order: Iterable[int], count: int, without: frozenset[str]
    ) -> list[str]:
        own = [_stems(words(passage)) for passage in example.context]
        found: dict[str, None] = {}
        for number in order:
            if len(found) >= count:
                break
            group, passage = self._passages[number]
            if group == example.group or group in without:
                continue
            if not any(_alike(self._stems[number], stems) > _NEAR_DUPLICATE for stems in own):
                found[passage] = None
        return list(found)


def crowd(example: Example, distractors: Sequence[str], *, seed: int, own_last: bool = False) -> Crowd:
    """Return ``example`` with ``distractors`` around its own passages, which keep their order.

    Args:
        example: its context is what supports, or does not support, its answer.
        distractors: irrelevant passages.
        seed: of the places.
        own_last: all of the example's own passages are at the end.
    """
    total = len(example.context) + len(distractors)
    dice = random.Random(f"{seed}:{example.id}")  # no secret: repeatable draws
    places = set(dice.sample(range(total), len(example.context)))
    if own_last:
        places = set(range(len(distractors), total))
    own, others = iter(example.context), iter(distractors)
    context = tuple(next(own) if place in places else next(others) for place in range(total))
    return Crowd(replace(example, context=context), tuple(place in places for place in range(total)))


class Donors:
    """Sentences of many answers, to plant in others.

    Args:
        examples: answers of one data set; of each group one is taken.
    """

    def __init__(self, examples: Iterable[Example]) -> None:
        answers = {example.group: example.response for example in examples}
        self._sentences = [
            (group, answer[start:end])
            for group, answer in answers.items()
            for start, end in _claims(answer)
            if not _OF_EVIDENCE.search(answer, start, end)
        ]
        listed = [words(sentence) for _, sentence in self._sentences]
        self._keys = [frozenset(_keys(found)) for found in listed]
        self._index = index_evidence(listed)

    def plant(self, example: Example) -> Planted | None:
        """Return ``example`` with a sentence whose rare words are nearest to query and answer, or ``None``.

        The sentence is natural, on a like topic, and unsupported: no passage of the example holds most of its
        words. It comes after the first half of the answer's sentences. ``None`` where no sentence will do.
        """
        evidence = index_evidence(list(map(words, example.context)))
        shared = self._index.overlap(_keys(words(f"{example.query}\n{example.response}")))
        likeness = shared / np.sqrt(_LENGTH_OFFSET + self._index.lengths)
        ranges = sentences(example.response)
        for number in np.argsort(-likeness, kind="stable") if ranges else ():
            group, sentence = self._sentences[number]
            keys = self._keys[number]
            if (
                group != example.group
                and len(keys) >= _CLAIM_WORDS
                and _held(evidence, keys) <= _SUPPORTED_SHARE
            ):
                at = ranges[(len(ranges) - 1) // 2][1]
                response = f"{example.response[:at]} {sentence} {example.response[at:].lstrip()}".rstrip()
                span = (at + 1, at + 1 + len(sentence))
                return Planted(_marked(example, response, span), frozenset({group}))
        return None


def plant_number(example: Example) -> Planted | None:
    """Return ``example`` with one supported number changed to one that the evidence lacks, or ``None``."""
    evidence = index_evidence(list(map(words, example.context)))
    for word in words(example.response):
        written = example.response[word.start : word.end]
        if word.stop or not written.isdigit() or not set(word.numbers) & evidence.numbers:
            continue
        for step in (3, 7, 11, 20, 30):
            changed = str(int(written) + step)
            if changed not in evidence.numbers:
                response = example.response[: word.start] + changed + example.response[word.end :]
                marked = _marked(example, response, (word.start, word.start + len(changed)))
                return Planted(marked, frozenset())
    return None


def _claims(answer: str) -> list[tuple[int, int]]:
    """Return the sentences of ``answer`` in which every part claims something."""
    silent = claimless_ranges(answer)
    return [
        (start, end)
        for start, end in sentences(answer)
        if not any(first < end and start < last for first, last in silent)
    ]


def _marked(example: Example, response: str, span: tuple[int, int]) -> Example:
    return replace(example, response=response, label=1, spans=(span,))


def _held(evidence: EvidenceIndex, keys: frozenset[str]) -> float:
    """Return the largest share of ``keys`` that one passage holds."""
    counts: NDArray[np.float64] = np.zeros(evidence.units)
    for key in keys:
        counts[evidence.postings.get(key, [])] += 1.0
    return float(counts.max(initial=0.0)) / len(keys)


def _keys(listed: Iterable[Word]) -> list[str]:
    return [key for word in listed if not word.stop for key in keys_of(word)]


def _stems(listed: Iterable[Word]) -> frozenset[str]:
    return frozenset(word.stem for word in listed if not word.stop)


def _alike(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / max(min(len(first), len(second)), 1)
