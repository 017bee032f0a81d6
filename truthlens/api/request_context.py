"""Collect all that a request says outside of its user messages, where the question may be as well.

Only for choosing a plan. What of it is evidence is for ``evidence``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from truthlens.api.evidence.roles import Speaker, speaker_of

# What says how to answer, and not what of; a tool's schema names what it is about in every request.
_SETTINGS = frozenset(
    ("model", "user", "tools", "functions", "tool_choice", "function_call", "response_format", "metadata", "stop",
     "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "structural_tag",
     "json_schema", "regex", "ebnf", "grammar", "format")
)  # fmt: skip
# Labels, and what is no text though it is written as one.
_NO_TEXT = frozenset(
    ("role", "type", "id", "tool_call_id", "image_url", "input_audio", "audio", "file", "video_url")
)
_DATA_URL = re.compile(r"data:[\w.+/-]{1,100};base64,")


def context_texts(
    request: Mapping[str, object], repeated: Sequence[tuple[str, object]] = ()
) -> tuple[str, ...]:
    """The texts of a request's JSON, but for plain user messages and a prompt, its tools and its settings.

    User messages in parts are among them, for parts of unknown kinds are in no message's text. So are the plain ones
    of ``repeated`` members: a backend whose parser takes the first of two reads the question there.
    """
    replaced = [value for key, value in repeated if key not in _SETTINGS | _NO_TEXT]
    rest = {key: value for key, value in request.items() if key not in _SETTINGS and key != "prompt"}
    messages = rest.pop("messages", None)
    if not isinstance(messages, list):
        return tuple(_texts([rest, replaced]))
    return tuple(_texts([rest, [_without_plain_text(message) for message in messages], replaced]))


def _without_plain_text(message: object) -> object:
    if (
        not isinstance(message, dict)
        or not isinstance(message.get("role"), str)
        or speaker_of(message["role"]) is not Speaker.USER
        or not isinstance(message.get("content"), str)
    ):
        return message
    return {key: value for key, value in message.items() if key != "content"}


def _texts(value: object) -> Iterator[str]:
    """Yield every string in ``value`` that may be a text, in order.

    It keeps its own stack, as JSON may be deep.
    """
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            if value and not _DATA_URL.match(value):
                yield value
        elif isinstance(value, dict):
            stack += [item for key, item in reversed(value.items()) if key not in _NO_TEXT]
        elif isinstance(value, list):
            stack += reversed(value)
