"""Plain text of message content, which the API allows as a string, as parts, or as null."""

from __future__ import annotations

from collections.abc import Mapping

from truthlens.api.json_edit import show

_DOCUMENT_PARTS = frozenset(
    (
        "document",
        "file",
        "input_file",
        "resource",
        "search_result",
        "tool_result",
        "tool_output",
        "function_result",
        "search_results",
        "citation",
    )
)
_HOLDERS = (
    "text",
    "data",
    "value",
    "content",
    "document",
    "resource",
    "source",
    "file",
    "output",
    "result",
    "results",
    "snippet",
    "page_content",
)
_MAX_DEPTH = 4
_TITLES = ("title", "filename", "name", "uri", "url", "source")
_REASONING = frozenset(("thinking", "reasoning"))


def request_text(content: object) -> str | None:
    """Return the text of a request message: its text parts, a blank line between them; ``""`` for null.

    Parts that are not text (images, audio, files) hold nothing that is compared with an answer.

    Args:
        content: The message's ``content`` as JSON.

    Returns:
        ``None`` where ``content`` is of no shape that the API has.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return show(content)
    if isinstance(content, list):
        return "\n\n".join(show(text) for part in content if (text := _input_text(part)) is not None)
    return _input_text(content)


def document_parts(content: object, *, source: bool) -> tuple[object, ...]:
    """Return the parts of a message's content that are documents by their type, as strings or ``{id, title, text}``.

    Those are Anthropic's ``document`` and ``search_result``, MCP's ``resource``, OpenAI's ``file`` where its text is
    there, Cohere's ``document``, and results of tools. What is encoded (base64) is not read.

    Args:
        content: The message's ``content`` as JSON.
        source: Whether the message is of a tool or another source: then an object without a type is a document too.
    """
    parts = content if isinstance(content, list) else [content] if isinstance(content, dict) else []
    found: list[object] = []
    for part in parts:
        if not isinstance(part, dict):
            continue
        kind = part.get("type")
        if isinstance(kind, str) and kind.lower().replace("-", "_") in _DOCUMENT_PARTS:
            found += _document_values(part)
        elif source and not isinstance(kind, str):
            found.append(part)
    return tuple(found)


def _document_values(part: Mapping[str, object], depth: int = 0) -> list[object]:
    """Return the documents of one part, whose text is in a member of its own or one or two objects below."""
    title = next((part[key] for key in _TITLES if isinstance(part.get(key), str)), "")
    label = part.get("id")
    if depth > _MAX_DEPTH:
        # What a client nests deeper than any API is no document: it costs neither time nor stack.
        return []
    for key in _HOLDERS:
        held = part.get(key)
        if isinstance(held, str) and held.strip():
            if key == "source" or held.startswith("data:") or part.get("type") == "base64":
                continue
            return [{"title": title, "id": label, "text": held}]
        if isinstance(held, list) and held:
            texts = [text for each in held if (text := _input_text(each)) is not None]
            if texts:
                return [{"title": title, "id": label, "text": "\n\n".join(texts)}]
            if key in ("value", "result", "output", "content"):
                return [
                    each
                    for item in held
                    for each in (_document_values(item, depth + 1) if _is_part(item) else [item])
                ]
        if isinstance(held, dict):
            inner = _document_values({"title": title, "id": label, **held}, depth + 1)
            if inner:
                return inner
            if key in ("value", "result", "output", "data", "document"):
                return [held]
    return []


def _is_part(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def text_of_part(part: object) -> str | None:
    """Return the text of one content part of an answer, whatever its type; ``None`` for none or reasoning."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and not is_reasoning_part(part):
        text = part.get("text")
        return text if isinstance(text, str) else None
    return None


def is_reasoning_part(part: Mapping[str, object]) -> bool:
    """Return whether a content part says that it holds reasoning."""
    kind = part.get("type")
    return isinstance(kind, str) and kind.partition(".")[0].partition("_")[0].lower() in _REASONING


def _input_text(part: object) -> str | None:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and part.get("type", "text") in ("text", "input_text", "output_text"):
        text = part.get("text")
        return text if isinstance(text, str) else None
    return None
