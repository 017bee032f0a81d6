"""Compare several models' answers claim by claim, and measure how well the evidence supports each claim.

``compare`` asks the tools for all figures and leaves every choice to the mechanisms (``vote``, ``fusion``,
``replacement``) and to the judge. It calls no model and changes no text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import TypeVar

from truthlens.core.records.claims import ClaimOutcome
from truthlens.core.records.verdict import Span, Verdict
from truthlens.core.thresholds import at_rate
from truthlens.mitigation.doubts import doubts
from truthlens.mitigation.interfaces import Compare, Rescore, Tools
from truthlens.mitigation.premium.consensus.alignment import Measured, Table, assembled
from truthlens.mitigation.premium.consensus.comparison import ClaimView, Comparison, Voice
from truthlens.text.claims.claims import Claim, claims
from truthlens.text.spans import touching

MOST_VOICES = 6
MOST_CLAIMS = 40
"""Claims of one voice that are compared; those that detection flagged first, the others count as agreed."""

_AT_ONCE_CHARS = 20_000
"""Characters of all answers together from which reading their claims would hold up the other exchanges."""

_AT_ONCE_PAIRS = 400
"""Pairs of claims from which setting them side by side would."""


_Result = TypeVar("_Result")


class AnswerDifferenceKind(StrEnum):
    """How another answer differs from the first one at a claim."""

    CONTRADICTED = "contradicted"
    MISSING = "missing"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """One difference between the first answer and another one, for a judge's prompt.

    ``contradicted``: ``first`` and ``other`` are about the same subject and do not agree. ``missing``: the
    other answer does not say ``first``. ``added``: the first answer does not say ``other``. Groundings are
    0..1, ``None`` for the side that says nothing.
    """

    kind: AnswerDifferenceKind
    voice: int
    first: str | None
    other: str | None
    first_grounding: float | None
    other_grounding: float | None


async def compare(voices: Sequence[Voice], tools: Tools) -> Comparison:
    """The voices' claims with their groundings and with what each other voice says of them.

    One scoring of all claims against the evidence, one similarity table per pair of voices, one support call
    per ordered pair; the voices' calls run side by side. Cancellation ends them all. Where a tool raises, the
    first of its exceptions is raised, and the other calls are ended.
    """
    kept = tuple(voices[:MOST_VOICES])
    length = sum(len(voice.text) for voice in kept)
    listed = await _placed(lambda: [_factual(voice) for voice in kept], large=length > _AT_ONCE_CHARS)
    notes = ["voices-cut"] if len(voices) > len(kept) else []
    if any(cut for _, cut in listed):
        notes.append("claims-cut")
    found = [own for own, _ in listed]
    try:
        async with asyncio.TaskGroup() as tasks:
            groundings = tasks.create_task(_groundings(kept, found, tools.rescore))
            rows = [tasks.create_task(_row(place, kept, found, tools.compare)) for place in range(len(kept))]
    except ExceptionGroup as raised:
        raise raised.exceptions[0] from None
    similar: dict[tuple[int, int], Table] = {}
    support: dict[tuple[int, int], Sequence[float | None]] = {}
    for task in rows:
        for pair, table, own in task.result():
            if table is not None:
                similar[pair] = table
            support[pair] = own
    figures = Measured(found, groundings.result(), similar, support)
    pairs = sum(len(one) * len(other) for one, other in combinations(found, 2))
    large = length > _AT_ONCE_CHARS or pairs > _AT_ONCE_PAIRS
    return await _placed(lambda: assembled(kept, figures, notes=notes), large=large)


def differences(comparison: Comparison) -> list[AnswerDifference]:
    """Return where the other answers differ from the first one: its claims in order, then what they add.

    A claim that several others add is listed once.
    """
    found: list[AnswerDifference] = []
    for view in comparison.views[0]:
        for stance in view.stances:
            if stance.disputes and stance.partner is not None:
                other = comparison.views[stance.voice][stance.partner]
                found.append(_difference(AnswerDifferenceKind.CONTRADICTED, stance.voice, view, other))
            elif stance.silent:
                found.append(_difference(AnswerDifferenceKind.MISSING, stance.voice, view, None))
    told: list[tuple[int, int]] = []
    for voice in range(1, len(comparison.voices)):
        for place, view in enumerate(comparison.views[voice]):
            of = {stance.voice: stance for stance in view.stances}
            if not of[0].silent:
                continue
            if not any(of[teller].partner == number for teller, number in told if teller in of):
                found.append(_difference(AnswerDifferenceKind.ADDED, voice, None, view))
            told.append((voice, place))
    return found


async def _placed(work: Callable[[], _Result], *, large: bool) -> _Result:
    """Return the result of ``work``; large work is done on a thread."""
    return await asyncio.to_thread(work) if large else work()


def _factual(voice: Voice) -> tuple[list[Claim], bool]:
    """The claims of a voice that are compared, and whether some were left out."""
    found = [claim for claim in claims(voice.text) if claim.factual]
    flagged = touching(
        [(claim.start, claim.end) for claim in found],
        [(doubt.start, doubt.end) for doubt in doubts(voice.text, voice.verdict)],
    )
    ranked = sorted(range(len(found)), key=lambda place: not flagged[place])
    kept = [found[place] for place in sorted(ranked[:MOST_CLAIMS])]
    return kept, len(kept) < len(found)


async def _groundings(
    voices: Sequence[Voice], found: Sequence[Sequence[Claim]], rescore: Rescore
) -> list[list[float | None]]:
    """Return each claim's grounding: 1 minus the worst of its own score and of what the verdict on the whole answer says of it.

    ``None`` where there is neither. What is proved in its answer needs no score of its own.
    """
    texts = [claim.text for own in found for claim in own]
    verdicts = iter(await rescore(texts) if texts else ())
    return [
        [_grounding(claim, next(verdicts), voice.verdict) for claim in own]
        for voice, own in zip(voices, found, strict=True)
    ]


def _grounding(claim: Claim, alone: Verdict, whole: Verdict) -> float | None:
    judged = [
        each for each in whole.claims if each.risk is not None and _overlap(claim, each.start, each.end)
    ]
    risks = [at_rate(each.risk, whole.expected_rate) for each in judged if each.risk is not None]
    if judged and all(each.outcome is ClaimOutcome.PROVED for each in judged):
        return 1.0 - max(risks)
    spans = [span for span in whole.spans if _overlap(claim, span.start, span.end)]
    # Findings that are facts hold whatever the claim came to; the others are part of what it came to.
    risks += [_fact(span, whole) if judged else _score(span, whole) for span in spans]
    if alone.score is not None:
        risks.append(alone.score)
    return min((1.0 - risk for risk in risks), default=None)


def _score(span: Span, whole: Verdict) -> float:
    """Return the span's score on the scale of its verdict, which thresholds are on; a fact is not shifted below its floor."""
    return max(at_rate(span.score, whole.expected_rate), _fact(span, whole))


