"""A stream of server-sent events is cut into frames that are, put together, the same bytes."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from truthlens.api.sse.frames import Decoder, Frame, encode, set_data

LIMIT = 1 << 20
BOM = b"\xef\xbb\xbf"
NEWLINES = st.sampled_from([b"\n", b"\r\n", b"\r"])
# Bytes that matter to the format come far more often than chance would have them.
ENDS = [b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n"]
FIELDS = [b"data", b"data:", b"data: ", b":", b" ", b"event: a", b"id: 1", b"retry: 5", b": ping", b"x"]
ODD = [BOM, "é".encode(), b"\xe9", b"\xf0\x9f", b"\x98\x80", b"\x00"]
TOKENS = st.sampled_from([*ENDS, *FIELDS, *ODD])
STREAMS = st.lists(TOKENS | st.binary(max_size=3), max_size=30).map(b"".join)
CUTS = st.lists(st.integers(0, 200), max_size=25)


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    return [stream[start:end] for start, end in pairwise(places)]


def decode(parts: list[bytes], *, limit: int = LIMIT) -> tuple[list[Frame], Frame | None]:
    decoder = Decoder(max_frame_bytes=limit)
    frames = []
    for part in parts:
        frames += decoder.feed(part)
        assert decoder.held_bytes <= limit
    return frames, decoder.finish()


def events(stream: bytes) -> list[tuple[str, str]]:
    """What a browser dispatches: the standard's algorithm, written down again line by line."""
    text = stream.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = re.split("\r\n|\r|\n", text)[:-1]
    found, data, event = [], "", ""
    for line in lines:
        if not line:
            if data:
                found.append((event, data[:-1]))
            data = event = ""
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data += value + "\n"
        elif name == "event":
            event = value
    return found


@settings(max_examples=1500)
@given(stream=STREAMS, cuts=CUTS, limit=st.just(LIMIT) | st.integers(4, 40))
@example(stream=b"data: x\r\r\ndata: y\r\n\r\n", cuts=[9], limit=LIMIT)
@example(stream=BOM + b"\r\n\r\n\r", cuts=[1, 2, 4], limit=LIMIT)
@example(stream=b"aaaa\n\n", cuts=[4, 5], limit=4)
def test_no_byte_is_lost_and_cuts_change_nothing(stream: bytes, cuts: list[int], limit: int) -> None:
    """Any bytes, cut anywhere, are given out once, in order, as the same frames as uncut."""
    frames, rest = decode(pieces(stream, cuts), limit=limit)
    assert b"".join(frame.raw for frame in frames) + (rest.raw if rest else b"") == stream
    assert (frames, rest) == decode([stream], limit=limit)
    assert (frames, rest) == decode([bytes([byte]) for byte in stream], limit=limit)
    assert all(frame.raw for frame in frames)
    assert rest is None or rest.raw


PLAIN_PARTS = [
    b"data: ",
    b"data: x\n\n",
    b"data:  y\n\n",
    b"data: z\n",
    "data: 真\n\n".encode(),
    b"x\r",
    b"x",
]


@settings(max_examples=1500)
@given(
    stream=st.lists(st.sampled_from([*PLAIN_PARTS, *ENDS, *ODD, b": ping\n\n"]), max_size=20).map(b"".join),
    cuts=CUTS,
    limit=st.just(LIMIT) | st.integers(4, 16),
)
@example(stream=b"data: z\n" + BOM + b"\n", cuts=[], limit=4)
@example(stream=b"data: a\rb\n\ndata: c\n\n", cuts=[], limit=LIMIT)
@example(stream=b"data: a\n\n" + BOM + b"data: b\n\n", cuts=[], limit=LIMIT)
@example(stream=b"data: caf\xe9\n\ndata: b\n\n", cuts=[], limit=LIMIT)
def test_plain_frames_are_what_they_are_byte_by_byte(stream: bytes, cuts: list[int], limit: int) -> None:
    """What comes as whole frames of one line is read by a shorter way, to the same frames."""
    slowly = decode([bytes([byte]) for byte in stream], limit=limit)
    assert decode(pieces(stream, cuts), limit=limit) == slowly
    assert (
        decode([frame.raw for frame in slowly[0]] + ([slowly[1].raw] if slowly[1] else []), limit=limit)
        == slowly
    )


