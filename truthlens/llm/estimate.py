"""Token counts without a tokenizer: by characters, for bounds before a call and for backends that report no usage.

Not a substitute for a tokenizer: within a factor of about two for prose, worse for code and long numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_CHARACTERS_PER_TOKEN = 4
# Han, kana and hangul: tokenizers spend about one token on each.
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
# What an image or a recording costs depends on its size, which nobody decodes here.
_TOKENS_PER_MEDIUM = 800
_MEDIA = frozenset({"image_url", "input_image", "input_audio", "audio_url", "video_url", "file"})


def text_tokens(text: str) -> int:
    """About how many tokens ``text`` has: one per CJK character, one per four others, rounded up."""
    dense = len(_DENSE.findall(text))
    return dense + math.ceil((len(text) - dense) / _CHARACTERS_PER_TOKEN)


def prompt_tokens(body: Mapping[str, object]) -> int:
    """About how many prompt tokens a request has: all of its text, and a flat figure per image or recording.

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
