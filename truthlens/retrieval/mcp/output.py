"""Read the passages out of what a tool returned."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truthlens.core.records.retrieval import FoundPassage, SearchResult
from truthlens.retrieval.interfaces import SourceError

_MOST_TEXT = 1 << 20


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What one call of a tool gave: text of others.

    ``ignored`` counts the parts that are no text: images, sounds, resources, and results without one.
    """

    passages: tuple[FoundPassage, ...]
    ignored: int = 0

    @property
    def text(self) -> str:
        """All passages, a line apart; at most a million characters."""
        return "\n".join(passage.text for passage in self.passages)


def read_output(result: Any) -> ToolOutput:
    """Return the passages of the SDK's ``CallToolResult``.

    Structured content ``{"results": [{"text" or "content", "id"?, "title"?, "url"?, "score"?}]}`` is taken
    where it has this shape, each result a passage; else each part that is text is one. The id of a passage
    is its ``id``, or ``url``, or a hash of its text.

    Raises:
        SourceError: ``unavailable`` where the tool reports an error, ``bad-response`` where the text is too
            long.
    """
    if result.is_error:
        raise SourceError(SearchResult.UNAVAILABLE, "the tool reported an error")
    match result.structured_content:
        case {"results": [*entries]} if all(_is_passage(each) for each in entries):
            read = [_structured(each) for each in entries]
        case _:
            read = [_plain(part.text) if part.type == "text" else None for part in result.content]
    passages = tuple(each for each in read if each is not None)
    if sum(len(each.text) for each in passages) > _MOST_TEXT:
        raise SourceError(SearchResult.BAD_RESPONSE, f"the tool returned more than {_MOST_TEXT} characters")
    return ToolOutput(passages, ignored=len(read) - len(passages))


def _is_passage(entry: object) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("text", entry.get("content")), str)


def _structured(entry: Mapping[str, Any]) -> FoundPassage | None:
    text = entry.get("text", entry.get("content"))
    score = entry.get("score")
    if not text.strip():
        return None
    return FoundPassage(
        text,
        id=_word(entry.get("id")) or _word(entry.get("url")) or _hash(text),
        title=_word(entry.get("title")),
        parent_id=_word(entry.get("url")),
        score=float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None,
    )


def _plain(text: str) -> FoundPassage | None:
    return FoundPassage(text, id=_hash(text)) if text.strip() else None


def _word(value: object) -> str:
    return str(value)[:1000] if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
