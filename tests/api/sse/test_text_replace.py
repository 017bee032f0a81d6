"""Which frames carry which characters of a streamed answer."""

from __future__ import annotations

from random import Random

import pytest

from tests.fakes.chunk_streams import CHAT, chat_frame, content, frame_of
from tests.fakes.made_streams import made_stream
from truthlens.api.sse.buffered import StreamedResponse, parse_stream
from truthlens.api.sse.frames import Frame
from truthlens.api.sse.rewriter import StreamRewriter
from truthlens.api.sse.text_replace import carriers
from truthlens.core.records.exchange import Exchange

DONE = frame_of(b"data: [DONE]\n\n")
STOP = chat_frame({"index": 0, "delta": {}, "finish_reason": "stop"})


def draft_of(response: StreamedResponse) -> StreamRewriter:
    return StreamRewriter(response.frames, response.chunks, response.transcript)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([chat_frame(content("")), chat_frame(content("ab")), STOP], [(0, 2, (1,))]),
        ([chat_frame(content("ab")), DONE, chat_frame(content("c"))], [(0, 2, (0,)), (2, 3, (2,))]),
        ([chat_frame(content("a\ud83d")), chat_frame(content("\ude00b"))], [(0, 3, (0, 1))]),
        ([chat_frame(content("a\ud83d")), chat_frame(content("b"))], [(0, 3, (0, 1))]),
        ([chat_frame(content("a\ud83d")), STOP, chat_frame(content("b"))], [(0, 2, (0,)), (2, 3, (2,))]),
        ([chat_frame(content("a\ud83d")), DONE, chat_frame(content("\ude00"))], [(0, 2, (0,)), (2, 3, (2,))]),
        ([chat_frame(content("a\ud83d"))], [(0, 2, (0,))]),
        ([chat_frame(content("x", 1)), STOP], []),
    ],
)
def test_characters_are_found_in_their_frames(
    frames: list[Frame], expected: list[tuple[int, int, tuple[int, ...]]]
) -> None:
    """Frames over which a character may be cut are one carrier; half a character counts as U+FFFD where it ends."""
    response = parse_stream(b"".join(frame.raw for frame in frames), Exchange(CHAT, "m", "q", ()))
    found = carriers(draft_of(response), 0)
    assert [(carrier.start, carrier.end, carrier.places) for carrier in found] == expected


def test_carriers_cover_the_text_without_gaps() -> None:
    """What each carrier holds is what its frames say."""
    for seed in range(200):
        stream = made_stream(Random(seed))
        response = parse_stream(stream.wire, Exchange(stream.endpoint, "m", "q", ()))
        draft = draft_of(response)
        for index, choice in response.transcript.choices.items():
            found = carriers(draft, index)
            bounds = [carrier.start for carrier in found] + [choice.length]
            assert bounds == [0] + [carrier.end for carrier in found]
            for carrier in found:
                said = "".join(each.text for place in carrier.places for each in draft.deltas(place, index))
                text = said.encode("utf-16", "surrogatepass").decode("utf-16")
                assert choice.text[carrier.start : carrier.end] == text
