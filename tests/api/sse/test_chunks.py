"""Chunks of streamed answers: what they add, and the text they make."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.chunk_streams import (
    CHAT,
    COMPLETIONS,
    HEAD,
    chat_frame,
    chunk_streams,
    content,
    frame_of,
    only_delta,
    read,
)
from truthlens.api.sse.chunks import Choice, ChunkKind, Delta, Transcript, parse_chunk
from truthlens.api.sse.frames import Decoder, encode
from truthlens.core.records.enums import AnswerKind, Endpoint


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"data: [DONE]\n\n", ChunkKind.DONE),
        (b"data: [DONE]", ChunkKind.DONE),
        (b"data:  [DONE] \n\n", ChunkKind.DONE),
        (b'data: {"error": {"message": "m", "code": 500}}\n\n', ChunkKind.ERROR),
        (b'data: {"error": "gone", "choices": 7}\n\n', ChunkKind.ERROR),
        (b'data: {"object": "error", "message": "m"}\n\n', ChunkKind.ERROR),
        (b'event: error\ndata: {"message": "m"}\n\n', ChunkKind.ERROR),
        (b'data: {"error": null, "choices": []}\n\n', ChunkKind.CHOICES),
        (b'data: {"choices": [], "usage": {"total_tokens": 3}}\n\n', ChunkKind.USAGE),
        (b'data: {"usage": {"total_tokens": 3}}\n\n', ChunkKind.USAGE),
        (b'data: {"choices": [], "prompt_filter_results": []}\n\n', ChunkKind.CHOICES),
        (b'data: {"choices": [{}], "usage": {"total_tokens": 3}}\n\n', ChunkKind.CHOICES),
        (b": keep-alive\n\n", ChunkKind.BLANK),
        (b"event: ping\n\n", ChunkKind.BLANK),
        (b"\n", ChunkKind.BLANK),
        (b"data\n\n", ChunkKind.BLANK),
        (b"\xef\xbb\xbf: x\n\xef\xbb\xbfdata: {}\n\n", ChunkKind.OPAQUE),
        (b'data: {"choices": [{"message": {"content": "a"}}]}\n\n', ChunkKind.OPAQUE),
        (b'data: {"choices": [' + b"{}," * 2000 + b"{}]}\n\n", ChunkKind.OPAQUE),
        (b"data: {\n\n", ChunkKind.OPAQUE),
        (b"data: [1]\n\n", ChunkKind.OPAQUE),
        (b"data: {}\n\n", ChunkKind.OPAQUE),
        (b'data: {"type": "message_start"}\n\n', ChunkKind.OPAQUE),
        (b'data: {"choices": {}}\n\n', ChunkKind.OPAQUE),
        (b'data: {"choices": [1]}\n\n', ChunkKind.OPAQUE),
        (b'data: {"choices": [{"delta": "x"}]}\n\n', ChunkKind.OPAQUE),
        (b'data: {"choices": [{"delta": {"content": 5}}]}\n\n', ChunkKind.OPAQUE),
        (b'data: {"choices": [{"delta": {"content": "caf\xe9"}}]}\n\n', ChunkKind.OPAQUE),
        (b"data: " + b"[" * 100_000 + b"\n\n", ChunkKind.OPAQUE),
        (b"data: " + b"9" * 10_000 + b"\n\n", ChunkKind.OPAQUE),
    ],
)
def test_each_kind_of_frame_is_told_apart(raw: bytes, kind: ChunkKind) -> None:
    """A frame that cannot be read says why and quotes nothing; no frame is an error."""
    chunk = parse_chunk(frame_of(raw), CHAT)
    assert chunk.kind is kind
    assert bool(chunk.problem) == (kind is ChunkKind.OPAQUE)
    assert "caf" not in chunk.problem


def test_text_that_clients_may_show_and_nobody_reads_is_counted() -> None:
    """Of a member that another one replaces, and behind the marker in its frame."""
    twice = '{"choices":[{"index":0,"delta":{"content":"Wrong.","content":"Right."}}]}'
    once = '{"choices":[{"index":0,"delta":{"content":"Right."}}]}'
    for data, unread in ((twice, True), (once, False), ("[DONE] Wrong.", True), ("[DONE] ", False)):
        (frame,) = Decoder().feed(encode(data))
        assert bool(parse_chunk(frame, Endpoint.CHAT).unread_tokens) is unread


def test_a_frame_beyond_the_limit_is_opaque() -> None:
    """Its pieces are counted as what could not be read."""
    assert read(frame_of(b"data: " + b"x" * 100 + b"\n\n", limit=50)).opaque == 1


@given(raw=st.binary(max_size=60).map(lambda data: b"data: " + data) | st.binary(max_size=60))
def test_any_bytes_can_be_read(raw: bytes) -> None:
    """Reading raises nothing."""
    for endpoint in Endpoint:
        for frame in Decoder().feed(raw + b"\n\n"):
            assert parse_chunk(frame, endpoint).kind in ChunkKind


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        ({"role": "assistant", "content": ""}, Delta(0, role="assistant")),
        ({"content": "a"}, Delta(0, "a")),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image_url"}, {"text": "b"}]}, Delta(0, "ab")),
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}]},
            Delta(0, reasoning="t"),
        ),
        ({"content": [{"type": [], "text": "a"}]}, Delta(0, "a")),
        ({"content": [{"type": "Markdown", "text": "a"}, {"type": None, "text": "b"}]}, Delta(0, "ab")),
        ({"reasoning_content": "t", "content": None}, Delta(0, reasoning="t")),
        ({"reasoning": "t"}, Delta(0, reasoning="t")),
        ({"reasoning": "t", "reasoning_details": [{"type": "x", "text": "t"}]}, Delta(0, reasoning="t")),
        ({"reasoning": None, "content": "a"}, Delta(0, "a")),
        (
            {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
            Delta(0, tool_call=True, call_tokens=1),
        ),
        ({"function_call": {"name": "f"}}, Delta(0, tool_call=True, call_tokens=1)),
        ({"tool_calls": []}, Delta(0)),
        ({"refusal": "No."}, Delta(0, "No.", refusal=True, elsewhere=True, only_refused=True)),
        (
            {"content": [{"type": "refusal", "refusal": "No."}]},
            Delta(0, "No.", refusal=True, elsewhere=True, only_refused=True),
        ),
        ({"content": "a", "refusal": "b"}, Delta(0, "ab", refusal=True, elsewhere=True)),
        ({"audio": {"id": "x", "transcript": "a"}}, Delta(0, "a", elsewhere=True)),
        ({"content": [{"type": "text", "text": {"value": "a"}}]}, Delta(0, "a", elsewhere=True)),
        ({"content": [{"type": "note", "note": "It is so."}]}, Delta(0, beside=("It is so.",))),
        ({"content": "a", "text": "b"}, Delta(0, "a", beside=("b",))),
        (
            {"content": "a", "note": {"id": "one two", "said": ["It is so."]}},
            Delta(0, "a", beside=("It is so.",)),
        ),
        ({}, Delta(0)),
        (None, Delta(0)),
    ],
)
def test_each_kind_of_delta_is_told_apart(delta: object, expected: Delta) -> None:
    """Answer text alone is text; reasoning, calls and refusals are flags."""
    assert only_delta(chat_frame({"index": 0, "delta": delta})) == expected


def test_what_stands_beside_a_delta_is_read() -> None:
    """Index, finish reason, log probabilities, identity and usage."""
    frame = chat_frame(
        content("a", 3, logprobs={"content": []}),
        {"delta": {}, "finish_reason": "stop"},
        usage={"n": 2, "x": None},
    )
    chunk = parse_chunk(frame, CHAT)
    assert chunk.deltas == (Delta(3, "a", logprobs=True), Delta(1, finish_reason="stop"))
    assert (chunk.id, chunk.object, chunk.created, chunk.model) == ("c-1", "chat.completion.chunk", 7, "m")
    assert chunk.usage == {"n": 2}


def test_an_empty_finish_reason_is_none() -> None:
    """There are servers that write one in every chunk."""
    transcript = read(chat_frame({**content("a"), "finish_reason": ""}), chat_frame(content("b")))
    assert not transcript.choices[0].finished
    assert transcript.choices[0].text == "ab"


def test_a_completions_chunk_is_read_from_its_text() -> None:
    """The other API has no deltas; what stands where the other API has its text cannot be read."""
    frame = chat_frame({"index": 1, "text": "a", "logprobs": {}, "finish_reason": "length"})
    assert only_delta(frame, COMPLETIONS) == Delta(1, "a", finish_reason="length", logprobs=True)
    assert parse_chunk(frame, CHAT).kind is ChunkKind.OPAQUE
    assert read(frame, endpoint=COMPLETIONS).choices[1].kind is AnswerKind.TEXT


def test_an_error_keeps_the_text_that_came_with_it() -> None:
    """Some clients show it, so it counts as text."""
    transcript = read(chat_frame(content("a")), chat_frame(content("b"), error={"code": 502}))
    assert transcript.failed
    assert transcript.choices[0].text == "ab"


def test_a_choice_says_what_it_holds() -> None:
    """The kinds are those of answers that do not stream."""
    transcript = read(
        chat_frame(content(" ", 0), content("x", 1), content("x", 2), content("", 3)),
        chat_frame(
            {"index": 1, "delta": {"role": "assistant", "tool_calls": [{}]}, "finish_reason": "tool_calls"},
            {"index": 3, "delta": {"refusal": "No."}},
            {"index": 2, "delta": {"reasoning": "t"}},
        ),
    )
    kinds = {index: choice.kind for index, choice in transcript.choices.items()}
    assert kinds == {
        0: AnswerKind.EMPTY,
        1: AnswerKind.TOOL_CALL,
        2: AnswerKind.TEXT,
        3: AnswerKind.REFUSAL,
    }
    assert [choice.finished for choice in transcript.choices.values()] == [False, True, False, False]
    assert transcript.choices[1].finish_reason == "tool_calls"
    assert transcript.choices[1].role == "assistant"
    assert transcript.choices[2].reasoning


def test_a_surrogate_pair_may_be_cut_over_two_deltas() -> None:
    """The character counts once, when it is whole."""
    transcript = Transcript(CHAT)
    halves = [r"a\ud83d", "", r"\ude00b"]
    seen = []
    for half in halves:
        raw = encode(f'{{"choices": [{{"delta": {{"content": "{half}"}}}}]}}')
        transcript.add(parse_chunk(frame_of(raw), CHAT))
        seen.append(transcript.choices[0].text)
    assert seen == ["a", "a", "a😀b"]


@pytest.mark.parametrize(
    ("deltas", "text"),
    [
        ([r"\ud83d", "x"], "\ufffdx"),
        ([r"\ud83d", r"\ud83d", r"\ude00"], "\ufffd😀"),
        ([r"\ud83d", r"\ude00\ud83d", r"\ude00"], "😀😀"),
        ([r"\ude00\ud83d"], "\ufffd\ufffd"),
        ([r"a\ud83d"], "a\ufffd"),
    ],
)
def test_half_a_pair_without_the_other_is_shown_as_such(deltas: list[str], text: str) -> None:
    """It becomes U+FFFD once the other half cannot come any more."""
    choice = Choice(0, CHAT)
    for delta in deltas:
        choice.add(Delta(0, json.loads(f'"{delta}"')))
    choice.end()
    assert choice.text == text
    assert choice.length == len(text)


def test_a_stream_that_is_done_waits_for_no_half() -> None:
    """The done marker and a finish reason both end a choice's text."""
    half = frame_of(encode('{"choices": [{"delta": {"content": "\\ud83d"}}]}'))
    done = read(half, frame_of(b"data: [DONE]\n\n"))
    assert done.done
    assert done.choices[0].text == "\ufffd"
    assert read(half, chat_frame({"delta": {}, "finish_reason": "stop"})).choices[0].text == "\ufffd"


