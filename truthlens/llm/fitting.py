"""Fit a request to its model's window: less evidence, and a limit that leaves room for the answer."""

from __future__ import annotations

from dataclasses import replace

from truthlens.core.records.calls import ModelRequest
from truthlens.llm.token_estimate import lengths, prompt_tokens

# What a chat template and an estimate by characters may be short of.
_SLACK = 1.2
# Less evidence than this says too little to correct anything by.
_LEAST_CHARS = 400
# A limit on the answer is not lowered further: what is cut off is of no use.
_LEAST_ANSWER_TOKENS = 64


def expected_tokens(request: ModelRequest, usual: int) -> int:
    """Return how long an answer is expected to be: as the request says or ``usual``, within its limit."""
    return min([max(usual, request.answer_tokens), *lengths(request.body).values()])


def fitted(request: ModelRequest, room: int, *, answer: int, prompt: int) -> ModelRequest:
    """Return the request with as much evidence as fits; unchanged if it fits or has none to cut.

    It may take long for much evidence: what is kept is chosen anew.

    Args:
        request: what is asked.
        room: tokens of prompt and answer together.
        answer: tokens of these that the answer is expected to take.
        prompt: tokens that the prompt takes as it is.
    """
    if request.cut is None or prompt + answer <= room or request.evidence_chars <= _LEAST_CHARS:
        return request
    bare = needed(prompt_tokens(request.cut(0)))
    share = (room - answer - bare) / max(prompt - bare, 1)
    return shorter(request, int(request.evidence_chars * min(max(share, 0.0), 1.0)))


def shorter(request: ModelRequest, most_chars: int) -> ModelRequest:
    """Return the request with at most so many characters of evidence, and never less than say something."""
    if request.cut is None:
        return request
    kept = min(max(most_chars, _LEAST_CHARS), request.evidence_chars)
    return replace(request, body=request.cut(kept), evidence_chars=kept, selected=True)


def limited(request: ModelRequest, longest: int) -> ModelRequest:
    """Return the request with its own limits on the answer lowered to ``longest``.

    None is added where it has none.
    """
    most = max(longest, _LEAST_ANSWER_TOKENS)
    lowered = {name: most for name, value in lengths(request.body).items() if value > most}
    return replace(request, body={**request.body, **lowered}) if lowered else request


def needed(tokens: int) -> int:
    """Return how many tokens of a window a prompt of about so many takes, rather too many than too few."""
    return int(tokens * _SLACK)
