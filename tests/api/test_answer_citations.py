"""Evidence that comes with the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from truthlens.api.answer_citations import ANSWER_CITATIONS, split_citations, with_citations
from truthlens.api.responses import parse_response
from truthlens.api.sse.buffered import parse_stream
from truthlens.core.errors import BodyTooLargeError
from truthlens.core.limits import Limits
from truthlens.core.records.enums import Endpoint, Provenance, Reason
from truthlens.core.records.exchange import Exchange, Passage

AWAITING = Exchange(Endpoint.CHAT, "m", "q", (), notes=(ANSWER_CITATIONS,), unchecked=Reason.NO_CONTEXT)
CITATION = {
    "title": "Menu",
    "url": "https://tea",
    "filepath": "m.md",
    "chunk_id": "0",
    "content": "Tea is free.",
}


def choice(**context: Any) -> dict[str, Any]:
    return {"index": 0, "message": {"role": "assistant", "content": "Tea is free.", "context": context}}


def test_a_citation_is_a_passage_under_the_label_that_the_answer_uses() -> None:
    """Title, else file, else address; no address and no chunk id in the text."""
    nameless = {**CITATION, "title": None, "content": "Coffee costs two euros."}
    found = with_citations(AWAITING, [CITATION, nameless])
    assert found.passages == (
        Passage("Tea is free.", Provenance.ANSWER, "doc1", "Menu"),
        Passage("Coffee costs two euros.", Provenance.ANSWER, "doc2", "m.md"),
    )
    assert {each.rule for each in found.passages} == {ANSWER_CITATIONS}
    assert found.not_checkable is None


@pytest.mark.parametrize(
    "citations", [[], [{}], ["x"], [None], [{"content": " "}], [{"content": 7}], [[CITATION]]]
)
def test_what_is_no_citation_is_no_evidence(citations: list[object]) -> None:
    """The exchange stays as it was."""
    assert with_citations(AWAITING, citations) is AWAITING


def test_the_same_text_is_one_passage() -> None:
    """Choices repeat the citations; the request may hold them, too."""
    known = Exchange(
        Endpoint.CHAT, "m", "q", (Passage("Tea is free.", Provenance.USER),), notes=AWAITING.notes
    )
    assert with_citations(known, [CITATION, CITATION]) is known
    assert len(with_citations(AWAITING, [CITATION, CITATION]).passages) == 1


def test_an_exchange_for_a_program_stays_one() -> None:
    """Evidence makes it no answer to a user."""
    step = Exchange(Endpoint.CHAT, "m", "q", (), notes=AWAITING.notes, unchecked=Reason.NOT_AN_ANSWER)
    assert with_citations(step, [CITATION]).not_checkable is Reason.NOT_AN_ANSWER


def test_more_than_the_limits_allow_is_refused() -> None:
    """As for evidence of the request."""
    many = [{"content": f"Tea {number}."} for number in range(9)]
    with pytest.raises(BodyTooLargeError, match="max_passages"):
        with_citations(AWAITING, many, Limits(max_passages=8))


def test_what_the_search_tells_is_taken_out_and_nothing_else() -> None:
    """Other members of the context may hold text."""
    citations, left = split_citations(
        choice(citations=[CITATION], intent="[]", all_retrieved_documents=[], other="A text."),
        holder="message",
    )
    assert citations == (CITATION,)
    assert left["message"]["context"] == {"other": "A text."}  # type: ignore[index]
    for odd in (
        {},
        {"message": None},
        {"message": {"context": "x"}},
        {"message": {"context": {"citations": 7}}},
    ):
        assert split_citations(odd, holder="message")[0] == ()


@pytest.mark.parametrize("awaited", [True, False])
def test_a_response_and_a_stream_give_their_citations(awaited: bool) -> None:
    """Only where the request asked for them; else they are text that nobody reads."""
    exchange = AWAITING if awaited else Exchange(Endpoint.CHAT, "m", "q", ())
    cited = {**CITATION, "content": "Coffee costs two euros."}
    held = choice(citations=[cited])
    whole = parse_response(json.dumps({"choices": [held]}).encode(), exchange)
    delta = {"choices": [{"index": 0, "delta": held["message"]}]}
    streamed = parse_stream(f"data: {json.dumps(delta)}\n\ndata: [DONE]\n\n".encode(), exchange)
    for response in (whole, streamed):
        assert response.citations == ((cited,) if awaited else ())
        (answer,) = response.answers
        assert (answer.text, bool(answer.unread_tokens)) == ("Tea is free.", not awaited)
