"""A quotation is a whole sentence of the evidence, word for word."""

from __future__ import annotations

import pytest

from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.detection.claims.quotations import Quotations

TEXTS = (
    "Refunds are given within 30 days, if the receipt is shown. Dogs must stay outside.",
    "Who may enter? Members only may enter the hall.",
)
QUOTATIONS = Quotations([Passage(text, Provenance.DOCUMENTS) for text in TEXTS])


@pytest.mark.parametrize(("text", "passage"), [("dogs must  stay outside", 0), ("“Dogs must stay outside.”", 0), ("Members only may enter the hall!", 1)])  # fmt: skip
def test_case_space_and_signs_at_the_ends_do_not_count(text: str, passage: int) -> None:
    found = QUOTATIONS.find(text)
    assert found is not None
    number, (start, end) = found
    assert number == passage
    assert TEXTS[number][start:end].casefold().strip(".") in " ".join(text.casefold().split())


@pytest.mark.parametrize(
    "text",
    ["Refunds are given within 30 days", "Dogs must stay", "Cats must stay outside.", "Who may enter?", ""],
)
def test_a_part_another_word_and_few_words_are_none(text: str) -> None:
    """A part may lack the condition under which the sentence stands."""
    assert QUOTATIONS.find(text) is None


LISTED = (
    "Not allowed:\n- Dogs on a long lead\n- Fires in the open air\n\nOpen to members: \nEntry is free on all days.\n\n"
    "It was closed in 1990 for good.\n\n| Fee | Tax |\n|---|---|\n| 4 euros each | 1 euro each |"
)


@pytest.mark.parametrize(
    ("text", "context", "is_one"),
    [
        ("Dogs on a long lead", "Not allowed:", True),
        ("Dogs on a long lead", "Allowed in the park:", False),
        ("Dogs on a long lead", "", False),
        ("Entry is free on all days.", "", False),
        ("It was closed in 1990 for good.", "", False),
        ("| 4 euros each | 1 euro each |", "| Fee | Tax |", False),
    ],
)
def test_a_sentence_stands_under_the_same_lead_in_and_speaks_for_itself(
    text: str, context: str, is_one: bool
) -> None:
    found = Quotations([Passage(LISTED, Provenance.DOCUMENTS)]).find(text, context)
    assert (found is not None) is is_one
