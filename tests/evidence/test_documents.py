"""JSON documents become one passage each, with nothing lost that an answer may rest on."""

from __future__ import annotations

import json

import pytest

from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.evidence.documents import document_passages, json_passages

TOOL = Provenance.TOOL


def passages(value: object) -> list[Passage] | None:
    return json_passages(json.dumps(value), TOOL)


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "",
        "{not json",
        "[1] a source",
        "[1, 2, 3]",
        "[]",
        "{}",
        '{"temperature": 21}',
        "[" * 100_000,
        '"text"',
        "null",
    ],
)
def test_what_holds_no_documents_is_left_to_the_caller(text: str) -> None:
    """Plain text, damaged JSON and bare figures are taken raw by the caller."""
    assert json_passages(text, TOOL) is None


@pytest.mark.parametrize("key", ["results", "documents", "hits", "items", "data", "chunks"])
def test_lists_of_documents_are_found_under_their_usual_names(key: str) -> None:
    """The wrapping object's own facts are kept, the retrieval's noise is not."""
    assert passages({"query": "x", "took_ms": 3, key: [{"text": "one"}, "two"]}) == [
        Passage("one", TOOL),
        Passage("two", TOOL),
    ]
    assert passages({"city": "Oslo", key: [{"text": "one"}]}) == [
        Passage("one", TOOL),
        Passage("city: Oslo", TOOL),
    ]


def test_a_document_keeps_label_title_and_plain_fields() -> None:
    """Price and date stand beside the text; scores and vectors are dropped."""
    document = {
        "id": 7, "title": "Ferry", "page_content": "It leaves at eight.", "price": 14, "open": True, "score": 0.9,
        "embedding": [0.1, 0.2], "metadata": {"date": "4 March", "pages": [1]}, "tags": ["sea", "boat"], "none": None,
    }  # fmt: skip
    assert passages([document]) == [
        Passage(
            'It leaves at eight.\nprice: 14\nopen: true\ndate: 4 March\ntags: ["sea", "boat"]',
            TOOL,
            id="7",
            title="Ferry",
        )
    ]


def test_a_field_is_noise_only_where_it_ranks() -> None:
    """The score of a match is a fact, the score of a hit is not; likewise the type."""
    assert passages([{"text": "Final.", "score": "3-1", "type": "match", "rank": 2}]) == [
        Passage("Final.\nscore: 3-1\ntype: match", TOOL)
    ]
    assert passages([{"text": "Final.", "score": 0.7, "type": "text"}]) == [Passage("Final.", TOOL)]


def test_records_without_a_text_are_their_fields() -> None:
    """Rows of a table are passages, with the name that they are about."""
    assert passages({"rows": [{"name": "Ann", "age": 30}, {"name": "Bob", "age": 31}]}) == [
        Passage("name: Ann\nage: 30", TOOL, title="Ann"),
        Passage("name: Bob\nage: 31", TOOL, title="Bob"),
    ]


def test_nested_results_are_reached() -> None:
    """Content parts and Cohere's data objects are documents."""
    assert passages({"content": [{"type": "text", "text": "one"}]}) == [Passage("one", TOOL)]
    assert document_passages([{"id": "d", "data": {"title": "T", "snippet": "two"}}], TOOL) == [
        Passage("two", TOOL, id="d", title="T")
    ]


def test_deep_nesting_ends() -> None:
    """Beyond a few levels the JSON itself is the passage."""
    value: object = "x"
    for _ in range(20):
        value = {"items": [value]}
    found = passages(value)
    assert found is not None
    assert len(found) == 1
    assert found[0].text.startswith('{"items"')


@pytest.mark.parametrize(
    ("document", "text", "parent"),
    [
        ({"id": "p1_2", "text": "Nine.", "parent_id": "p1"}, "Nine.", "p1"),
        ({"id": "p1_2", "text": "Nine.", "parent": "p1"}, "Nine.", "p1"),
        ({"id": 7, "text": "Nine.", "parentId": 3, "price": 2}, "Nine.\nprice: 2", "3"),
        ({"text": "Nine.", "metadata": {"parent_id": "p1", "year": 1990}}, "Nine.\nyear: 1990", "p1"),
        ({"id": "a", "data": {"text": "Nine.", "parent_id": "p1"}}, "Nine.", "p1"),
        ({"id": "a", "parent_id": "p1", "data": {"text": "Nine."}}, "Nine.", "p1"),
        ({"text": "It makes boats.", "parent": "Acme"}, "It makes boats.\nparent: Acme", ""),
        ({"name": "Boats Ltd", "parent": "Acme"}, "name: Boats Ltd\nparent: Acme", ""),
    ],
)
def test_the_id_of_the_whole_document_is_no_evidence(
    document: dict[str, object], text: str, parent: str
) -> None:
    """It is what the answer may cite; "parent" of a record that is no piece of a document is a fact."""
    (found,) = passages([document]) or []
    assert (found.text, found.parent_id) == (text, parent)
