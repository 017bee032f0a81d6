"""Join the marks of one finding to one span, and take function words from its edges. Pure.

A token classifier marks the words that it is surest of: of "a new bridge across the Rhine" it may mark "new" and "the
Rhine". Nothing here reads or changes a score: response scores are of the runs of tokens before this (``aggregation``).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truthlens.core.records.verdict import Span
from truthlens.text.sentences import sentences

MOST_BETWEEN = 12
"""Tokens that may stand between two marks of one span; measured on RAGTruth, docs/explanations.md."""

# Closed, and without the words that may be the error themselves: negations, modals, quantities, before and after.
_LISTED = """
a an the and or but of to in on at by for from with as that which who whose is are was were be been being it its this
these those there their his her our your has have had
"""
_FUNCTION_WORDS = frozenset(_LISTED.split())
_PIECE = re.compile(r"(?P<word>\w+(?:['’]\w+)*)|[^\w\s]")
_SEPARATORS = ",;:"


def evaluated_spans(
    runs: Sequence[Span], p: ArrayLike, offsets: NDArray[np.int64], text: str
) -> tuple[Span, ...]:
    """Return the spans of ``text`` that a model's runs of tokens come to: what is measured and what is explained.

    Runs of one sentence with at most ``MOST_BETWEEN`` tokens between them are one span, with the higher score. Function
    words and commas at a span's edges are dropped, unless a span's highest token is among them.

    Args:
        runs: as ``aggregation.spans_of`` returns them.
        p: token probabilities, shape (tokens,).
        offsets: character ranges of the tokens in ``text``, shape (tokens, 2), in order.
        text: the answer.
    """
    if not runs:
        return ()
    words = _Words(np.asarray(p, dtype=np.float64), offsets, text)
    origin = runs[0].start
    within = sentences(text[origin : runs[-1].end])
    breaks = [origin + start for start, _ in within]
    groups: list[list[Span]] = []
    for run in runs:
        if groups:
            last = groups[-1][-1]
            if words.between(last.end, run.start) <= MOST_BETWEEN and not _is_broken(
                text, breaks, last.end, run.start
            ):
                groups[-1].append(run)
                continue
        groups.append([run])
    return tuple(words.joined(group) for group in groups)


def _is_broken(text: str, breaks: Sequence[int], end: int, start: int) -> bool:
    """Return whether a sentence, a line or a cell of a table ends between two runs."""
    number = bisect_left(breaks, end)
    if number < len(breaks) and breaks[number] <= start:
        return True
    return any(mark in text[end:start] for mark in "\n|\t")


class _Words:
    """The words of a text with their highest token."""

    def __init__(self, p: NDArray[np.float64], offsets: NDArray[np.int64], text: str) -> None:
        self._p, self._text = p, text
        self._starts, self._ends = offsets[:, 0], offsets[:, 1]

    def between(self, end: int, start: int) -> int:
        """Return how many tokens stand between two runs."""
        return int(np.searchsorted(self._starts, start, "left") - np.searchsorted(self._ends, end, "right"))

    def joined(self, runs: Sequence[Span]) -> Span:
        """Return the runs as one span, without the function words at its edges that are not its surest."""
        score = max(run.score for run in runs)
        pieces = [
            (match.start(), match.end(), bool(match["word"]) and match[0].lower() not in _FUNCTION_WORDS)
            for run in runs
            for match in _PIECE.finditer(self._text, run.start, run.end)
        ]
        surest = max((self._score(*each[:2]) for each in pieces if each[2]), default=1.0)
        kept = [each for each in pieces if each[2] or self._score(*each[:2]) > surest]
        if not kept:
            return replace(runs[0], end=runs[-1].end, score=score)
        return replace(
            runs[0],
            start=self._before(kept[0][0], runs[0].start),
            end=self._behind(kept[-1][1], runs[-1].end),
            score=score,
        )

    def _score(self, start: int, end: int) -> float:
        first = np.searchsorted(self._ends, start, "right")
        last = np.searchsorted(self._starts, end, "left")
        return float(self._p[first:last].max(initial=0.0))

    def _before(self, place: int, least: int) -> int:
        """Return ``place`` moved before the signs that are written to it: a currency, a bracket."""
        while place > least and not (self._text[place - 1].isspace() or self._text[place - 1].isalnum()):
            if self._text[place - 1] in _SEPARATORS:
                break
            place -= 1
        return place

    def _behind(self, place: int, most: int) -> int:
        """Return ``place`` moved behind the signs that are written to it: a percent sign, a full stop."""
        while place < most and not (self._text[place].isspace() or self._text[place].isalnum()):
            if self._text[place] in _SEPARATORS:
                break
            place += 1
        return place
