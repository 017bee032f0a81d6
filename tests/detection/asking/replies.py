"""Make replies with log probabilities."""

from __future__ import annotations

import math

from truthlens.core.records.calls import Completion, TokenLogprob


def place(token: str, top: dict[str, float], own: float | None = None) -> TokenLogprob:
    """Return a token with probabilities of the likeliest in its place."""
    probability = top.get(token, 1.0) if own is None else own
    listed = tuple((each, _log(value)) for each, value in top.items())
    return TokenLogprob(token, _log(probability), listed)


def reply(text: str, *tokens: TokenLogprob) -> Completion:
    """Return a reply of these tokens."""
    return Completion(text, "m", "stop", logprobs=tokens)


def said(yes: float, no: float = 0.0, unsure: float = 0.0) -> Completion:
    """Return a plain reply with these probabilities."""
    sums = {"YES": yes, "NO": no, "UNSURE": unsure}
    word = max(sums, key=lambda each: sums[each])
    return reply(word, place(word, {each: value for each, value in sums.items() if value}))


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf
