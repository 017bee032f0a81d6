"""Make collected passages of what tools give, each with an id that an answer can cite it by. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from truthlens.core.records.agentic_run import CollectedPassage
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.retrieval import Retrieved
from truthlens.mitigation.agentic.tools.interfaces import ToolResult
from truthlens.text.citations import label_key

REQUEST = "request"
MOST_COLLECTED = 60
"""Passages of tools that a run keeps at most; those of the request are not counted."""

# What can stand in square brackets and be told from text.
_CITABLE = re.compile(r"[^\W_][\w.:/#@+-]{0,79}")


def from_request(passages: Iterable[Passage]) -> list[CollectedPassage]:
    """Return the passages that came with the request."""
    found: list[CollectedPassage] = []
    for each in passages:
        if each.text.strip():
            _add(found, REQUEST, each.text, each.id, title=each.title, parent_id=each.parent_id)
    return found


def collect(collected: list[CollectedPassage], result: ToolResult, *, gives_evidence: bool) -> int:
    """Add what a tool gave to ``collected``, each passage once; return how many are new."""
    before = len(collected)
    if isinstance(result.data, Retrieved):
        for each in result.data.passages:
            passage = each.passage
            _add(
                collected,
                each.source,
                passage.text,
                passage.id,
                title=passage.title,
                parent_id=passage.parent_id,
            )
    elif isinstance(result.data, str) and result.data.strip():
        _add(collected, result.tool_name, result.data, "", computed=not gives_evidence)
    return len(collected) - before


def exchange_of(question: str, collected: Sequence[CollectedPassage]) -> Exchange:
    """Return the question with what was collected as its passages, as detectors and prompts take them."""
    passages = tuple(
        Passage(each.text, Provenance.TOOL, each.document_id, each.title, parent_id=each.parent_id)
        for each in collected
    )
    return Exchange(Endpoint.CHAT, "", question, passages)


def answer_of(text: str) -> Answer:
    """Return a text as an answer."""
    return Answer(0, AnswerKind.TEXT, text)


def _add(
    collected: list[CollectedPassage],
    source: str,
    text: str,
    passage_id: str,
    *,
    title: str = "",
    parent_id: str = "",
    computed: bool = False,
) -> None:
    kept = sum(each.source != REQUEST for each in collected)
    is_known = any(
        each.text == text or (passage_id and (each.source, each.passage_id) == (source, passage_id))
        for each in collected
    )
    if is_known or (source != REQUEST and kept >= MOST_COLLECTED):
        return
    collected.append(
        CollectedPassage(
            _free_id(collected, source, passage_id), source, text, title, parent_id, passage_id, computed
        )
    )


def _free_id(collected: Sequence[CollectedPassage], source: str, passage_id: str) -> str:
    taken = {label_key(each.document_id) for each in collected}
    wanted = (passage_id, f"{source}:{passage_id}") if passage_id else ()
    for name in wanted:
        if _CITABLE.fullmatch(name) and label_key(name) not in taken:
            return name
    stem = source if _CITABLE.fullmatch(source) else "doc"
    return next(
        name for n in range(1, len(collected) + 2) if label_key(name := f"{stem[:60]}-{n}") not in taken
    )