@settings(max_examples=1500)
@given(stream=STREAMS, cuts=CUTS)
@example(stream=BOM + b"data: x\n\n" + BOM + b"data: y\n\ndata: z\n\n", cuts=[])
@example(stream=b"data: x\r\r\ndata: y\r\r", cuts=[9, 10])
@example(stream=b"data\n\ndata:\n\nevent: only\n\ndata\ndata:  two\n\n", cuts=[])
def test_frames_say_what_a_browser_would_be_told(stream: bytes, cuts: list[int]) -> None:
    """Events are those of the standard; where bytes are not UTF-8 the frame says so and has no data."""
    assume("\ufffd".encode() not in stream)
    frames, rest = decode(pieces(stream, cuts))
    # The last bytes may be a whole event that was waited on for one byte more.
    whole = [*frames, *([rest] if rest and rest.whole else [])]
    told = [frame for frame in whole if frame.data is not None or frame.invalid]
    expected = events(stream)
    valid = [(frame.event, frame.data) for frame in told if not frame.invalid]
    if not any(frame.invalid for frame in told):
        assert valid == expected
    else:
        # An event without data is never told; where its type is not UTF-8 the frame is invalid all the same.
        assert [event for event in expected if "\ufffd" not in "".join(event)] == valid


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_a_frame_is_given_out_with_its_last_byte(newline: bytes) -> None:
    """No frame waits for the next one, whatever its line ends."""
    stream = encode("one", newline=newline) + encode("two", event="late", newline=newline)
    decoder = Decoder()
    half = len(encode("one", newline=newline))
    first = decoder.feed(stream[:half])
    assert [frame.data for frame in first] == ["one"]
    assert first[0].newline == newline
    assert [(frame.data, frame.event) for frame in decoder.feed(stream[half:])] == [("two", "late")]
    assert decoder.held_bytes == 0
    assert decoder.finish() is None


@pytest.mark.parametrize(
    ("raw", "data", "event", "comment"),
    [
        (b"data: a\ndata: b\n\n", "a\nb", "", False),
        (b"data:a\n\n", "a", "", False),
        (b"data:  a\n\n", " a", "", False),
        (b"data\n\n", "", "", False),
        (b": ping\n\n", None, "", True),
        (b":\n\n", None, "", True),
        (b"\n", None, "", False),
        (b"id: 7\nretry: 10\nevent: e\ndata: x\n\n", "x", "e", False),
        (b"event: a\nevent\ndata: x\n\n", "x", "", False),
        (b"event: e\r\ndata: x\r\n\r\n", "x", "e", False),
        (b"Data: x\n\n", None, "", False),
        (b" data: x\n\n", None, "", False),
        (b": \xff\ndata: x\n\n", "x", "", True),
    ],
)
def test_fields_are_read_by_the_standard(raw: bytes, data: str | None, event: str, comment: bool) -> None:
    """Colons, one space after them, repeated fields, comments and names with another case."""
    foreign = raw.startswith((b"Data", b" data"))
    assert Decoder().feed(raw) == [Frame(raw=raw, data=data, event=event, comment=comment, foreign=foreign)]


def test_a_line_feed_that_comes_late_is_a_blank_frame() -> None:
    """Where both line ends of a frame are CRs it is given out at once, as if no LF could follow."""
    decoder = Decoder()
    assert [frame.data for frame in decoder.feed(b"data: x\r\r")] == ["x"]
    assert decoder.feed(b"\ndata: y\n\n") == [Frame(b"\n"), Frame(b"data: y\n\n", data="y")]
    assert [frame.data for frame in decoder.feed(b"data: z\r\r")] == ["z"]
    assert decoder.feed(b"\r") == []
    assert decoder.feed(b"\n") == [Frame(b"\r\n")]


def test_data_that_is_not_utf8_is_kept_raw() -> None:
    """Such a frame has bytes and no data; the frames beside it are read."""
    frames = Decoder().feed(b"data: a\n\ndata: caf\xe9\n\ndata: b\n\n")
    assert [frame.data for frame in frames] == ["a", None, "b"]
    assert [frame.invalid for frame in frames] == [False, True, False]
    assert frames[1].raw == b"data: caf\xe9\n\n"


def test_a_character_may_be_cut_over_pieces() -> None:
    """UTF-8 is read only once a line is there."""
    stream = "data: 真😀\n\n".encode()
    frames, rest = decode([bytes([byte]) for byte in stream])
    assert [frame.data for frame in frames] == ["真😀"]
    assert rest is None


def test_a_byte_order_mark_counts_at_the_start_of_the_stream_alone() -> None:
    """Later it is part of a field's name, which nobody knows."""
    frames = Decoder().feed(BOM + b"data: x\n\n" + BOM + b"data: y\n\n")
    assert [frame.data for frame in frames] == ["x", None]


@pytest.mark.parametrize(
    ("stream", "data", "whole"),
    [
        (b"data: [DONE]", "[DONE]", False),
        (b"data: [DONE]\n", "[DONE]", False),
        (b"data: [DONE]\r\n", "[DONE]", False),
        (b"data: [DONE]\r", "[DONE]", False),
        (b"data: [DONE]\n\r", "[DONE]", True),
        (b"data: x\xc3", None, False),
        (b": ping", None, False),
    ],
)
def test_what_is_left_says_whether_its_blank_line_came(stream: bytes, data: str | None, whole: bool) -> None:
    """A last frame without a blank line is given out, marked."""
    decoder = Decoder()
    assert decoder.feed(stream) == []
    rest = decoder.finish()
    assert rest is not None
    assert (rest.raw, rest.data, rest.whole) == (stream, data, whole)
    assert decoder.finish() is None