@settings(max_examples=500)
@given(stream=chunk_streams(), data=st.data())
def test_texts_of_a_stream_are_rebuilt(
    stream: tuple[list[str], list[bytes], Endpoint], data: st.DataObject
) -> None:
    """However cut and interleaved: nothing lost, doubled or reordered, and the frames are the same bytes."""
    texts, frames, endpoint = stream
    wire = b"".join(frames)
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=20))), len(wire)]
    decoder = Decoder()
    decoded = [frame for start, end in pairwise(cuts) for frame in decoder.feed(wire[start:end])]
    assert [frame.raw for frame in decoded] == frames
    assert decoder.finish() is None
    transcript = Transcript(endpoint)
    seen = dict.fromkeys(range(len(texts)), "")
    for frame in decoded:
        chunk = parse_chunk(frame, endpoint)
        transcript.add(chunk)
        for delta in chunk.deltas:
            choice = transcript.choices[delta.index]
            known = seen[delta.index]
            assert choice.length >= len(known)
            assert choice.piece(len(known), choice.length) == choice.text[len(known) :]
            assert choice.text.startswith(known)
            seen[delta.index] = choice.text
    assert transcript.usage == {"total_tokens": 9}
    assert {index: choice.text for index, choice in transcript.choices.items()} == dict(enumerate(texts))
    for choice in transcript.choices.values():
        assert choice.finished
        start = data.draw(st.integers(0, choice.length))
        assert choice.piece(start, choice.length) == choice.text[start:]


def test_identity_is_the_first_that_was_not_empty() -> None:
    """Some servers send a first chunk with empty fields, or with fields of another type."""
    empty = {"id": "", "object": "", "created": 0, "model": ""}
    odd = {"id": 5, "object": None, "created": True, "model": []}
    transcript = read(chat_frame(**empty), chat_frame(**odd), chat_frame(), chat_frame(id="c-2"))
    assert (transcript.id, transcript.object, transcript.created, transcript.model) == tuple(HEAD.values())


def test_reprs_hold_no_text_of_the_answer() -> None:
    """What is logged by mistake says nothing that a user or model wrote."""
    frame = chat_frame(content("secret"))
    assert "secret" not in repr((frame, parse_chunk(frame, CHAT)))
