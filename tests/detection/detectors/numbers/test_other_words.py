"""Quantities told in other words: right ones are verified, wrong ones contradicted."""

from __future__ import annotations

import pytest

from tests.detection.detectors.numbers.test_checking import result

SAID = [
    # evidence, the same in other words, another value in those words
    ("The scanner misreads 5% of the labels.", "The scanner misreads one label in {} .", "twenty", "ten"),
    ("The scanner misreads one label in twenty.", "The scanner misreads {} % of the labels.", "5", "10"),
    (
        "The shuttle to the quay leaves every 15 minutes.",
        "The shuttle to the quay leaves {} times an hour.",
        "four",
        "six",
    ),
    ("Nine tenants in ten signed the petition.", "{} % of the tenants signed the petition.", "90", "60"),
    ("Every tenth crate is opened by customs.", "Customs opens {} of the crates.", "10 %", "25 %"),
    ("The filter is changed every other month.", "The filter is changed every {} months.", "two", "four"),
    ("The filter is changed quarterly.", "The filter is changed every {} months.", "three", "six"),
    ("The beds are watered twice a week.", "The beds are watered {} times weekly.", "2", "3"),
    ("The permit is valid for a fortnight.", "The permit is valid for {} days.", "14", "21"),
    ("The permit is valid for a decade.", "The permit is valid for {} years.", "ten", "twenty"),
    (
        "The course lasts eighteen months.",
        "The course lasts {}.",
        "a year and a half",
        "two years and a half",
    ),
    ("The shelf is 150 cm wide.", "The shelf is {} m wide.", "1.5", "1.8"),
    ("The film runs for three quarters of an hour.", "The film runs for {} minutes.", "45", "35"),
    ("The parcel weighs 5-7 kg.", "The parcel weighs {} g at least.", "5000", "9000"),
    (
        "The new pump costs twice as much as the old pump.",
        "The new pump costs {} times the price of the old pump.",
        "two",
        "four",
    ),
    ("Dana is 6'2\" tall.", "Dana is {} inches tall.", "74", "62"),
]


@pytest.mark.parametrize(("evidence", "answer", "right", "wrong"), SAID)
def test_an_equal_value_in_other_words_is_verified_and_another_contradicted(
    evidence: str, answer: str, right: str, wrong: str
) -> None:
    true, false = (result(evidence, answer.format(each).replace(" .", ".")) for each in (right, wrong))
    assert [each.outcome for each in true.claims if not each.verified] == []
    assert true.claims
    assert true.score == 0.0
    assert [each.outcome for each in false.claims if not each.verified] == ["contradicted"]
    assert false.score is not None
    assert false.score > 0.0


FOLLOWS = [
    (
        "Of 320 households, three in eight kept the old boiler.",
        "The old boiler was kept by {} households.",
        "120",
        "150",
    ),
    (
        "The permit for the first car costs 30 euros, that for the second three times as much.",
        "The second permit costs {} euros.",
        "90",
        "70",
    ),
    (
        "A ton of wheat costs 200 euros; the mill will raise the price by 15 % in May.",
        "The mill will raise the price of a ton of wheat by {} euros.",
        "30",
        "45",
    ),
    (
        "The statue weighs 60 kilos; the copy in the yard weighs a tenth of that.",
        "The copy in the yard weighs {} kilos.",
        "6",
        "9",
    ),
]


@pytest.mark.parametrize(("evidence", "answer", "right", "wrong"), FOLLOWS)
def test_a_stated_share_of_a_figure_beside_it_is_derived(
    evidence: str, answer: str, right: str, wrong: str
) -> None:
    """Though no word of the answer says that it reckons."""
    assert [each.outcome for each in result(evidence, answer.format(right)).claims] == ["derived"]
    assert [each.outcome for each in result(evidence, answer.format(wrong)).claims] == ["contradicted"]


LEAVES = [
    (
        "The fair drew 6,000 visitors, a third fewer than last year.",
        "Last year the fair drew {} visitors.",
        "9,000",
        "7,000",
    ),
    (
        "The council decides on 2 July, a fortnight after the hearing.",
        "The hearing was on {} June.",
        "18",
        "4",
    ),
    (
        "An hour of help that is not given costs members 18 euros.",
        "Members pay {} euros for three hours that are not given.",
        "54",
        "63",
    ),
]


@pytest.mark.parametrize(("evidence", "answer", "right", "wrong"), LEAVES)
def test_what_a_share_or_a_span_may_leave_or_add_is_not_flagged(
    evidence: str, answer: str, right: str, wrong: str
) -> None:
    """Words that are not read say which way round: neither verified nor flagged. Another figure is."""
    assert result(evidence, answer.format(right)).score in (None, 0.0)
    assert "contradicted" in [each.outcome for each in result(evidence, answer.format(wrong)).claims]
