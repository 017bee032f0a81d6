"""Evidence that comes with the answer: the citations of Azure OpenAI's ``data_sources``.

There the backend searches by itself, so that the request holds no document. What it found comes back beside the answer, in
``message.context.citations``, of a stream in ``delta.context.citations`` of its first chunk. They are read only for a request that has
``data_sources``; beside any other answer the member is text that nobody knows (``visible_text``).

Source: Azure OpenAI, "Azure OpenAI On Your Data API reference", ``context``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from truthlens.core.limits import Limits
from truthlens.core.records.enums import Provenance, Reason
from truthlens.core.records.exchange import Exchange, Passage
from truthlens.evidence.documents import document_passages
from truthlens.evidence.extract import check_evidence

ANSWER_CITATIONS = "answer-citations"
"""The note of a request whose evidence comes with its answer, and the rule of the passages that did."""

# What the search did: it is told to programs and is no part of the answer.
_SEARCHED = frozenset(("citations", "intent", "all_retrieved_documents"))
_TITLES = ("title", "filepath", "url")
_LACKING = (Reason.NO_CONTEXT, Reason.UNSURE_CONTEXT, Reason.RETRIEVAL_FAILED, Reason.RETRIEVAL_EMPTY)
_DEFAULTS = Limits()


def awaits_citations(exchange: Exchange) -> bool:
    """Return whether evidence may come with the answer."""
    return ANSWER_CITATIONS in exchange.notes


def split_citations(
    choice: Mapping[str, object], *, holder: str
) -> tuple[tuple[object, ...], Mapping[str, object]]:
    """Return the citations of a choice, and the choice without them and what else its search tells.

    Args:
        choice: A choice of a response, or what a chunk adds to one.
        holder: Where it has its text: ``message`` or ``delta``.
    """
    held = choice.get(holder)
    context = held.get("context") if isinstance(held, dict) else None
    if not isinstance(held, dict) or not isinstance(context, dict):
        return (), choice
    citations = context.get("citations")
    rest = {key: value for key, value in context.items() if key not in _SEARCHED}
    return (
        tuple(citations) if isinstance(citations, list) else (),
        {**choice, holder: {**held, "context": rest}},
    )


def with_citations(exchange: Exchange, citations: Iterable[object], limits: Limits = _DEFAULTS) -> Exchange:
    """Return the exchange with the citations of its answer as further passages; itself where there are none.

    Raises:
        BodyTooLargeError: There is more evidence than ``limits`` allow.
    """
    known = {passage.text for passage in exchange.passages}
    found: list[Passage] = []
    for number, citation in enumerate(citations, 1):
        for passage in document_passages(
            (_document(citation, number),), Provenance.ANSWER, rule=ANSWER_CITATIONS
        ):
            if passage.text not in known:
                known.add(passage.text)
                found.append(passage)
    if not found:
        return exchange
    passages = (*exchange.passages, *found)
    check_evidence(passages, limits)
    unchecked = None if exchange.unchecked in _LACKING else exchange.unchecked
    return replace(exchange, passages=passages, unchecked=unchecked)


def _document(citation: object, number: int) -> object:
    """Return a citation as a document, with the label by which the answer refers to it: ``[doc1]``."""
    if not isinstance(citation, dict):
        return ""
    title = next((each for key in _TITLES if isinstance(each := citation.get(key), str) and each.strip()), "")
    content = citation.get("content")
    return (
        {"id": f"doc{number}", "title": title, "text": content}
        if isinstance(content, str) and content.strip()
        else ""
    )
