"""Ten thousand streams, cut anywhere: nothing is lost, doubled or reordered, whether they are rewritten or not."""

from __future__ import annotations

import json
from random import Random

import pytest

from tests.fakes.made_streams import MadeStream, cut, made_stream, made_text
from truthlens.api.sse.buffered import StreamedResponse, parse_stream, rewrite_stream
from truthlens.api.sse.chunks import Chunk, ChunkKind, Transcript, parse_chunk
from truthlens.api.sse.frames import Decoder, Frame
from truthlens.core.records.enums import AnswerKind
from truthlens.core.records.exchange import Exchange

BATCHES = 20
STREAMS_PER_BATCH = 500
VERDICT = {"status": "checked", "score": 0.5}


@pytest.mark.parametrize("batch", range(BATCHES))
def test_made_streams_come_through_whole(batch: int) -> None:
    """Read in pieces, rewritten with nothing, with a notice, with a new text: each says what it should."""
    for number in range(STREAMS_PER_BATCH):
        seed = batch * STREAMS_PER_BATCH + number
        try:
            check(Random(seed))
        except Exception as error:
            raise AssertionError(f"stream of seed {seed}") from error


def check(dice: Random) -> None:
    """One stream on its way through the codec."""
    stream = made_stream(dice)
    exchange = Exchange(stream.endpoint, "m", "q", (), echoed=stream.echo)
    response = parse_stream(stream.wire, exchange)
    check_pieces(stream, response, cut(stream.wire, dice))
    check_reading(stream, response)
    told = {answer.index: answer.text for answer in response.answers}
    assert response.forged == any(verdicts(frame) for frame in response.frames)
    if response.forged:
        unsigned = parse_stream(rewrite_stream(response, {}, None), exchange)
        assert not any(verdicts(frame) for frame in unsigned.frames)
        assert {answer.index: answer.text for answer in unsigned.answers} == told
    else:
        assert rewrite_stream(response, {}, None) == stream.wire
        assert rewrite_stream(response, {} if stream.tools else told, None) == stream.wire
    ready = [answer.index for answer in response.answers if answer.kind is AnswerKind.TEXT]
    if not ready:
        return
    index = dice.choice(ready)
    new = dice.choice(
        (f"Notice.\n\n{told[index]}", f"{told[index]}\n\nNotice.", made_text(dice, 3), made_text(dice, 40))
    )
    verdict = dice.choice((None, VERDICT))
    written = rewrite_stream(response, {index: new}, verdict)
    again = parse_stream(written, exchange)
    assert {answer.index: answer.text for answer in again.answers} == told | {index: new}
    check_rewritten(response, again, index)
    check_verdict(again, verdict, dropped=lost_logprobs(response, again, index))
    beside = new.startswith(told[index]) or new.endswith(told[index])
    if (
        beside
        and new != told[index]
        and not stream.echo
        and not any(verdicts(frame) for frame in response.frames)
    ):
        check_notice(response, again, index)


def check_pieces(stream: MadeStream, response: StreamedResponse, pieces: list[bytes]) -> None:
    """How the bytes were cut changes nothing."""
    decoder = Decoder()
    frames = [frame for piece in pieces for frame in decoder.feed(piece)]
    rest = decoder.finish()
    frames += [rest] if rest is not None else []
    assert tuple(frames) == response.frames
    assert b"".join(frame.raw for frame in frames) == stream.wire
    transcript = Transcript(stream.endpoint)
    for frame in frames:
        transcript.add(parse_chunk(frame, stream.endpoint))
    transcript.end()
    assert {index: choice.text for index, choice in transcript.choices.items()} == {
        index: stream.echo + text for index, text in stream.texts.items()
    }


def check_reading(stream: MadeStream, response: StreamedResponse) -> None:
    """The answers are what the stream was made of."""
    assert {answer.index: answer.text for answer in response.answers} == stream.texts
    assert {answer.index for answer in response.answers if answer.kind is not AnswerKind.TEXT} == stream.tools
    assert finishes(response) == stream.finishes
    assert (response.usage, response.failed, response.model) == (stream.usage, stream.failed, "m")
    assert response.transcript.done == stream.done


