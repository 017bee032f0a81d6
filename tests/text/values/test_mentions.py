"""Values, names and citations of texts, and which of them say the same."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.explanation import DifferenceKind
from truthlens.text.values.mentions import Mention, mentions, same_mention
from truthlens.text.words import words


def found(text: str) -> list[tuple[str, str]]:
    """Kind and text of every mention."""
    return [(each.kind.value, text[each.start : each.end]) for each in mentions(text, words(text))]


def only(text: str) -> Mention:
    """The one mention of ``text``."""
    (mention,) = mentions(text, words(text))
    return mention


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("take 45 mg twice", [("number", "45 mg"), ("number", "twice")]),
        ("it raised $1.5 million and 12.5% more", [("number", "$1.5 million"), ("number", "12.5%")]),
        ("it weighs 3.5kg", [("number", "3.5kg")]),
        ("add 1 1/2 cups", [("number", "1 1/2 cups")]),
        ("bake at 180 degrees Celsius", [("number", "180 degrees Celsius")]),
        ("about ten books", [("number", "ten books")]),
        ("in May 2015 it closed", [("date", "May 2015")]),
        ("on 3 March 2024 at 5:30 pm", [("date", "3 March 2024"), ("date", "5:30 pm")]),
        ("due 2024-03-03 or 3/30/2024", [("date", "2024-03-03"), ("date", "3/30/2024")]),
        ("it closed in 1999", [("date", "1999")]),
        ("it has 2000 calories", [("number", "2000 calories")]),
        ("they may march 20 miles", [("number", "20 miles")]),
        ("于2024年3月5日开业", [("date", "2024年3月5日")]),
        ("led by Anna Keller of Acme", [("name", "Anna Keller"), ("name", "Acme")]),
        ("Anna Keller led it", [("name", "Anna Keller")]),
        ("as Smith et al. (2023) report", [("citation", "Smith et al. (2023)")]),
        ("see https://example.org/a.", [("citation", "https://example.org/a.")]),
        ("nothing of the kind", []),
    ],
)
def test_what_may_differ_is_found_with_its_unit(text: str, expected: list[tuple[str, str]]) -> None:
    """A number takes its currency, scale and unit along, a date its parts, a name its words."""
    assert found(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.2 million euros", "€1,200,000"),
        ("60 minutes", "an hour, 1 hour"),
        ("500 mg", "0.5 g"),
        ("12 %", "0.12"),
        ("twenty books", "20 books"),
        ("on 3 March 2024", "on 2024-03-03"),
        ("at 5 pm", "at 17:00"),
        ("on 3/30/2024", "on 30/3/2024"),
        ("by Keller there", "by Anna Keller there"),
    ],
)
def test_one_value_written_in_two_ways_is_the_same(one: str, other: str) -> None:
    """Units are converted, readings compared, and dates compared by the parts that both give."""
    assert same_mention(only(one), only(other))
    assert same_mention(only(other), only(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("45 mg", "54 mg"),
        ("45 mg", "45 g"),
        ("20 minutes", "20 hours"),
        ("180 °C", "180 °F"),
        ("1.2 million euros", "1.2 euros"),
        ("in May 2019", "in June 2019"),
        ("at 5 pm", "at 5 am"),
        ("by Anna Keller there", "by Paul Meyer there"),
    ],
)
def test_another_value_is_not_the_same_and_may_contradict(one: str, other: str) -> None:
    """What is compared is of one sort, and differs."""
    assert same_mention(only(one), only(other)) is False


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("45 mg", "45 minutes"),
        ("12 %", "12 books"),
        ("$12", "12 books"),
        ("in 1999", "on Monday"),
        ("45", "in 1999"),
    ],
)
def test_different_sorts_are_never_set_against_each_other(one: str, other: str) -> None:
    """A price does not contradict a duration, nor a weekday a year."""
    assert same_mention(only(one), only(other)) is None


def test_a_range_gives_its_unit_to_both_ends() -> None:
    """The four of "4-6 minutes" is minutes too, and keeps a unit of its own."""
    first, second = mentions("4-6 minutes", words("4-6 minutes"))
    assert same_mention(first, only("240 seconds"))
    assert same_mention(second, only("360 seconds"))
    first, second = mentions("5 kg or 6 litres", words("5 kg or 6 litres"))
    assert same_mention(first, second) is None


@pytest.mark.parametrize(
    ("fine", "coarse"), [("in March 2024", "in 2024"), ("in 1995", "in the 1990s"), ("in May", "in Q2")]
)
def test_a_date_is_neither_confirmed_nor_contradicted_by_a_coarser_one(fine: str, coarse: str) -> None:
    """What the coarser one leaves open is not stated; the other way round, the coarser one follows."""
    assert same_mention(only(fine), only(coarse)) is None
    assert same_mention(only(coarse), only(fine)) is True


def test_a_rounded_figure_follows_from_the_finer_one() -> None:
    """As the detector of values says it; a finer figure does not follow."""
    assert same_mention(only("12%"), only("12.5%")) is True
    assert same_mention(only("12.5%"), only("12%")) is False


def test_a_known_name_is_one_at_the_start_of_a_sentence_too() -> None:
    """There any word has a capital, so the evidence must tell."""
    text = "Keller led it."
    assert mentions(text, words(text)) == []
    (name,) = mentions(text, words(text), names=frozenset({words("keller")[0].stem}))
    assert (name.kind, name.start, name.end) == (DifferenceKind.NAME, 0, 6)


@given(st.text(alphabet="aA1 9.,-/:%$°年月日mgMay(et al2023)\n", max_size=60))
def test_any_text_gives_ordered_mentions_that_do_not_overlap(text: str) -> None:
    """Positions are within the text, ascending, and agree with themselves."""
    listed = mentions(text, words(text))
    assert all(0 <= each.start < each.end <= len(text) for each in listed)
    assert all(one.end <= other.start for one, other in pairwise(listed))
    assert all(same_mention(each, each) for each in listed)
