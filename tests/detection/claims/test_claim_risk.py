"""Claims are judged by what detectors find of them: support lowers, suspicion raises, proof caps; and nothing is called clean unjudged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.core.records.claims import ClaimOutcome, Finding
from truthlens.core.records.coefficients import Coefficients
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.explanation import SpanKind
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import DetectorResult, Span, ValueClaim
from truthlens.detection.claims.claim_risk import answer_risk, is_by_claims, judged_claims
from truthlens.detection.claims.quotations import Quotations
from truthlens.detection.claims.shipped_coefficients import COEFFICIENTS
from truthlens.detection.fusion import fused
from truthlens.detection.plain_answers import PlainAnswers

TEXT = "The ferry is blue. A ticket costs 4 euros."
FIRST, SECOND = (0, 18), (19, 42)
VALUE = (TEXT.index("4 euros"), TEXT.index("4 euros") + 7)


def encoder(*risks: float, apart: float | None = None) -> DetectorResult:
    found = tuple(
        Finding(*place, risk, apart=apart if place == SECOND else None)
        for place, risk in zip((FIRST, SECOND), risks, strict=False)
    )
    return DetectorResult("encoder", max(risks), findings=found)


def accusing(
    place: tuple[int, int], score: float, detector: str = "numbers", kind: SpanKind | None = None
) -> DetectorResult:
    return DetectorResult(detector, score, spans=(Span(*place, score, detector, kind=kind),))


def value(
    *, verified: bool, place: tuple[int, int] = VALUE, source: str = "", is_all: bool = True
) -> DetectorResult:
    outcome = "verified" if verified else "absent"
    claim = ValueClaim(*place, "money", 4.0, outcome, verified, source=source, is_all=is_all)
    return DetectorResult("numbers", 0.0, claims=(claim,))


def judged(*results: DetectorResult, quoted: object = None, text: str = TEXT):  # type: ignore[no-untyped-def]
    find = (lambda *_: None) if quoted is None else quoted
    return judged_claims(text, results, COEFFICIENTS, quoted=find)  # type: ignore[arg-type]


def test_what_nobody_judged_is_unjudged() -> None:
    first, second = judged(accusing(VALUE, 0.9))
    assert (first.outcome, first.risk) == (ClaimOutcome.UNJUDGED, None)
    assert (second.outcome, second.detector) == (ClaimOutcome.NOT_STATED, "numbers")


def test_the_claim_that_a_span_touches_is_accused_and_no_other() -> None:
    alone = judged(encoder(0.1, 0.1))
    first, second = judged(encoder(0.1, 0.1), accusing(VALUE, 0.9, kind=SpanKind.CONTRADICTED))
    assert first == alone[0]
    assert second.outcome is ClaimOutcome.CONTRADICTED
    assert second.risk is not None
    assert second.risk > 0.6


@pytest.mark.parametrize(("apart", "verified", "outcome"), [(0.1, True, ClaimOutcome.SUPPORTED), (0.1, False, ClaimOutcome.NOT_STATED),
                                                             (0.9, True, ClaimOutcome.NOT_STATED)])  # fmt: skip
def test_a_verified_value_answers_for_itself_alone(
    apart: float, verified: bool, outcome: ClaimOutcome
) -> None:
    """What is suspected of the words beside it still counts."""
    _, second = judged(encoder(0.1, 0.95, apart=apart), value(verified=verified))
    assert second.outcome is outcome


def test_one_figure_that_is_not_verified_is_enough_to_doubt() -> None:
    """A detector of values may know only one of the two."""
    text = "A ticket costs 4 euros and a pass 70."
    found = DetectorResult("encoder", 0.95, findings=(Finding(0, len(text), 0.95, apart=0.1),))
    (claim,) = judged(found, value(verified=True, place=(15, 22)), text=text)
    assert claim.outcome is ClaimOutcome.NOT_STATED


def test_a_database_proves_a_claim_and_is_named() -> None:
    _, second = judged(encoder(0.1, 0.99, apart=0.99), value(verified=True, source="ledger"))
    assert (second.outcome, second.risk, second.source) == (
        ClaimOutcome.PROVED,
        COEFFICIENTS.proved_risk,
        "ledger",
    )


def test_a_database_proves_no_more_than_its_value() -> None:
    """Of "the thief reported 1.25", a database knows the figure; who reads the words decides on the rest."""
    _, second = judged(encoder(0.1, 0.99, apart=0.9), value(verified=True, source="ledger", is_all=False))
    assert second.outcome is ClaimOutcome.NOT_STATED
    _, second = judged(value(verified=True, source="ledger", is_all=False))
    assert (second.outcome, second.risk) == (ClaimOutcome.UNJUDGED, None)


def test_proof_raises_no_risk() -> None:
    _, second = judged(encoder(0.1, 0.01, apart=0.01), value(verified=True, source="ledger"))
    assert second.outcome is ClaimOutcome.PROVED
    assert second.risk is not None
    assert second.risk < COEFFICIENTS.proved_risk


def test_values_alone_tell_nothing_of_other_words() -> None:
    """In a language that no reader of words knows, "costs never 4 euros" is not clean."""
    assert judged(value(verified=True, is_all=False))[1].outcome is ClaimOutcome.UNJUDGED
    assert judged(value(verified=True))[1].outcome is ClaimOutcome.SUPPORTED


def test_a_quotation_is_proved_unless_something_speaks_against_it() -> None:
    def quoted(text: str, _context: str) -> tuple[int, tuple[int, int]] | None:
        return (3, (5, 23)) if "blue" in text else None

    first, _ = judged(encoder(0.9, 0.1), quoted=quoted)
    assert (first.outcome, first.passage, first.sentence) == (ClaimOutcome.PROVED, 3, (5, 23))
    first, _ = judged(encoder(0.9, 0.1), accusing(FIRST, 0.8), quoted=quoted)
    assert first.outcome is ClaimOutcome.NOT_STATED


def test_phrases_that_claim_nothing_are_no_claims() -> None:
    found = judged(DetectorResult("encoder", 0.1), text="Hello! The ferry is blue.")
    assert [(each.start, each.end) for each in found] == [(7, 25)]


RISKS = st.floats(0.0, 1.0)


READERS = ("reader", "verify", "judge", "budget")


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(st.sampled_from(("encoder", *READERS)), RISKS, max_size=4), st.sampled_from(READERS),
       st.tuples(RISKS, RISKS), st.lists(st.tuples(st.sampled_from(("numbers", "contradictions")), RISKS), max_size=2))  # fmt: skip
def test_whoever_says_it_support_lowers_and_suspicion_raises(
    others: dict[str, float],
    who: str,
    risks: tuple[float, float],
    accusations: list[tuple[str, float]],
) -> None:
    """A further opinion for the claim raises no risk, one against it lowers none, and of two opinions the worse one gives more."""

    def said(name: str, risk: float) -> DetectorResult:
        return DetectorResult(name, risk, findings=(Finding(*SECOND, risk),))

    def risk_of(*more: DetectorResult) -> float | None:
        heard = [said(name, risk) for name, risk in others.items() if name != who]
        return judged(*heard, *(accusing(VALUE, score, name) for name, score in accusations), *more)[1].risk

    low, high = (risk_of(said(who, each)) for each in sorted(risks))
    without = risk_of()
    assert low is not None
    assert high is not None
    assert low <= high + 1e-12
    if without is not None:
        assert risk_of(said(who, min(0.49, *risks))) <= without + 1e-12  # type: ignore[operator]
        assert risk_of(said(who, max(0.51, *risks))) >= without - 1e-12  # type: ignore[operator]


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(
    suspicions=st.tuples(RISKS, RISKS),
    accusations=st.tuples(RISKS, RISKS),
    apart=RISKS,
    verified=st.booleans(),
)
def test_more_suspicion_never_lowers_a_risk(
    suspicions: tuple[float, float], accusations: tuple[float, float], apart: float, verified: bool
) -> None:
    """And support never raises one: 10,000 draws of findings."""

    def of(suspicion: float, accusation: float, *, support: bool) -> float:
        results = [encoder(0.1, suspicion, apart=min(apart, suspicion)), accusing(VALUE, accusation, "other")]
        found = judged(*results, value(verified=True)) if support else judged(*results)
        assert found[1].risk is not None
        return float(found[1].risk)

    (low, high), (least, most) = sorted(suspicions), sorted(accusations)
    assert of(low, least, support=verified) <= of(high, most, support=verified) + 1e-12
    assert of(low, least, support=True) <= of(low, least, support=False) + 1e-12


@given(st.lists(RISKS, max_size=30), st.floats(0.0, 0.9))
def test_an_answer_is_as_risky_as_its_worst_claim_and_not_for_its_length(
    risks: list[float], idle: float
) -> None:
    found = answer_risk(risks, idle_risk=idle)
    assert max(risks, default=0.0) <= found <= 1.0
    assert (
        answer_risk([*risks, *[min(idle, 0.1)] * 100], idle_risk=idle) <= max(found, min(idle, 0.1)) + 1e-12
    )
    assert answer_risk([*risks, 0.95], idle_risk=idle) >= found


def test_a_score_that_no_claim_explains_counts_for_the_answer() -> None:
    plain = accusing(FIRST, 0.7)
    assert is_by_claims(plain)
    assert is_by_claims(encoder(0.9))
    assert not is_by_claims(replace(plain, score=0.9))
    assert not is_by_claims(DetectorResult("plug-in", 0.2))


@pytest.mark.parametrize("wrong", [{"opinions": {"encoder": -0.1}}, {"vouchers": -1.0}, {"accusations": {"x": -1.0}}, {"proved_risk": 1.5}, {"idle_risk": 1.0}])  # fmt: skip
def test_coefficients_are_monotone_or_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"below 0|outside of 0"):
        Coefficients(**({"intercept": 0.0, "opinions": {"encoder": 1.0}} | wrong))  # type: ignore[arg-type]


def reader(outcome: ClaimOutcome, risk: float) -> DetectorResult:
    return DetectorResult("reader", risk, findings=(Finding(*SECOND, risk, outcome),))


def test_a_detector_that_reads_words_proves_what_values_cannot() -> None:
    """All values verified, and a reader that finds the claim supported: proved. One that does not: nothing proves it."""
    both = [encoder(0.1, 0.6, apart=0.6), value(verified=True)]
    _, second = judged(*both, reader(ClaimOutcome.SUPPORTED, 0.1))
    assert (second.outcome, second.risk) == (ClaimOutcome.PROVED, COEFFICIENTS.proved_risk)
    _, second = judged(*both, reader(ClaimOutcome.SUPPORTED, 0.4))
    assert second.outcome is not ClaimOutcome.PROVED, "it is not sure"
    _, second = judged(
        encoder(0.1, 0.99, apart=0.99), value(verified=True), reader(ClaimOutcome.SUPPORTED, 0.19)
    )
    assert second.outcome is not ClaimOutcome.PROVED, "another one is sure of the contrary"
    _, second = judged(*both, reader(ClaimOutcome.CONTRADICTED, 0.9), quoted=lambda *_: (0, (0, 5)))
    assert (second.outcome, second.detector) == (ClaimOutcome.CONTRADICTED, "reader")


def test_a_reader_that_cannot_know_a_unit_does_not_outvote_verified_values() -> None:
    """It reads 18:00 for 6 p.m. as contradicted: with the values verified that counts for nothing, without them in full."""
    finding = Finding(*SECOND, 0.9, ClaimOutcome.CONTRADICTED, apart=0.5)
    said = DetectorResult("reader", 0.9, findings=(finding,))
    calm = encoder(0.1, 0.2, apart=0.2)
    _, verified = judged(calm, value(verified=True), said)
    _, unknown = judged(calm, said)
    assert verified.outcome is ClaimOutcome.SUPPORTED
    assert verified.risk is not None
    assert unknown.risk is not None
    assert verified.risk < 0.3 < unknown.risk
    _, quoted = judged(calm, value(verified=True), said, quoted=lambda *_: (0, (0, 5)))
    assert quoted.outcome is ClaimOutcome.PROVED


@pytest.mark.parametrize("mark", [" [1]", " [S0]", "【1】"])
def test_a_citation_mark_is_no_figure_and_no_word_of_a_quotation(mark: str) -> None:
    """Claims are cut and compared without marks, and stand where they stand in the answer as it was written."""
    passages = tuple(
        Passage(text, Provenance.DOCUMENTS, id=f"S{n}")
        for n, text in enumerate(("The ferry is blue.", "Tickets."))
    )
    exchange = Exchange(Endpoint.CHAT, "m", "", passages)
    text = f"The ferry is blue{mark}. A ticket costs 4 euros{mark}."
    second = text.index("A ticket")
    found = [
        DetectorResult("encoder", 0.95, findings=(Finding(0, second, 0.9), Finding(second, len(text), 0.95, apart=0.1))),
        value(verified=True, place=(text.index("4 euros"), text.index("4 euros") + 7)),
    ]  # fmt: skip
    reading = PlainAnswers(exchange).reading(Answer(0, AnswerKind.TEXT, text))
    assert reading is not None
    verdict = fused(Plan("p"), text, found, quoted=Quotations(passages).find, reading=reading)
    assert [each.outcome for each in verdict.claims] == [ClaimOutcome.PROVED, ClaimOutcome.SUPPORTED]
    assert [text[each.start : each.start + 5] for each in verdict.claims] == ["The f", "A tic"]


def test_what_is_wrong_with_a_mark_stands_in_the_claim_before_it() -> None:
    passages = (Passage("The ferry is blue.", Provenance.DOCUMENTS, id="S0"),)
    exchange = Exchange(Endpoint.CHAT, "m", "", passages)
    text = "The ferry is blue. [S0] A ticket costs 4 euros."
    found = [encoder(0.1, 0.1), accusing((19, 23), 0.9, "citations")]
    reading = PlainAnswers(exchange).reading(Answer(0, AnswerKind.TEXT, text))
    verdict = fused(Plan("p"), text, found, reading=reading)
    assert verdict.claims[0].detector == "citations"


def test_what_a_claim_stands_under_is_told_in_the_answer_as_it_was_written() -> None:
    passages = (Passage("The ferry is blue.", Provenance.DOCUMENTS, id="S0"),)
    exchange = Exchange(Endpoint.CHAT, "m", "", passages)
    text = "The ferry is blue [S0]. Tickets are:\n- 4 euros [S0]"
    reading = PlainAnswers(exchange).reading(Answer(0, AnswerKind.TEXT, text))
    *_, last = fused(Plan("p"), text, [encoder(0.1)], reading=reading).claims
    assert last.context is not None
    assert text[slice(*last.context)] == "Tickets are:"


def test_a_claim_is_told_with_its_path_and_what_it_stands_under() -> None:
    """Also in a part of an answer."""
    text = 'Fees:\n- pens 3\n{"fee": {"pens": 3}}'
    found = judged_claims(text, [encoder(0.1)], COEFFICIENTS, quoted=lambda *_: None, start=100)
    told = [(each.path, each.context) for each in found]
    assert told == [("", None), ("", (100, 105)), ("/fee", None), ("/fee/pens", (116, 121))]
    assert found[-1].shifted(1).context == (117, 122)


def test_a_detector_that_abstains_outweighs_nobody() -> None:
    heavy = DetectorResult("plug-in", None, abstained=True, weight=4.0)
    assert judged(encoder(0.8, 0.2), heavy) == judged(encoder(0.8, 0.2))
