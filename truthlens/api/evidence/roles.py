"""Who speaks in a message: the one reading of ``role`` that the choice of a plan and the evidence share."""

from __future__ import annotations

from enum import StrEnum


class Speaker(StrEnum):
    """Who a message is from. ``SOURCE`` is a tool or a store of documents: all that it says is evidence."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    SOURCE = "source"


_SPEAKERS = {
    **dict.fromkeys(("system", "developer", "platform", "root"), Speaker.SYSTEM),
    **dict.fromkeys(("assistant", "model", "ai", "bot", "chatbot", "gpt", "agent"), Speaker.ASSISTANT),
    **dict.fromkeys(
        ("tool", "tools", "function", "ipython", "observation", "toolresponse", "toolresult", "toolresults", "tooloutput", "functionresponse",
         "functionresult", "functioncalloutput", "document", "documents", "context", "retrieval", "retriever", "retrieved", "source", "sources",
         "knowledge", "search", "searchresult", "searchresults", "database", "environment", "evidence", "passage", "passages", "data"),
        Speaker.SOURCE,
    ),
}  # fmt: skip


def speaker_of(role: str, extra_sources: tuple[str, ...] = ()) -> Speaker:
    """Return who speaks in a message of this role; any role that is not known is the user's.

    Case, spaces and the signs between words do not count: ``Tool-Response`` is ``tool_response``.

    Args:
        role: The message's ``role``.
        extra_sources: Roles that the operator lists as sources (``evidence.roles``).
    """
    plain = "".join(character for character in role.lower() if character.isalnum())
    if any(plain == "".join(c for c in each.lower() if c.isalnum()) for each in extra_sources):
        return Speaker.SOURCE
    if plain in _SPEAKERS:
        return _SPEAKERS[plain]
    # Numbered documents of one template: "document0".
    return _SPEAKERS.get(plain.rstrip("0123456789"), Speaker.USER) if plain[-1:].isdigit() else Speaker.USER