def test_a_frame_without_end_is_given_out_in_pieces() -> None:
    """Memory is bounded by the limit; the pieces are marked, and the frame after them is read again."""
    decoder = Decoder(max_frame_bytes=16)
    given_out = []
    for _ in range(100):
        given_out += decoder.feed(b"data: xxxx")
        assert decoder.held_bytes <= 16
    last = decoder.feed(b"\n\ndata: y\n\n")
    assert all(frame.oversize and frame.data is None and not frame.whole for frame in given_out)
    assert [(frame.oversize, frame.whole) for frame in last[-2:]] == [(True, True), (False, True)]
    assert last[-1].data == "y"
    assert decoder.finish() is None


def test_a_frame_of_just_the_limit_is_read() -> None:
    """The limit itself is allowed, one byte more is not."""
    frame = b"data: 12345678\n\n"
    assert Decoder(max_frame_bytes=len(frame)).feed(frame)[0].data == "12345678"
    frames = Decoder(max_frame_bytes=len(frame) - 1).feed(frame)
    assert [(part.raw, part.oversize) for part in frames] == [(frame[:-1], True), (frame[-1:], True)]


def test_a_limit_without_room_for_a_frame_is_refused() -> None:
    """The message says what was expected."""
    with pytest.raises(ValueError, match="expected 4 or more"):
        Decoder(max_frame_bytes=3)


@given(data=st.text(), event=st.text(), newline=NEWLINES, before=STREAMS)
def test_an_encoded_frame_reads_back(data: str, event: str, newline: bytes, before: bytes) -> None:
    """Data and type come back, line breaks as line feeds, also as one frame after others."""
    event = re.sub("[\r\n]", "", event)
    decoder = Decoder()
    decoder.feed(before + b"\n\n")
    frames = [
        frame for frame in decoder.feed(encode(data, event=event, newline=newline)) if frame.data is not None
    ]
    assert [(frame.data, frame.event) for frame in frames] == [(re.sub("\r\n?", "\n", data), event)]
    assert frames[0].newline == newline


def test_what_no_frame_can_hold_is_refused_or_shown() -> None:
    """A type in two lines and odd line ends are mistakes; a lone surrogate becomes U+FFFD."""
    with pytest.raises(ValueError, match="line break"):
        encode("x", event="a\rb")
    with pytest.raises(ValueError, match="newline"):
        encode("x", newline=b"\n\n")
    assert encode("\ud83d") == "data: \ufffd\n\n".encode()


@settings(max_examples=500)
@given(stream=STREAMS, data=st.text(st.sampled_from("ab \n:é"), max_size=8))
@example(stream=b"data: a\n: note\r\ndata:b\rid: 1\n\n", data="x")
@example(stream=b"data: a\n: note\r\ndata:b\rid: 1\n\n", data="x\ny\nz")
@example(stream=b"data", data="a\nb")
@example(stream=b"data:a\n\n", data=" a")
def test_new_data_leave_the_rest_of_a_frame(stream: bytes, data: str) -> None:
    """The data read back as given; everything else of the frame is there still; the same data change nothing."""
    frames, rest = decode([stream])
    for frame in [*frames, *([rest] if rest else [])]:
        if frame.data is None:
            with pytest.raises(ValueError, match="no data"):
                set_data(frame, data)
            continue
        # At the beginning of a stream, where it is read back, this would be its mark.
        assume(not frame.raw[frame.lead :].startswith(b"\xef\xbb\xbf"))
        assert set_data(frame, frame.data) == frame.raw
        raw = set_data(frame, data)
        again, left = decode([raw[frame.lead :]])
        back = again[0] if again else left
        assert back is not None
        assert (len(again) + (left is not None), back.raw) == (1, raw[frame.lead :])
        assert (back.data, back.event, back.comment) == (data, frame.event, frame.comment)

        def others(bytes_: bytes) -> list[bytes]:
            return [line for line in bytes_.splitlines() if line.partition(b":")[0] != b"data"]

        assert others(raw[frame.lead :]) == others(frame.raw[frame.lead :])


def test_new_data_take_the_places_of_the_old() -> None:
    """Spacing and line ends of each line stay; lines left over go or follow the last."""
    frame = Decoder().feed(b"data:a\n: note\r\ndata: b\rid: 1\n\n")[0]
    assert set_data(frame, "x\ny") == b"data:x\n: note\r\ndata: y\rid: 1\n\n"
    assert set_data(frame, "x") == b"data:x\n: note\r\nid: 1\n\n"
    assert set_data(frame, "x\ny\nz") == b"data:x\n: note\r\ndata: y\rdata: z\rid: 1\n\n"
