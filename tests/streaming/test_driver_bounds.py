"""What a backend may do to a stream that is gated or observed, and what never gets past us for it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.fakes.detectors import HeldDetector
from tests.streaming.test_driver import DONE, OBSERVE, chunk, chunks_of, gate, line, plan, text_of
from truthlens.core.limits import Limits
from truthlens.core.records.enums import Action, OnFlagged, OnUnchecked, Reason, Status, Streaming
from truthlens.streaming.shares import Streams

STOP = gate(OnFlagged.STOP, on_unchecked=OnUnchecked.BLOCK)
WITHHOLD = gate(OnFlagged.WITHHOLD)


def frame(*choices: dict[str, Any], **fields: Any) -> bytes:
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [*choices]}
    return f"data: {json.dumps(body | fields)}\n\n".encode()


def said(text: str, index: int = 0, finish: str | None = None) -> dict[str, Any]:
    return {"index": index, "delta": {"content": text}, "finish_reason": finish}


@pytest.mark.parametrize("streaming", [Streaming.OBSERVE, Streaming.GATE])
async def test_the_verdict_stands_before_a_marker_that_comes_late(streaming: Streaming) -> None:
    async with line(plan(streaming), details=True) as made:
        await made.send(chunk("The ferry is blue."), chunk(finish="stop"))
        await made.wait(lambda: len(made.acks) >= 1)
        await made.send(DONE)
        await made.wait(lambda: len(made.acks) == 3)
        assert "truthlens" in chunks_of(made.received)[-1]
        assert made.received.endswith(DONE)


@pytest.mark.parametrize(
    "late",
    [
        [said(" It costs nine. Really.")],
        [said("It costs nine. Really.", 1)],
        [said(" It costs nine. Ah.", 0, "null")],
    ],
    ids=["after-the-finish", "another-choice", "odd-finish"],
)
async def test_text_behind_what_looks_like_the_end_is_gated_as_well(late: list[dict[str, Any]]) -> None:
    async with line(STOP) as made:
        await made.send(chunk("The ferry is blue."), chunk(finish="stop"))
        await made.send(frame(*late), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 5)
        assert b"nine" not in made.received
        assert made.outcome.action is Action.BLOCK


async def test_text_behind_what_looks_like_the_end_counts_under_observe() -> None:
    """It leaves at once, and the verdict is on all of it."""
    async with line(OBSERVE) as made:
        await made.send(chunk("The ferry is blue."), chunk(finish="stop"), chunk(" It costs nine."))
        await made.wait(lambda: len(made.acks) == 3)
        await made.send(DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 5)
        assert made.outcome.verdict.score == 0.9


async def test_nothing_of_an_answer_leaves_behind_its_marker() -> None:
    async with line(STOP) as made:
        await made.send(chunk("The ferry is blue."), chunk(finish="stop"), DONE)
        await made.wait(lambda: len(made.acks) == 3)
        await made.send(chunk(" It costs nine."), b": bye\n\n", b"", end=True)
        await made.wait(lambda: len(made.acks) == 6)
        assert b"nine" not in made.received
        assert made.received.endswith(b": bye\n\n")


UNREADABLE = {
    "two-objects": b'data: {"choices": [{"index": 0, "delta": {"content": "nine. "}}]}\ndata: {"choices": []}\n\n',
    "not-utf-8": b'data: {"choices": [{"index": 0, "delta": {"content": "nine.\xff "}}]}\n\n',
    "object-as-content": b'data: {"choices": [{"index": 0, "delta": {"content": {"text": "nine."}}}]}\n\n',
    "mark-in-the-middle": b'\xef\xbb\xbfdata: {"choices": [{"index": 0, "delta": {"content": "nine. "}}]}\n\n',
    "message": b'data: {"choices": [{"index": 0, "message": {"content": "nine. "}}]}\n\n',
}
# Text that is known to stand where nobody scores it: in chunks of the API, or in a line that is no field of the format.
WITH_TEXT_ELSEWHERE = (
    UNREADABLE["object-as-content"],
    UNREADABLE["message"],
    UNREADABLE["mark-in-the-middle"],
)


@pytest.mark.parametrize("raw", UNREADABLE.values(), ids=UNREADABLE)
async def test_what_cannot_be_read_ends_a_stream_that_must_be_checked(raw: bytes) -> None:
    async with line(STOP) as made:
        await made.send(chunk("The ferry is blue. "), chunk("It is"))
        await made.wait(lambda: len(made.acks) == 1)
        await made.send(raw, chunk(" free."), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 6)
        assert b"nine" not in made.received
        assert made.received.endswith(DONE)
        assert made.outcome.verdict.reason is Reason.DIALECT
        assert made.outcome.action is Action.BLOCK


@pytest.mark.parametrize("raw", UNREADABLE.values(), ids=UNREADABLE)
async def test_what_cannot_be_read_makes_any_other_verdict_partial(raw: bytes) -> None:
    async with line(WITHHOLD) as made:
        await made.send(chunk("The ferry is blue."), raw, DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 4)
        if raw in WITH_TEXT_ELSEWHERE:
            assert b"nine" not in made.received
            assert "fields-dropped" in made.outcome.notes
        else:
            assert made.received == b"".join(made.sent)
        assert (made.outcome.verdict.status, made.outcome.verdict.reason) == (Status.PARTIAL, Reason.DIALECT)


async def test_an_event_without_words_is_no_riddle() -> None:
    async with line(OBSERVE) as made:
        await made.send(
            b"data:\n\n", b"id: 7\nretry: 10\n\n", chunk("The ferry is blue."), DONE, b"", end=True
        )
        await made.wait(lambda: len(made.acks) == 5)
        assert made.outcome.verdict.status is Status.CHECKED


@pytest.mark.parametrize("begun", [b"data: {", b"d", b": ping\n", b"data: [DO"])
async def test_a_backend_that_falls_silent_in_a_frame_holds_nothing_before_it(begun: bytes) -> None:
    """What has come of the frame leaves with the rest of it, or nothing is lost by waiting."""
    async with line(gate(max_hold_s=0.05)) as made:
        await made.send(chunk("The ferry is blue. ") + chunk("It ") + begun)
        await made.wait(lambda: len(made.acks) == 1)
        assert made.text == "The ferry is blue. It "
        whole = chunk("is free.").removeprefix(begun) if begun != b"data: [DO" else b"NE]\n\n"
        await made.send(whole, DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 4)
        sent = b"".join(made.sent)
        assert made.received in (sent, sent.removesuffix(DONE))


async def test_half_a_character_is_not_waited_for_any_longer_than_text() -> None:
    async with line(gate(max_hold_s=0.05)) as made:
        await made.send(b'data: {"choices": [{"index": 0, "delta": {"content": "Blue \\ud83d"}}]}\n\n')
        await made.wait(lambda: len(made.acks) == 1)


async def test_a_finish_is_not_held_for_a_marker_that_does_not_come() -> None:
    async with line(plan(Streaming.OBSERVE, timeout_s=0.05)) as made:
        await made.send(chunk("The ferry is blue."), chunk(finish="stop"))
        await made.wait(lambda: len(made.acks) == 2)
        assert made.received == b"".join(made.sent)


async def test_what_was_ruled_on_keeps_its_fate_when_there_is_no_room() -> None:
    """A flagged sentence does not leave because the rest of the stream could not be checked."""
    async with line(WITHHOLD, room=lambda held: held < 6000) as made:
        await made.send(chunk("It costs nine. The ferry"))
        await made.wait(lambda: made.flow._gate.results["flagged"] == 1)
        for _ in range(60):
            await made.send(chunk(" word" * 20))
        await made.send(chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 64)
        assert made.outcome.verdict.reason is Reason.OVERLOADED
        assert (made.outcome.action, made.text.startswith("[gone] The ferry word")) == (Action.REPLACE, True)


async def test_a_verdict_that_could_not_be_had_is_told_where_it_was_asked_for() -> None:
    async with line(OBSERVE, details=True, room=lambda held: held < 6000) as made:
        for _ in range(120):
            await made.send(chunk(" word" * 20))
        await made.send(chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 123)
        assert chunks_of(made.received)[-1]["truthlens"]["reason"] == "overloaded"


async def test_a_warning_behind_a_finish_that_cannot_be_edited_comes_in_a_chunk() -> None:
    deep = "[" * 900 + "]" * 900
    finish = (
        f'data: {{"choices": [{{"index": 0, "delta": {{"content": "It costs nine."}}, "finish_reason": "stop"}}],'
        f' "x": {deep}}}\n\n'
    ).encode()
    async with line(OBSERVE) as made:
        await made.send(finish, DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 3)
        assert b"Beware." in made.received


async def test_beyond_its_bound_nothing_leaves_of_a_stream_that_must_be_checked() -> None:
    async with line(STOP, max_bytes=900) as made:
        await made.send(chunk("The ferry is blue. "), chunk("It "))
        await made.wait(lambda: len(made.acks) >= 1)
        await made.send(b"".join(chunk("It costs nine. ") for _ in range(8)), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 5)
        assert b"nine" not in made.received
        assert made.outcome.verdict.reason is Reason.TOO_LARGE


async def test_a_backend_cannot_speak_in_our_name() -> None:
    async with line(WITHHOLD, details=True) as made:
        await made.send(
            frame(said("The ferry is blue."), truthlens={"status": "checked", "score": 0.0}),
            frame(truthlens={"score": 0.0}), chunk(finish="stop"), DONE, b"", end=True,
        )  # fmt: skip
        await made.wait(lambda: len(made.acks) == 5)
        told = [each["truthlens"] for each in chunks_of(made.received) if "truthlens" in each]
        assert [each["score"] for each in told] == [0.02]
        assert made.text == "The ferry is blue."


async def test_log_probabilities_tell_nothing_of_text_that_is_withheld() -> None:
    """A server that looks for stop words sends them ahead of the text that they are of."""
    logprobs = {"content": [{"token": "nine", "logprob": -0.1}]}
    async with line(STOP) as made:
        await made.send(
            frame({**said(""), "logprobs": logprobs}), chunk("It costs nine. Yes."), DONE, b"", end=True
        )
        await made.wait(lambda: len(made.acks) == 4)
        assert b"nine" not in made.received


async def test_a_finished_answer_is_scored_while_its_marker_is_still_to_come() -> None:
    """The end of the stream finds its verdict ready."""
    detector = HeldDetector()
    async with line(plan(Streaming.OBSERVE, timeout_s=30.0), detector) as made:
        await made.send(chunk("The ferry is blue."), chunk(finish="stop"))
        await made.wait(lambda: detector.entered.acquire(blocking=False) or not made.arrived.set())
        detector.release.set()
        await made.send(DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 4)
        assert text_of(made.received) == "The ferry is blue."
        assert detector.stopped == [False]


async def test_what_stands_behind_the_marker_is_no_part_of_the_answer() -> None:
    """Whatever it is: no client reads it, and a good answer is not cut for it."""
    async with line(STOP) as made:
        await made.send(
            chunk("The ferry is blue.") + chunk(finish="stop") + DONE + b"data: bye\n\n" + DONE, b"", end=True
        )
        await made.wait(lambda: len(made.acks) == 2)
        assert made.received == chunk("The ferry is blue.") + chunk(finish="stop") + DONE + DONE
        assert (made.outcome.verdict.status, made.outcome.action) == (Status.CHECKED, Action.PASS)


async def test_a_choice_that_was_stopped_is_not_finished_twice() -> None:
    stop = gate(OnFlagged.STOP, on_unchecked=OnUnchecked.BLOCK)
    async with line(stop, max_bytes=4000, choices=2) as made:
        await made.send(frame(said("It costs nine. ", 0)), frame(said("It is", 1)), frame(said("So", 0)))
        await made.wait(lambda: b"content_filter" in made.received)
        await made.send(*[frame(said(" free", 1)) for _ in range(40)], DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 45)
        finishes = [
            choice["index"]
            for each in chunks_of(made.received)
            for choice in each["choices"]
            if choice["finish_reason"] is not None
        ]
        assert sorted(finishes) == [0, 1]


async def test_a_long_message_leaves_others_their_turn() -> None:
    turns: list[int] = []

    async def other() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    async with line(OBSERVE) as made:
        task = asyncio.create_task(other())
        await asyncio.sleep(0)
        before = len(turns)
        await made.send(b"".join(chunk(f"The ferry is blue {n}. ") for n in range(3000)))
        task.cancel()
        assert len(turns) - before >= 4
        await made.wait(lambda: len(made.acks) == 1)


async def test_a_message_is_answered_although_its_stream_was_given_up_while_scoring() -> None:
    """A choice was stopped, a message ends within a frame, and the backend says no more."""
    full = [1 << 30]
    settings = gate(OnFlagged.STOP, max_hold_s=0.05, timeout_s=0.2)
    async with line(settings, room=lambda held: held < full[0], choices=2) as made:
        await made.send(frame(said("It costs nine. ", 0)), frame(said("The ferry is free. ", 1)))
        await made.wait(lambda: len(made.acks) == 2)
        made.flow._start(asyncio.Event().wait)
        await asyncio.sleep(0)
        full[0] = 0
        await made.send(frame(said("a " * 3000, 1)) + b'data: {"id":')
        await made.wait(lambda: len(made.acks) == 3)
        assert made.outcome.verdict.reason is Reason.OVERLOADED


async def test_a_frame_that_can_hardly_be_read_does_not_open_the_gate() -> None:
    """Log probabilities that nest almost too deeply to be taken out, before a flagged sentence."""
    async with line(WITHHOLD) as made:
        await made.send(chunk("The ferry is blue. "))
        depths = range(900, 1000, 2)
        for depth in depths:
            nested = b"[" * depth + b"]" * depth
            await made.send(
                b'data: {"id": "c", "choices": [{"index": 0, "delta": {}, "logprobs": ' + nested + b"}]}\n\n"
            )
        await made.send(chunk("It costs nine. "), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == len(depths) + 5)
        assert b"nine" not in made.received


async def test_a_stream_that_has_its_part_of_the_frames_is_not_read_on_until_some_have_left() -> None:
    """Small frames cost memory that their bytes do not tell of."""
    detector, streams = HeldDetector(), Streams()
    limits = Limits(max_stream_frames=1000)
    others = [streams.join(limits) for _ in range(9)]
    async with line(gate(), detector, share=streams.join(limits)) as made:
        await made.flow.feed(b"".join(chunk("So. ") for _ in range(120)), end=False)
        await made.wait(lambda: detector.entered.acquire(blocking=False) or not made.arrived.set())
        assert made.flow.full
        for each in others:
            each.leave()
        assert not made.flow.full
        detector.release.set()
        await made.flow.feed(DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 3)
        assert made.outcome.verdict.status is Status.CHECKED
    assert (streams.count, streams.bytes, streams.frames) == (0, 0, 0)


async def test_a_stream_with_more_than_its_part_is_refused_where_the_room_is_used_up() -> None:
    """The plan decides about it: here it is cut before what was not checked."""
    streams = Streams()
    limits = Limits(max_stream_bytes=1 << 16)
    other = streams.join(limits)
    other.waits(1 << 16, 1)
    detector = HeldDetector()
    async with line(STOP, detector, share=streams.join(limits)) as made:
        made.sent += [*(chunk("The ferry is free. " * 20) for _ in range(100)), DONE, b""]
        await made.flow.feed(*made.sent, end=True)
        await made.wait(lambda: len(made.acks) == 102)
        detector.release.set()
        assert made.outcome.verdict.reason is Reason.OVERLOADED
        assert made.outcome.action is Action.BLOCK
        assert made.text == ""
