"""What of long evidence is shown."""

from hypothesis import given
from hypothesis import strategies as st

from truthlens.prompts.excerpts import excerpt, excerpts

_SENTENCES = "One is here. Two is here. Three is here. Four is here. Five is here."


def test_short_evidence_stays_whole() -> None:
    """Nothing is cut where all of it fits."""
    assert excerpts(["a b", "", "c"], most_chars=4) == ["a b", "", "c"]


def test_near_texts_get_the_space_first() -> None:
    """A text that is near stays whole; the others share what is left, in their order."""
    texts = ["a" * 300 + ".", "b" * 300 + ".", "c" * 300 + "."]
    assert excerpts(texts, near=[2, 2, 9], most_chars=310) == ["", "", texts[2]]
    assert excerpts(texts, near=[2], most_chars=620) == [texts[0], "", texts[2]]


def test_near_texts_that_do_not_fit_share_equally() -> None:
    """A short text gets what it needs, long ones equal parts of the rest."""
    long_one = "word. " * 500
    kept = excerpts([long_one, long_one, "short."], near=[0, 1, 2], most_chars=1000)
    assert kept[2] == "short."
    assert 400 < len(kept[0]) <= 500
    assert len(kept[0]) == len(kept[1])


def test_cuts_are_between_sentences_and_visible() -> None:
    """Sentences are kept whole, and each gap shows."""
    assert excerpt(_SENTENCES, 40) == "One is here. Two is here. […]"


def test_the_sentence_that_matters_stays() -> None:
    """A cut text keeps the characters that the caller names, and their neighbours as far as there is room."""
    place = _SENTENCES.index("Four")
    assert excerpt(_SENTENCES, 24, around=[(place, place + 3)]) == "[…] Four is here. […]"
    assert (
        excerpt(_SENTENCES, 55, around=[(place, place + 3)])
        == "[…] Three is here. Four is here. Five is here."
    )


def test_one_endless_sentence_is_cut_within() -> None:
    """A text without sentence ends still gives its beginning."""
    assert excerpt("x" * 100, 20) == "x" * 14 + " […]"


@given(
    st.lists(st.text(max_size=80), max_size=8), st.lists(st.integers(-1, 9), max_size=4), st.integers(0, 200)
)
def test_the_bound_holds(texts: list[str], near: list[int], most: int) -> None:
    """Together the texts are no longer than asked for, omission marks aside."""
    kept = excerpts(texts, near=near, most_chars=most)
    assert len(kept) == len(texts)
    assert sum(len(text.replace("[…]", "").strip()) for text in kept) <= max(most, 0)
