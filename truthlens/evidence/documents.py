"""Read passages from JSON: documents of a request's field, and results of tools.

One document becomes one passage: its text, then its other plain fields as ``key: value`` lines, because an
answer may well rest on a price or a date next to the text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from truthlens.core.cancellation import checkpoint
from truthlens.core.json_size import check_values
from truthlens.core.limits import Limits
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.evidence.language.word_table import word_list, word_set
from truthlens.text.json_edit import show

_TEXT_KEYS = ("text", "content", "page_content", "snippet", "passage", "chunk", "body", "document", "data")
_WEAK_TEXT_KEYS = ("abstract", "summary", "description", "answer", "value")
_TITLE_KEYS = word_list(
    "title name heading source sourceName source_name fileName document_name file_name filename file url link"
)
_ID_KEYS = ("id", "doc_id", "document_id", "chunk_id", "source_id", "passage_id", "index")
# Of what the document is a piece; "parent" alone may be a fact ("parent: Acme Holding") where nothing is cut into pieces.
_PARENT_ID_KEYS = ("parent_id", "parentId", "parent_doc_id", "parent_document_id")
_PARENT_KEY = "parent"
_LIST_KEYS = word_list(
    "documents docs results passages items data hits chunks matches sources records snippets contexts "
    "references rows content entries organic_results"
)
# Fields that describe the retrieval and not the world: no answer rests on them.
_NOISE_KEYS = word_set(
    "query q page page_number page_label chunk_index start_index end_index file_id mime_type took took_ms "
    "ok success next_page cursor request_id embedding vector _index"
)
_RANKING_KEYS = frozenset(("score", "distance", "similarity", "rank", "_score"))
_KINDS = ("text", "document", "search_result")
_MAX_DEPTH = 4


def document_passages(
    documents: Iterable[object], provenance: Provenance, *, rule: str = ""
) -> list[Passage]:
    """Return one passage per document: strings, or objects like ``{title, text}`` and ``{id, data: {…}}``."""
    passages: list[Passage] = []
    for document in documents:
        passages += _passages(document, provenance, 0)
    return [replace(passage, rule=rule) for passage in passages] if rule else passages


def json_passages(
    text: str, provenance: Provenance, *, max_values: int = Limits().max_json_values
) -> list[Passage] | None:
    """Return one passage per document of a JSON text; ``None`` if it is no JSON or holds no documents.

    Raises:
        BodyTooLargeError: it holds more than ``max_values`` JSON values.
    """
    stripped = text.strip()
    if not stripped.startswith(("[", "{")):
        return None
    check_values(stripped, max_values)
    try:
        value = json.loads(stripped)
        if isinstance(value, dict) and _body_key(value) is None and _list_key(value) is None:
            return None
        if isinstance(value, list) and not any(isinstance(item, str | dict) for item in value):
            return None
        return _passages(value, provenance, 0) or None
    except (ValueError, RecursionError):
        # Not JSON after all, or deeper than can be held: the caller takes the raw text.
        return None


def _passages(value: object, provenance: Provenance, depth: int) -> list[Passage]:
    checkpoint()
    if isinstance(value, str):
        return _kept(Passage(text=show(value).strip(), provenance=provenance))
    if depth >= _MAX_DEPTH or not isinstance(value, dict | list):
        return _kept(Passage(text=_compact(value), provenance=provenance))
    if isinstance(value, list):
        return [passage for item in value for passage in _passages(item, provenance, depth + 1)]
    list_key = _list_key(value)
    if list_key is not None:
        found = _passages(value[list_key], provenance, depth + 1)
        rest = _fields(value, leave=(list_key, *_ID_KEYS))
        return found + _kept(Passage(text=rest, provenance=provenance))
    return _kept(_document(value, provenance))


def _document(document: Mapping[str, object], provenance: Provenance) -> Passage:
    text_key = _body_key(document)
    inner = document[text_key] if text_key is not None else None
    if isinstance(inner, dict):
        body = _document(inner, provenance)
    else:
        body = Passage(text=show(inner).strip() if isinstance(inner, str) else "", provenance=provenance)
    label = _first(document, _ID_KEYS) or body.id
    title_key = next((key for key in _TITLE_KEYS if _plain(document.get(key))), "")
    # A record without a text is its fields, the name among them: alone they would say nothing of whom.
    leave: tuple[str, ...] = _ID_KEYS
    piece = False
    if text_key is not None:
        piece = bool(label)
        titles = _TITLE_KEYS if isinstance(inner, dict) else (title_key,)
        leave = (*_ID_KEYS, *titles, *((_PARENT_KEY,) if piece else ()), text_key)
    return Passage(
        text=_joined(body.text, _fields(document, leave=leave)),
        provenance=provenance,
        id=label,
        title=_plain(document.get(title_key)) or body.title,
        parent_id=_parent(document, piece=piece) or body.parent_id,
    )


def _parent(document: Mapping[str, object], *, piece: bool) -> str:
    """Return the id of the document that this one, or its metadata, names as the one that it is a piece of."""
    own = _first(document, (*_PARENT_ID_KEYS, _PARENT_KEY) if piece else _PARENT_ID_KEYS)
    inner = (value for value in document.values() if isinstance(value, dict))
    return own or next((found for each in inner if (found := _first(each, _PARENT_ID_KEYS))), "")


def _body_key(document: Mapping[str, object]) -> str | None:
    """Return the key of the document's text: a string, or for ``data`` and the like an object."""
    for key in (*_TEXT_KEYS, *_WEAK_TEXT_KEYS):
        value = document.get(key)
        if isinstance(value, str) and value.strip():
            return key
    return next((key for key in _TEXT_KEYS if isinstance(document.get(key), dict)), None)


