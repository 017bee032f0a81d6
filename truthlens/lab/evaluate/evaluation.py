"""Figures of a detector on files of labelled answers: the function behind ``truthlens eval``.

The detector is an argument; nothing here loads one. An answer that the detector did not score counts as not
flagged, with score 0 and coverage 0: not looking never improves a figure.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from truthlens.core.records.verdict import Coverage, Span
from truthlens.lab.data.dataset import DataError, Example, read_examples
from truthlens.lab.data.twins import read_twins, twin_examples
from truthlens.lab.evaluate.comparisons import comparisons
from truthlens.lab.evaluate.reliability import reliability
from truthlens.lab.evaluate.score_table import DetectorShare, EvaluationTally, ScoreTable
from truthlens.lab.evaluate.served_encoder import TokenReading
from truthlens.lab.evaluate.summary import breakdown, describe

POOLED = "all files"
_TWIN_SUFFIXES = (".yaml", ".yml")
_CONTRACT = ("rows", "example", "span", "char", "ece", "coverage")


class Quality(StrEnum):
    """Which rows are measured, by their ``quality``."""

    ALL = "all"
    GOOD = "good"


class ScoredAnswer(Protocol):
    """What a detector says of one answer: a ``Verdict``, a ``DetectorResult`` or a ``ServedAnswer``."""

    @property
    def score(self) -> float | None:
        """Response score, 0..1, or ``None`` where nothing was scored."""

    @property
    def spans(self) -> Sequence[Span]:
        """Unsupported parts of the answer."""

    @property
    def coverage(self) -> Coverage | None:
        """How much was looked at."""


@runtime_checkable
class Readable(Protocol):
    """What a detector says of one answer, with the scores of its tokens: a ``ServedAnswer``."""

    def reading(self, gold: Sequence[tuple[int, int]] | None) -> TokenReading | None:
        """Return the token scores and the marked spans, ``None`` if nothing was scored."""


@runtime_checkable
class Composed(Protocol):
    """What several detectors say of one answer: a ``PlanAnswer``."""

    @property
    def shares(self) -> Sequence[DetectorShare]:
        """What each had in the score, in the plan's order; empty where none ran."""


Blind = Callable[[Sequence[Example]], Sequence[float]]
"""From labelled answers to the scores of a model that never sees their evidence."""

Score = Callable[[str, Sequence[str], str], ScoredAnswer]
"""From query, passages and answer to what the detector says."""


@dataclass(frozen=True, slots=True, eq=False)
class Tallied:
    """The rows of one file, or of all of them, with their figures."""

    name: str
    tally: EvaluationTally
    figures: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What was measured: one ``Tallied`` a file, and one of all rows together.

    ``settings`` says how: model, threshold, base rate, quality, and what the caller adds.
    """

    settings: Mapping[str, Any]
    files: tuple[Tallied, ...]
    pooled: Tallied

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of ``truthlens eval``; ``pooled`` has the shape of an entry of ``files``."""
        return {
            **self.settings,
            "files": [{"file": file.name, **file.figures} for file in self.files],
            "pooled": {"file": self.pooled.name, **self.pooled.figures},
        }


def evaluate(
    files: Sequence[Path],
    *,
    score: Score,
    model: str,
    threshold: float,
    token_limit: float | None = None,
    limit: int | None = None,
    base_rate: float | None = None,
    quality: Quality = Quality.ALL,
    rounds: int = 1000,
    about: Mapping[str, Any] | None = None,
    detectors: Sequence[str] = (),
    blind: Blind | None = None,
    console: Console | None = None,
) -> Evaluation:
    """Score every row of ``files``, one after another, and work out the figures.

    All files are read through before the first row is scored, so that a mistake in the last one shows at
    once. One file's text is held at a time.

    Args:
        files: labelled JSON lines, gzip'd or not, or twin files (``*.yaml``).
        score: the detector.
        model: its name, for the report.
        threshold: response score from which an answer counts as flagged.
        token_limit: probability from which a token counts as flagged; left out, tokens have no precision and
            recall.
        limit: rows of each file, from its start (after the choice by ``quality``).
        base_rate: weigh the rows so that this share is unsupported; by default they count as they are.
        quality: which rows to measure.
        rounds: resamples of the 95 % intervals; 0 for none.
        about: more that the report should say of the settings; plain data.
        detectors: the names of those that ``score`` tells the shares of, in their order.
        blind: a blind model, to say what is gained over it.
        console: shows a progress bar.

    Raises:
        DataError: a file cannot be read; the message names file and line.
        DetectorError: the detector failed.
        ValueError: ``base_rate`` is not inside 0..1, or ``files`` is empty.
    """
    if base_rate is not None and not 0.0 < base_rate < 1.0:
        raise ValueError(f"base_rate is {base_rate}; expected a share between 0 and 1")
    if not files:
        raise ValueError("there is no file to evaluate; expected at least one")
    left_out = [_left_out(file, quality) for file in files]

    def figures(tally: EvaluationTally, left_out: int) -> dict[str, Any]:
        found = breakdown(
            tally, threshold=threshold, token_limit=token_limit, base_rate=base_rate, rounds=rounds
        )
        compared = comparisons(tally, threshold=threshold, base_rate=base_rate, rounds=rounds)
        rest = {"left_out": left_out, "reliability": reliability(tally, base_rate=base_rate)}
        return {**found, **compared, **rest}

    tallied: list[Tallied] = []
    for file, without in zip(files, left_out, strict=True):
        examples = _read(file, quality)[:limit]
        measured = measure(examples, score, detectors=detectors, console=console, title=file.name)
        tally = EvaluationTally.of(examples, measured, blind=None if blind is None else blind(examples))
        tallied.append(Tallied(str(file), tally, figures(tally, without)))
    return Evaluation(
        settings={
            "model": model,
            "threshold": threshold,
            "token_threshold": token_limit,
            "base_rate": base_rate,
            "quality": str(quality),
            "limit": limit,
            "resamples": rounds,
            **(about or {}),
        },
        files=tuple(tallied),
        pooled=_pooled(tallied, lambda tally: figures(tally, sum(left_out))),
    )