def _fact(span: Span, whole: Verdict) -> float:
    """Return what a span counts for at least, as the finding of a detector whose findings are facts; 0.0 for others."""
    floor = max((each.floor for each in whole.results if each.detector == span.detector), default=0.0)
    return min(span.score, floor)


def _overlap(claim: Claim, start: int, end: int) -> bool:
    return start < claim.end and end > claim.start


async def _row(
    one: int, voices: Sequence[Voice], found: Sequence[Sequence[Claim]], tool: Compare
) -> list[tuple[tuple[int, int], Table | None, Sequence[float | None]]]:
    """Return what all other voices say of one voice's claims; the table only has pairs in ascending order."""
    told: list[tuple[tuple[int, int], Table | None, Sequence[float | None]]] = []
    texts = [claim.text for claim in found[one]]
    for other, voice in enumerate(voices):
        if other == one:
            continue
        table: Table | None = None
        theirs = [claim.text for claim in found[other]]
        if one < other:
            table = await tool.similar(texts, theirs) if texts and theirs else [[] for _ in texts]
        told.append(((one, other), table, await tool.support(texts, voice.text) if texts else ()))
    return told


def _difference(
    kind: AnswerDifferenceKind, voice: int, first: ClaimView | None, other: ClaimView | None
) -> AnswerDifference:
    return AnswerDifference(
        kind,
        voice,
        first.claim.text if first else None,
        other.claim.text if other else None,
        first.grounding if first else None,
        other.grounding if other else None,
    )
