"""Which value of a list belongs to which thing: "adults pay 12 euros and children 6"."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.detection.detectors.numbers.detector import NumberDetector
from truthlens.detection.detectors.numbers.options import Options

DETECTOR = NumberDetector(Options())


def score(answer: str, *passages: str) -> float:
    """The detector's score of ``answer``."""
    evidence = tuple(Passage(each, Provenance.TOOL) for each in passages)
    exchange = Exchange(Endpoint.CHAT, "m", "", evidence)
    (result,) = DETECTOR.detect_all(
        exchange, [Answer(0, AnswerKind.TEXT, answer)], aggregation=None, stop=lambda: False
    )
    return result.score or 0.0


WIRE = "A domestic wire costs 25 dollars, an international one 40 dollars."
TICKETS = "Adults pay 12 euros and children 6 euros."
HOURS = "The gym opens at 6:00 and the pool at 8:00."
RENTS = "Rent rose 4% in Berlin and 7% in Munich."
PLANS = "The Basic plan is $10 per month, Plus is $20, and Premium $35."
STORES = "The depot holds 400 kg of rice, 250 kg of lentils and 90 kg of salt."


@pytest.mark.parametrize(
    ("evidence", "answer"),
    [
        (WIRE, "A domestic wire costs 40 dollars."),
        (WIRE, "An international wire costs 25 dollars."),
        (WIRE, "The fee for domestic wires is $40."),
        (TICKETS, "Children pay 12 euros."),
        (TICKETS, "Adults pay 6 euros."),
        (HOURS, "The pool opens at 6:00."),
        (HOURS, "The gym opens at 8:00."),
        (RENTS, "Rent rose 7% in Berlin."),
        (RENTS, "In Munich, rent went up 4%."),
        (PLANS, "Premium costs $20 a month."),
        (PLANS, "The Basic plan costs $35."),
        (STORES, "There are 250 kg of salt in the depot."),
        (STORES, "The depot stores 90 kg of rice."),
        (WIRE, "Wires leave within a day. A domestic wire costs 40 dollars. Call us for more."),
    ],
)
def test_the_value_of_another_member_is_flagged(evidence: str, answer: str) -> None:
    """Whatever the wording around it."""
    assert score(answer, evidence) >= 0.6


@pytest.mark.parametrize(
    ("evidence", "answer"),
    [
        (WIRE, "A domestic wire costs 25 dollars."),
        (WIRE, "International wires are 40 dollars; domestic ones are 25."),
        (WIRE, "You pay 40 dollars to send money abroad by wire."),
        (WIRE, "Unlike a domestic wire, an international one is 40 dollars."),
        (TICKETS, "It is 12 euros for adults, 6 euros for children."),
        (TICKETS, "Adults pay 12 euros, more than children."),
        (TICKETS, "Grown-ups are charged 12 euros."),
        (HOURS, "The pool opens at 8:00, two hours after the gym."),
        (HOURS, "You can swim from 8:00."),
        (RENTS, "Berlin saw rents climb 4%, Munich 7%."),
        (RENTS, "Munich's rents went up 7%."),
        (PLANS, "Plus is $20 and Premium is $35 a month."),
        (PLANS, "For $35 a month you get Premium."),
        (STORES, "Of lentils there are 250 kg."),
    ],
)
def test_the_own_value_in_other_words_passes(evidence: str, answer: str) -> None:
    """Also beside the other members."""
    assert score(answer, evidence) < 0.3


@pytest.mark.parametrize(
    ("passages", "answer"),
    [
        ((TICKETS, "On Sundays children pay 12 euros."), "Children pay 12 euros."),
        ((TICKETS, "children | 12 euros"), "Children pay 12 euros."),
        (("Adults and children pay 12 and 6 euros respectively.",), "Adults pay 12 euros."),
        (("Between 6:00 and 8:00 the pool is closed.",), "The pool opens at 8:00."),
        (("The hall seats 300 people, and of those 40 in the gallery.",), "The gallery seats 40 people."),
    ],
)
def test_what_is_said_elsewhere_or_is_no_list_is_let_be(passages: tuple[str, ...], answer: str) -> None:
    """A list convicts only where no other place may support the answer."""
    assert score(answer, *passages) < 0.6


NAMES = ["apples", "pears", "plums", "figs", "grapes", "melons"]


@given(st.permutations(NAMES), st.integers(2, 6), st.data())
def test_every_member_knows_its_own_value(names: list[str], count: int, data: st.DataObject) -> None:
    """Of any list, in any order."""
    listed = [f"{name} {10 + 7 * place} euros" for place, name in enumerate(names[:count])]
    evidence = f"A crate of {', '.join(listed[:-1])} and {listed[-1]}."
    evidence = evidence.replace("A crate of ", "We sell ").replace(
        "We sell " + names[0], f"{names[0].title()} cost"
    )
    place = data.draw(st.integers(0, count - 1))
    other = data.draw(st.integers(0, count - 1))
    answer = f"{names[place].title()} cost {10 + 7 * other} euros."
    assert (score(answer, evidence) >= 0.6) is (place != other)
