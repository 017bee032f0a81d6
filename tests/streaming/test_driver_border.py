"""A stream whose parts fail, are cancelled or fall silent: nothing stays held, counted or running."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from tests.fakes.detectors import HeldDetector
from tests.streaming.test_driver import DONE, OBSERVE, chunk, chunks_of, gate, line
from truthlens.core.records.enums import Action, OnFlagged, OnUnchecked, Reason, Status
from truthlens.streaming.gate import Gate
from truthlens.streaming.scoring import StreamScorer
from truthlens.streaming.types import Ack


async def test_text_that_needs_no_score_is_let_out_by_the_clock_alone() -> None:
    """No message comes that would look at it again."""
    async with line(gate(max_hold_s=0.05)) as made:
        await made.send(chunk("--- ..."))
        await made.wait(lambda: made.acks == [Ack()])


@pytest.mark.parametrize("part", ["take", "ask", "decide"])
async def test_a_failing_gate_costs_the_verdict_not_the_answer(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret")

    async with line(gate()) as made:
        await made.send(chunk("The ferry "))
        monkeypatch.setattr(Gate, part, fail)
        await made.send(chunk("is blue. "), chunk("It"), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 6)
        assert made.received == b"".join(made.sent)
        assert (made.outcome.verdict.status, made.outcome.verdict.reason) == (
            Status.UNCHECKED,
            Reason.DETECTOR_ERROR,
        )


async def test_a_failing_gate_ends_a_stream_that_must_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret")

    async with line(gate(on_unchecked=OnUnchecked.BLOCK)) as made:
        await made.send(chunk("The ferry "))
        monkeypatch.setattr(Gate, "ask", fail)
        await made.send(chunk("is blue."), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 5)
        assert made.text == ""
        assert made.received.endswith(DONE)
        assert made.outcome.action is Action.BLOCK


@pytest.mark.parametrize("on_unchecked", list(OnUnchecked))
async def test_a_stream_whose_end_fails_as_well_is_acknowledged(
    on_unchecked: OnUnchecked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends a stream reads the answers too, and so may fail like what it ends."""

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret")

    async with line(gate(on_unchecked=on_unchecked)) as made:
        await made.send(chunk("The ferry "))
        monkeypatch.setattr(Gate, "ask", fail)
        monkeypatch.setattr(StreamScorer, "answers", fail)
        await made.send(chunk("is blue."), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 5)
        blocks = on_unchecked is OnUnchecked.BLOCK
        assert made.received == (DONE if blocks else b"".join(made.sent))
        assert made.outcome.action is (Action.BLOCK if blocks else Action.PASS)
        assert made.outcome.verdict.reason is Reason.DETECTOR_ERROR


async def test_a_clock_that_wakes_a_failing_gate_lets_its_text_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret")

    async with line(gate(max_hold_s=0.05)) as made:
        await made.send(chunk("The ferry "))
        monkeypatch.setattr(Gate, "ask", fail)
        await made.wait(lambda: made.acks == [Ack()])
        assert made.outcome.verdict.reason is Reason.DETECTOR_ERROR


async def test_who_is_cancelled_while_closing_has_closed() -> None:
    """What is counted as held is let go of although the work, which a stubborn task keeps up, has not ended."""
    async with line(OBSERVE) as made:
        await made.send(chunk("The ferry is blue."))
        stubborn = asyncio.Event()

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await stubborn.wait()

        made.flow._start(work)
        await asyncio.sleep(0)
        closing = asyncio.create_task(made.flow.aclose())
        await asyncio.sleep(0.01)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert (made.closed, sum(made.held)) == (1, 0)
        stubborn.set()


async def test_closing_ends_also_the_acknowledgements_under_way() -> None:
    """Nobody reads them any more: writing to a call that has ended would fail."""
    async with line(OBSERVE) as made:
        sending, writing = asyncio.Event(), asyncio.Event()

        async def emit(ack: Ack) -> None:
            sending.set()
            await writing.wait()
            made.acks.append(ack)

        await made.send(chunk("The ferry is blue."))
        made.flow._emit = emit
        feeding = asyncio.create_task(made.send(chunk(finish="stop"), DONE))
        await sending.wait()
        await made.flow.aclose()
        writing.set()
        await feeding
        assert made.acks == [Ack()]


async def test_who_goes_away_before_a_scoring_has_begun_leaves_nothing_behind() -> None:
    """A coroutine that nobody awaits is told of as a fault, which fails this test."""
    async with line(gate()) as made:
        await made.send(chunk("The ferry is blue. "), chunk("It"))
    gc.collect()
    assert made.outcomes == []


async def test_an_answer_that_was_withheld_as_a_whole_has_no_spans() -> None:
    """They would point into a text that the client never got."""
    async with line(gate(OnFlagged.WITHHOLD), details=True) as made:
        await made.send(chunk("It costs nine."), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 4)
        assert made.text == "[gone]"
        (choice,) = chunks_of(made.received)[-1]["truthlens"]["choices"]
        assert (choice["detected"], choice["spans"]) == (True, [])


async def test_a_stream_that_is_cut_before_its_first_choice_still_finishes_one() -> None:
    """A client waits for a finish reason."""
    async with line(gate(on_unchecked=OnUnchecked.BLOCK), max_bytes=20) as made:
        await made.send(chunk("The ferry is blue."), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 4)
        assert made.text == ""
        (finish,) = [choice for each in chunks_of(made.received) for choice in each["choices"]]
        assert (finish["index"], finish["finish_reason"]) == (0, "content_filter")
        assert made.received.endswith(DONE)


async def test_a_finish_that_is_cut_off_is_replaced() -> None:
    """The backend has finished its answer, and the client has not got that yet."""
    async with line(gate(on_unchecked=OnUnchecked.BLOCK)) as made:
        opaque = b"data: <oops>\n\n"
        await made.send(chunk("The ferry ") + opaque + chunk("is blue.") + chunk(finish="stop") + DONE)
        await made.send(b"", end=True)
        await made.wait(lambda: len(made.acks) == 2)
        finishes = [
            choice["finish_reason"] for each in chunks_of(made.received) for choice in each["choices"]
        ]
        assert finishes[-1] == "content_filter"
        assert "stop" not in finishes
        assert (made.text, made.received.count(DONE)) == ("", 1)


async def test_nothing_beyond_the_bound_leaves_a_stream_that_must_be_checked() -> None:
    """Neither with the message that goes beyond it, nor while what came before is still being scored."""
    detector = HeldDetector()
    must = gate(on_unchecked=OnUnchecked.BLOCK, timeout_s=30.0)
    async with line(must, detector, max_bytes=400) as made:
        await made.send(chunk("The ferry is blue."), chunk(" It"))
        await asyncio.to_thread(detector.entered.acquire)
        await made.send(chunk(" costs nine."), chunk(" It costs nine."), chunk(" It costs nine."))
        assert made.acks == []
        detector.release.set()
        await made.wait(lambda: len(made.acks) == 5)
        await made.send(chunk(" It costs nine."), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 9)
        assert "nine" not in made.text
        assert made.received.count(DONE) == 1
        assert made.outcome.verdict.reason is Reason.TOO_LARGE
