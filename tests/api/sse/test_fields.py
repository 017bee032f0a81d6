"""Lines of frames beside their data: what of them leaves."""

from __future__ import annotations

import pytest

from truthlens.api.members.filter import Members
from truthlens.api.sse.chunks import Transcript, parse_chunk
from truthlens.api.sse.fields import without_asides
from truthlens.api.sse.frames import Decoder
from truthlens.api.sse.rewriter import StreamRewriter
from truthlens.core.records.enums import Endpoint

FALSE = b"A domestic wire transfer costs eleven thousand dollars a day."


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        (b"data: x\n\n", b"data: x\n\n"),
        (b": ping\r\nevent: chunk\r\nid: 7\r\nretry: 3000\r\n\r\n", None),
        (b": " + FALSE + b"\ndata: x\n\n", b":\ndata: x\n\n"),
        (b"event: " + FALSE + b"\r\ndata: x\r\n\r\n", b"data: x\r\n\r\n"),
        (b"data: x\nid: " + FALSE + b"\n\n", b"data: x\n\n"),
        (b"retry: " + FALSE + b"\n\n", b"\n"),
        (b"\xef\xbb\xbfdata: x\n" + FALSE + b"\n\n", b"\xef\xbb\xbfdata: x\n\n"),
    ],
)
def test_only_bookkeeping_stands_beside_data(raw: bytes, kept: bytes | None) -> None:
    """A comment that may not leave stays as an empty one; every other line goes."""
    lead = 3 if raw.startswith(b"\xef") else 0
    assert without_asides(raw, Members(Endpoint.CHAT, streamed=True), lead=lead) == (
        raw if kept is None else kept
    )


def test_a_stream_whose_answer_was_changed_repeats_it_in_no_line() -> None:
    own = b": " + FALSE + b"\n\n" + b'id: 7\ndata: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
    frames = Decoder().feed(own)
    transcript = Transcript(Endpoint.CHAT)
    chunks = [parse_chunk(frame, Endpoint.CHAT) for frame in frames]
    for chunk in chunks:
        transcript.add(chunk)
    rewriter = StreamRewriter(frames, chunks, transcript)
    rewriter.drop_copies(0, FALSE.decode())
    assert rewriter.written() == own.replace(b": " + FALSE, b":")
