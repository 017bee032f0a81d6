"""Choose which evidence goes with which part of the answer: one entry per window.

Works on units and token numbers alone; ``windows`` makes the inputs of it. Three ways, by the manifest: the
best evidence in one window or a few (``select``), all evidence over as many windows as that takes
(``windows``), or the groups of it that are nearest to the chunk (``windows`` with ``evidence_windows``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truthlens.core.cancellation import checkpoint
from truthlens.detection.models.inputs.evidence_tokens import EvidenceTokens
from truthlens.detection.models.inputs.layout import Layout
from truthlens.detection.models.inputs.lexical import EvidenceIndex, keys_of
from truthlens.detection.models.inputs.manifest import InputFormat
from truthlens.detection.models.inputs.selection import (
    Floats,
    Units,
    context_scores,
    held_shares,
    overlap_scores,
    select_units,
)
from truthlens.text.sentences_v1 import sentences_v1
from truthlens.text.words import words

Chunk = tuple[int, int]
"""Answer tokens, by number: start inclusive, end exclusive."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedWindow:
    """One planned window: ``chunk`` with the evidence ``units``, which ascend.

    ``relevance`` has shape (tokens of the chunk,), 0..1: what share of the rare words of each token's
    sentence ``units`` hold; ``None`` where no merging asks for it.
    """

    chunk: Chunk
    units: Units
    relevance: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """A sentence of the answer: characters ``start`` to ``end``, and the keys of its content words."""

    start: int
    end: int
    keys: tuple[str, ...]


def chunks_of(tokens: int, *, size: int, overlap: int) -> list[Chunk]:
    """Return ranges of ``size`` tokens that cover ``tokens``, each sharing ``overlap`` with the next.

    They begin at fixed steps, so that more tokens leave all but the last as they are; the last is moved back
    until it ends with the answer, and shares more with the one before.
    """
    if tokens <= size:
        return [(0, tokens)] if tokens else []
    starts = [*range(0, tokens - size, size - overlap), tokens - size]
    return [(start, start + size) for start in starts]


def claims_of(answer: str) -> list[AnswerSentence]:
    """Return the sentences of ``answer``, in order."""
    listed = [word for word in words(answer) if not word.stop]
    claims: list[AnswerSentence] = []
    place = 0
    for start, end in sentences_v1(answer):
        keys: list[str] = []
        while place < len(listed) and listed[place].start < end:
            keys.extend(keys_of(listed[place]))
            place += 1
        claims.append(AnswerSentence(start, end, tuple(keys)))
    return claims


def content_keys(text: str) -> list[str]:
    """Return the lookup keys of the content words of ``text``, in order, with repeats."""
    return [key for word in words(text) if not word.stop for key in keys_of(word)]


class Pairing:
    """Pairs the chunks of one answer with evidence that does not all fit next to them.

    Args:
        fmt: says which way.
        layout: says how much fits.
        evidence: by unit.
        index: over the same units; ``None`` where neither selection nor merging compares words.
        answer: the whole answer.
        offsets: shape (answer tokens, 2), character ranges.
        query: what the user asked, or ``""``.
    """

    def __init__(
        self,
        fmt: InputFormat,
        layout: Layout,
        evidence: EvidenceTokens,
        index: EvidenceIndex | None,
        *,
        answer: str,
        offsets: NDArray[np.int64],
        query: str,
    ) -> None:
        self._fmt = fmt
        self._layout = layout
        self._evidence = evidence
        self._index = index
        self._offsets = offsets
        self._claims = claims_of(answer) if index is not None else []
        self._query = content_keys(query) if fmt.ranking == "context" else []

    def pairs(self, chunks: Sequence[Chunk], *, max_windows: int, after: int = 0) -> list[PlannedWindow]:
        """Return one entry per window, chunks in order; if windows run short, whole chunks are left out.

        Those that end at token ``after`` or before are left out as well, but count.
        """
        if self._index is not None and self._fmt.evidence == "select":
            most = self._fmt.evidence_windows or 1
            kept = [chunk for chunk in chunks[: max(max_windows // most, 1)] if chunk[1] > after]
            pairs = [pair for chunk in kept for pair in self._selected(self._index, chunk, most=most)]
            return pairs[:max_windows]
        return self._crossed(chunks, max_windows=max_windows, after=after)

    def _selected(self, index: EvidenceIndex, chunk: Chunk, *, most: int) -> list[PlannedWindow]:
        """Select the best evidence for a first window, the best of the rest for a second, and so on."""
        checkpoint()
        claims = [claim.keys for claim in self._claims_in(chunk)]
        scores = self._scores(index, claims)
        tokens = chunk[1] - chunk[0]
        budget = self._layout.room(tokens)
        if self._fmt.selected_tokens is not None:
            budget = min(budget, self._fmt.selected_tokens + tokens)
        sizes = self._evidence.sizes + self._layout.unit_extra
        taken = np.zeros(len(sizes), dtype=bool)
        pairs: list[PlannedWindow] = []
        while len(pairs) < most:
            # A further window is only worth its time if it holds a match; the first must be there anyway.
            if pairs and not (scores[:, ~taken] > 0.0).any():
                break
            units = select_units(scores, sizes=sizes, budget=budget, taken=taken)
            if pairs and not len(units):
                break
            taken[units] = True
            pairs.append(PlannedWindow(chunk, units, self._relevance(chunk, units)))
        return pairs

    def _scores(self, index: EvidenceIndex, claims: Sequence[Sequence[str]]) -> Floats:
        if self._fmt.ranking == "context":
            return context_scores(index, claims, query=self._query, owners=self._evidence.units[:, 0])
        return overlap_scores(index, claims)

    def _crossed(self, chunks: Sequence[Chunk], *, max_windows: int, after: int) -> list[PlannedWindow]:
        longest = max((end - start for start, end in chunks), default=0)
        groups = self._layout.groups(longest)
        most = min(self._fmt.evidence_windows or len(groups), max_windows)
        kept = chunks[: max_windows // max(min(most, len(groups)), 1)]
        return [
            PlannedWindow(chunk, group, self._relevance(chunk, group))
            for chunk in kept
            if chunk[1] > after
            for group in self._nearest(chunk, groups, most=most)
        ]

    def _nearest(self, chunk: Chunk, groups: Sequence[Units], *, most: int) -> list[Units]:
        """Return the ``most`` groups that hold the largest share of the chunk's claims, in document order."""
        if self._index is None or self._fmt.evidence_windows is None or len(groups) <= most:
            return list(groups[:most])
        claims = [claim.keys for claim in self._claims_in(chunk)]
        held = [held_shares(self._index, claims, group).sum() for group in groups]
        order = np.argsort(-np.array(held), kind="stable")[:most]
        return [groups[number] for number in sorted(order)]

    def _relevance(self, chunk: Chunk, units: Units) -> NDArray[np.float32] | None:
        if self._index is None or self._fmt.merge in {"min", "mean"}:
            return None
        claims = self._claims_in(chunk)
        shares = held_shares(self._index, [claim.keys for claim in claims], units)
        starts = self._offsets[chunk[0] : chunk[1], 1] - 1
        of_token = np.searchsorted([claim.end for claim in claims], starts, side="right")
        values: NDArray[np.float32] = np.append(shares, 0.0)[of_token].astype(np.float32)
        return values

    def _claims_in(self, chunk: Chunk) -> list[AnswerSentence]:
        first, last = int(self._offsets[chunk[0], 0]), int(self._offsets[chunk[1] - 1, 1])
        return [claim for claim in self._claims if claim.start < last and claim.end > first]
