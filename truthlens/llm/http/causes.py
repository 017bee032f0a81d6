"""Classify why a backend refused a request, by the codes and the wording of the servers in use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_BYTES = 64 << 10
"""As much of an error's body is read."""

_LARGEST_WINDOW = 100_000_000
_MOST_DEPTH = 6
_TOO_LARGE = 413
_CODES = {
    "context_length_exceeded": "context-length",
    "string_above_max_length": "context-length",
    "exceed_context_size_error": "context-length",
    "content_filter": "content-filter",
    "content_policy_violation": "content-filter",
    "model_not_found": "unknown-model",
    "unsupported_parameter": "parameter",
    "unsupported_value": "parameter",
    "unknown_parameter": "parameter",
    "extra_forbidden": "parameter",
    "invalid_api_key": "key",
    "insufficient_quota": "quota",
}
_WORDS = (
    (
        "context-length",
        re.compile(
            r"(?:maximum|max(?:imum)? model|model'?s(?: maximum)?) context (?:length|window|size)|context (?:length|window|size)"
            r" (?:is |was )?(?:of \d+ |limit )?(?:exceeded|too)|exceeds? (?:the |its )?(?:model'?s |available |maximum )*"
            r"(?:context|input|sequence|prompt) ?(?:length|window|size)|(?:maximum|max) (?:model|input|sequence|prompt) len(?:gth)?"
            r"|max_model_len|max_seq_len|(?:prompt|input)(?: is)? too (?:long|large)|too many (?:input )?tokens"
            r"|tokens? \+ `?max_new_tokens`? must|longer than the (?:model'?s|maximum)|max_total_tokens|reduce the length"
            r"|exceeds? the (?:token limit|limit of \d+ tokens)|context window",
            re.IGNORECASE,
        ),
    ),
    ("content-filter", re.compile(r"content (?:management|filter|policy)|safety system", re.IGNORECASE)),
    (
        "unknown-model",
        re.compile(
            r"model\b.{0,200}(?:does not exist|not found|is not available)", re.IGNORECASE | re.DOTALL
        ),
    ),
    (
        "parameter",
        re.compile(
            r"unsupported (?:parameter|value)|unrecogni[sz]ed (?:request )?(?:argument|parameter|field)|unknown (?:parameter|field)"
            r"|extra (?:inputs|fields) (?:are )?not permitted|invalid (?:parameter|value)",
            re.IGNORECASE,
        ),
    ),
)
# Where servers say how much a model takes.
_WINDOW = re.compile(
    r"(?:context length(?: is| of| \(|)|model length(?: of| is)?|context size \(|n_ctx\"?[=: ]+|max_model_len(?:gth)?[^0-9]{1,8}"
    r"|must be <= |limit of) ?(\d{2,9})\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Cause:
    """A refusal: HTTP status, reason (of a closed list, ``""`` if unknown), and the window if given."""

    status: int
    why: str = ""
    window: int | None = None

    @property
    def code(self) -> str:
        """Return the cause for logs, such as ``http-400:context-length``."""
        return f"http-{self.status}:{self.why}" if self.why else f"http-{self.status}"

    @property
    def is_length(self) -> bool:
        """Return whether the request was too long for the model."""
        return self.why == "context-length"


def cause_of(status: int, body: bytes) -> Cause:
    """Return what the body of an error says of its cause: by known codes, else by known wording.

    Args:
        status: of the response, 400 to 499.
        body: decoded, in whole or its beginning.
    """
    text = body[:MOST_BYTES].decode("utf-8", "replace")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = text
    said = list(_strings(content))
    why = next((_CODES[each] for each in said if each in _CODES), "")
    whole = "\n".join(said)
    why = why or next((name for name, words in _WORDS if words.search(whole)), "")
    if not why and status == _TOO_LARGE:
        why = "context-length"
    return Cause(status, why, _window(text) if why == "context-length" else None)


def _strings(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts of an error, wherever its server puts them."""
    if isinstance(value, str):
        yield value
    elif depth < _MOST_DEPTH and isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each, depth + 1)


def _window(text: str) -> int | None:
    found = _WINDOW.search(text)
    return window_of(int(found[1])) if found else None


def window_of(value: object) -> int | None:
    """Return ``value`` where it can be the tokens that a model takes; a server may say anything."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 64 <= value <= _LARGEST_WINDOW else None
