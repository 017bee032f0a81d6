"""Plain text of message content, which the API allows as a string, as parts, or as null."""

from __future__ import annotations

from collections.abc import Mapping

from truthlens.api.json_edit import show

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
