"""Weights of the verdict: fitted on claims, monotone whatever the labels, measured on texts that they were not fitted on."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.core.errors import TruthLensError
from truthlens.core.records.claims import ClaimOutcome, Finding
from truthlens.core.records.exchange import plain_exchange
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import DetectorResult, Span
from truthlens.detection.claims.claim_risk import ClaimTerms
from truthlens.detection.claims.shipped_coefficients import COEFFICIENTS
from truthlens.detection.fusion import fused
from truthlens.detection.plain_answers import PlainAnswers
from truthlens.lab.calibrate.fusion import LEAST_CLAIMS, FittingClaim, claims_of, fit_fusion
from truthlens.lab.data.dataset import Example
from truthlens.lab.evaluate.plan_scorer import PlanAnswer

PLAN = Plan("p")


def made(count: int, *, encoder: float, reader: float, seed: int = 1) -> list[FittingClaim]:
    """Claims of which half are wrong; each detector's log-odds tell them by so much, beside noise."""
    dice = random.Random(seed)
    found = []
    for number in range(count):
        wrong = number % 2 == 1
        side = 1.0 if wrong else -1.0
        opinions = {"encoder": side * encoder + dice.gauss(0, 1), "reader": side * reader + dice.gauss(0, 1)}
        accused = {"numbers": 2.0} if wrong and number % 5 == 0 else {}
        terms = ClaimTerms(0, 9, opinions, accused, verified=not wrong and number % 3 == 0)
        found.append(FittingClaim(terms, wrong, f"text {number // 4}"))
    return found


def test_the_detector_that_tells_more_weighs_more() -> None:
    """And the fitted weights tell claims that they were not fitted on better than the shipped ones."""
    fit = fit_fusion(made(2_000, encoder=0.1, reader=1.0))
    weights = fit.coefficients.opinions
    assert weights["reader"] > 4 * weights["encoder"]
    assert fit.coefficients.vouchers > 0.3
    assert fit.coefficients.accusations["numbers"] > 1.0
    assert fit.after.auroc > fit.before.auroc
    assert fit.after.log_loss < fit.before.log_loss
    assert (fit.claims, fit.unsupported) == (2_000, 1_000)
    # What never spoke keeps the shipped weight.
    assert fit.coefficients.accusations["contradictions"] == COEFFICIENTS.accusations["contradictions"]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(-2, 2), st.floats(-2, 2))
def test_no_weight_is_negative(seed: int, encoder: float, reader: float) -> None:
    """A detector that points the wrong way gets nothing; support never raises a risk."""
    fit = fit_fusion(made(240, encoder=encoder, reader=reader, seed=seed))
    found = fit.coefficients
    assert min(*found.opinions.values(), *found.accusations.values(), found.vouchers) >= 0.0
    if encoder < -1.0:
        assert found.opinions["encoder"] == 0.0


def test_too_few_claims_or_texts_are_refused() -> None:
    """With what to do; weights of a handful would be noise."""
    few = made(2 * LEAST_CLAIMS - 2, encoder=1, reader=1)
    with pytest.raises(TruthLensError, match=f"at least {LEAST_CLAIMS} of each"):
        fit_fusion(few)
    one = [FittingClaim(claim.terms, claim.wrong, "one text") for claim in made(300, encoder=1, reader=1)]
    with pytest.raises(TruthLensError, match="too few source texts"):
        fit_fusion(one)


ANSWER = "The ferry is blue [1]. Dogs travel free. A ticket costs 5 euros."
PASSAGE = "The ferry is red. Cats travel free. A ticket costs 4 euros."


def scored(_query: str, passages: Sequence[str], text: str) -> PlanAnswer:
    """What a plan says whose encoder suspects all claims alike, and whose numbers the last one."""
    exchange, answer = plain_exchange("", passages, text)
    plain = PlainAnswers(exchange).of(answer)
    places = [(0, 21), (23, 40), (41, 64)] if text == ANSWER else [(0, len(text))]
    results = [
        DetectorResult("encoder", 0.7, findings=tuple(Finding(start, end, 0.7) for start, end in places)),
        DetectorResult("numbers", 0.9, spans=(Span(*places[-1], 0.9, "numbers"),)),
    ]
    verdict = fused(PLAN, text, results, reading=plain.reading)
    return PlanAnswer(PLAN, exchange, answer, verdict, None, plain.reading)


def example(label: int, spans: Sequence[tuple[int, int]] | None = None, response: str = ANSWER) -> Example:
    return Example("1", "made", "qa", "", (PASSAGE,), response, label, spans and tuple(spans), "g")


def test_claims_are_wrong_where_a_marked_part_stands() -> None:
    """Places of the answer as it was written, with its citation marks; all claims of a supported answer are right."""
    assert [claim.wrong for claim in claims_of([example(0)], scored)] == [False, False, False]
    found = claims_of([example(1, [(41, 64)])], scored)
    assert [claim.wrong for claim in found] == [False, False, True]
    assert [sorted(claim.terms.accusations) for claim in found] == [[], [], ["numbers"]]
    assert found[0].terms.opinions["encoder"] == pytest.approx(0.8473, abs=1e-3)


def test_what_nobody_can_tell_is_left_out() -> None:
    """An unsupported answer of several claims with nothing marked; one of a single claim is told."""
    assert claims_of([example(1)], scored) == []
    (only,) = claims_of([example(1, response="The ferry is blue.")], scored)
    assert only.wrong


def test_proved_claims_are_left_out() -> None:
    """Their risk is a rule's, whatever the weights."""

    def proved(query: str, passages: Sequence[str], text: str) -> PlanAnswer:
        answer = scored(query, passages, text)
        quoted = {"Dogs travel free.": (0, (0, 17))}
        results = answer.verdict.results[:1]
        verdict = fused(
            PLAN, text, results, quoted=lambda sentence, _: quoted.get(sentence), reading=answer.read
        )
        assert [claim.outcome for claim in verdict.claims][1] is ClaimOutcome.PROVED
        return PlanAnswer(PLAN, answer.exchange, answer.answer, verdict, None, answer.read)

    assert len(claims_of([example(0)], proved)) == 2
