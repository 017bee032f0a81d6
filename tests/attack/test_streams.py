"""Streams of many servers' kinds: what a gate withheld cannot be put together from anything that left."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attack.backend import Answer
from tests.attack.gateway import Target, attacks, says, shown
from tests.attack.texts import ALSO_TRUE, FALSE, TRUE, tells

pytestmark = pytest.mark.envoy

Copy = Callable[[str, str, str], dict[str, Any]]
"""What a frame holds beside its text, from that text, all text so far, and the text of the next frame."""


def _logprobs(text: str) -> dict[str, Any]:
    return {
        "content": [
            {"token": word, "logprob": -0.1, "bytes": list(word.encode())} for word in text.split(" ")
        ]
    }


_COPIES: dict[str, Copy] = {
    "none": lambda _text, _far, _next: {},
    "the text": lambda text, _far, _next: {"raw": text},
    "all so far": lambda _text, far, _next: {"snapshot": {"content": far}},
    "all so far in parts": lambda _text, far, _next: {"parsed": [{"type": "text", "text": far}]},
    "ahead": lambda _text, _far, ahead: {"draft": ahead},
    "ahead in words": lambda _text, _far, ahead: {"draft_tokens": ahead.split()},
    "a message": lambda _text, far, _next: {"message": {"role": "assistant", "content": far}},
    "words": lambda text, _far, _next: {"pieces": text.split(" ")},
    "letters": lambda text, _far, _next: {"letters": list(text)},
    "bytes": lambda text, _far, _next: {"bytes": list(text.encode())},
    "pairs of words": lambda text, _far, _next: {"edits": [[at, word] for at, word in enumerate(text.split(" "))]},
    "a name": lambda text, _far, _next: {"seen": {text: True}},
    "names": lambda text, _far, _next: {"seen": dict.fromkeys(text.split(" "), True)},
    "JSON in a string": lambda text, _far, _next: {"debug": json.dumps({"text": text})},
    "escaped twice": lambda text, _far, _next: {"debug": json.dumps(json.dumps("".join(f"\\u{ord(c):04x}" for c in text)))},
    "log probabilities": lambda text, _far, _next: {"logprobs": _logprobs(text)},
    "other log probabilities": lambda text, _far, _next: {"prompt_logprobs": [{str(at): {"decoded_token": word}} for at, word in enumerate(text.split(" "))]},
    "reasoning": lambda text, _far, _next: {"reasoning_content": text},
    "a refusal": lambda text, _far, _next: {"refusal": text},
    "capitals": lambda text, _far, _next: {"upper": text.upper()},
    "in marks": lambda text, _far, _next: {"html": "<p>" + text.replace(" ", "</b> <b>") + "</p>"},
    "a transcript": lambda text, _far, _next: {"audio": {"id": "a", "transcript": text}},
    "an address": lambda text, _far, _next: {"url": "https://x.example/?q=" + text.replace(" ", "+")},
    "an id": lambda text, _far, _next: {"id": text},
    "a title": lambda text, _far, _next: {"title": text},
    "sound": lambda text, _far, _next: {"audio": {"id": "a", "data": base64.b64encode(text.encode()).decode()}},
}  # fmt: skip
_PLACES = ("top", "choice", "delta", "usage", "last")
_EOLS = ("\n", "\r\n", "\r")
_COMMENTS = (": keep-alive", ":", "event: message", "id: 7", "retry: 3000", "event: completion.chunk")


@st.composite
def _tokens(draw: st.DrawFn, text: str) -> list[str]:
    """A text in frames: whole, by sentence, by word, or anywhere."""
    match draw(st.integers(0, 3)):
        case 0:
            return [text]
        case 1:
            parts = text.split(". ")
            return [f"{part}. " for part in parts[:-1]] + parts[-1:]
        case 2:
            words = text.split(" ")
            return [f"{word} " for word in words[:-1]] + words[-1:]
    cuts = sorted(draw(st.lists(st.integers(1, len(text) - 1), max_size=12, unique=True)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@st.composite
def _streams(draw: st.DrawFn) -> tuple[bytes, list[bytes], bool]:
    """The bytes of a stream, the writes that they come in, and whether its last frame ends as it should."""
    texts = draw(
        st.lists(
            st.sampled_from([f"{TRUE} {FALSE} {ALSO_TRUE}", f"{FALSE} {TRUE}", f"{TRUE} {FALSE}", FALSE]),
            min_size=1,
            max_size=3,
        )
    )
    copy = _COPIES[draw(st.sampled_from(sorted(_COPIES)))]
    place = draw(st.sampled_from(_PLACES))
    turns = [[(index, part) for part in draw(_tokens(text))] for index, text in enumerate(texts)]
    flat: list[tuple[int, str]] = []
    while any(turns):
        flat += [turn.pop(0) for turn in turns if turn]
    far = dict.fromkeys(range(len(texts)), "")
    chunks: list[dict[str, Any]] = []
    if draw(st.booleans()):
        chunks.append(
            {"choices": [{"index": index, "delta": {"role": "assistant", "content": ""}} for index in far]}
        )
    for number, (index, part) in enumerate(flat):
        far[index] += part
        ahead = flat[number + 1][1] if number + 1 < len(flat) else ""
        beside = copy(part, far[index], ahead)
        delta = {"content": part, **(beside if place == "delta" else {})}
        choice = {
            "index": index,
            "delta": delta,
            "finish_reason": None,
            **(beside if place == "choice" else {}),
        }
        chunks.append({"choices": [choice], **(beside if place == "top" else {})})
    end = [
        {
            "index": index,
            "delta": {},
            "finish_reason": "stop",
            **(copy(FALSE, far[index], "") if place == "last" else {}),
        }
        for index in far
    ]
    chunks.append({"choices": end})
    if place == "usage":
        chunks.append({"choices": [], "usage": {"total_tokens": 9, **copy(FALSE, far[0], "")}})
    head = draw(
        st.sampled_from([{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}, {}])
    )
    eol = draw(st.sampled_from(_EOLS))
    blank = draw(st.sampled_from(["data: ", "data:"]))
    ascii_ = draw(st.booleans())
    frames = []
    for chunk in chunks:
        lines = json.dumps(
            {**head, **chunk}, ensure_ascii=ascii_, indent=draw(st.sampled_from([None, None, None, 1]))
        ).split("\n")
        comments = draw(st.lists(st.sampled_from(_COMMENTS), max_size=1))
        frames.append(eol.join([*comments, *(blank + line for line in lines), "", ""]))
    if draw(st.booleans()):
        frames.append(f"{blank}[DONE]{eol}{eol}")
    whole = draw(st.sampled_from([0, 0, 1, 2]))
    raw = "".join(frames)
    raw = raw[: len(raw) - whole * len(eol)] if whole else raw
    data = raw.encode()
    if draw(st.integers(0, 9)) == 0:
        data = b"\xef\xbb\xbf" + data
    cuts = sorted(draw(st.lists(st.integers(1, len(data) - 1), max_size=10, unique=True)))
    return (
        data,
        [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)],
        not whole,
    )


def _frames(raw: bytes) -> tuple[bytes, list[dict[str, Any]]]:
    """What left beside the verdicts, and the verdicts."""
    rest: list[str] = []
    verdicts = []
    text = raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    for frame in text.split("\n\n"):
        data = "\n".join(line[5:].removeprefix(" ") for line in frame.split("\n") if line.startswith("data:"))
        try:
            value = json.loads(data)
        except ValueError:
            rest.append(frame)
            continue
        if isinstance(value, dict) and "truthlens" in value:
            verdicts.append(value.pop("truthlens"))
        # One line a frame, so that what is in it can be read as JSON.
        rest += ["data: " + json.dumps(value, ensure_ascii=False), frame]
    return "\n".join(rest).encode(), verdicts


def _leaks(rest: bytes) -> bool:
    """Whether the invented sentence can be read from what left: written out, in pieces, or in base64."""
    return tells(rest) or base64.b64encode(FALSE.encode())[:40] in rest


@pytest.mark.parametrize("plan", ["withhold", "stop", "stop-block"])
@attacks(ci=25, nightly=1500)
@given(stream=_streams())
def test_withheld_text_leaves_in_no_form(
    by_header: Target, plan: str, stream: tuple[bytes, list[bytes], bool]
) -> None:
    """In no member, of no frame, under no framing; and the verdict comes."""
    raw, writes, _whole = stream
    response = by_header.ask(Answer(writes, "text/event-stream"), plan=plan)
    rest, verdicts = _frames(response.content)
    if response.status_code != 200:
        assert not _leaks(rest), shown(response, raw)
        return
    assert len(verdicts) == 1, f"{len(verdicts)} verdicts:\n{shown(response, raw)}"
    status, acted = verdicts[0]["status"], verdicts[0]["action"] in ("replace", "block")
    assert acted or status != "checked", f"counts as checked:\n{shown(response, raw)}"
    told_unread = status != "checked" and not acted and plan != "stop-block"
    assert told_unread or not _leaks(rest), f"withheld text left:\n{shown(response, raw)}"


@attacks(ci=25, nightly=1000)
@given(stream=_streams())
def test_a_held_stream_is_detected_or_told(
    by_header: Target, stream: tuple[bytes, list[bytes], bool]
) -> None:
    """Under a plan that lets nothing pass unchecked nothing leaves but what is marked."""
    raw, writes, _whole = stream
    response = by_header.ask(Answer(writes, "text/event-stream"), plan="block")
    told = says(response)
    assert told.get("detected") == "true" or not _leaks(response.content), shown(response, raw)
    assert told["status"] != "pending", shown(response, raw)


_PLAN_OF = {"withhold": [f"{TRUE} ", f"{FALSE} ", ALSO_TRUE], "stop": [f"{FALSE} ", ALSO_TRUE]}


def _copied(name: str, place: str, parts: list[str]) -> list[bytes]:
    """A stream with one copy in one place of every frame."""
    frames, far = [], ""
    for part, ahead in zip(parts, [*parts[1:], ""], strict=True):
        far += part
        frames.append(_chunk(0, {"content": part}, place, _COPIES[name](part, far, ahead)))
    beside = _COPIES[name](FALSE, far, "")
    frames.append(_chunk(0, {}, "choice" if place == "last" else "", beside, finish_reason="stop"))
    if place == "usage":
        usage = {"choices": [], "usage": {"total_tokens": 9, **beside}}
        frames.append(b"data: " + json.dumps(usage).encode() + b"\n\n")
    return frames


@pytest.mark.parametrize("token", ["sentence", "word"])
@pytest.mark.parametrize("name", _COPIES)
def test_no_copy_of_withheld_text_leaves(by_header: Target, name: str, token: str) -> None:
    """Whatever a server calls it, and wherever in a frame it stands; nor in a frame that the gateway writes itself."""
    leaks = []
    for (plan, parts), place in itertools.product(_PLAN_OF.items(), _PLACES):
        words = [f"{word} " for word in "".join(parts).split(" ")]
        frames = [*_copied(name, place, words if token == "word" else parts), b"data: [DONE]\n\n"]
        response = by_header.ask(Answer(frames, "text/event-stream"), plan=plan)
        rest, _ = _frames(response.content)
        if _leaks(rest):
            leaks.append(f"{place}:\n{shown(response, b''.join(frames))}")
    assert not leaks, "\n\n".join(leaks)


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("name", ["none", "the text", "a message", "log probabilities"])
def test_a_stream_without_its_last_lines_has_its_verdict(by_header: Target, name: str, lost: int) -> None:
    """Whether or not something was taken out of its last frame."""
    for plan, parts in _PLAN_OF.items():
        frames = _copied(name, "last", parts)
        frames[-1] = frames[-1][:-lost]
        response = by_header.ask(Answer(frames, "text/event-stream"), plan=plan)
        _, verdicts = _frames(response.content)
        assert len(verdicts) == 1, shown(response, b"".join(frames))


def _chunk(
    index: int, delta: dict[str, Any], place: str, beside: dict[str, Any], finish_reason: str | None = None
) -> bytes:
    choice = {
        "index": index,
        "delta": {**delta, **(beside if place == "delta" else {})},
        "finish_reason": finish_reason,
    }
    choice |= beside if place == "choice" else {}
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "choices": [choice],
        **(beside if place == "top" else {}),
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def test_the_plain_stream_is_withheld(by_header: Target) -> None:
    """Else nothing here would show anything; and what is supported leaves."""
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": f"{text} "}}]} for text in (TRUE, FALSE, ALSO_TRUE)
    ]
    frames = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    response = by_header.ask(Answer([*frames, b"data: [DONE]\n\n"], "text/event-stream"), plan="withhold")
    rest, (verdict,) = _frames(response.content)
    assert not _leaks(rest), shown(response)
    assert TRUE.encode() in rest
    assert ALSO_TRUE.encode() in rest
    assert (verdict["status"], verdict["action"]) == ("checked", "replace")
