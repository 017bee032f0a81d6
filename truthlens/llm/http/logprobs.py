"""Read the log probabilities of a backend's answer, in the shapes of both APIs, without trusting them.

Chat gives ``content: [{token, logprob, top_logprobs: [{token, logprob}]}]``, completions give the lists ``tokens``,
``token_logprobs`` and ``top_logprobs: [{token: logprob}]``; some servers put one API's shape into the other's answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import islice

from truthlens.core.records.calls import TokenLogprob

# APIs give 20 at most; who sends more is not read on.
_MOST_LISTED = 50
# Sums in half precision come out a little above certainty.
_ROUNDING = 0.01
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def read_logprobs(choice: dict[str, object]) -> list[TokenLogprob]:
    """Return the tokens of a choice with their log probabilities, none where a single one of them makes no sense.

    Of the likeliest tokens in a place those that make no sense are left out, and all beyond the first 50.
    """
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        return []
    read: list[TokenLogprob] = []
    for token, value, listed in _entries(logprobs):
        logprob = _logprob(value)
        if not isinstance(token, str) or logprob is None:
            return []
        read.append(TokenLogprob(_clean(token), logprob, tuple(_top(listed))))
    return read


def _entries(logprobs: dict[str, object]) -> Iterable[tuple[object, object, object]]:
    content = logprobs.get("content")
    if isinstance(content, list):
        return [
            (entry.get("token"), entry.get("logprob"), entry.get("top_logprobs"))
            if isinstance(entry, dict)
            else (None, None, None)
            for entry in content
        ]
    tokens, values, tops = (logprobs.get(key) for key in ("tokens", "token_logprobs", "top_logprobs"))
    if not isinstance(tokens, list) or not isinstance(values, list) or len(tokens) != len(values):
        return []
    fits = isinstance(tops, list) and len(tops) == len(tokens)
    return zip(tokens, values, tops if fits and isinstance(tops, list) else [None] * len(tokens), strict=True)


def _top(listed: object) -> Iterator[tuple[str, float]]:
    pairs: Iterable[tuple[object, object]] = ()
    if isinstance(listed, dict):
        pairs = listed.items()
    elif isinstance(listed, list):
        pairs = ((each.get("token"), each.get("logprob")) for each in listed if isinstance(each, dict))
    for token, value in islice(pairs, _MOST_LISTED):
        logprob = _logprob(value)
        if isinstance(token, str) and logprob is not None:
            yield _clean(token), logprob


def _logprob(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # An integer may be too large for a float; comparing is safe, and false for NaN.
    if not value <= _ROUNDING:
        return None
    if isinstance(value, int) and value < -1_000_000:
        return -math.inf
    return min(float(value), 0.0)


def _clean(token: str) -> str:
    return _SURROGATE.sub("\ufffd", token)
