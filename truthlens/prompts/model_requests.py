"""Make requests of our own out of prompts, and such as can be made shorter by showing less evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, ModelRequest
from truthlens.core.records.exchange import Exchange

_MEMBER_REFUSED = frozenset({"http-400", "http-404", "http-415", "http-422", CallFailure.CLIENT_ERROR.value})
# Refused for another reason.
_OTHER_CAUSES = (":context-length", ":content-filter", ":unknown-model", ":key", ":quota")


def stand_alone(
    *, system: str, user: str, structured: bool = False, max_tokens: int | None = None
) -> dict[str, object]:
    """Return a chat request of our own at temperature 0.

    Args:
        system: the system message.
        user: the user message; says ``JSON`` where ``structured``, as the API asks.
        structured: whether the answer must be a JSON object.
        max_tokens: length of the answer at most; ``None`` leaves it to the backend.
    """
    body: dict[str, object] = {
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        "temperature": 0,
    }
    if structured:
        body["response_format"] = {"type": "json_object"}
    if max_tokens is not None:
        body["max_tokens"] = max_tokens
    return body


def stand_alone_text(*, system: str, user: str, max_tokens: int) -> dict[str, object]:
    """Return the same for the completions API, for a model that is known to serve no other.

    Args:
        system: comes first in the prompt.
        user: comes after it.
        max_tokens: length of the answer at most; without it that API gives 16 tokens.
    """
    return {"prompt": f"{system}\n\n{user}\n", "temperature": 0, "max_tokens": max_tokens}


def with_members(asked: ModelRequest, members: Mapping[str, object]) -> ModelRequest:
    """Return ``asked`` with further members in its body, also where it is made shorter."""
    cut = asked.cut

    def shorter(most_chars: int) -> Mapping[str, object]:
        assert cut is not None
        return {**cut(most_chars), **members}

    return replace(asked, body={**asked.body, **members}, cut=None if cut is None else shorter)


def may_be_a_member(error: CallError) -> bool:
    """Return whether a server may have refused a request for a member that it does not know, or a value of it."""
    status, _, _ = error.code.partition(":")
    return (
        error.failure is CallFailure.CLIENT_ERROR
        and status in _MEMBER_REFUSED
        and not error.code.endswith(_OTHER_CAUSES)
    )


def with_evidence(
    asked: ModelRequest, exchange: Exchange, body: Callable[[int], Mapping[str, object]], *, most_chars: int
) -> ModelRequest:
    """Return ``asked`` with the body for so many characters of evidence, and a way to make it shorter."""
    length = sum(len(passage.text) for passage in exchange.passages)
    return replace(
        asked,
        body=body(most_chars),
        cut=body if length else None,
        evidence_chars=min(length, most_chars),
        selected=length > most_chars,
    )
