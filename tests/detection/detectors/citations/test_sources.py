"""What an answer may cite: the ways to name a passage."""

from __future__ import annotations

import pytest

from truthlens.core.records.enums import Endpoint, Provenance
from truthlens.core.records.exchange import Exchange, Passage
from truthlens.detection.citation_sources import Sources

PASSAGES = (
    Passage("a", Provenance.TOOL, id="doc_7", parent_id="book-1", title="files/Handbook.pdf#page=2"),
    Passage("b", Provenance.TOOL, id="3", title="https://www.library.example/hours/"),
    Passage("c", Provenance.TOOL, id="doc_7"),
    Passage("d", Provenance.TOOL, id="S0", title="Opening Hours"),
)
SOURCES = Sources(Exchange(Endpoint.CHAT, "m", "", PASSAGES))


@pytest.mark.parametrize(
    ("label", "places"),
    [
        ("doc_7", (0, 2)),
        ("DOC_7", (0, 2)),
        ("doc-7", (0, 2)),
        ("doc 7", (0, 2)),
        ("book-1", (0,)),
        ("3", (1,)),
        ("03", (1,)),
        ("３", (1,)),
        ("ID:3", (1,)),
        ("Source 3", (1,)),
        ("来源3", (1,)),
        ("source S0", (3,)),
        ("s0", (3,)),
        ("S00", ()),
        ("Handbook.pdf", (0,)),
        ("handbook", (0,)),
        ("handbook.pdf, p. 9", (0,)),
        ("files/Handbook.pdf", (0,)),
        ("https://library.example/hours", (1,)),
        ("library.example/hours", (1,)),
        ("opening hours", (3,)),
        ("doc_8", ()),
        ("7", ()),
        ("0", ()),
        ("", ()),
        ("x" * 1000, ()),
    ],
)
def test_a_label_names_passages(label: str, places: tuple[int, ...]) -> None:
    """By id, parent id or title, in the spellings that models give them."""
    assert SOURCES.find(label) == places


def test_documents_count_by_position() -> None:
    """From 1 or from 0, as chat templates number them."""
    documents = tuple(Passage(each, Provenance.DOCUMENTS) for each in "ab")
    sources = Sources(Exchange(Endpoint.CHAT, "m", "", documents))
    assert [sources.find(each) for each in ("0", "1", "2", "3")] == [(0,), (0,), (1,), ()]


def test_ids_have_a_form() -> None:
    """A label of the same form is taken for an id."""
    assert SOURCES.resembles("book-22")
    assert not SOURCES.resembles("2020")
    assert not SOURCES.resembles("sic")
