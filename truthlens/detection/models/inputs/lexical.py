"""Compute the lexical support of every answer token by the whole evidence: ``lexical-v1`` and ``lexical-v2``.

The encoder and plain word support see different things, so the classification head gets both. Features are
computed against all units (sentences) of the evidence, not only those in the encoder's window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from truthlens.core.cancellation import checkpoint
from truthlens.detection.models.inputs.alignment import ALIGNMENT_NAMES, alignment_features
from truthlens.detection.models.inputs.manifest import FeatureSet
from truthlens.text.sentences_v1 import sentences_v1
from truthlens.text.words import Word, words

_LEXICAL_NAMES: tuple[str, ...] = (
    "answer", "content", "absent", "present", "rarity", "number", "number_found", "bigram_before",
    "bigram_after", "trigram", "entity", "entity_absent", "stop", "in_query", "prefix_found",
    "in_best_unit", "neighbours_share_unit", "sentence_best_overlap", "sentence_support",
    "sentence_bigrams", "sentence_negation_differs", "answer_absent_share", "answer_absent_bigrams",
    "answer_worst_sentence", "answer_absent_numbers", "position", "log_length",
)  # fmt: skip
FEATURE_NAMES: tuple[str, ...] = (*_LEXICAL_NAMES, *ALIGNMENT_NAMES)
FEATURE_COUNT = len(FEATURE_NAMES)
LEXICAL_COUNT = len(_LEXICAL_NAMES)
"""The columns of ``lexical-v1``, which come first."""
COLUMNS: Mapping[FeatureSet, int] = {"lexical-v1": LEXICAL_COUNT, "lexical-v2": FEATURE_COUNT}
"""The columns of each feature set."""
_COLUMN = {name: index for index, name in enumerate(FEATURE_NAMES)}
_PREFIX = 5
_NEIGHBOURS = 3
_MOST_ALIGNED = 512  # sentences kept: more than answers have, and a bound where one grows without end
_SHORT_SENTENCE = 3  # content words; headings and the like say nothing about support


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceIndex:
    """The evidence's words, by unit (a sentence, or a piece of a long one).

    ``postings`` maps a stem or number key to the units that contain it, ascending. ``lengths`` has shape
    (units,): content words of each.
    """

    postings: dict[str, list[int]]
    bigrams: frozenset[tuple[str, str]]
    trigrams: frozenset[tuple[str, str, str]]
    prefixes: frozenset[str]
    numbers: frozenset[str]
    negated: NDArray[np.bool_]
    lengths: NDArray[np.float64]
    words: tuple[tuple[Word, ...], ...]
    # What was asked for, in the forms that are quick to work with.
    _arrays: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    _sets: dict[str, frozenset[int]] = field(default_factory=dict)
    _aligned: dict[tuple[object, ...], NDArray[np.float32]] = field(default_factory=dict)

    @property
    def units(self) -> int:
        """Number of units."""
        return len(self.lengths)

    def idf(self, key: str) -> float:
        """Return the rarity of ``key`` among the units, 0..; an absent key is as rare as one seen once."""
        return math.log(1.0 + self.units / len(self.postings.get(key, (0,))))

    def overlap(self, keys: Sequence[str]) -> NDArray[np.float64]:
        """Return an array of shape (units,): summed idf of the distinct ``keys`` that each unit holds."""
        total = np.zeros(self.units)
        for key in dict.fromkeys(keys):
            units = self._arrays.get(key)
            if units is None:
                units = self._arrays[key] = np.array(self.postings.get(key, ()), dtype=np.int64)
            total[units] += self.idf(key)
        return total

    def units_with(self, key: str) -> frozenset[int]:
        """Return the units that hold ``key``."""
        units = self._sets.get(key)
        if units is None:
            units = self._sets[key] = frozenset(self.postings.get(key, ()))
        return units

    def alignment(self, sentence: Sequence[Word], unit: int) -> NDArray[np.float32]:
        """Return ``alignment_features`` of ``sentence`` with a unit; a growing answer asks for the same ones again."""
        key = (unit, *(word[2:] for word in sentence))
        found = self._aligned.get(key)
        if found is None:
            if len(self._aligned) >= _MOST_ALIGNED:
                self._aligned.clear()
            found = self._aligned[key] = alignment_features(sentence, self.words[unit])
            found.setflags(write=False)
        return found


def keys_of(word: Word) -> tuple[str, ...]:
    """Return the lookup keys of a word: its number values, or its stem."""
    return word.numbers or (word.stem,)


def index_evidence(units: Sequence[Sequence[Word]]) -> EvidenceIndex:
    """Build the index of evidence whose units hold these words, in document order."""
    postings: dict[str, list[int]] = {}
    bigrams: set[tuple[str, str]] = set()
    trigrams: set[tuple[str, str, str]] = set()
    numbers: set[str] = set()
    before, last = "", ""
    for number, unit in enumerate(units):
        checkpoint()
        for word in unit:
            for key in keys_of(word):
                held = postings.setdefault(key, [])
                if not held or held[-1] != number:
                    held.append(number)
            numbers.update(word.numbers)
            bigrams.add((last, word.stem))
            trigrams.add((before, last, word.stem))
            before, last = last, word.stem
    return EvidenceIndex(
        postings=postings,
        bigrams=frozenset(bigrams),
        trigrams=frozenset(trigrams),
        prefixes=frozenset(key[:_PREFIX] for key in postings if len(key) >= _PREFIX),
        numbers=frozenset(numbers),
        negated=np.array([any(word.negation for word in unit) for unit in units], dtype=bool),
        lengths=np.array([sum(not word.stop for word in unit) for unit in units], dtype=np.float64),
        words=tuple(map(tuple, units)),
    )


def evidence_words(text: str) -> list[list[Word]]:
    """The words of ``text``, sentence by sentence."""
    return _split(words(text), sentences_v1(text))


def token_features(
    index: EvidenceIndex,
    *,
    answer: str,
    offsets: NDArray[np.int64],
    query: str,
    features: FeatureSet = "lexical-v2",
) -> NDArray[np.float32]:
    """Return features of shape (answer tokens, ``COLUMNS[features]``), each 0..1: the support of each token.

    Args:
        index: the whole evidence.
        answer: the whole answer.
        offsets: shape (answer tokens, 2), character ranges of the answer's tokens, ascending.
        query: the user's question, or ``""``.
        features: which columns.
    """
    listed = words(answer)
    table = np.zeros((len(listed) + 1, COLUMNS[features]), dtype=np.float32)
    if listed:
        _word_columns(table, index, listed, {word.stem for word in words(query)})
        _sentence_columns(table, index, listed, sentences_v1(answer))
        _answer_columns(table, listed)
    rows = _word_of_token(listed, offsets)
    found = table[rows]
    found[rows == len(listed), _COLUMN["stop"]] = 1.0
    count = len(offsets)
    found[:, _COLUMN["answer"]] = 1.0
    found[:, _COLUMN["position"]] = np.arange(count) / max(count, 1)
    found[:, _COLUMN["log_length"]] = min(math.log1p(count) / 8.0, 1.0)
    return found


def _word_columns(
    table: NDArray[np.float32], index: EvidenceIndex, listed: list[Word], asked: set[str]
) -> None:
    column = _COLUMN
    rarest = math.log(1.0 + max(index.units, 1))
    for row, word in enumerate(listed):
        checkpoint()
        line = table[row]
        found = any(key in index.postings for key in keys_of(word))
        line[column["stop"]] = word.stop
        line[column["in_query"]] = word.stem in asked
        line[column["present"]] = found
        if not word.stop:
            line[column["content"]] = 1.0
            line[column["absent"]] = not found
            line[column["rarity"]] = index.idf(keys_of(word)[0]) / rarest if found else 1.0
            line[column["prefix_found"]] = found or word.stem[:_PREFIX] in index.prefixes
        if word.numbers:
            line[column["number"]] = 1.0
            line[column["number_found"]] = any(key in index.numbers for key in word.numbers)
        if word.entity:
            line[column["entity"]] = 1.0
            line[column["entity_absent"]] = not found
        previous = listed[row - 1].stem if row else ""
        following = listed[row + 1].stem if row + 1 < len(listed) else ""
        line[column["bigram_before"]] = (previous, word.stem) in index.bigrams
        line[column["bigram_after"]] = (word.stem, following) in index.bigrams
        line[column["trigram"]] = (previous, word.stem, following) in index.trigrams


def _sentence_columns(
    table: NDArray[np.float32],
    index: EvidenceIndex,
    listed: list[Word],
    ranges: list[tuple[int, int]],
) -> None:
    column = _COLUMN
    row = 0
    worst = 1.0
    for group in _split(listed, ranges):
        checkpoint()
        rows = slice(row, row + len(group))
        content = [(row + place, word) for place, word in enumerate(group) if not word.stop]
        row += len(group)
        table[rows, column["sentence_bigrams"]] = (
            table[rows, column["bigram_before"]].mean() if group else 1.0
        )
        if not content or not index.units:
            for name in ("sentence_best_overlap", "sentence_support"):
                table[rows, column[name]] = not content
            continue
        keys = [key for _, word in content for key in keys_of(word)[:1]]
        overlap = index.overlap(keys)
        best = int(overlap.argmax())
        whole = sum(index.idf(key) for key in dict.fromkeys(keys))
        share = float(overlap[best]) / whole
        table[rows, column["sentence_best_overlap"]] = share
        if len(content) >= _SHORT_SENTENCE:
            worst = min(worst, share)
        found = [key in index.postings for key in keys]
        table[rows, column["sentence_support"]] = sum(found) / len(found)
        if overlap[best] > 0.0:
            negated = any(word.negation for word in group)
            table[rows, column["sentence_negation_differs"]] = negated != bool(index.negated[best])
            _neighbour_columns(table, index, content, best)
            if table.shape[1] > LEXICAL_COUNT:
                table[rows, LEXICAL_COUNT:] = index.alignment(group, best)
    table[: len(listed), column["answer_worst_sentence"]] = 1.0 - worst


def _neighbour_columns(
    table: NDArray[np.float32], index: EvidenceIndex, content: list[tuple[int, Word]], best: int
) -> None:
    # A word whose neighbours are next to it in no unit is often a recombination of true parts.
    held = [index.units_with(keys_of(word)[0]) for _, word in content]
    for place, (row, _) in enumerate(content):
        table[row, _COLUMN["in_best_unit"]] = best in held[place]
        near = held[max(0, place - _NEIGHBOURS) : place] + held[place + 1 : place + 1 + _NEIGHBOURS]
        if near and held[place]:
            shared = sum(not held[place].isdisjoint(other) for other in near)
            table[row, _COLUMN["neighbours_share_unit"]] = shared / len(near)


def _answer_columns(table: NDArray[np.float32], listed: list[Word]) -> None:
    column = _COLUMN
    body = table[: len(listed)]
    content = body[:, column["content"]].sum()
    body[:, column["answer_absent_share"]] = body[:, column["absent"]].sum() / max(content, 1.0)
    body[:, column["answer_absent_bigrams"]] = 1.0 - body[:, column["bigram_before"]].mean()
    unseen = (body[:, column["number"]] - body[:, column["number_found"]]).sum()
    body[:, column["answer_absent_numbers"]] = min(float(unseen) / 3.0, 1.0)


def _word_of_token(listed: list[Word], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of the word that each token overlaps; ``len(listed)`` where it is punctuation."""
    if not listed or not len(offsets):
        return np.full(len(offsets), len(listed), dtype=np.int64)
    ends = np.array([word.end for word in listed])
    starts = np.array([word.start for word in listed])
    rows = np.searchsorted(ends, offsets[:, 0], side="right")
    inside = rows < len(listed)
    inside[inside] = starts[rows[inside]] < offsets[inside, 1]
    return np.where(inside, rows, len(listed)).astype(np.int64)


def _split(listed: list[Word], ranges: list[tuple[int, int]]) -> list[list[Word]]:
    groups: list[list[Word]] = [[] for _ in ranges]
    number = 0
    for word in listed:
        while number + 1 < len(ranges) and word.start >= ranges[number][1]:
            number += 1
        groups[number].append(word)
    return groups