def measure(
    examples: Sequence[Example],
    score: Score,
    *,
    detectors: Sequence[str] = (),
    console: Console | None = None,
    title: str = "scoring",
) -> ScoreTable:
    """Score ``examples`` one after another, with the wall time of each, and the shares of ``detectors``."""
    parts = np.full((len(examples), len(detectors), 2), np.nan)
    abstained = np.zeros((len(examples), len(detectors)), dtype=bool)
    scores, spans, coverage, seconds, tokens = [], [], [], [], []
    scored: list[bool] = []
    readings: list[TokenReading | None] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console or Console(quiet=True)) as progress:
        for row, example in enumerate(progress.track(examples, description=title)):
            started = time.perf_counter()
            said = score(example.query, example.context, example.response)
            seconds.append(time.perf_counter() - started)
            scores.append(0.0 if said.score is None else said.score)
            scored.append(said.score is not None)
            spans.append(tuple((span.start, span.end) for span in said.spans))
            coverage.append(_coverage(said))
            tokens.append(_tokens(said))
            readings.append(said.reading(example.spans) if isinstance(said, Readable) else None)
            for place, share in enumerate(said.shares if detectors and isinstance(said, Composed) else ()):
                parts[row, place] = [
                    np.nan if each is None else each for each in (share.alone, share.without)
                ]
                abstained[row, place] = share.abstained
    return ScoreTable(
        scores=np.array(scores, dtype=np.float64),
        spans=tuple(spans),
        coverage=np.array(coverage, dtype=np.float64),
        seconds=np.array(seconds, dtype=np.float64),
        scored=np.array(scored, dtype=bool),
        tokens=np.array(tokens, dtype=np.float64),
        readings=tuple(readings),
        detectors=tuple(detectors),
        parts=parts,
        abstained=abstained,
    )


def report(
    examples: Sequence[Example], measured: ScoreTable, *, threshold: float, base_rate: float | None = None
) -> dict[str, Any]:
    """Return the main figures of some rows, as a model's manifest keeps them; ``None`` without labels."""
    found = describe(EvaluationTally.of(examples, measured), threshold=threshold, base_rate=base_rate)
    latency = {name: found["latency_ms"][name] for name in ("p50", "p99")}
    return {**{name: found[name] for name in _CONTRACT}, "latency_ms": latency}


def _pooled(tallied: Sequence[Tallied], figures: Callable[[EvaluationTally], dict[str, Any]]) -> Tallied:
    if len(tallied) == 1:
        return tallied[0]
    tally = EvaluationTally.join([one.tally for one in tallied])
    return Tallied(POOLED, tally, figures(tally))


def _left_out(file: Path, quality: Quality) -> int:
    return sum(not _wanted(example, quality) for example in labelled_answers(file))


def _read(file: Path, quality: Quality) -> list[Example]:
    return [example for example in labelled_answers(file) if _wanted(example, quality)]


def _wanted(example: Example, quality: Quality) -> bool:
    return quality is Quality.ALL or example.quality == quality


def labelled_answers(file: Path) -> list[Example]:
    """Read a file of labelled JSON lines or of twins.

    Raises:
        DataError: it cannot be read, or holds something else.
    """
    if not file.is_file():
        raise DataError(
            f"{file} is no regular file; expected JSON lines or twins on disk, because they are read twice"
        )
    try:
        if file.suffix in _TWIN_SUFFIXES:
            return twin_examples(read_twins(file))
        return read_examples(file)
    except (OSError, EOFError, zlib.error) as error:
        kind = "gzip'd JSON lines" if file.suffix == ".gz" else "JSON lines"
        raise DataError(
            f"{file} cannot be read ({type(error).__name__}); expected {kind}: is the file whole?"
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 text; save it as UTF-8") from error


def _coverage(said: ScoredAnswer) -> float:
    if said.score is None or said.coverage is None:
        return 0.0 if said.score is None else 1.0
    return said.coverage.read_ratio * said.coverage.evidence_ratio


def _tokens(said: ScoredAnswer) -> int:
    if said.score is None or said.coverage is None:
        return 0
    return said.coverage.answer_tokens_scored + said.coverage.evidence_tokens_seen
