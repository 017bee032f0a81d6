"""Where a database decides: over passages, over its own other columns, and of the period."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from tests.detection.detectors.numbers.test_checking import result
from truthlens.core.cancellation import StopCheck
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.detectors.numbers.detector import NumberDetector
from truthlens.detection.detectors.numbers.options import Options
from truthlens.detection.detectors.numbers.sources import KnownValue
from truthlens.text.values.typed import ValueKind

MONEY = {
    "net operating income; noi": "1200000", "total revenue; revenue": "2400000", "total expenses; expenses": "1200000",
    "net income": "950000", "total assets; assets": "14400000", "rental income: amount": "2150000.50", "parking: amount": "249999.50",
}  # fmt: skip
PASSAGE = "The NOI for the property was $1,500,000."


class Finance:
    """Knows the figures of one property in one quarter."""

    def __init__(self, cap_rate: str = "6.25", period: dict[str, int] | None = None) -> None:
        self._values = [
            *(
                KnownValue(ValueKind.CURRENCY, [Decimal(each)], "dollar", label, "sql")
                for label, each in MONEY.items()
            ),
            KnownValue(ValueKind.PERCENTAGE, [Decimal(85)], "", "occupancy rate; occupancy", "sql"),
            KnownValue(ValueKind.PERCENTAGE, [Decimal(cap_rate)], "", "cap rate", "sql"),
            KnownValue(ValueKind.PERCENTAGE, [Decimal(140)], "", "debt to equity ratio; leverage", "sql"),
            KnownValue(ValueKind.RATIO, [Decimal("1.25")], "x", "dscr; coverage", "sql"),
            KnownValue(ValueKind.DATE, [], "", "period", "sql", parts=period or {"year": 2024, "quarter": 3}),
        ]

    def values(
        self, exchange: Exchange, kinds: frozenset[ValueKind], *, stop: StopCheck
    ) -> Sequence[KnownValue]:
        return [each for each in self._values if each.kind in kinds]


def judged(text: str, *passages: str, query: str = "", source: Finance | None = None) -> DetectorResult:
    """The result on an answer, beside the database."""
    exchange = Exchange(Endpoint.CHAT, "m", query, tuple(Passage(each, Provenance.TOOL) for each in passages))
    (found,) = NumberDetector(Options(), [source or Finance()]).detect_all(
        exchange, [Answer(0, AnswerKind.TEXT, text)], aggregation=None, stop=lambda: False
    )
    return found


def flagged(text: str, *passages: str, source: Finance | None = None) -> list[str]:
    """What of an answer is flagged at the white paper's threshold."""
    found = judged(text, *passages, source=source)
    return [text[span.start : span.end] for span in found.spans if span.score >= 0.6]


@pytest.mark.parametrize(
    "text",
    [
        "Q4 2024", "The figures are for Q4 2024.", "The NOI in Q4 2024 was $1.2M.", "Revenue in Q3 2023 was $2.4M.",
        "In December 2024 revenue was $2.4M.", "Revenue in 2023 was $2.4M.",
    ],
)  # fmt: skip
def test_item_30_a_period_that_is_not_the_databases_is_flagged(text: str) -> None:
    """Q4 2024 against Q3 2024, whatever else the sentence says."""
    (period,) = flagged(text)
    assert period in {"Q4 2024", "Q3 2023", "December 2024", "2023"}


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        ("The NOI in Q3 2024 was $1.2M.", ()),
        ("Revenue in 2024 was $2.4M.", ()),
        ("Revenue was $2.4M, more than in Q4 2023.", ()),
        ("The report covers Q4 2024.", ("The report covers Q4 2024.",)),
        ("The property was built in 1998.", ()),
    ],
)
def test_other_dates_are_not_held_against_the_databases_period(text: str, passages: Sequence[str]) -> None:
    """Its own, those that a passage gives, and those that a figure is compared with."""
    assert flagged(text, *passages) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("The NOI was $1.5M.", ["$1.5M"]),
        ("The NOI for the property was $1.5M.", ["$1.5M"]),
        ("In Q3 2024 the NOI was $1.5M.", ["$1.5M"]),
        ("The NOI for the property was $1.2M.", []),
        ("The NOI was $1.25M.", []),
    ],
)
def test_where_a_passage_and_the_database_disagree_the_database_decides(text: str, wrong: list[str]) -> None:
    """It is believed without reserve; the explanation says so."""
    found = judged(text, PASSAGE)
    assert [text[span.start : span.end] for span in found.spans] == wrong
    assert "decided by the database, where a passage gives another" in found.explanation
    for span in found.spans:
        assert span.explanation is not None
        assert (span.passage, span.explanation.confidence) == (None, 1.0)
        assert "the database" in span.explanation.reason


