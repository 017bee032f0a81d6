"""Sentences with their offsets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.sentences import sentences
from truthlens.text.values.moments import MONTHS

_PIECES = st.sampled_from(
    [
        *"Ax1é中.!?… \n\t()\"'”]。！；）_",
        "...",
        "Mr",
        "e.g",
        "approx",
        "aapprox",
        "No",
        "U.S",
        "et al",
        " The ",
        "12",
        "123",
        "word ",
        ". ",
    ]
)


@given(st.lists(_PIECES, max_size=40).map("".join))
def test_every_character_stands_in_one_sentence(text: str) -> None:
    """Nothing but white space stands between, before and behind them."""
    ranges = sentences(text)
    assert all(start < end and text[start:end] == text[start:end].strip() for start, end in ranges)
    gaps = zip([0, *(end for _, end in ranges)], [*(start for start, _ in ranges), len(text)], strict=True)
    assert all(start <= end and not text[start:end].strip() for start, end in gaps)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Mr. Smith came. He left.", ["Mr. Smith came.", "He left."]),
        ("It is 3.5 m long... Is it? Yes!", ["It is 3.5 m long...", "Is it?", "Yes!"]),
        ("它很长。是吗？", ["它很长。", "是吗？"]),
        ("a...b", ["a...b"]),
        (
            "The U.S. economy grew. He lives in the U.S. The law is old.",
            ["The U.S. economy grew.", "He lives in the U.S.", "The law is old."],
        ),
        ("Smith et al. found it. Then it ended.", ["Smith et al. found it.", "Then it ended."]),
        (
            "Open until 5 p.m. on Monday. It closes at 6 p.m. The bar stays.",
            ["Open until 5 p.m. on Monday.", "It closes at 6 p.m.", "The bar stays."],
        ),
        (
            "No. It is not. See No. 5 there. No. 7 is next.",
            ["No.", "It is not.", "See No. 5 there.", "No. 7 is next."],
        ),
        ("Fig. 3 and pp. 4 show it, cf. Sec. 2.", ["Fig. 3 and pp. 4 show it, cf. Sec. 2."]),
        ('"Stop!" she said. "Yes." Then he left.', ['"Stop!" she said.', '"Yes."', "Then he left."]),
        ("It is... well, fine. Wait... What?", ["It is... well, fine.", "Wait...", "What?"]),
        ("He is 12. She is 10.", ["He is 12.", "She is 10."]),
        ("1. One.\n2. Two. 3. Three.", ["1. One.", "2. Two.", "3. Three."]),
        ("- One\n- Two. Three", ["- One", "- Two.", "Three"]),
        (
            "J. R. R. Tolkien wrote it. Dr. A. Jones of St. Ives left.",
            ["J. R. R. Tolkien wrote it.", "Dr. A. Jones of St. Ives left."],
        ),
        (
            "Apple Inc. reported it. It is of Apple Inc. The firm grew.",
            ["Apple Inc. reported it.", "It is of Apple Inc.", "The firm grew."],
        ),
        (
            "It won in Jan. 2020. It rained in Dec. The sun shone.",
            ["It won in Jan. 2020.", "It rained in Dec.", "The sun shone."],
        ),
        (
            "Use v1.2.3. See https://a.example/b.c?d=1. Call f(x.y).",
            ["Use v1.2.3.", "See https://a.example/b.c?d=1.", "Call f(x.y)."],
        ),
        ("Das ist z. B. so. Die Nr. 5 bzw. 6.", ["Das ist z. B. so.", "Die Nr. 5 bzw. 6."]),
        ("他说：“好。”然后走了。U.S. 经济好！", ["他说：“好。”", "然后走了。", "U.S. 经济好！"]),
        ("Er starb am 3. Mai 1970. Sie kam.", ["Er starb am 3. Mai 1970.", "Sie kam."]),
        ("1. Januar 2020. Am 12. Okt. 1990 kam er.", ["1. Januar 2020.", "Am 12. Okt. 1990 kam er."]),
        ("Vom 3. bis 5. Mai und am 1./2. Juni kam er.", ["Vom 3. bis 5. Mai und am 1./2. Juni kam er."]),
        ("den 17. mai 1814, le 1. mars 1999, dann. Und", ["den 17. mai 1814, le 1. mars 1999, dann.", "Und"]),
        ("It was 12. May 2020 was hot.", ["It was 12. May 2020 was hot."]),
        (
            "He is 12. May I come? He is 3. Mars is red.",
            ["He is 12.", "May I come?", "He is 3.", "Mars is red."],
        ),
        (
            "In room 12. April was cold. I am 3. April is 4.",
            ["In room 12.", "April was cold.", "I am 3.", "April is 4."],
        ),
        (
            "Es sind 45. Mai kam. Version 1.2. Mai kam.",
            ["Es sind 45.", "Mai kam.", "Version 1.2.", "Mai kam."],
        ),
        ("Er zahlt 1,2 Mio. Dollar. Das ist viel.", ["Er zahlt 1,2 Mio. Dollar.", "Das ist viel."]),
        ("Es sind 3 Mrd. Die 40 Tsd. Leute gehen.", ["Es sind 3 Mrd.", "Die 40 Tsd. Leute gehen."]),
        ("It cost $3 bn. in May and 4 mn. The end.", ["It cost $3 bn. in May and 4 mn.", "The end."]),
        ("Es ist aus dem 19. Jahrhundert. Das", ["Es ist aus dem 19. Jahrhundert.", "Das"]),
        ("Im 18. Jh. gebaut, im 19. Jh. Die Kirche", ["Im 18. Jh. gebaut, im 19. Jh.", "Die Kirche"]),
        ("Das sind viele Mio. Dollar kamen.", ["Das sind viele Mio.", "Dollar kamen."]),
        ("  \n ", []),
        ("", []),
    ],
)
def test_sentences_end_at_punctuation_and_lines(text: str, found: list[str]) -> None:
    """Abbreviations, initials, decimals, versions and addresses end none, but where the next word begins a sentence."""
    assert [text[start:end] for start, end in sentences(text)] == found


@given(
    st.integers(1, 31),
    st.sampled_from(sorted(MONTHS)),
    st.integers(1000, 2199),
    st.sampled_from(["am", "le", "el", "on", ""]),
)
def test_a_date_with_an_ordinal_is_in_one_sentence(day: int, month: str, year: int, before: str) -> None:
    """Whatever the language of the month, as it is written at the start of a sentence and within."""
    for name in (month, month.capitalize()):
        text = f"{before} {day}. {name} {year} kam er."
        assert sentences(text) == [(len(text) - len(text.lstrip()), len(text))]
