"""The records of why a span is flagged: its kind, the nearest sentence, what differs. Positions only, never text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SpanKind(StrEnum):
    """What is wrong with a span (white paper 2.1: intrinsic, extrinsic, fabrication), with what it cites, or with how sure it is."""

    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"
    FABRICATED = "fabricated"
    INVALID_CITATION = "invalid-citation"
    UNCITED = "uncited"
    WRONG_CITATION = "wrong-citation"
    OVER_EXTRAPOLATION = "over-extrapolation"


class DifferenceKind(StrEnum):
    """What two sentences disagree on."""

    NUMBER = "number"
    DATE = "date"
    NAME = "name"
    CITATION = "citation"
    NEGATION = "negation"
    OPPOSITE = "opposite"
    CERTAINTY = "certainty"


@dataclass(frozen=True, slots=True)
class Difference:
    """A value of the answer, at characters ``start`` to ``end``, that the evidence does not give.

    ``evidence`` is where the nearest sentence gives another one, as (start, end) in the text of the span's passage;
    ``None`` where nothing in the evidence is comparable. Positions alone, so that a verdict holds no text.
    """

    kind: DifferenceKind
    start: int
    end: int
    evidence: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a span is flagged.

    ``confidence`` is the probability of ``kind``, 0..1. ``sentence`` are characters of the span's passage, the
    sentence that comes nearest, or ``None``; ``similarity`` is the share of the claim's weight in words that it
    holds, 0..1. ``reason`` is a sentence of our own with no text of users, models or documents in it.
    """

    kind: SpanKind
    confidence: float
    reason: str
    sentence: tuple[int, int] | None = None
    similarity: float = 0.0
    differences: tuple[Difference, ...] = ()
