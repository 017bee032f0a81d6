"""Personal data is taken out, positions stay, and no text makes it hang."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.review_settings import Redaction
from truthlens.review.entry.redaction import MARK, redactor

FOUND = {
    Redaction.EMAIL: ["ann@example.org", "a.b+c@sub.example.co.uk", "用户@例子.公司"],
    Redaction.PHONE: ["+49 30 1234567", "(030) 123 45 67", "555-123-4567", "+1 (212) 555-0100"],
    Redaction.CARD: ["4111 1111 1111 1111", "4111111111111111", "3782-822463-10005"],
    Redaction.IBAN: ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819"],
    Redaction.IP: ["192.168.0.1", "2001:db8::ff00:42:8329"],
}
KEPT = [
    "It costs 1,200 dollars.",
    "Room 204 opens at 9:30.",
    "On 2024-12-01, 3.5 % of 40 cars.",
    "Version 1.2.3",
]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts])
def test_these_are_taken_out(kind: Redaction, text: str) -> None:
    """In the middle of a sentence, each character by a mark."""
    before, after = "Ask ", " today."
    assert redactor([kind])(f"{before}{text}{after}") == before + MARK * len(text) + after


@pytest.mark.parametrize("text", KEPT)
def test_what_evidence_is_about_stays(text: str) -> None:
    """Prices, times, dates, versions."""
    assert redactor(list(Redaction))(text) == text


@given(st.text(max_size=300), st.sets(st.sampled_from(list(Redaction))))
def test_positions_stay(text: str, kinds: set[Redaction]) -> None:
    """Whatever is taken out, the text keeps its length, and what stays stays where it is."""
    clean = redactor(sorted(kinds))(text)
    assert len(clean) == len(text)
    assert all(new in (old, MARK) for old, new in zip(text, clean, strict=True))


def test_own_patterns() -> None:
    """What the operator wrote goes as well."""
    assert redactor([], ["ACCT-[0-9]+"])("of ACCT-77 now") == f"of {MARK * 7} now"
    with pytest.raises(regex.error):
        redactor([], ["("])


def test_a_pattern_that_takes_too_long_is_given_up() -> None:
    """The text is then not kept, for it might hold what should have gone."""
    with pytest.raises(TimeoutError):
        redactor([], ["(a|aa)+$"])("a" * 60 + "b")


@pytest.mark.parametrize("kind", list(Redaction))
@pytest.mark.parametrize("piece", ["1 ", "1-", "a@", "a.", "DE12 ", "1.1.1.", "1:", "(", "+1("])
def test_no_built_in_pattern_takes_long(kind: Redaction, piece: str) -> None:
    """On a megabyte of what each of them begins with."""
    assert len(redactor([kind])(piece * (200_000 // len(piece)))) == 200_000 // len(piece) * len(piece)
