"""Keep the labels, scores, counts and times of scored answers by row, and none of their text.

Everything that is reported is worked out from a ``EvaluationTally``, for all rows or for some. It grows with the number
of answers and, where spans are marked, with their tokens; texts can be let go as soon as they are scored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthlens.lab.data.dataset import Example
from truthlens.lab.evaluate.metrics import Floats, base_rate_weights, char_counts, span_counts
from truthlens.lab.evaluate.ranking import sibling_key, twin_key
from truthlens.lab.evaluate.served_encoder import TokenReading

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
class EvaluationTally:
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
    ) -> EvaluationTally:
        """Build a tally from answers and their results; ``blind`` are the scores of a blind model."""
        gold = [example.spans or () for example in examples]
        marked = np.array([example.spans is not None for example in examples], dtype=bool)
        predicted = [
            spans if known else () for spans, known in zip(measured.spans, marked.tolist(), strict=True)
        ]
        told: dict[str, Any] = {name: getattr(measured, name) for name in _MEASURED}
        # An empty list would make an array of floats.
        told |= {
            name: np.array([getattr(row, name) for row in examples], dtype=np.str_) for name in _OF_EXAMPLE
        }
        return cls(
            labels=np.array([example.label for example in examples], dtype=bool),
            marked=marked,
            chars=char_counts(gold, predicted),
            spans=span_counts(gold, predicted),
            any_span=np.array([bool(spans) for spans in measured.spans], dtype=bool),
            twin=np.array([_digest(twin_key(row)) for row in examples], dtype=np.str_),
            sibling=np.array([_digest(sibling_key(row)) for row in examples], dtype=np.str_),
            blind=np.full(len(examples), np.nan) if blind is None else np.array(blind, dtype=np.float64),
            **told,
        )

    @classmethod
    def join(cls, tallies: Sequence[EvaluationTally]) -> EvaluationTally:
        """Join the rows of one or more tallies of the same detectors, one after another."""
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(tally, name) for tally in tallies]) for name in _COLUMNS
        }
        readings = tuple(reading for tally in tallies for reading in tally.readings)
        return cls(**columns, readings=readings, detectors=tallies[0].detectors)

    def take(self, rows: Bools) -> EvaluationTally:
        """Return the rows for which ``rows``, shape (rows,), is true."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _COLUMNS}
        kept = [reading for reading, wanted in zip(self.readings, rows.tolist(), strict=True) if wanted]
        return EvaluationTally(**columns, readings=tuple(kept), detectors=self.detectors)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.labels)

    def weights(self, base_rate: float | None) -> Floats:
        """Return weights, shape (rows,): 1 each, or such that the unsupported share is ``base_rate``."""
        if base_rate is None:
            return np.ones(len(self))
        return base_rate_weights(self.labels, base_rate=base_rate)


_MEASURED = (
    "scores",
    "scored",
    "coverage",
    "seconds",
    "tokens",
    "parts",
    "abstained",
    "readings",
    "detectors",
)
_OF_EXAMPLE = ("group", "task", "source", "generator", "kind", "style")
_COLUMNS = tuple(
    name for name in EvaluationTally.__dataclass_fields__ if name not in ("readings", "detectors")
)


def _digest(key: Hashable) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]
