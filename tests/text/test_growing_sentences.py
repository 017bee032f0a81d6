"""Sentences of a text that grows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.growing_sentences import SentenceSplitter
from truthlens.text.sentences import sentences

PIECES = st.sampled_from(
    [
        *"Ax1é中.!?… \n\t()\"'”]。！；）_",
        "...",
        "Mr",
        "e.g",
        "U.S",
        "et al",
        "No",
        "The",
        " The ",
        " it ",
        "words and approx",
        "approx. ",
        "12",
        "word ",
        "a longer stretch of words ",
        ". ",
        "      ",
        "----------",
        "am 12. ",
        "3. ",
        " und ",
        "M",
        "Mai",
        "ai ",
        "August ",
        " 1970",
        " 19",
        "3 Mio. ",
        "Die ",
    ]
)


def fed(splitter: SentenceSplitter, *texts: str) -> list[list[tuple[int, int]]]:
    return [splitter.feed(text) for text in texts]


@pytest.mark.parametrize(
    ("texts", "complete"),
    [
        (["It is 3.", "5 m. ", "Next"], [[], [(0, 12)], []]),
        (["One.", " ", "Two."], [[], [(0, 4)], []]),
        (["One", "\n", "\n", "Two\n"], [[], [(0, 3)], [], [(5, 8)]]),
        (["See e.g.", " this", ". "], [[], [], [(0, 14)]]),
        (["他说：“好。", "”", "我", "走。了"], [[], [], [(0, 7)], [(7, 10)]]),
        (['"Yes.', '" ', "No"], [[], [], [(0, 6)]]),
        (['"Yes.', '" ', "he said.", " "], [[], [], [], [(0, 15)]]),
        (["In the U.", "S", ". ", "Th", "e", " law"], [[], [], [], [], [], [(0, 11)]]),
        (["In the U.S.", " econ", "omy. "], [[], [], [(0, 20)]]),
        (["No. ", "5. ", "No. ", "It"], [[], [], [(0, 6)], [(7, 10)]]),
        (["am 3. M", "ai", " 1970. ", "S"], [[], [], [(0, 15)], []]),
        (["It is 12. M", "ax came."], [[], [(0, 9)]]),
        (["It is 12. May ", "20 came."], [[], [(0, 9)]]),
        (["It is 12. May 20", " people."], [[], [(0, 9)]]),
        (["It is 3 Mio. D", "ie", " Bahn"], [[], [], [(0, 12)]]),
        (["  One. Two! Three? ", ""], [[(2, 6), (7, 11), (12, 18)], []]),
        (["One.", "..", ". ", "Two"], [[], [], [], [(0, 7)]]),
        (["word   ", "   ", "\n"], [[], [], [(0, 4)]]),
    ],
)
def test_a_sentence_is_complete_once_its_end_cannot_change(
    texts: list[str], complete: list[list[tuple[int, int]]]
) -> None:
    assert fed(SentenceSplitter(), *texts) == complete


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 21, 34])
def test_what_stands_before_a_full_stop_is_still_known_in_a_long_text(size: int) -> None:
    text = (
        "It was a long walk (approx. 3 km, cf. Fig. 2 and App. 1) with Prof. J. Doe. Then e.g. Mr. Roe came. "
        * 20
    )
    splitter = SentenceSplitter()
    parts = [text[place : place + size] for place in range(0, len(text), size)]
    assert [found for part in parts for found in splitter.feed(part)] == sentences(text)


@pytest.mark.parametrize("before", range(70))
def test_a_full_stop_that_was_no_end_never_becomes_one(before: int) -> None:
    """Wherever the kept text begins: within the abbreviation too."""
    text = "x" * before + " approx. three (3) kilometres, as far as we know, or a little more, and back. Then"
    splitter = SentenceSplitter()
    assert [found for character in text for found in splitter.feed(character)] == [
        (0 if before else 1, len(text) - 5)
    ]


@given(st.lists(st.lists(PIECES, max_size=4).map("".join), max_size=30))
def test_however_a_text_is_cut_its_sentences_are_those_of_the_whole(texts: list[str]) -> None:
    splitter = SentenceSplitter()
    found = [found for text in texts for found in splitter.feed(text)]
    rest = splitter.close()
    assert found + ([rest] if rest else []) == sentences("".join(texts))


@given(st.lists(PIECES, min_size=1, max_size=40))
def test_a_sentence_is_given_with_the_character_that_settles_it(texts: list[str]) -> None:
    """One that ends where the text does could still grow, whatever comes next."""
    splitter = SentenceSplitter()
    so_far = ""
    found: list[tuple[int, int]] = []
    for text in texts:
        for character in text:
            so_far += character
            found += splitter.feed(character)
            following = [so_far + more for more in ("x", "\n", "。", '"', " 1970", "ai 1970")]
            certain = [whole for whole in sentences(following[0], ahead=1)[:-1] if whole[1] < len(so_far)]
            assert found == certain
            assert all(sentences(whole)[: len(found)] == found for whole in following)


def test_closing_ends_the_open_text_without_the_white_space_around_it() -> None:
    splitter = SentenceSplitter(start=10)
    assert splitter.feed(" One. and a ha ") == [(11, 15)]
    assert splitter.first == 16
    assert splitter.close() == (16, 24)
    assert splitter.first is None
    assert splitter.close() is None
    assert splitter.feed("lf. ") == [(25, 28)]
    assert splitter.feed("  ") == []
    assert splitter.close() is None


@pytest.mark.parametrize(
    ("text", "found", "first"),
    [
        ("It costs ni", (0, 8), 9),
        ("It costs \t ni", (0, 8), 11),
        ("It costs nine ", (0, 13), None),
        ("It costs nine.", (0, 14), None),
        ("nine", (0, 4), None),
        ("  nine", (2, 6), None),
        ("It costs " + "x" * 31, (0, 40), None),
        ("OK 今天天气", (0, 7), None),
        ("x " + " " * 140 + "ni", (0, 144), None),
        (" ", None, None),
    ],
)
def test_closing_at_the_open_word_leaves_it_open(
    text: str, found: tuple[int, int] | None, first: int | None
) -> None:
    """Unless it is all that there is, or no word that ends soon."""
    splitter = SentenceSplitter()
    assert splitter.feed(text) == []
    assert (splitter.close(at=splitter.open_word), splitter.first) == (found, first)
    assert splitter.feed("ne euros. Then") == [(len(text) if first is None else first, len(text) + 9)]


def test_an_open_word_is_closed_once_it_is_all_that_there_is() -> None:
    splitter = SentenceSplitter()
    splitter.feed("It costs ni")
    assert [splitter.close(at=splitter.open_word) for _ in range(3)] == [(0, 8), (9, 11), None]


def test_text_that_is_not_to_be_split_stays_open() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("{} One. Two.\n", split=False) == []
    assert splitter.close() == (0, 12)


def test_what_is_kept_of_a_long_sentence_is_short() -> None:
    splitter = SentenceSplitter()
    for _ in range(2000):
        splitter.feed("v1.2 and ")
    assert len(splitter._window) < 100
