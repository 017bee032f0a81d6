"""Keep the labels, scores, counts and times of scored answers by row, and none of their text.

Everything that is reported is worked out from a ``Tally``, for all rows or for some. It grows with the number
of answers and, where spans are marked, with their tokens; texts can be let go as soon as they are scored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthlens.training.data.dataset import Example
from truthlens.training.evaluate.metrics import Floats, base_rate_weights, char_counts, span_counts
from truthlens.training.evaluate.served_encoder import TokenReading

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """A detector's say on each of some answers.

    ``scores`` (0 where nothing was scored), ``scored``, ``coverage``, ``seconds`` and ``tokens`` (answer
    tokens scored plus evidence tokens seen) have shape (rows,); ``spans`` are character ranges; ``readings``
    the token scores, ``None`` from detectors that give none.
    """

    scores: Floats
    spans: tuple[tuple[tuple[int, int], ...], ...]
    coverage: Floats
    seconds: Floats
    scored: Bools
    tokens: Floats
    readings: tuple[TokenReading | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Scored answers by row; every column has shape (rows,) unless it says otherwise.

    ``marked``: whether people marked spans. ``chars`` (rows, 3) and ``spans`` (rows, 4) are the counts of
    ``metrics.char_counts`` and ``metrics.span_counts``, zeros where nothing was marked. ``any_span``: whether
    a span was predicted. ``task``, ``source`` and ``generator`` are ``""`` where a row has none.
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
    readings: tuple[TokenReading | None, ...]

    @classmethod
    def of(cls, examples: Sequence[Example], measured: ScoreTable) -> Tally:
        """Build a tally from answers and their results."""
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
            readings=measured.readings,
        )

    @classmethod
    def join(cls, tallies: Sequence[Tally]) -> Tally:
        """Join the rows of one or more tallies, one after another."""
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(tally, name) for tally in tallies]) for name in _COLUMNS
        }
        return cls(**columns, readings=tuple(reading for tally in tallies for reading in tally.readings))

    def take(self, rows: Bools) -> Tally:
        """Return the rows for which ``rows``, shape (rows,), is true."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _COLUMNS}
        kept = [reading for reading, wanted in zip(self.readings, rows.tolist(), strict=True) if wanted]
        return Tally(**columns, readings=tuple(kept))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.labels)

    def weights(self, base_rate: float | None) -> Floats:
        """Return weights, shape (rows,): 1 each, or such that the unsupported share is ``base_rate``."""
        if base_rate is None:
            return np.ones(len(self))
        return base_rate_weights(self.labels, base_rate=base_rate)


_COLUMNS = tuple(name for name in Tally.__dataclass_fields__ if name != "readings")


def _texts(examples: Sequence[Example], of: Callable[[Example], str]) -> NDArray[np.str_]:
    # An empty list would make an array of floats.
    return np.array([of(example) for example in examples], dtype=np.str_)