def _list_key(value: Mapping[str, object]) -> str | None:
    for key in _LIST_KEYS:
        items = value.get(key)
        if isinstance(items, list) and items and all(isinstance(item, str | dict) for item in items):
            return key
    for key, items in value.items():
        # A list under another name, of records with a text each.
        if (
            isinstance(items, list)
            and items
            and all(isinstance(item, dict) and _body_key(item) for item in items)
        ):
            return key
    return None


def _fields(document: Mapping[str, object], *, leave: Iterable[str]) -> str:
    left = set(leave) | _NOISE_KEYS | set(_PARENT_ID_KEYS)
    lines: list[str] = []
    for key, value in document.items():
        if key in left or value is None or value == "" or _is_ranking(key, value):
            continue
        if isinstance(value, dict):
            lines += [
                f"{show(inner)}: {_plain(item)}"
                for inner, item in value.items()
                if _plain(item)
                and inner not in _NOISE_KEYS
                and inner not in _PARENT_ID_KEYS
                and not _is_ranking(inner, item)
            ]
        elif isinstance(value, list):
            if any(not isinstance(item, int | float) for item in value):
                lines.append(f"{show(key)}: {_compact(value)}")
        else:
            lines.append(f"{show(key)}: {_plain(value)}")
    return "\n".join(lines)


def _is_ranking(key: str, value: object) -> bool:
    """Return whether a field only places the document among others; a match's score, a text, is a fact."""
    return (key in _RANKING_KEYS and isinstance(value, int | float)) or (key == "type" and value in _KINDS)


def _first(document: Mapping[str, object], keys: Iterable[str]) -> str:
    return next((text for key in keys if (text := _plain(document.get(key)))), "")


def _plain(value: object) -> str:
    """Return the text of a scalar, ``""`` for everything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return show(str(value)).strip() if isinstance(value, str | int | float) else ""


def _compact(value: object) -> str:
    return show(json.dumps(value, ensure_ascii=False))


def _joined(text: str, rest: str) -> str:
    return f"{text}\n{rest}" if text and rest else text or rest


def _kept(passage: Passage) -> list[Passage]:
    return [passage] if passage.text else []
