"""What a frame that has only begun may turn out to be."""

from __future__ import annotations

import pytest

from truthlens.api.sse.frames import Decoder
from truthlens.streaming.frame_queue import Tail


def tail_of(*messages: bytes) -> Tail:
    decoder, tail = Decoder(), Tail()
    for message in messages:
        decoder.feed(message)
        tail.follow(message, held=decoder.held_bytes)
    return tail


@pytest.mark.parametrize(
    "begun", [b"d", b"data:", b"data: [DO", b"data: [DONE]", b"data:[DON", b"data:[DONE]\n"]
)
def test_a_beginning_of_the_marker_may_be_the_marker(begun: bytes) -> None:
    assert tail_of(b"data: {}\n\n" + begun).may_be_done
    assert tail_of(b"data: {}\n\n", begun[:1], begun[1:]).may_be_done


@pytest.mark.parametrize("begun", [b"", b"data: {", b"event: x", b": data: [DONE]", b"data: [DONE}"])
def test_other_beginnings_and_none_cannot_be_the_marker(begun: bytes) -> None:
    assert not tail_of(b"data: {}\n\n" + begun).may_be_done


@pytest.mark.parametrize("begun", [b": alive\n", b": a\n: b\r\n", b":\n"])
def test_whole_lines_of_comment_are_a_sign_of_life(begun: bytes) -> None:
    assert tail_of(begun).is_comment


@pytest.mark.parametrize(
    "begun", [b"", b": alive", b": a\ndata: {}\n", b"data: {}\n", b": " + b"x" * 400 + b"\n"]
)
def test_data_and_half_lines_are_none(begun: bytes) -> None:
    assert not tail_of(begun).is_comment
