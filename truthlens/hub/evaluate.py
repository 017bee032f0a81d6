"""Figures of a detector on files of labelled answers: the function behind ``truthlens eval``.

The detector is an argument; nothing here loads one. An answer that the detector did not score counts as not
flagged, with score 0 and coverage 0: not looking never improves a figure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from truthlens.core.records import Coverage, Span
from truthlens.hub.data import Example, read_examples
from truthlens.hub.figures import PRF, auprc, auroc, base_rate_weights, char_prf, ece, prf, span_prf

_DIGITS = 4


class Scored(Protocol):
    """What a detector says of one answer: a ``Verdict`` or a ``DetectorResult``."""

    @property
    def score(self) -> float | None:
        """Response score, 0..1, or ``None`` where nothing was scored."""

    @property
    def spans(self) -> Sequence[Span]:
        """Unsupported parts of the answer."""

    @property
    def coverage(self) -> Coverage | None:
        """How much was looked at."""


Score = Callable[[str, Sequence[str], str], Scored]
"""From query, passages and answer to what the detector says."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A detector's say on each of some answers.

    ``scores``, ``coverage`` and ``seconds`` have shape (rows,); ``spans`` are character ranges.
    """

    scores: NDArray[np.float64]
    spans: tuple[tuple[tuple[int, int], ...], ...]
    coverage: NDArray[np.float64]
    seconds: NDArray[np.float64]


def evaluate(
    files: Sequence[Path],
    *,
    score: Score,
    model: str,
    threshold: float,
    limit: int | None = None,
    base_rate: float | None = None,
    console: Console | None = None,
) -> dict[str, Any]:
    """The JSON object of ``truthlens eval``: ``{"model", "files": [figures of each file]}``.

    Args:
        files: labelled JSON lines, gzip'd or not.
        score: the detector.
        model: its name, for the report.
        threshold: response score from which an answer counts as flagged.
        limit: rows of each file, from its start.
        base_rate: weigh the rows so that this share is unsupported (precision, recall, F1, ECE); by default
            they count as they are.
        console: shows a progress bar.

    Raises:
        DataError: a file cannot be read.
        ValueError: ``base_rate`` is not inside 0..1.
    """
    if base_rate is not None and not 0.0 < base_rate < 1.0:
        raise ValueError(f"base_rate is {base_rate}; expected a share between 0 and 1")
    reports = []
    for file in files:
        examples = read_examples(file)[:limit]
        measured = measure(examples, score, console=console, title=file.name)
        reports.append(
            {"file": str(file), **report(examples, measured, threshold=threshold, base_rate=base_rate)}
        )
    return {"model": model, "files": reports}


def measure(
    examples: Sequence[Example], score: Score, *, console: Console | None = None, title: str = "scoring"
) -> Measured:
    """Score ``examples`` one after another, with the wall time of each."""
    scores, spans, coverage, seconds = [], [], [], []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console or Console(quiet=True)) as progress:
        for example in progress.track(examples, description=title):
            started = time.perf_counter()
            said = score(example.query, example.context, example.response)
            seconds.append(time.perf_counter() - started)
            scores.append(0.0 if said.score is None else said.score)
            spans.append(tuple((span.start, span.end) for span in said.spans))
            coverage.append(_coverage(said))
    return Measured(np.array(scores), tuple(spans), np.array(coverage), np.array(seconds))


def report(
    examples: Sequence[Example], measured: Measured, *, threshold: float, base_rate: float | None = None
) -> dict[str, Any]:
    """The figures of one file; ``None`` where its rows have no labels for a figure."""
    labels = np.array([example.label for example in examples], dtype=bool)
    marked = [row for row, example in enumerate(examples) if example.spans is not None]
    weights = np.ones(len(labels)) if base_rate is None else base_rate_weights(labels, base_rate=base_rate)
    flagged = measured.scores >= threshold
    example = prf(
        float(weights[flagged & labels].sum()), float(weights[flagged].sum()), float(weights[labels].sum())
    )
    gold = [examples[row].spans or () for row in marked]
    predicted = [measured.spans[row] for row in marked]
    milliseconds = measured.seconds * 1000
    return {
        "rows": len(examples),
        "example": {
            **_figures(example if len(examples) else None),
            "auroc": _round(auroc(labels, measured.scores)),
            "auprc": _round(auprc(labels, measured.scores)),
            "threshold": threshold,
        },
        "span": _figures(span_prf(gold, predicted) if marked else None),
        "char": _figures(char_prf(gold, predicted) if marked else None),
        "ece": _round(ece(labels, measured.scores, weights=weights)) if len(examples) else None,
        "coverage": _round(float(measured.coverage.mean())) if len(examples) else None,
        "latency_ms": {
            name: round(float(np.percentile(milliseconds, share)), 2) if len(examples) else None
            for name, share in (("p50", 50), ("p99", 99))
        },
    }


def _coverage(said: Scored) -> float:
    if said.score is None or said.coverage is None:
        return 0.0 if said.score is None else 1.0
    return said.coverage.answer_ratio * said.coverage.evidence_ratio


def _figures(found: PRF | None) -> dict[str, float | None]:
    if found is None:
        return {"precision": None, "recall": None, "f1": None}
    return {
        "precision": _round(found.precision),
        "recall": _round(found.recall),
        "f1": _round(found.f1),
    }


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
