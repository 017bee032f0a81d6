"""Tell what of an answer is in doubt, and what is supported: what a correction is to change, and what it must leave alone. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from truthlens.core.records.claims import ClaimOutcome, JudgedClaim
from truthlens.core.records.explanation import Difference
from truthlens.core.records.verdict import Mark, Span, Verdict, marks_of
from truthlens.core.thresholds import EVEN_ODDS, at_rate
from truthlens.text.spans import trimmed

_AGAINST = frozenset((ClaimOutcome.CONTRADICTED, ClaimOutcome.NOT_STATED))
_FOR = frozenset((ClaimOutcome.SUPPORTED, ClaimOutcome.PROVED))


@dataclass(frozen=True, slots=True)
class Doubt:
    """Characters ``start`` to ``end`` of an answer that the evidence may not support; ``score`` (0..1, at even odds) says how likely.

    ``spans`` are what detectors found there; where ``claim`` is known, those of the detector that decided, or of all.
    """

    start: int
    end: int
    score: float
    spans: tuple[Span, ...] = ()
    claim: JudgedClaim | None = None

    @property
    def mark(self) -> Mark:
        """What it is as a mark in the text."""
        return Mark(self.start, self.end, self.score, self.spans)

    @property
    def telling(self) -> Span | None:
        """The span that says most, where there is any."""
        return self.mark.telling if self.spans else None

    @property
    def is_told(self) -> bool:
        """Whether the telling span is of what decided."""
        span, claim = self.telling, self.claim
        return span is not None and (claim is None or span.detector == claim.detector)

    @property
    def place(self) -> tuple[int | None, tuple[int, int] | None]:
        """The passage that decides and the sentence in it, as far as they are known."""
        span, claim = self.telling, self.claim
        own = (span.passage, span.sentence) if span is not None else (None, None)
        if claim is None or claim.passage is None or (self.is_told and own[1] is not None):
            return own
        return claim.passage, claim.sentence

    @property
    def differences(self) -> tuple[Difference, ...]:
        """What differs in it; places in the evidence are those of the passage that decides."""
        span, claim = self.telling, self.claim
        is_there = span is not None and span.passage == self.place[0]
        # A span may go on in the next claim.
        return tuple(
            each
            for each in self.mark.differences
            if (is_there or each.evidence is None)
            and (claim is None or (each.start < claim.end and each.end > claim.start))
        )


def doubts(text: str, verdict: Verdict) -> tuple[Doubt, ...]:
    """Return what ``verdict`` holds against ``text``, in order, not overlapping: its doubtful claims, and spans that touch no claim.

    A claim is doubtful where its outcome says so, or where its risk reaches the threshold. Where none is, because the detectors do
    not speak by claims, the marks of all spans are in doubt.
    """
    against = [each for each in verdict.claims if _is_doubtful(each, verdict)]
    if not against:
        marks = marks_of(verdict.spans, length=len(text))
        return tuple(Doubt(mark.start, mark.end, mark.score, mark.spans) for mark in marks)
    held: dict[int, list[Span]] = defaultdict(list)
    apart: list[Span] = []
    for span in verdict.spans:
        first = bisect_right(verdict.claims, span.start, key=lambda claim: claim.end)
        behind = bisect_left(verdict.claims, span.end, key=lambda claim: claim.start)
        for claim in verdict.claims[first:behind]:
            held[claim.start].append(span)
        if first >= behind:
            # Of a phrase around it, a claim may have a part.
            apart.append(replace(span, shown=None))
    found = [_of_claim(each, held[each.start]) for each in against]
    found += [
        Doubt(mark.start, mark.end, mark.score, mark.spans) for mark in marks_of(apart, length=len(text))
    ]
    return tuple(sorted(found, key=lambda each: each.start))


def doubts_shown(text: str, verdict: Verdict) -> tuple[Doubt, ...]:
    """Return ``doubts``, or all of ``text`` where an answer was scored and nothing says which part of it is meant.

    Many slight doubts can flag an answer; a prompt that marked nothing would ask for nothing.
    """
    found = doubts(text, verdict)
    if found or verdict.score is None or not text.strip():
        return found
    score = at_rate(verdict.score, EVEN_ODDS, given=verdict.expected_rate)
    return (Doubt(*trimmed(text, 0, len(text)), score),)


def is_supported(claim: JudgedClaim) -> bool:
    """Return whether the evidence bears a claim out; one that nobody could judge is not."""
    return claim.outcome in _FOR


def _is_doubtful(claim: JudgedClaim, verdict: Verdict) -> bool:
    if claim.outcome is ClaimOutcome.PROVED or claim.risk is None:
        return False
    return claim.outcome in _AGAINST or at_rate(claim.risk, verdict.expected_rate) >= verdict.threshold


def _of_claim(claim: JudgedClaim, inside: Sequence[Span]) -> Doubt:
    deciding = [span for span in inside if span.detector == claim.detector]
    return Doubt(claim.start, claim.end, claim.risk or 0.0, tuple(deciding or inside), claim)
