"""One streamed answer, from its messages to its acknowledgements, with detectors that do as they are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.fakes.detectors import FailingDetector, HeldDetector, WordDetector
from tests.fakes.engines import engine_of
from truthlens.api.sse.frames import Decoder
from truthlens.core.limits import Limits
from truthlens.core.records.enums import (
    Action,
    Endpoint,
    OnFlagged,
    OnUnchecked,
    Provenance,
    Reason,
    Status,
    Streaming,
)
from truthlens.core.records.exchange import Exchange, Passage
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import StreamSettings
from truthlens.detection.interfaces import Detector
from truthlens.streaming.driver import StreamDriver
from truthlens.streaming.shares import Share, Streams
from truthlens.streaming.types import Ack, Search

EVIDENCE = (Passage("The ferry is free and blue.", Provenance.DOCUMENTS),)
WORDS = WordDetector({"nine": 0.9, "owl": 0.8})
DONE = b"data: [DONE]\n\n"
PATIENCE_S = 20.0


def chunk(text: str | None = None, *, finish: str | None = None, **delta: Any) -> bytes:
    delta |= {} if text is None else {"content": text}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}  # fmt: skip
    return f"data: {json.dumps(body)}\n\n".encode()


def plan(streaming: Streaming, **fields: Any) -> Plan:
    return Plan("p", threshold=0.5, streaming=streaming, warning_template="Beware.", **fields)


def gate(on_flagged: OnFlagged = OnFlagged.MARK, *, max_hold_s: float = 3.0, **fields: Any) -> Plan:
    stream = StreamSettings(mark_template=" [?]", notice_template="[gone]", max_hold_s=max_hold_s)
    return plan(Streaming.GATE, stream=stream, on_flagged=on_flagged, **fields)


OBSERVE = plan(Streaming.OBSERVE)


@dataclass
class Line:
    """A flow with both of its ends in the hands of a test."""

    flow: StreamDriver
    sent: list[bytes] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    closed: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, *messages: bytes, end: bool = False) -> None:
        for number, data in enumerate(messages):
            self.sent.append(data)
            await self.flow.feed(data, end=end and number == len(messages) - 1)
            await self.flow.room()

    async def wait(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not true():
                self.arrived.clear()
                await self.arrived.wait()

    @property
    def received(self) -> bytes:
        return b"".join(
            data if ack.body is None else ack.body for data, ack in zip(self.sent, self.acks, strict=False)
        )

    @property
    def text(self) -> str:
        return text_of(self.received)

    @property
    def outcome(self) -> Outcome:
        (outcome,) = self.outcomes
        return outcome


def chunks_of(stream: bytes) -> list[dict[str, Any]]:
    frames = Decoder().feed(stream)
    return [json.loads(frame.data) for frame in frames if frame.data not in (None, "[DONE]")]


def text_of(stream: bytes) -> str:
    deltas = [choice["delta"] for each in chunks_of(stream) for choice in each["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


@asynccontextmanager
async def line(
    plan: Plan,
    detector: Detector = WORDS,
    *,
    passages: Sequence[Passage] = EVIDENCE,
    details: bool = False,
    max_bytes: int = 1 << 20,
    room: Callable[[int], bool] = lambda _held: True,
    structured: bool = False,
    choices: int = 1,
    notes: tuple[str, ...] = (),
    share: Share | None = None,
    search: Search | None = None,
) -> AsyncIterator[Line]:
    engine = engine_of({None: detector})
    exchange = Exchange(
        Endpoint.CHAT,
        "m",
        "q",
        tuple(passages),
        stream=True,
        structured=structured,
        choices=choices,
        notes=notes,
        unchecked=None if passages else Reason.NO_CONTEXT,
    )

    async def emit(ack: Ack) -> None:
        made.acks.append(ack)
        made.arrived.set()

    def hold(size: int) -> bool:
        made.held.append(size)
        return room(sum(made.held))

    def closed() -> None:
        made.closed += 1

    outcomes: list[Outcome] = []
    made = Line(
        StreamDriver(
            plan,
            exchange,
            engine,
            details=details,
            max_bytes=max_bytes,
            share=share or Streams().join(Limits()),
            emit=emit,
            conclude=outcomes.append,
            hold=hold,
            closed=closed,
            search=search,
        ),
        outcomes=outcomes,
    )
    try:
        yield made
    finally:
        await made.flow.aclose()
        await engine.aclose()
        assert sum(made.held) == 0
        assert made.closed == 1


async def test_an_observed_stream_leaves_at_once_and_ends_with_its_verdict() -> None:
    """The end is held while the verdict is not known; then warning, finish, verdict, marker, in this order."""
    detector = HeldDetector()
    async with line(plan(Streaming.OBSERVE, timeout_s=30.0), detector, details=True) as made:
        await made.send(chunk(role="assistant"), chunk("It costs "), chunk("nine."))
        assert made.text == "It costs nine."
        await made.send(chunk(finish="stop"), DONE, b"", end=True)
        assert len(made.acks) == 3
        detector.release.set()
        await made.wait(lambda: len(made.acks) == 6)
        assert made.received.endswith(DONE)
        assert chunks_of(made.received)[-1]["truthlens"]["score"] == 0.1
        assert made.outcome.verdict.status is Status.CHECKED


async def test_a_flagged_observed_answer_ends_with_the_warning() -> None:
    async with line(OBSERVE, details=True) as made:
        await made.send(chunk("It costs nine."), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 4)
        assert made.text == "It costs nine.\n\nBeware."
        last = chunks_of(made.received)
        assert [each["choices"][0]["finish_reason"] for each in last[:-1]] == [None, None, "stop"]
        assert (last[-1]["choices"], last[-1]["truthlens"]["detected"]) == ([], True)
        assert made.outcome.action is Action.WARN


async def test_a_gated_sentence_leaves_once_it_is_scored() -> None:
    """The first sentence is out before the second has ended."""
    async with line(gate()) as made:
        await made.send(chunk("The ferry is blue."))
        assert made.acks == []
        await made.send(chunk(" It "))
        await made.wait(lambda: len(made.acks) == 1)
        assert made.text == "The ferry is blue."
        await made.send(chunk("costs nine."), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 6)
        assert made.text == "The ferry is blue. It costs nine. [?]"
        assert made.outcome.stream is not None
        assert made.outcome.stream.sentences == {"passed": 1, "flagged": 1, "unchecked": 0}
        assert (made.outcome.action, made.outcome.initial_score) == (Action.WARN, None)


async def test_a_withheld_sentence_never_leaves_and_the_score_is_that_of_what_does() -> None:
    async with line(gate(OnFlagged.WITHHOLD), details=True) as made:
        await made.send(chunk("The ferry is blue. It costs nine. It is free."), chunk(finish="stop"), DONE)
        await made.wait(lambda: len(made.acks) == 3)
        assert made.text == "The ferry is blue. [gone] It is free."
        assert b"nine" not in made.received.partition(b'"truthlens"')[0]
        assert (made.outcome.action, made.outcome.initial_score) == (Action.REPLACE, 0.9)
        assert made.outcome.verdict.score == pytest.approx(0.02)


async def test_a_stopped_stream_ends_for_the_client_and_swallows_the_rest() -> None:
    async with line(gate(OnFlagged.STOP), details=True) as made:
        await made.send(chunk("The ferry is blue. "), chunk("It costs nine. "), chunk("It "))
        await made.wait(lambda: len(made.acks) == 3)
        await made.send(chunk("is free."), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 7)
        assert made.text == "The ferry is blue. [gone]"
        assert made.received.endswith(DONE)
        assert made.received.count(DONE) == 1
        *_, finish, verdict = chunks_of(made.received)
        assert finish["choices"][0]["finish_reason"] == "content_filter"
        assert verdict["truthlens"]["action"] == "block"
        assert made.outcome.action is Action.BLOCK


async def test_text_is_scored_as_far_as_it_has_come_when_it_was_held_long_enough() -> None:
    """No further message comes; the clock alone lets it out."""
    async with line(gate(max_hold_s=0.05)) as made:
        await made.send(chunk("The ferry is"))
        await made.wait(lambda: len(made.acks) == 1)
        assert made.text == "The ferry is"


async def test_a_stream_waits_for_room_while_too_much_is_held() -> None:
    """Reading goes on once the detector has decided what is held."""
    detector = HeldDetector()
    stream = StreamSettings(max_hold_bytes=4096)
    async with line(plan(Streaming.GATE, stream=stream, timeout_s=30.0), detector) as made:
        words = [chunk("word " * 20) for _ in range(30)]
        sending = asyncio.create_task(made.send(*words))
        await asyncio.to_thread(detector.entered.acquire)
        await asyncio.sleep(0)
        assert not sending.done()
        assert sum(len(data) for data in made.sent) < 4096 + 500
        detector.release.set()
        async with asyncio.timeout(PATIENCE_S):
            await sending


@pytest.mark.parametrize("streaming", [Streaming.OBSERVE, Streaming.GATE])
async def test_a_failing_detector_costs_the_verdict_not_the_answer(streaming: Streaming) -> None:
    async with line(plan(streaming), FailingDetector(RuntimeError("secret"))) as made:
        await made.send(chunk("The ferry is blue. "), chunk("It"), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 5)
        assert made.received == b"".join(made.sent)
        assert (made.outcome.verdict.status, made.outcome.verdict.reason) == (
            Status.UNCHECKED,
            Reason.DETECTOR_ERROR,
        )


async def test_what_could_not_be_checked_ends_a_stream_that_must_be_checked() -> None:
    failing = FailingDetector(RuntimeError("secret"))
    async with line(gate(on_unchecked=OnUnchecked.BLOCK), failing) as made:
        await made.send(chunk("The ferry is blue. "), chunk("It"), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 5)
        assert made.text == "[gone]"
        assert made.received.endswith(DONE)
        assert made.outcome.action is Action.BLOCK


async def test_without_room_a_stream_passes_unchecked() -> None:
    async with line(gate(), room=lambda held: held < 6000) as made:
        for _ in range(80):
            await made.send(chunk("word " * 20))
        assert made.received == b"".join(made.sent)
        assert made.outcome.verdict.reason is Reason.OVERLOADED


async def test_without_room_a_stream_that_must_be_checked_is_cut() -> None:
    plan = gate(on_unchecked=OnUnchecked.BLOCK)
    async with line(plan, room=lambda held: held < 6000) as made:
        for _ in range(80):
            await made.send(chunk("word " * 20))
        await made.send(DONE, b"", end=True)
        assert len(made.acks) == 82
        assert made.text == ""
        finish = chunks_of(made.received)[-1]["choices"][0]["finish_reason"]
        assert (finish, made.received.count(DONE)) == ("content_filter", 1)


@pytest.mark.parametrize("streaming", [Streaming.OBSERVE, Streaming.GATE])
async def test_beyond_its_bound_a_stream_is_checked_no_further(streaming: Streaming) -> None:
    async with line(plan(streaming), max_bytes=600) as made:
        await made.send(*[chunk("The ferry is blue. ") for _ in range(8)])
        await made.send(chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 11)
        assert made.received == b"".join(made.sent)
        assert (made.outcome.verdict.status, made.outcome.verdict.reason) == (
            Status.PARTIAL,
            Reason.TOO_LARGE,
        )


async def test_a_stream_of_another_dialect_passes_unchecked() -> None:
    async with line(gate()) as made:
        await made.send(b'event: message_start\ndata: {"type": "message_start"}\n\n', b"", end=True)
        await made.wait(lambda: len(made.acks) == 2)
        assert made.received == b"".join(made.sent)
        assert made.outcome.verdict.reason is Reason.DIALECT


async def test_an_error_of_the_backend_without_an_answer_is_told_as_one() -> None:
    async with line(OBSERVE) as made:
        await made.send(b'data: {"error": {"message": "out of memory"}}\n\n', DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 3)
        assert made.outcome.verdict.reason is Reason.UPSTREAM_ERROR
        assert "stream-error" in made.outcome.notes


async def test_closing_ends_the_work() -> None:
    """A client that goes away leaves no job behind that anybody waits for."""
    detector = HeldDetector()
    async with line(gate(), detector) as made:
        await made.send(chunk("The ferry is blue. "), chunk("It"))
        await asyncio.to_thread(detector.entered.acquire)
        await made.flow.aclose()
        detector.release.set()
        assert (made.acks, made.outcomes) == ([], [])
