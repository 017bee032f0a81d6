"""Forms of words, and function words, in any language."""

import pytest

from truthlens.text.word_forms import STOP_WORDS, form, singular


@pytest.mark.parametrize(
    ("one", "other"),
    [("payments", "payment"), ("announced", "announcement"), ("요금은", "요금이"), ("gesetz", "gesetze")],
)
def test_forms_of_one_word_have_one_form(one: str, other: str) -> None:
    """Whatever their endings."""
    assert form(one, letters=6) == form(other, letters=6)


@pytest.mark.parametrize(("one", "other"), [("1990s", "1990"), ("120mg", "125mg"), ("2019-05", "2019-06")])
def test_a_number_stands_for_itself(one: str, other: str) -> None:
    """However long it is."""
    assert form(one, letters=2) != form(other, letters=2)


def test_short_words_keep_their_s() -> None:
    """There it is no ending."""
    assert [singular(word) for word in ("gas", "cats", "bus", "is")] == ["gas", "cat", "bus", "is"]


def test_negations_are_words_of_content() -> None:
    """Without them a text and its opposite would hold the same words."""
    assert STOP_WORDS.isdisjoint({"not", "no", "nicht", "pas", "non", "não", "niet"})
    assert {"the", "der", "les", "una", "het"} <= STOP_WORDS
