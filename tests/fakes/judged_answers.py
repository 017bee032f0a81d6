"""Verdicts whose claims are judged by what a test says is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.core.records.claims import ClaimOutcome, JudgedClaim
from truthlens.core.records.enums import Status
from truthlens.core.records.verdict import Span, Verdict
from truthlens.text.claims.claims import Claim, scored_claims

THRESHOLD = 0.6


def judged(text: str, *wrong: str, proved: Sequence[str] = (), unjudged: Sequence[str] = ()) -> Verdict:
    """The verdict that contradicts the claims in which one of ``wrong`` stands, and finds the others supported."""

    def one(claim: Claim) -> JudgedClaim:
        def holds(parts: Sequence[str]) -> bool:
            return any(part in claim.text for part in parts)

        outcome, risk = ClaimOutcome.SUPPORTED, 0.1
        if holds(wrong):
            outcome, risk = ClaimOutcome.CONTRADICTED, 0.9
        elif holds(proved):
            outcome, risk = ClaimOutcome.PROVED, 0.05
        elif holds(unjudged):
            return JudgedClaim(claim.start, claim.end, ClaimOutcome.UNJUDGED, None, path=claim.path)
        return JudgedClaim(
            claim.start, claim.end, outcome, risk, "encoder", path=claim.path, context=claim.context
        )

    claims = tuple(one(claim) for claim in scored_claims(text))
    spans = tuple(Span(start, start + len(part), 0.9) for part in wrong if (start := text.find(part)) >= 0)
    worst = max((claim.risk for claim in claims if claim.risk is not None), default=0.0)
    return Verdict(Status.CHECKED, score=worst, threshold=THRESHOLD, spans=spans, claims=claims)
