"""Part a completions prompt into the messages of the chat template that it was written with by hand.

Known are ChatML, Llama 2 to 4, Mistral, Gemma, Command-R, Phi and Zephyr. A prompt without such marks is one user message.
"""

from __future__ import annotations

import re

from truthlens.core.records.exchange import Message

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
_MAX_TURNS = 1_000


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
    for place, turn in enumerate(turns):
        end = turns[place + 1].start() if place + 1 < len(turns) else len(prompt)
        said = _plain(prompt[turn.end() : end])
        role = (
            "user"
            if turn["inst"]
            else "assistant"
            if turn["done"]
            else next(
                value
                for value in (turn["chatml"], turn["llama"], turn["gemma"], turn["command"], turn["phi"])
                if value
            ).lower()
        )
        system = _SYSTEM.search(said) if turn["inst"] else None
        if system is not None:
            messages.append(Message(role="system", text=system["system"].strip()))
            said = (said[: system.start()] + said[system.end() :]).strip()
        if said or role == "user":
            messages.append(Message(role=_ROLES.get(role, role), text=said))
    return tuple(messages)


def _plain(text: str) -> str:
    return _ENDS.sub("", text).strip()
