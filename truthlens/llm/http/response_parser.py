"""Parse a backend's JSON answer, without trusting it.

Only the first choice counts, for only one is ever asked for. Whether a text that was cut off, or filtered, is
of use is left to the caller, who sees its ``finish_reason``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from itertools import islice

from truthlens.core.errors import BodyTooLargeError
from truthlens.core.json_size import check_values
from truthlens.core.limits import Limits
from truthlens.core.records.calls import CallFailure, Completion, TokenLogprob, Usage
from truthlens.core.records.enums import Endpoint
from truthlens.llm.errors import AttemptError
from truthlens.llm.token_estimate import text_tokens

# APIs give 20 at most; who sends more is not read on.
_MOST_LISTED = 50
# Sums in half precision come out a little above certainty.
_ROUNDING = 0.01

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_THOUGHT = re.compile(r"\s*(?:<think>.*?</think>\s*)+", re.DOTALL)
_OPEN_THOUGHT = re.compile(r"\s*<think>")


def read_answer(
    body: bytes, *, model: str, endpoint: Endpoint, prompt_estimate: int, most: Usage
) -> Completion:
    """Return the completion that ``body`` holds, without any reasoning before it.

    Args:
        body: JSON of a chat completion or a completion, decoded from any content-encoding.
        model: the name that the completion will carry; the backend's own word for itself is not taken.
        endpoint: the API that was asked.
        prompt_estimate: tokens of the prompt, for backends that do not report them.
        most: tokens that the call can have used; a backend that reports more is not believed.

    Raises:
        AttemptError: ``bad-response`` where it is nothing of that API; ``tool-call``, ``refusal`` or
            ``empty`` where the model gave no text; ``truncated`` where it was cut off before its answer
            began.
    """
    content = json_object(body)
    choice = _first_choice(content)
    finish = choice.get("finish_reason")
    finish_reason = finish if isinstance(finish, str) else None
    try:
        whole = _chat_text(choice) if endpoint is Endpoint.CHAT else _plain_text(choice)
        text = _without_thought(whole, finish_reason)
    except AttemptError as error:
        # The tokens of an answer that cannot be used were spent all the same.
        error.usage = _usage(content, prompt_estimate, "", most)
        raise
    return Completion(
        text=_SURROGATE.sub("\ufffd", text),
        model=model,
        finish_reason=finish_reason,
        usage=_usage(content, prompt_estimate, whole, most),
        logprobs=_after(read_logprobs(choice), len(whole) - len(text)),
    )


def json_object(body: bytes) -> dict[str, object]:
    """Return the JSON object that ``body`` is.

    Raises:
        AttemptError: ``bad-response``: it is none, or holds more values than can be held.
    """
    try:
        text = body.decode("utf-8-sig")
        check_values(text, Limits().max_json_values)
        content = json.loads(text)
    except (ValueError, RecursionError, BodyTooLargeError):
        # The decoder's exception holds the document; it must not travel with ours.
        raise AttemptError(CallFailure.BAD_RESPONSE, "the body is not JSON that can be held") from None
    if not isinstance(content, dict):
        raise _unexpected("the body is no object")
    return content


def _first_choice(content: dict[str, object]) -> dict[str, object]:
    choices = content.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _unexpected("there is no choice")
    return choices[0]


def _chat_text(choice: dict[str, object]) -> str:
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _unexpected("the choice has no message")
    if message.get("tool_calls") or message.get("function_call"):
        raise AttemptError(CallFailure.TOOL_CALL)
    if message.get("refusal"):
        raise AttemptError(CallFailure.REFUSAL)
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_part_text(part) for part in content)
    raise _unexpected("the message's content is neither text nor parts")


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise _unexpected("a part of the content is no object")
    if part.get("type") == "refusal":
        raise AttemptError(CallFailure.REFUSAL)
    text = part.get("text")
    return text if part.get("type", "text") in ("text", "output_text") and isinstance(text, str) else ""


def _plain_text(choice: dict[str, object]) -> str:
    text = choice.get("text")
    if not isinstance(text, str):
        raise _unexpected("the choice has no text")
    return text


def _without_thought(text: str, finish_reason: str | None) -> str:
    """Return the answer after any reasoning before it, never blank."""
    if thought := _THOUGHT.match(text):
        text = text[thought.end() :]
    if _OPEN_THOUGHT.match(text):
        raise AttemptError(CallFailure.TRUNCATED if finish_reason == "length" else CallFailure.EMPTY)
    # Some chat templates open the thought in the prompt: its end alone, on a line of its own, is in the
    # answer.
    before, end, after = text.partition("</think>")
    if end and "<think>" not in before and before[-1:] in ("", "\n") and after[:1] in ("", "\n", "\r"):
        text = after.lstrip()
    if not text.strip():
        raise AttemptError(CallFailure.EMPTY)
    return text


def _usage(content: dict[str, object], prompt_estimate: int, text: str, most: Usage) -> Usage:
    usage = content.get("usage")
    figures = usage if isinstance(usage, dict) else {}
    prompt, completion = (_count(figures.get(key)) for key in ("prompt_tokens", "completion_tokens"))
    doubted = (prompt or 0) > most.prompt_tokens or (completion or 0) > most.completion_tokens
    # Who makes one figure up is believed in none.
    if doubted:
        prompt = completion = None
    return Usage(
        prompt_estimate if prompt is None else prompt,
        text_tokens(text) if completion is None else completion,
        estimated=prompt is None or completion is None,
        doubted=doubted,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _after(logprobs: list[TokenLogprob], characters: int) -> tuple[TokenLogprob, ...]:
    """Return the tokens of the answer: those of a reasoning before it, ``characters`` long, are dropped."""
    start = 0
    while start < len(logprobs) and characters > 0:
        characters -= len(logprobs[start].token)
        start += 1
    return tuple(logprobs[start:])


def _unexpected(what: str) -> AttemptError:
    return AttemptError(CallFailure.BAD_RESPONSE, f"not a completion: {what}")


def read_logprobs(choice: dict[str, object]) -> list[TokenLogprob]:
    """Return the tokens of a choice with their log probabilities, none where a single one of them makes no sense.

    Chat gives ``content: [{token, logprob, top_logprobs: [{token, logprob}]}]``, completions give the lists ``tokens``,
    ``token_logprobs`` and ``top_logprobs: [{token: logprob}]``; some servers put one API's shape into the other's answer.

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
