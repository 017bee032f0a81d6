"""Who speaks: the one reading of ``role`` and of the marks of chat templates, for plans and evidence.

A completions prompt may be written with such marks by hand. Known are ChatML, Llama 2 to 4, Mistral, Gemma,
Command-R, Phi and Zephyr; a prompt without them is one user message.
"""

from __future__ import annotations

import re
from enum import StrEnum

from truthlens.core.records.exchange import Message


class Speaker(StrEnum):
    """Who a message is from.

    ``SOURCE`` is a tool or a store of documents: all that it says is evidence. ``UNKNOWN`` may be anybody, an agent that thinks aloud
    too: nothing that it says is evidence.
    """

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    SOURCE = "source"
    UNKNOWN = "unknown"


_SPEAKERS = {
    **dict.fromkeys(("user", "human"), Speaker.USER),
    **dict.fromkeys(("system", "developer", "platform", "root"), Speaker.SYSTEM),
    **dict.fromkeys(("assistant", "model", "ai", "bot", "chatbot", "gpt", "agent"), Speaker.ASSISTANT),
    **dict.fromkeys(
        ("tool", "tools", "function", "ipython", "observation", "toolresponse", "toolresult", "toolresults", "tooloutput", "functionresponse",
         "functionresult", "functioncalloutput", "document", "documents", "context", "retrieval", "retriever", "retrieved", "source", "sources",
         "knowledge", "search", "searchresult", "searchresults", "database", "environment", "evidence", "passage", "passages", "data"),
        Speaker.SOURCE,
    ),
}  # fmt: skip
_NUMBERED = ("document", "documents")
_TURN = re.compile(
    r"<\|im_start\|>[ \t]*(?P<chatml>[\w-]{1,20})[ \t]*\n?"
    r"|<\|(?:start_header_id|header_start)\|>[ \t]*(?P<llama>[\w-]{1,20})[ \t]*<\|(?:end_header_id|header_end)\|>[ \t]*\n{0,2}"
    r"|<start_of_turn>[ \t]*(?P<gemma>[\w-]{1,20})[ \t]*\n?"
    r"|<\|START_OF_TURN_TOKEN\|>[ \t]*<\|(?P<command>SYSTEM|USER|CHATBOT)_TOKEN\|>"
    r"|<\|(?P<phi>system|user|assistant|tool)\|>[ \t]*\n?"
    r"|(?P<inst>\[INST\][ \t]*)|(?P<done>\[/INST\])"
)
# Only a prompt that begins with a mark is written in a template; others may talk of one.
_OPENS = re.compile(r"\s{0,20}(?:<\||<s>|<bos>|<start_of_turn>|<BOS_TOKEN>|\[INST\])")
_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|eot|END_OF_TURN_TOKEN|begin_of_text|endoftext|python_tag)\|>|<end_of_turn>|</?s>|<bos>|<eos>|<BOS_TOKEN>"
)
_SYSTEM = re.compile(r"<<SYS>>(?P<system>.*?)<</SYS>>", re.DOTALL)
_ROLES = {"chatbot": "assistant"}
# Of marks that name no role.
_ROLE_OF_MARK = {"inst": "user", "done": "assistant"}
_MAX_TURNS = 1_000


def speaker_of(role: str, extra_sources: tuple[str, ...] = ()) -> Speaker:
    """Return who speaks in a message of this role; ``UNKNOWN`` for a role of no protocol.

    Case, spaces and the signs between words do not count: ``Tool-Response`` is ``tool_response``.

    Args:
        role: The message's ``role``.
        extra_sources: Roles that the operator lists as sources (``evidence.roles``).
    """
    plain = "".join(character for character in role.lower() if character.isalnum())
    if any(plain == "".join(c for c in each.lower() if c.isalnum()) for each in extra_sources):
        return Speaker.SOURCE
    # Numbered documents of one template, "document0"; a number makes nobody else of a role: "user2" is a role of no protocol.
    name = plain.rstrip("0123456789")
    return _SPEAKERS.get(name if name in _NUMBERED else plain, Speaker.UNKNOWN)


def messages_of(prompt: str) -> tuple[Message, ...]:
    """Return the messages of a completions prompt; one of the user where it has no marks of a template."""
    if "<" not in prompt and "[INST]" not in prompt:
        return (Message(role="user", text=prompt),)
    turns = list(_TURN.finditer(prompt)) if _OPENS.match(prompt) else []
    if not turns or len(turns) > _MAX_TURNS:
        return (Message(role="user", text=prompt),)
    messages: list[Message] = []
    before = _plain(prompt[: turns[0].start()])
    if before:
        messages.append(Message(role="user", text=before))
    ends = [*(turn.start() for turn in turns[1:]), len(prompt)]
    for turn, end in zip(turns, ends, strict=True):
        said = _plain(prompt[turn.end() : end])
        mark = turn.lastgroup or ""
        role = _ROLE_OF_MARK.get(mark) or turn[mark].lower()
        system = _SYSTEM.search(said) if mark == "inst" else None
        if system is not None:
            messages.append(Message(role="system", text=system["system"].strip()))
            said = (said[: system.start()] + said[system.end() :]).strip()
        if said or role == "user":
            messages.append(Message(role=_ROLES.get(role, role), text=said))
    return tuple(messages)


def _plain(text: str) -> str:
    return _ENDS.sub("", text).strip()
