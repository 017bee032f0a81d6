"""Cut what tools give to a size that prompts and memory can hold, and describe refused parameters. Pure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pydantic

from truthlens.core.records.retrieval import Retrieved, RetrievedPassage
from truthlens.prompts.excerpts import OMITTED

MOST_RESULTS = 20
MOST_PASSAGE_CHARS = 4_000
MOST_CHARS = 20_000
_MOST_NAME_CHARS = 300
_MOST_REASONS = 5
_MOST_REASON_CHARS = 200


def bounded(data: Any) -> Any:
    """Return passages, text or JSON with at most so many results and characters; a cut is visible.

    JSON becomes text.

    Raises:
        TypeError: it is none of these.
        ValueError: it is nested too deeply, or in itself.
    """
    if isinstance(data, Retrieved):
        return replace(data, passages=_passages(data.passages))
    return cut(data if isinstance(data, str) else _json(data), MOST_CHARS)


def cut(text: str, most_chars: int) -> str:
    """Return ``text``, or its beginning and a mark that more followed."""
    return text if len(text) <= most_chars else text[: most_chars - len(OMITTED)] + OMITTED


def reasons(error: pydantic.ValidationError) -> str:
    """Return which fields are wrong and why, without the values that were given."""
    found = error.errors(include_input=False, include_url=False, include_context=False)[:_MOST_REASONS]
    told = (f"{'.'.join(map(str, each['loc'])) or 'object'}: {each['msg']}" for each in found)
    return "; ".join(cut(each, _MOST_REASON_CHARS) for each in told)


def _passages(passages: tuple[RetrievedPassage, ...]) -> tuple[RetrievedPassage, ...]:
    kept: list[RetrievedPassage] = []
    left = MOST_CHARS
    for each in passages[:MOST_RESULTS]:
        text = cut(each.passage.text, min(MOST_PASSAGE_CHARS, left)) if left > len(OMITTED) else ""
        if text.strip():
            left -= len(text)
            names = {
                name: getattr(each.passage, name)[:_MOST_NAME_CHARS] for name in ("id", "title", "parent_id")
            }
            kept.append(replace(each, passage=replace(each.passage, text=text, **names)))
    return tuple(kept)


def _json(data: Any) -> str:
    pieces: list[str] = []
    left = MOST_CHARS + 1
    try:
        for piece in json.JSONEncoder(ensure_ascii=False).iterencode(data):
            pieces.append(piece[:left])
            left -= len(pieces[-1])
            if not left:
                break
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return "".join(pieces)