def check_rewritten(before: StreamedResponse, after: StreamedResponse, index: int) -> None:
    """Frames without text of the choice keep their bytes and their order; all that is not text is still said once."""
    kept = [
        completed(frame, before)
        for frame, chunk in pairs(before)
        if not touches(chunk, index) and not verdicts(frame)
    ]
    assert is_subsequence(kept, [completed(frame, before) for frame in after.frames])
    assert finishes(after) == finishes(before)
    assert (after.usage, after.failed, after.opaque) == (before.usage, before.failed, before.opaque)
    assert after.transcript.done == before.transcript.done
    for each in before.transcript.choices.values():
        now = after.transcript.choices[each.index]
        assert (now.role, now.reasoning, now.tool_call) == (each.role, each.reasoning, each.tool_call)
    # A finish is the last that is said of a choice.
    last = [place for place, chunk in enumerate(after.chunks) if touches(chunk, index)]
    if before.transcript.choices[index].finished:
        assert any(delta.finish_reason for delta in after.chunks[last[-1]].deltas if delta.index == index)
    assert all(frame.newline == before.frames[0].newline for frame in after.frames if frame.whole)
    assert (after.frames[0].lead > 0) == (before.frames[0].lead > 0)


def check_verdict(after: StreamedResponse, verdict: dict[str, object] | None, *, dropped: bool) -> None:
    """It stands once, before the marker of the end and the count before that, or last, and says what was dropped."""
    places = [place for place, frame in enumerate(after.frames) if verdicts(frame)]
    if verdict is None and not dropped:
        assert places == []
        return
    (place,) = places
    expected = dict(verdict or {}) | ({"notes": ["logprobs-dropped"]} if dropped else {})
    body = json.loads(after.frames[place].data or "")
    assert body["truthlens"] == expected
    following = after.chunks[place + 1 :]
    ends = (ChunkKind.DONE, ChunkKind.USAGE)
    assert all(chunk.kind in ends or not chunk.readable for chunk in following)
    assert after.chunks[place - 1].kind is not ChunkKind.USAGE


def check_notice(before: StreamedResponse, after: StreamedResponse, index: int) -> None:
    """A notice takes one more frame, or is added to the text that came with the finish; the rest is the same bytes."""
    old = [completed(frame, before) for frame in before.frames]
    new = [completed(frame, before) for frame in after.frames if not verdicts(frame)]
    if len(new) > len(old):
        assert len(new) == len(old) + 1
        assert is_subsequence(old, new)
        return
    # Two frames are changed only where a character is cut over them.
    places = [place for place, (was, now) in enumerate(zip(old, new, strict=True)) if was != now]
    assert any(delta.finish_reason for delta in before.chunks[places[-1]].deltas if delta.index == index)
    assert len(places) == 1 or "ud8" in (before.frames[places[0]].data or "")
    assert len(places) <= 2


def lost_logprobs(before: StreamedResponse, after: StreamedResponse, index: int) -> bool:
    def count(response: StreamedResponse) -> int:
        return sum(
            delta.logprobs for chunk in response.chunks for delta in chunk.deltas if delta.index == index
        )

    return count(after) < count(before)


def completed(frame: Frame, stream: StreamedResponse) -> bytes:
    """The frame with the blank line that it may lack, and without a byte order mark.

    The mark stays at the front of the stream, whatever frame is first; the line is put in where something follows.
    """
    raw = frame.raw[frame.lead :]
    return raw if frame.whole else raw.rstrip(b"\r\n") + stream.frames[0].newline * 2


def finishes(response: StreamedResponse) -> dict[int, str | None]:
    return dict(zip([answer.index for answer in response.answers], response.finish_reasons, strict=True))


def pairs(response: StreamedResponse) -> list[tuple[Frame, Chunk]]:
    return list(zip(response.frames, response.chunks, strict=True))


def touches(chunk: Chunk, index: int) -> bool:
    return any(delta.index == index for delta in chunk.deltas)


def says(chunk: Chunk, index: int) -> bool:
    return any(delta.text for delta in chunk.deltas if delta.index == index)


def verdicts(frame: Frame) -> bool:
    return frame.data is not None and '"truthlens"' in frame.data


def is_subsequence(few: list[bytes], many: list[bytes]) -> bool:
    """Whether ``few`` stand among ``many`` in order."""
    rest = iter(many)
    return all(each in rest for each in few)