@pytest.mark.parametrize(
    "sentence",
    [
        "Parking revenue was $300,000.",
        "In Q3 2023 the NOI was $1,000,000.",
        "The other property has an occupancy of 70%.",
        "NOI rose by $300,000.",
        "Occupancy grew 10% in that time.",
        "Market occupancy was 91%.",
        "The NOI would be $1.9M if all units were let.",
    ],
)
def test_what_a_passage_says_of_something_else_is_no_disagreement(sentence: str) -> None:
    """Another thing, another period, a change, a supposition."""
    assert flagged(sentence, sentence) == []


def test_a_figure_of_another_column_is_flagged() -> None:
    """The NOI is no net income."""
    assert flagged("Net income was $1.2M.") == ["$1.2M"]
    assert flagged("Net operating income was $1.2M.") == []


def test_figures_of_a_database_come_to_no_other_figure_in_two_steps() -> None:
    """Among a dozen sums of different things, two come near to any."""
    assert flagged("Rental income was $3.15M.") == ["$3.15M"]
    assert flagged("The NOI was $1.2600001M.") == ["$1.2600001M"]
    assert flagged("The NOI was $1.26M.") == []


def test_item_31_a_percentage_of_one_or_less_is_what_the_source_says() -> None:
    """0.94 % is not 94 %."""
    source = Finance(cap_rate="0.94")
    assert flagged("The cap rate is 0.94%.", source=source) == []
    assert flagged("The cap rate is 94%.", source=source) == ["94%"]


@pytest.mark.parametrize(
    "text",
    ["Occupancy was 0.85.", "Leverage is 1.4.", "The debt to equity ratio is 1.4x.", "Leverage is 140%."],
)
def test_item_31_a_share_is_one_value_however_it_is_written(text: str) -> None:
    """0.85 and 85 %, 1.4x and 140 %."""
    found = judged(text)
    assert (found.score, found.details["verified_claims"]) == (0.0, 1)


def test_item_30_a_difference_within_the_tolerance_is_told_whatever_its_digits() -> None:
    """$1.25M is not $1,200,000; $1.2M is, of $1,234,567, its rounding."""
    noi = "The NOI for the property was $1,200,000 in Q3 2024."
    assert result(noi, "The NOI was $1.25M for the property.").details["within_tolerance"] == 1
    assert result("The NOI was $1,234,567.", "The NOI was $1.2M.").details["within_tolerance"] == 0


def test_the_year_of_a_work_that_no_evidence_has_is_flagged() -> None:
    """The white paper's example."""
    text = "According to Smith et al. (2023), trust grew."
    (span,) = result("Trust in such systems grew.", text).spans
    assert (text[span.start : span.end], span.score >= 0.6) == ("2023", True)
    assert not result("Smith et al. (2023): trust grew.", text).spans


def test_a_figure_beyond_all_bounds_is_shown_as_text() -> None:
    """JSON has no infinity."""
    (claim,) = result(f"The fee is {'9' * 400} dollars.", f"The fee is {'9' * 400} dollars.").claims
    assert claim.value == "1.000000E+400"


def test_a_passage_that_shares_a_word_takes_nothing_from_the_database() -> None:
    """Its own value is surely of the same."""
    (span,) = judged("The NOI was $1.5M for the property.", "A report; property 1, period 1.").spans
    assert span.score == 0.9


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [("Wednesday", True), ("Wednesday.", True), ("On Wednesday", True), ("Tuesday", False)],
)
def test_a_date_that_is_the_whole_answer_is_held_against_those_of_its_sort(answer: str, wrong: bool) -> None:
    """The white paper's first example, to the letter."""
    found = result("the meeting is on Tuesday", answer, query="When is the meeting?")
    assert ((found.score or 0.0) >= 0.6) is wrong
    assert result("The meeting is in Room 204.", answer).abstained
