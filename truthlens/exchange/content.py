"""Plain text of message content, which the API allows as a string, as parts, or as null."""

from __future__ import annotations

from truthlens.exchange.jsontext import show


def request_text(content: object) -> str | None:
    """Text of a request message: its text parts, a blank line between them; ``""`` for null.

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
        return "\n\n".join(part_texts(content))
    return text_of_part(content)


def part_texts(parts: list[object]) -> list[str]:
    """Texts of the text parts of ``parts``, in order."""
    texts = []
    for part in parts:
        text = text_of_part(part)
        if text is not None:
            texts.append(show(text))
    return texts


def text_of_part(part: object) -> str | None:
    """Text of one content part, or ``None`` where it is not a text part."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and part.get("type", "text") in ("text", "input_text", "output_text"):
        text = part.get("text")
        return text if isinstance(text, str) else None
    return None
