"""Make the detector's result of what the model said of each claim. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from truthlens.core.records.enums import DetectorName
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.explanation import SpanKind
from truthlens.core.records.verdict import Coverage, DetectorResult, Span
from truthlens.detection.asking.words import Reading
from truthlens.detection.detectors.budget.claims import CitedClaim, Claims, citing
from truthlens.detection.detectors.budget.formulas import (
    FLAGGED,
    SURELY_NOT,
    Grounding,
    bits,
    contradicted_score,
    decide,
    overall,
)
from truthlens.detection.detectors.budget.options import Method, Options
from truthlens.text.language import language_of

_MESSAGES, _ELSE = Path(__file__).with_name("messages.json"), "en"
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with what the model said of it, with all evidence and without what it cites."""

    claim: CitedClaim
    full: Reading
    redacted: Reading


@dataclass(frozen=True, slots=True)
class _Found:
    claim: CitedClaim
    p1: float
    p0: float
    highest_p1: float
    decision: Grounding

    @property
    def surely_not(self) -> bool:
        return self.highest_p1 < SURELY_NOT

    @property
    def risk(self) -> float:
        if self.surely_not:
            return contradicted_score(self.highest_p1)
        return max(FLAGGED, 1.0 - self.p1)

    @property
    def span(self) -> Span:
        place, passages = (self.claim.start, self.claim.end), self.claim.passages
        return Span(
            *place,
            self.risk,
            DetectorName.BUDGET,
            passage=passages[0] if passages else None,
            shown=place,
            note=f"p1 {self.p1:.2f}, p0 {self.p0:.2f}",
            kind=SpanKind.UNSUPPORTED,
        )


def result_of(
    judged: Sequence[Judged], claims: Claims, exchange: Exchange, answer: Answer, options: Options
) -> DetectorResult:
    """Return the result; ``judged`` are one claim or more, those that the model said something usable of."""
    found = [_found(each, options) for each in judged]
    whole = overall(
        [each.decision.grounded for each in found],
        [each.highest_p1 for each in found],
        grounded_ratio=options.grounded_ratio,
    )
    grounded = sum(each.decision.grounded for each in found)
    messages = _messages_for(answer.text, exchange.query)
    counts = {
        "grounded_claims": grounded,
        "total_claims": len(found),
        "grounding_ratio": round(whole.ratio, 4),
    }
    ungrounded = len(found) - grounded
    unjudged = len(claims.taken) - len(found)
    explanation = f"{grounded} of {len(found)} claims grounded"
    if unjudged or claims.left_out:
        explanation += f"; {unjudged + claims.left_out} not judged"
    return DetectorResult(
        DetectorName.BUDGET,
        whole.score,
        spans=tuple(each.span for each in found if not each.decision.grounded or each.surely_not),
        coverage=_coverage(found, claims),
        explanation=explanation,
        details=MappingProxyType(
            {
                "method": options.method.value,
                "overall_grounded": float(whole.grounded),
                **counts,
                "surely_not_entailed": sum(each.surely_not for each in found),
                "independent_claims": sum(each.decision.independent for each in found),
                "unjudged_claims": unjudged,
                "claims_left_out": claims.left_out,
                "lowest_p1": round(min(each.p1 for each in found), 4),
                "mean_gap_bits": round(sum(bits(each.decision.gap) for each in found) / len(found), 4),
            }
        ),
        report=MappingProxyType(
            {
                "hallucination_check": {
                    "overall_grounded": whole.grounded,
                    **counts,
                    "claims": [_shown(each, exchange, messages["claim"]) for each in found],
                },
                "warning": messages["answer"].format(count=ungrounded) if ungrounded else None,
            }
        ),
    )


def _found(judged: Judged, options: Options) -> _Found:
    full, redacted = judged.full, judged.redacted
    if options.method is Method.DIRECTED:
        # What is not listed is taken at its worst: a claim is not lifted by figures that nobody saw.
        p1, p0, highest = full.share(), redacted.share(highest=True), full.share(highest=True)
    else:
        p1, p0, highest = full.plain(), redacted.plain(), full.plain(highest=True)
    listed = full.listed and redacted.listed
    decision = decide(p1, p0, cited=judged.claim.cited, options=options, listed=listed)
    return _Found(judged.claim, p1, p0, max(p1, highest), decision)


def _coverage(found: Sequence[_Found], claims: Claims) -> Coverage:
    """Return how much of the claims was judged; where all were, the two figures are the same."""
    total = -(-claims.total_chars // _CHARS_PER_TOKEN)
    scored = sum(len(each.claim.text) for each in found) // _CHARS_PER_TOKEN
    complete = len(found) == len(claims.taken) and not claims.left_out
    return Coverage(
        answer_tokens=total,
        answer_tokens_scored=total if complete else min(scored, total - 1),
        evidence_tokens=0,
        evidence_tokens_seen=0,
    )


def _shown(found: _Found, exchange: Exchange, warning: str) -> dict[str, object]:
    return {
        "text": found.claim.text,
        "citing": citing(found.claim, exchange),
        "p1": round(found.p1, 4),
        "p0": round(found.p0, 4),
        "confidence": round(found.decision.confidence, 4),
        "grounded": found.decision.grounded,
        "warning": None if found.decision.grounded else warning,
    }


@cache
def _messages() -> Mapping[str, Mapping[str, str]]:
    """Return the texts for clients by language; ``{count}`` stands for how many claims they are about."""
    found: dict[str, dict[str, str]] = json.loads(_MESSAGES.read_text(encoding="utf-8"))
    return found


def _messages_for(answer: str, query: str) -> Mapping[str, str]:
    """Return the texts in the answer's language; one that is too short to tell goes by its query."""
    messages = _messages()
    return messages.get(language_of(answer) or language_of(query), messages[_ELSE])
