"""Plain text of message content, which the API allows as a string, as parts, or as null."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from truthlens.text.json_edit import show

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
# Parts of an assistant's message in which a server puts what its own tools found, and the parts in which the model called them.
# Source: Anthropic's Messages API (web search, web fetch, MCP connector). Output of code that the model wrote is the model's own word.
_SERVER_RESULTS = frozenset(("web_search_tool_result", "web_fetch_tool_result", "mcp_tool_result"))
_SERVER_CALLS = frozenset(("server_tool_use", "mcp_tool_use"))
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
# Those of them in which a list of anything holds documents, and in which any object is one.
_LISTS = frozenset(("value", "result", "output", "content"))
_OBJECTS = frozenset(("value", "result", "output", "data", "document"))
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


def server_tool_results(content: object) -> tuple[object, ...]:
    """Return what a server's own tools found, of the parts of an assistant's message: each result behind its call, by its id."""
    found: list[object] = []
    called: set[str] = set()
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        kind, call = part.get("type"), part.get("tool_use_id")
        if kind in _SERVER_CALLS and isinstance(part.get("id"), str):
            called.add(part["id"])
        elif kind in _SERVER_RESULTS and isinstance(call, str) and call in called:
            found += _document_values(part)
    return tuple(found)


def _document_values(part: Mapping[str, object], depth: int = 0) -> list[object]:
    """Return the documents of one part, whose text is in a member of its own or one or two objects below."""
    if depth > _MAX_DEPTH:
        # What a client nests deeper than any API is no document: it costs neither time nor stack.
        return []
    title = next((part[key] for key in _TITLES if isinstance(part.get(key), str)), "")
    named = {"title": title, "id": part.get("id")}
    for key in _HOLDERS:
        held = part.get(key)
        found: list[object] | None = None
        if isinstance(held, str):
            plain = held.strip() and not held.startswith("data:")
            if plain and key != "source" and part.get("type") != "base64":
                found = [{**named, "text": held}]
        elif isinstance(held, list):
            found = _listed_values(held, key, named, depth)
        elif isinstance(held, dict):
            found = _document_values({**named, **held}, depth + 1) or ([held] if key in _OBJECTS else None)
        if found is not None:
            return found
    return []


def _listed_values(
    held: list[object], key: str, named: Mapping[str, object], depth: int
) -> list[object] | None:
    """Return the documents that the list in the member ``key`` is or holds; ``None`` where it is neither."""
    texts = [text for each in held if (text := _input_text(each)) is not None]
    if texts:
        return [{**named, "text": "\n\n".join(texts)}]
    if not held or key not in _LISTS:
        return None
    found: list[object] = []
    for item in held:
        if isinstance(item, dict) and isinstance(item.get("type"), str):
            found += _document_values(item, depth + 1)
        else:
            found.append(item)
    return found


def text_of_part(part: object) -> str | None:
    """Return the text of one content part of an answer, whatever its type; ``None`` for none or reasoning."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and not is_reasoning_part(part):
        text = part.get("text")
        return text if isinstance(text, str) else None
    return None


def texts_of_parts(parts: Iterable[object]) -> list[str]:
    """Return the texts of those content parts of an answer that have one."""
    return [text for part in parts if (text := text_of_part(part)) is not None]


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
