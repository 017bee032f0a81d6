"""Count tokens by characters, without a tokenizer: before a call, and for backends that report no usage.

Not a substitute for a tokenizer: within a factor of about two for prose, worse for code and long numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from truthlens.core.records.calls import Usage
from truthlens.text.scripts import CJK, HANGUL

_LENGTH_FIELDS = ("max_tokens", "max_completion_tokens")
_CHARACTERS_PER_TOKEN = 4
# Han, kana and hangul: tokenizers spend about one token on each.
_DENSE = re.compile(f"[{CJK}{HANGUL}]")
# What an image or a recording costs depends on its size, which nobody decodes here.
_TOKENS_PER_MEDIUM = 800
_MOST_TOKENS_PER_MEDIUM = 20_000
_MOST_TEMPLATE_TOKENS = 8192
_MOST_HIDDEN_TOKENS = 65_536
_MEDIA = frozenset({"image_url", "input_image", "input_audio", "audio_url", "video_url", "file"})


def text_tokens(text: str) -> int:
    """Estimate the tokens of ``text``: one per CJK character, one per four others, rounded up."""
    dense = len(_DENSE.findall(text))
    return dense + math.ceil((len(text) - dense) / _CHARACTERS_PER_TOKEN)


def lengths(body: Mapping[str, object]) -> dict[str, int]:
    """Return the limits on the completion that a body names."""
    found = {}
    for name in _LENGTH_FIELDS:
        value = body.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            found[name] = value
    return found


def most_usage(body: Mapping[str, object], *, sent: int, received: int) -> Usage:
    """Return the most tokens that a call can have used, by its bytes.

    A backend that reports more is not believed.

    A token is a byte at least. What is not in the bytes is allowed for: a server's own template and
    instructions, media that only an address names, and reasoning that is charged and not shown.

    Args:
        body: the request's JSON.
        sent: bytes of the request.
        received: bytes of the answer.
    """
    media = _media(body) * _MOST_TOKENS_PER_MEDIUM
    hidden = min([_MOST_HIDDEN_TOKENS, *lengths(body).values()])
    return Usage(sent + media + _MOST_TEMPLATE_TOKENS, received + hidden)


def _media(body: Mapping[str, object]) -> int:
    """Return how many images, recordings and files a request names."""
    found = 0
    waiting: list[object] = list(body.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            kind = value.get("type")
            found += isinstance(kind, str) and kind in _MEDIA
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(each for each in value if isinstance(each, (Mapping, list, tuple)))
    return found


def prompt_tokens(body: Mapping[str, object]) -> int:
    """Estimate the prompt tokens of a request: all of its text, and a flat figure per image or recording.

    Token ids in ``prompt`` count one each.
    """
    total = 0
    # A stack and no recursion: a client's JSON may nest as deep as the decoder lets it.
    waiting: list[object] = list(body.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            total += text_tokens(value)
        elif isinstance(value, Mapping):
            kind = value.get("type")
            if isinstance(kind, str) and kind in _MEDIA:  # a JSON schema's type may be a list
                total += _TOKENS_PER_MEDIUM
            else:
                waiting.extend(value.values())
        elif isinstance(value, (list, tuple)):
            if value and all(type(item) is int for item in value):
                total += len(value)
            else:
                waiting.extend(value)
    return total
