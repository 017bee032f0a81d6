"""Tests of ``truthlens.detection.explain.differences`` and its table of opposites."""

from __future__ import annotations

import pytest

from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.detection.explain.differences import SentenceComparison
from truthlens.detection.explain.evidence_search import EvidenceSentences
from truthlens.detection.models.inputs.lexical import keys_of
from truthlens.text.opposites import OPPOSITES, OPPOSITES_ZH
from truthlens.text.words import words


def differences(
    claim: str, evidence: str, *, part: str = "", query: str = ""
) -> list[tuple[str, str, str | None]]:
    """Type, answer and evidence of what differs within ``part`` of ``claim`` (by default all of it)."""
    held = EvidenceSentences((Passage(evidence, Provenance.DOCUMENTS),))
    listed = words(claim)
    match = held.nearest({keys_of(word)[0]: 1.0 for word in listed if not word.stop})
    start = claim.index(part)
    comparison = SentenceComparison(
        claim,
        listed,
        span=(start, start + len(part or claim)),
        evidence=held,
        match=match,
        known=frozenset(key for word in words(query) for key in keys_of(word)),
    )
    return [
        (
            each.kind.value,
            claim[each.start : each.end],
            evidence[slice(*each.evidence)] if each.evidence else None,
        )
        for each in comparison.differences()
    ]


@pytest.mark.parametrize(
    ("claim", "evidence", "expected"),
    [
        (
            "Adults take 45 mg a day.",
            "Adults take 54 mg a day, children 10 mg.",
            [("number", "45 mg", "54 mg")],
        ),
        (
            "The ferry costs $20.",
            "The ferry costs 12.50 dollars and takes 40 minutes.",
            [("number", "$20", "12.50 dollars")],
        ),
        (
            "The meeting is on Wednesday.",
            "The meeting is on Tuesday.",
            [("date", "Wednesday", "Tuesday")],
        ),
        (
            "The bridge opened in June 2019.",
            "The bridge opened in May 2019.",
            [("date", "June 2019", "May 2019")],
        ),
        (
            "The trial in Bern was led by Paul Meyer.",
            "The trial in Bern was led by Anna Keller.",
            [("name", "Paul Meyer", "Anna Keller")],
        ),
        (
            "The room is open on holidays.",
            "The room is not open on holidays.",
            [("negation", "open", "not open")],
        ),
        (
            "The tablets do not dissolve in water.",
            "The tablets dissolve in water.",
            [("negation", "not dissolve", "dissolve")],
        ),
        (
            "Sales of timber increased sharply.",
            "Sales of timber decreased sharply.",
            [("opposite", "increased", "decreased")],
        ),
        ("药片不溶于水。", "药片溶于水。", [("negation", "不溶于", "溶于")]),
        ("今年的销量上升了。", "今年的销量下降了。", [("opposite", "上升", "下降")]),
    ],
)
def test_a_value_is_set_against_the_one_in_its_place(
    claim: str, evidence: str, expected: list[tuple[str, str, str | None]]
) -> None:
    """Both sides are named, with what they count."""
    assert differences(claim, evidence) == expected


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Adults take 0.5 g a day.", "Adults take 500 mg a day."),
        ("The film ran for 90 minutes.", "The film ran for 1.5 hours."),
        ("Twenty members voted on 3 March 2024.", "On 2024-03-03, 20 members voted."),
        ("The room is closed.", "The room is not open."),
        ("The room is not open on holidays.", "The room isn't open on holidays."),
        ("Keller led the trial.", "Anna Keller led the trial."),
        ("According to passage 2, the ferry costs nine euros.", "The ferry costs nine euros."),
    ],
)
def test_the_same_thing_in_other_words_differs_in_nothing(claim: str, evidence: str) -> None:
    """Conversions, part of a name, another form of negation, and references to passages."""
    assert differences(claim, evidence) == []


def test_a_value_that_stands_nowhere_has_no_counterpart() -> None:
    """An invented citation is named alone; so is a name that the evidence never has."""
    evidence = "The keeper paints the harbour light every spring."
    claim = "The keeper paints the harbour light, as Norrel et al. (2019) report."
    assert differences(claim, evidence) == [("citation", "Norrel et al. (2019)", None)]
    assert differences("The keeper Oskar Lindqvist paints the harbour light.", evidence) == [
        ("name", "Oskar Lindqvist", None)
    ]


def test_what_the_user_asked_with_is_not_invented() -> None:
    """A name that only stands in the query was not made up by the answer."""
    evidence = "The keeper paints the harbour light every spring."
    claim = "The keeper Oskar Lindqvist paints the harbour light."
    assert differences(claim, evidence, query="What does Oskar Lindqvist do?") == []


def test_only_what_touches_the_span_is_named() -> None:
    """The rest of the sentence was not flagged."""
    claim = "In June 2019 adults took 45 mg a day."
    evidence = "In May 2019 adults took 54 mg a day."
    assert differences(claim, evidence, part="45") == [("number", "45 mg", "54 mg")]
    assert differences(claim, evidence, part="June") == [("date", "June 2019", "May 2019")]


def test_a_value_found_elsewhere_in_the_evidence_is_not_invented() -> None:
    """It may be in the wrong place, but it does stand there."""
    evidence = "The tower has 212 steps.\nChildren under six come in free."
    claim = "Children under 212 come in free of charge there."
    assert differences(claim, evidence, part="212") == [("number", "212", "six")]
    assert differences("The gate has 212 lamps.", evidence, part="212") == []


def test_one_value_of_the_evidence_is_set_against_one_of_the_answer() -> None:
    """Two wrong figures do not both get the same counterpart."""
    found = differences("The boat carries 40 cars and 70 cars more.", "The boat carries 12 cars.")
    assert [evidence for _, _, evidence in found].count("12 cars") == 1


def test_the_table_of_opposites_reads_both_ways() -> None:
    """Every pair is entered once and found from either side; nothing is its own opposite."""
    for table in (OPPOSITES, OPPOSITES_ZH):
        assert all(word in table[other] for word, others in table.items() for other in others)
        assert all(word not in others for word, others in table.items())
