"""The detector of values: result fields, options, sources, growing answers, sizes."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from tests.detection.detectors.numbers.test_checking import NOI, WIRES, result
from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import StoppedError
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.explanation import SpanKind
from truthlens.core.records.verdict import Confidence, DetectorResult
from truthlens.core.registry import Need, detector_types
from truthlens.delivery.bodies import verdict_object
from truthlens.detection.detectors.numbers.detector import NumberDetector, ValueEvidence
from truthlens.detection.detectors.numbers.options import VARIABLES, Options
from truthlens.detection.detectors.numbers.segments import Cutter
from truthlens.detection.detectors.numbers.sources import KnownValue
from truthlens.detection.fusion import fuse
from truthlens.policy import InvalidPolicyError
from truthlens.policy.compile import compile_policy
from truthlens.text.sentences import sentences
from truthlens.text.values.typed import ValueKind

WRONG = "The NOI was $1.5M for the property."


def exchange(*passages: str, query: str = "") -> Exchange:
    return Exchange(Endpoint.CHAT, "m", query, tuple(Passage(each, Provenance.TOOL) for each in passages))


def never() -> bool:
    return False


def answer(text: str) -> Answer:
    return Answer(0, AnswerKind.TEXT, text)


@pytest.mark.parametrize(
    ("text", "options", "wanted"),
    [
        (WRONG, {}, True),
        (WRONG, {"auto_flag": False}, False),
        (WRONG, {"review_queue": False}, False),
        ("The NOI was $1.2M.", {}, False),
        ("The NOI was high.", {}, False),
    ],
)
def test_a_wrong_value_wants_a_person(text: str, options: dict[str, bool], *, wanted: bool) -> None:
    """Whatever the fused score, unless one of the source's two settings says otherwise."""
    assert result(NOI, text, **options).for_review is wanted


def test_item_32_the_result_has_the_sources_fields() -> None:
    """Counts, flagged claims and the penalty in points."""
    found = result(NOI, WRONG)
    shown = verdict_object(fuse([found], threshold=0.6), text=WRONG)["detectors"][0]  # type: ignore[index]
    details = shown["details"]
    assert (details["has_hallucinations"], details["total_claims"]) == (1.0, 1)
    assert (details["verified_claims"], details["unverified_claims"]) == (0, 1)
    assert details["confidence_adjustment"] == 0.2
    # Of an answer that another detector is nine tenths sure of, as in the source: 0.9 becomes 0.7.
    whole = verdict_object(fuse([DetectorResult("encoder", 0.1), found], threshold=0.6), text=WRONG)
    assert (whole["original_confidence"], whole["adjusted_confidence"]) == (
        pytest.approx(0.9),
        pytest.approx(0.7),
    )
    assert whole["detected"] is True
    (claim,) = shown["flagged_claims"]
    assert (claim["claim_type"], claim["value"], claim["original_text"], claim["verified"]) == (
        "currency", 1500000.0, "$1.5M", False,
    )  # fmt: skip


def test_a_verified_answer_keeps_its_confidence() -> None:
    """No penalty without a flagged claim."""
    found = result(NOI, "The NOI was $1.2M.")
    assert found.details["confidence_adjustment"] == 0.0
    assert fuse([DetectorResult("encoder", 0.1), found], threshold=0.6).confidence == Confidence(0.9, 0.9)
    assert fuse([DetectorResult("encoder", 0.1)], threshold=0.6).confidence is None


def test_a_span_says_where_the_evidence_gives_another_value() -> None:
    """By positions, without any text."""
    (span,) = result(NOI, WRONG).spans
    assert span.explanation is not None
    assert (span.passage, span.explanation.kind) == (0, SpanKind.CONTRADICTED)
    (difference,) = span.explanation.differences
    assert difference.evidence is not None
    assert NOI[slice(*difference.evidence)] == "$1,200,000"
    assert span.explanation.confidence <= 0.8


