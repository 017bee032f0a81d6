"""What is shown around a range: clause, sentence, item, cell, line, value; never more."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from truthlens.text.claims.claims import units
from truthlens.text.claims.phrases import MOST_CHARS, phrases_around
from truthlens.text.spans import trimmed

LONG = (
    "The museum in the old harbour holds 300 works of local painters, which the city bought in 1962 from a private"
    " collector because he moved away."
)
TABLE = "| town | fee |\n|---|---|\n| Basel | 40 dollars a day |\n| Chur | free |"
JSON = 'Here it is:\n```json\n{"name": "Carol Smith", "total": 1250,\n "note": "It opens at nine. It closes at six."}\n```'


@pytest.mark.parametrize(
    ("text", "marked", "shown"),
    [
        ("The meeting is on Wednesday, and it starts at nine.", "Wednesday", "The meeting is on Wednesday"),
        ("The meeting is on Wednesday, and it starts at nine.", "nine", "it starts at nine."),
        ("It is free. Carol bought the house. It is old.", "Carol", "Carol bought the house."),
        ("Yes", "Yes", "Yes"),
        ("Nine.", "Nine", "Nine."),
        (LONG, "300", "The museum in the old harbour holds 300 works of local painters"),
        (LONG, "1962", "which the city bought in 1962 from a private collector"),
        (LONG, "moved", "because he moved away."),
        ("Fees:\n- Rooms: 40 dollars\n- Boats: 9 dollars", "40", "Rooms: 40 dollars"),
        ("1. Open at nine\n2. Close at six", "six", "Close at six"),
        (TABLE, "40", "40 dollars a day"),
        (TABLE, "Basel", "Basel"),
        (JSON, "Carol", "Carol Smith"),
        (JSON, "1250", "1250"),
        (JSON, "nine", "It opens at nine."),
        (JSON, "is", "Here it is:"),
        ('{"fee": 40, "open": "from nine', "nine", "from nine"),
        ("```\nfee = 40\nopen = 9\n```", "40", "fee = 40"),
        ("会议在周三下午举行，由张伟先生主持，共有三十人参加。", "周三", "会议在周三下午举行"),
        ("会议在周三下午举行，由张伟先生主持，共有三十人参加。", "三十", "共有三十人参加。"),
        ("東京タワーは1958年に完成し、高さは333メートルです。", "333", "高さは333メートルです。"),
        ("El museo abre a las nueve. Cierra a las seis.", "nueve", "El museo abre a las nueve."),
    ],
)
def test_a_range_grows_to_its_phrase(text: str, marked: str, shown: str) -> None:
    """One word is shown with its clause, its item, its cell or its value, and with nothing of the next one."""
    start = text.index(marked)
    ((first, last),) = phrases_around(text, [(start, start + len(marked))])
    assert text[first:last] == shown


def test_a_range_over_two_sentences_keeps_both() -> None:
    """It grows to the first edge of the one and the last of the other."""
    text = "It is old. Carol bought the house. It has nine rooms. It is sold."
    start, end = text.index("house"), text.index("nine") + 4
    ((first, last),) = phrases_around(text, [(start, end)])
    assert text[first:last] == "Carol bought the house. It has nine rooms."


def test_what_never_ends_is_cut_between_words() -> None:
    """A sentence without an end is shown as far as people read."""
    text = "word " * 400
    ((first, last),) = phrases_around(text, [(1000, 1004)])
    assert first <= 1000
    assert last >= 1004
    assert last - first <= MOST_CHARS + 10
    assert set(text[first:last].split()) == {"word"}


_PIECES = st.sampled_from(
    ["The fee is 9", ", and it is", ". ", "; ", "\n", "| ", "- ", "```", '{"a": ', '"b c"', "}", "，", "会议在周三", " which ", "(", ")"]
)  # fmt: skip


_TEXTS = st.one_of(st.text(max_size=60), st.lists(_PIECES, max_size=20).map("".join))


def _places(text: str) -> st.SearchStrategy[tuple[str, int, int]]:
    place = st.integers(0, len(text))
    return st.tuples(place, place).map(lambda both: (text, min(both), max(both)))


@given(_TEXTS.flatmap(_places))
@example((". 0", 1, 3))
@example(("The fee is 9. (2)", 14, 17))
def test_a_phrase_holds_its_range_and_stays_in_its_line(case: tuple[str, int, int]) -> None:
    """For any text and range: it holds the range, ends within the text, and reaches into no other paragraph."""
    text, start, end = case
    ((first, last),) = phrases_around(text, [(start, end)])
    bare = trimmed(text, start, end) if text[start:end].strip() else (start, end)
    assert 0 <= first <= bare[0] <= bare[1] <= last <= len(text)
    start, end = bare
    assert "\n\n" not in text[first:start]
    assert "\n\n" not in text[end:last]
    # Not by the bare sentences: one without a word, or a reference in brackets, belongs to the one beside it.
    edges = [unit.start for unit in units(text) if unit.start <= start]
    if text[start:end].strip() and edges and "\n" not in text and "|" not in text:
        assert first >= max(edges)


@pytest.mark.parametrize(
    "text",
    ["{}\n" * 20_000, "| a | b |\n" * 10_000, "a, but " * 20_000, '{"a": ' * 20_000, "x. " * 30_000, "(" * 100_000],
    ids=["objects", "rows", "one sentence", "open objects", "sentences", "brackets"],
)  # fmt: skip
def test_long_texts_come_to_an_end(text: str) -> None:
    """A hundred thousand characters with ten thousand ranges, of every kind that nests or repeats: none is quadratic."""
    ranges = [(place, place + 1) for place in range(0, len(text), 10)]
    assert len(phrases_around(text, ranges)) == len(ranges)
