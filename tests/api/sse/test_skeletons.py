"""A chunk that is read by its skeleton says what parsing all of it says, whatever is written around and in its text."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fakes.made_streams import made_stream
from truthlens.api.sse.chunks import parse_chunk
from truthlens.api.sse.frames import Decoder, Frame
from truthlens.api.sse.skeletons import ChunkReader
from truthlens.core.records.enums import Endpoint

HEAD = {"id": "c-1", "object": "chat.completion.chunk", "created": 7, "model": "m"}


def frames_of(raw: bytes) -> list[Frame]:
    decoder = Decoder()
    frames, rest = decoder.feed(raw), decoder.finish()
    return [*frames, rest] if rest is not None else frames


def plain(body: object, *, escaped: bool = False) -> bytes:
    return f"data: {json.dumps(body, ensure_ascii=escaped)}\n\n".encode("utf-8", "replace")


def said(text: str, **more: object) -> dict[str, object]:
    return {**HEAD, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None, **more}]}


def demand_the_same(frames: list[Frame], endpoint: Endpoint, *, cites: bool = False) -> int:
    """Compare with the parser; how many of the frames were read by their skeleton."""
    reader = ChunkReader(endpoint, cites=cites)
    short = 0
    for frame in frames:
        chunk, skeleton = reader.read(frame)
        assert chunk == parse_chunk(frame, endpoint, cites=cites)
        short += skeleton is not None
    return short


@given(seed=st.integers(0, 1 << 32), cites=st.booleans())
def test_whole_streams_say_the_same(seed: int, cites: bool) -> None:
    stream = made_stream(Random(seed))
    demand_the_same(frames_of(stream.wire), stream.endpoint, cites=cites)


@given(texts=st.lists(st.text(), min_size=3, max_size=8), escaped=st.booleans())
@example(texts=["The", " ferry", '"quoted"', "\\", "\ud83d", "\ude00", " ", "\n"], escaped=True)
@example(texts=["a", "b", '","finish_reason":"stop"', "c"], escaped=False)
@example(texts=["a", "b", '"content":"x"', "c"], escaped=False)
def test_any_text_in_a_skeleton_is_read_as_the_parser_reads_it(texts: list[str], escaped: bool) -> None:
    raw = b"".join(plain(said(text), escaped=escaped) for text in texts)
    demand_the_same(frames_of(raw), Endpoint.CHAT)


def test_chunks_that_differ_in_their_text_alone_are_read_by_it() -> None:
    frames = frames_of(b"".join(plain(said(f" word{number}")) for number in range(20)))
    assert demand_the_same(frames, Endpoint.CHAT) == 18


def test_two_choices_have_a_skeleton_each() -> None:
    raw = b"".join(plain(said(f" word{number}", index=number % 2)) for number in range(20))
    assert demand_the_same(frames_of(raw), Endpoint.CHAT) == 16


@pytest.mark.parametrize(
    "body",
    [
        said("one", message={"content": "nine"}),
        said("one", logprobs={"content": [{"token": "one"}]}),
        said("one", finish_reason="stop"),
        {**said("one"), "truthlens": {"score": 0.0}},
        {**said("one"), "content": "one"},
        {**said("one"), "note": "The ferry costs nine euros, whatever else is said of it here."},
        {**HEAD, "choices": [{"index": 0, "delta": {"content": "one", "reasoning_content": "nine"}}]},
        {**HEAD, "choices": [{"index": 0, "delta": {"content": [{"type": "text", "text": "one"}]}}]},
        {**HEAD, "choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"role": "b"}}]},
        {**HEAD, "choices": [], "usage": {"total_tokens": 3}},
        {**HEAD, "error": {"message": "one"}, "choices": [{"index": 0, "delta": {"content": "one"}}]},
    ],
)
def test_what_says_more_than_a_text_is_always_parsed(body: object) -> None:
    assert demand_the_same(frames_of(plain(body) * 5), Endpoint.CHAT) == 0


@pytest.mark.parametrize(
    "raw",
    [
        plain(said("one")).replace(b"data: ", b"data:"),
        b": ping\n" + plain(said("one")),
        b"id: 7\n" + plain(said("one")),
        b"event: message\n" + plain(said("one")),
        plain(said("one")).replace(b"\n", b"\r\n"),
        plain(said("one")).replace(b'"content": "one"', b'"content": "nine", "content": "one"'),
    ],
)
def test_frames_of_another_form_are_always_parsed(raw: bytes) -> None:
    assert demand_the_same(frames_of(raw * 5), Endpoint.CHAT) == 0