def test_values_of_an_earlier_sentence_do_not_move_the_offsets() -> None:
    """Offsets are those of the whole answer."""
    text = f"{'Here is a summary of it all. ' * 40}\nA domestic wire costs 40 dollars."
    (span,) = result(WIRES, text).spans
    assert text[span.start : span.end] == "40 dollars"


def test_a_finding_may_be_a_floor() -> None:
    """Where the policy says that no other detector weighs it down."""
    assert (result(NOI, WRONG).floor, result(NOI, WRONG, floor=True).floor) == (0.0, result(NOI, WRONG).score)


@pytest.mark.parametrize(
    ("option", "passage", "text"),
    [
        ("verify_currency", NOI, WRONG),
        ("verify_percentages", "Occupancy of the property was 85%.", "Occupancy was 95%."),
        ("verify_dates", "The meeting is on Tuesday.", "The meeting is on Wednesday."),
        ("verify_ratios", "The DSCR was 1.25.", "The DSCR was 1.5."),
        ("verify_counts", "The conference room is Room 204.", "The conference is in Room 402."),
    ],
)
def test_item_33_kinds_are_switched_off(option: str, passage: str, text: str) -> None:
    """What is not verified is no claim."""
    assert result(passage, text).spans
    assert result(passage, text, **{option: False}).abstained


