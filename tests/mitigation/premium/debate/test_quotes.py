"""Quotes are found where they stand, and only there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.mitigation.premium.debate.quotes import QuotableEvidence, normalised

TOWER = (
    "The Eiffel Tower was built between 1887 and 1889 for the World's Fair. "
    "It is 330 metres tall and was not meant to stay. Gustave Eiffel's company built it."
)
ZH = "埃菲尔铁塔高330米。它并不是为了永久保留而建造的。"


def evidence(*texts: str) -> QuotableEvidence:
    return QuotableEvidence([Passage(text, Provenance.TOOL) for text in texts])


@pytest.mark.parametrize(
    "quote",
    [
        "built between 1887 and 1889",
        "  BUILT between\n1887 and 1889.  ",
        "“It is 330 metres tall”",
        "It is ３３０ metres tall",
        "World’s Fair … 330 metres",
        "was built ... by".replace(" ... by", "") + " between",
        "Gustav Eiffel's company built it",
    ],
)
def test_a_quote_is_found_whatever_its_dress(quote: str) -> None:
    """Case, space, width, quotation marks, an ellipsis and one wrong letter do not hide a quote."""
    assert evidence("Nothing of the kind.", TOWER).find(quote) is not None


def test_the_whole_sentences_that_hold_it_are_given() -> None:
    """What is found is the passage's index and the sentences from the first to the last part."""
    found = evidence("Other.", TOWER).find("330 metres tall ... company built it")
    assert found is not None
    assert found.passage == 1
    assert found.text == TOWER[TOWER.index("It is 330") :]


@pytest.mark.parametrize(
    "quote",
    [
        "built between 1887 and 1890",
        "It is 331 metres tall and was not meant to stay",
        "It is 330 metres tall and was meant to stay",
        "the tower is painted every seven years",
        "330 metres",
        "",
        "...",
        "Gustave Eiffel's company built it ... for the Queen of England",
        "the … the … the … the … the … the … the",
    ],
)
def test_what_does_not_stand_there_is_not_found(quote: str) -> None:
    """Another number, a lost negation, an invention, two words or shreds are no quote."""
    assert evidence(TOWER).find(quote) is None


def test_parts_must_share_a_passage() -> None:
    """The parts around an ellipsis are not gathered from several passages."""
    assert (
        evidence("It is 330 metres tall.", "It was built in 1889.").find("330 metres tall ... built in 1889")
        is None
    )


@pytest.mark.parametrize(
    ("quote", "there"), [("铁塔高３３０米", True), ("铁塔高331米", False), ("是为了永久保留而建造的", True)]
)
def test_chinese_is_compared_by_character(quote: str, there: bool) -> None:
    """A Chinese quote is found without spaces between words, and its number counts."""
    assert (evidence(ZH).find(quote) is not None) is there


def test_a_chinese_negation_counts() -> None:
    """A quote that drops the negation of a long Chinese sentence is not found."""
    assert evidence(ZH).find("它并是为了永久保留而建造的") is None


@given(st.text(max_size=200), st.data())
def test_every_long_enough_part_of_a_passage_is_found(text: str, data: st.DataObject) -> None:
    """Any run of three to ten whole words of a text, in any case, is found in it."""
    words = normalised(text).split()
    if len(words) < 3:
        return
    start = data.draw(st.integers(0, len(words) - 3))
    end = data.draw(st.integers(start + 3, min(len(words), start + 10)))
    found = evidence(text).find(" ".join(words[start:end]))
    if normalised(" ".join(words[start:end])) == " ".join(words[start:end]):  # folding changed no word border
        assert found is not None
        assert found.text in text


@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=3))
def test_never_raises(quote: str, texts: list[str]) -> None:
    """Any quote is looked up in any evidence without an error."""
    evidence(*texts).find(quote)


def test_no_evidence_holds_nothing() -> None:
    """Without passages no quote is found."""
    assert evidence().find("built between 1887 and 1889") is None
