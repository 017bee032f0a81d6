"""What of an answer is in doubt: its doubtful claims; marked spans only where no claim says it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.judged_answers import judged
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim
from truthlens.core.records.enums import Status
from truthlens.core.records.verdict import Span, Verdict
from truthlens.mitigation.doubts import doubts, doubts_shown

_TEXT = "It opens at nine. A card costs 75 euros. Loans are free. Enjoy!"
_CARD = (18, 40)


def _places(verdict: Verdict) -> list[tuple[int, int, float]]:
    return [(each.start, each.end, each.score) for each in doubts(_TEXT, verdict)]


def test_a_claim_is_in_doubt_as_a_whole() -> None:
    """With its risk, and the spans of the detector that decided."""
    verdict = judged(_TEXT, "75")
    other = Span(20, 24, 0.5, "encoder")
    verdict = replace(
        verdict,
        spans=(replace(verdict.spans[0], detector="numbers"), other),
        claims=tuple(replace(each, detector="numbers") for each in verdict.claims),
    )
    (found,) = doubts(_TEXT, verdict)
    assert (found.start, found.end, found.score) == (*_CARD, 0.9)
    assert found.spans == (verdict.spans[0],)
    assert found.claim is not None
    assert found.claim.outcome is ClaimOutcome.CONTRADICTED


def test_what_detectors_marked_in_supported_claims_is_in_no_doubt() -> None:
    """A verified value that the encoder finds strange is not to be changed."""
    verdict = judged(_TEXT, "75", proved=["nine"])
    verdict = replace(verdict, spans=(Span(12, 16, 0.95), *verdict.spans))
    assert _places(verdict) == [(*_CARD, 0.9)]


@pytest.mark.parametrize(
    ("threshold", "rate", "found"), [(0.3, 0.5, True), (0.6, 0.5, False), (0.6, 0.9, True)]
)
def test_a_claim_whose_risk_reaches_the_threshold_is_in_doubt(
    threshold: float, rate: float, *, found: bool
) -> None:
    """At the base rate of the plan, whatever its outcome is called."""
    claims = (JudgedClaim(*_CARD, ClaimOutcome.SUPPORTED, 0.4),)
    verdict = Verdict(
        Status.CHECKED,
        score=0.9,
        threshold=threshold,
        claims=claims,
        expected_rate=rate,
        spans=(Span(0, 2, 0.9),),
    )
    assert _places(verdict) == ([(*_CARD, 0.4), (0, 2, 0.9)][::-1] if found else [(0, 2, 0.9)])


def test_a_proved_claim_is_in_no_doubt_however_low_the_threshold() -> None:
    claims = (JudgedClaim(*_CARD, ClaimOutcome.PROVED, 0.05),)
    assert not _places(Verdict(Status.CHECKED, score=0.5, threshold=0.01, claims=claims))


def test_without_a_doubtful_claim_the_marks_count() -> None:
    """A detector that speaks of no claim, or an aggregation of tokens."""
    spans = (Span(0, 8, 0.5), Span(5, 10, 0.8), Span(43, 48, 0.7, shown=(41, 56)))
    verdict = Verdict(Status.CHECKED, score=0.9, threshold=0.6, spans=spans)
    assert _places(verdict) == [(0, 10, 0.8), (41, 56, 0.7)]


def test_an_answer_without_any_mark_is_in_doubt_as_a_whole() -> None:
    """In a prompt; of what has to be kept it says nothing."""
    verdict = Verdict(Status.CHECKED, score=0.9, threshold=0.6)
    assert not doubts(_TEXT, verdict)
    assert [(each.start, each.end) for each in doubts_shown(f" {_TEXT}\n", verdict)] == [(1, 1 + len(_TEXT))]
    assert not doubts_shown(" ", verdict)
    assert not doubts_shown(_TEXT, Verdict(Status.UNCHECKED))
