"""What reads like text is told from what is bookkeeping, in one pass however long it is."""

from __future__ import annotations

import pytest

from truthlens.api.members.bookkeeping import is_prose
from truthlens.api.visible_text import show_choice, without_copies
from truthlens.core.records.enums import Endpoint


@pytest.mark.parametrize(
    "text",
    ["It opens at seven.", "eight tablets", "8 tablets", "up to **eight** tablets", "Seven.", "No!", "(seven.)",
     "七点开门", "ร้านเปิด", "a  b", "x" * 100_000 + " says so"],
)  # fmt: skip
def test_what_is_said_reads_like_prose(text: str) -> None:
    """Two words, a sentence of one, or a script without spaces."""
    assert is_prose(text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "stop", "chatcmpl-8a7f", "https://example.com/a?b=c", "2025-01-01T10:00:00Z", "12:00 13:00", "1.5", "fp_44709d6fcb",
     "AAAA" * 1000, "p" * 1_000_000, "1 " * 500_000, "- " * 500_000, "=\\u0020" * 100_000],
)  # fmt: skip
def test_ids_addresses_and_padding_do_not(text: str) -> None:
    """However long they are."""
    assert not is_prose(text)


def test_text_below_any_depth_is_found() -> None:
    """A member that nests deeper than any API is looked through as well."""
    value: object = "It opens at seven."
    for _ in range(400):
        value = {"content": [value]}
    assert show_choice({"message": {"x": value}}, Endpoint.CHAT).unread == ["It opens at seven."]
    assert show_choice({"content": value}, Endpoint.CHAT).unread == ["It opens at seven."]


def test_a_copy_is_all_of_the_answer_or_a_sentence_or_a_line_of_it() -> None:
    """Not any piece: what stands within a sentence may say the opposite outside of it."""
    answer = "It is not true that it opens at seven. It opens at nine.\nClosed on Sundays"
    copies = [answer, f" {answer}\n", "It opens at nine.", "Closed on Sundays"]
    assert without_copies(copies, [answer]) == []
    assert without_copies(["it opens at seven.", "It opens"], [answer]) == ["it opens at seven.", "It opens"]
