"""Keep the labels, scores, counts and times of scored answers by row, and none of their text.

Everything that is reported is worked out from a ``Tally``, for all rows or for some. It grows with the number
of answers and, where spans are marked, with their tokens; texts can be let go as soon as they are scored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthlens.training.data.dataset import Example
from truthlens.training.evaluate.metrics import Floats, base_rate_weights, char_counts, span_counts
from truthlens.training.evaluate.ranking import sibling_key, twin_key
from truthlens.training.evaluate.served_encoder import TokenReading

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class DetectorShare:
    """What one detector of several had in one verdict.

    ``alone`` is the score from it alone, ``without`` the one from the others; ``None`` where that would be no
    score. ``abstained``: the answer held nothing for it to check.
    """

    name: str
    alone: float | None
    without: float | None
    abstained: bool


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """A detector's say on each of some answers.

    ``scores`` (0 where nothing was scored), ``scored``, ``coverage``, ``seconds`` and ``tokens`` (answer
    tokens scored plus evidence tokens seen) have shape (rows,); ``spans`` are character ranges; ``readings``
    the token scores, ``None`` from detectors that give none. ``detectors`` are the names of a plan's; ``parts``,
    shape (rows, detectors, 2), the score from each alone and from all others (``NaN`` where that is none), and
    ``abstained`` has shape (rows, detectors).
    """

    scores: Floats
    spans: tuple[tuple[tuple[int, int], ...], ...]
    coverage: Floats
    seconds: Floats
    scored: Bools
    tokens: Floats
    readings: tuple[TokenReading | None, ...]
    detectors: tuple[str, ...]
    parts: Floats
    abstained: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Scored answers by row; every column has shape (rows,) unless it says otherwise.

    ``marked``: whether people marked spans. ``chars`` (rows, 3) and ``spans`` (rows, 4) are the counts of
    ``metrics.char_counts`` and ``metrics.span_counts``, zeros where nothing was marked. ``any_span``: whether
    a span was predicted. ``task``, ``source``, ``generator``, ``kind`` and ``style`` are ``""`` where a row has none.
    ``twin`` and ``sibling`` are digests of what ``ranking`` compares rows by. ``blind`` are the scores of a blind
    model, ``NaN`` where there is none. ``detectors``, ``parts`` and ``abstained`` are those of ``ScoreTable``.
    """

    labels: Bools
    scores: Floats
    scored: Bools
    marked: Bools
    chars: Floats
    spans: Floats
    any_span: Bools
    coverage: Floats
    seconds: Floats
    tokens: Floats
    group: NDArray[np.str_]
    task: NDArray[np.str_]
    source: NDArray[np.str_]
    generator: NDArray[np.str_]
    kind: NDArray[np.str_]
    style: NDArray[np.str_]
    twin: NDArray[np.str_]
    sibling: NDArray[np.str_]
    blind: Floats
    parts: Floats
    abstained: Bools
    readings: tuple[TokenReading | None, ...]
    detectors: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, examples: Sequence[Example], measured: ScoreTable, *, blind: Sequence[float] | None = None
    ) -> Tally:
        """Build a tally from answers and their results; ``blind`` are the scores of a blind model."""
        gold = [example.spans or () for example in examples]
        marked = np.array([example.spans is not None for example in examples], dtype=bool)
        predicted = [
            spans if known else () for spans, known in zip(measured.spans, marked.tolist(), strict=True)
        ]
        return cls(
            labels=np.array([example.label for example in examples], dtype=bool),
            scores=measured.scores,
            scored=measured.scored,
            marked=marked,
            chars=char_counts(gold, predicted),
            spans=span_counts(gold, predicted),
            any_span=np.array([bool(spans) for spans in measured.spans], dtype=bool),
            coverage=measured.coverage,
            seconds=measured.seconds,
            tokens=measured.tokens,
            group=_texts(examples, lambda row: row.group),
            task=_texts(examples, lambda row: row.task),
            source=_texts(examples, lambda row: row.source),
            generator=_texts(examples, lambda row: row.generator),
            kind=_texts(examples, lambda row: row.kind),
            style=_texts(examples, lambda row: row.style),
            twin=_texts(examples, lambda row: _digest(twin_key(row))),
            sibling=_texts(examples, lambda row: _digest(sibling_key(row))),
            blind=np.full(len(examples), np.nan) if blind is None else np.array(blind, dtype=np.float64),
            parts=measured.parts,
            abstained=measured.abstained,
            readings=measured.readings,
            detectors=measured.detectors,
        )

    @classmethod
    def join(cls, tallies: Sequence[Tally]) -> Tally:
        """Join the rows of one or more tallies of the same detectors, one after another."""
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(tally, name) for tally in tallies]) for name in _COLUMNS
        }
        readings = tuple(reading for tally in tallies for reading in tally.readings)
        return cls(**columns, readings=readings, detectors=tallies[0].detectors)

    def take(self, rows: Bools) -> Tally:
        """Return the rows for which ``rows``, shape (rows,), is true."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _COLUMNS}
        kept = [reading for reading, wanted in zip(self.readings, rows.tolist(), strict=True) if wanted]
        return Tally(**columns, readings=tuple(kept), detectors=self.detectors)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.labels)

    def weights(self, base_rate: float | None) -> Floats:
        """Return weights, shape (rows,): 1 each, or such that the unsupported share is ``base_rate``."""
        if base_rate is None:
            return np.ones(len(self))
        return base_rate_weights(self.labels, base_rate=base_rate)


_COLUMNS = tuple(name for name in Tally.__dataclass_fields__ if name not in ("readings", "detectors"))


def _digest(key: Hashable) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]


def _texts(examples: Sequence[Example], of: Callable[[Example], str]) -> NDArray[np.str_]:
    # An empty list would make an array of floats.
    return np.array([of(example) for example in examples], dtype=np.str_)