def test_item_33_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of the policy goes before it."""
    monkeypatch.setenv("HALLUCINATION_CURRENCY_TOLERANCE", "30")
    monkeypatch.setenv("HALLUCINATION_VERIFY_DATES", "false")
    assert (Options().currency_tolerance, Options().verify_dates) == (30.0, False)
    assert Options(currency_tolerance=5.0).currency_tolerance == 5.0
    assert len(VARIABLES) == 12


@pytest.mark.parametrize(
    ("variable", "written", "told"),
    [
        ("HALLUCINATION_CURRENCY_TOLERANCE", "much", "expected a number of 0 to 100"),
        ("HALLUCINATION_TARGET_RATE", "7", "expected a number of 0 to 1"),
        ("HALLUCINATION_RATIO_TOLERANCE", "nan", "expected a number of 0 to 100"),
        ("HALLUCINATION_AUTO_FLAG", "perhaps", "expected true or false"),
    ],
)
def test_item_33_a_bad_variable_is_an_error_at_load(
    monkeypatch: pytest.MonkeyPatch, variable: str, written: str, told: str
) -> None:
    """The message names the variable, its value and what was expected."""
    monkeypatch.setenv(variable, written)
    with pytest.raises(InvalidPolicyError, match=f"{variable} is .*{told}"):
        compile_policy("hallucination:\n  detectors: [{name: numbers}]\n", file="p.yaml")


def test_an_unknown_option_is_an_error_with_a_suggestion() -> None:
    """As for every other key."""
    with pytest.raises(InvalidPolicyError, match="currency_tolerance"):
        compile_policy(
            "hallucination:\n  detectors: [{name: numbers, currency_tolerence: 3}]\n", file="p.yaml"
        )


class Books:
    """A source that knows one figure."""

    def values(
        self, exchange: Exchange, kinds: frozenset[ValueKind], *, stop: StopCheck
    ) -> Sequence[KnownValue]:
        return [
            KnownValue(ValueKind.CURRENCY, [Decimal(1200000)], "dollar", "net_operating_income", "books"),
            KnownValue(ValueKind.PERCENTAGE, [Decimal(85)], "%", "occupancy_rate", "books"),
        ]


@pytest.mark.parametrize(
    ("text", "flagged"),
    [
        ("The net operating income was $1.2M.", False),
        ("The net operating income was $1.5M.", True),
        ("The occupancy rate is 85%.", False),
        ("The occupancy rate is 95%.", True),
    ],
)
def test_item_31_a_source_counts_with_its_own_confidence(text: str, flagged: bool) -> None:
    """Its values stand in no passage."""
    detector = NumberDetector(Options(), [Books()])
    (found,) = detector.detect_all(exchange("A report."), [answer(text)], aggregation=None, stop=never)
    assert bool(found.spans) is flagged
    if flagged:
        assert found.spans[0].passage is None
        assert found.spans[0].explanation is not None
        assert found.spans[0].explanation.confidence > 0.8


def test_a_growing_answer_is_judged_part_by_part() -> None:
    """A part has the findings of its own sentence."""
    text = "A domestic wire costs 25 dollars. An international wire costs 25 dollars."
    follower = NumberDetector(Options()).follow(exchange(WIRES))
    cut = text.index("An")
    whole, first, second = follower.detect_all(
        [answer(text)], [[(0, cut), (cut, len(text))]], aggregation=None, stop=never
    )
    assert [span.start for span in whole.spans] == [text.rindex("25 dollars")]
    assert (first.spans, first.score) == ((), 0.0)
    assert [span.start for span in second.spans] == [text.rindex("25 dollars")]
    assert not follower.due([answer(text)])


def test_work_that_nobody_waits_for_ends() -> None:
    """Before the next answer."""
    with pytest.raises(StoppedError):
        NumberDetector(Options()).detect_all(
            exchange(NOI), [answer(WRONG)], aggregation=None, stop=lambda: True
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "1 " * 300_000,
        "a,b,c\n" + "1,2,3\n" * 60_000,
        "| x | 5 dollars |\n" * 30_000,
        '{"a":' * 100_000,
        '{"a ' * 110_000,
        "[" * 450_000,
        "9" * 500_000,
        "twenty one hundred and " * 20_000,
        "三千万" * 150_000,
        "the fee is 5 dollars and " * 18_000,
    ],
    ids=range(10),
)
def test_evidence_beyond_the_limits_is_reported(text: str) -> None:
    """Whatever it holds, reading ends, and the verdict says that not everything was seen."""
    found = result(text, "The fee is 7 dollars, or 1,234. " * 100)
    assert found.coverage is not None
    assert not found.coverage.complete
    assert fuse([found], threshold=0.6).status is Status.PARTIAL


def test_an_answer_of_thousands_of_values_is_judged_in_part() -> None:
    """The first 400, and the coverage says so."""
    found = result(NOI, "It costs $5, " * 3000)
    assert found.coverage is not None
    assert found.coverage.answer_ratio < 1.0


def test_evidence_is_not_read_for_an_answer_without_values() -> None:
    """It abstains at once."""
    evidence = ValueEvidence(lambda: pytest.fail("the evidence was read"), (), 0)
    text = "The office is closed."
    assert NumberDetector(Options()).result(evidence, text, 0, len(text)).abstained


def test_long_prose_is_cut_as_its_sentences_are() -> None:
    """Whatever stands where a window ends."""
    text = (
        'Dr. Lim paid $3.5M to Acme Inc. in May... and left! "Why?" she asked.  No. 5 is next.\n你好。！走吧；'
        * 900
    )
    assert [(each.start, each.end) for each in Cutter(text, most=10**6).segments()] == sentences(text)


def test_no_more_is_cut_than_is_read() -> None:
    """Of sentences, keys, tables and JSON."""
    for text in ("A is 1. " * 9_000, "key: 3\n" * 9_000, "a,b,c\n" * 9_000, '{"a": [' + "1, " * 9_000):
        assert len(Cutter(text, most=50).segments()) == 50


def test_it_is_declared() -> None:
    """Without a model, and able to follow a stream."""
    declared = detector_types()["numbers"]
    assert (declared.follows, declared.needs, declared.options) == (True, {Need.SQL}, Options)


def test_item_33_a_switch_is_no_figure_and_no_time_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """`currency_tolerance: true` is a mistake, and so is a target of 0 ms."""
    with pytest.raises(InvalidPolicyError, match="a number is expected"):
        compile_policy(
            "hallucination:\n  detectors: [{name: numbers, currency_tolerance: true}]\n", file="p.yaml"
        )
    monkeypatch.setenv("HALLUCINATION_TARGET_TIME_MS", "0")
    with pytest.raises(
        InvalidPolicyError, match="HALLUCINATION_TARGET_TIME_MS is 0; expected a number above 0, up to 60000"
    ):
        compile_policy("hallucination:\n  detectors: [{name: numbers}]\n", file="p.yaml")
