"""Work on a stream ends when the stream does."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from tests.gateway.test_session import Pipeline
from truthlens.gateway._pb import ext_proc_pb2 as pb
from truthlens.gateway.events import MoreTime
from truthlens.gateway.server import Server, _Stream
from truthlens.gateway.session import State
from truthlens.streaming.types import Ack
from truthlens.ticket import Ticket


class Context:
    """A stream of scripted messages; reading blocks until one is there."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Any] = asyncio.Queue()

    async def read(self) -> Any:
        return await self.messages.get()


async def test_work_ends_with_its_result_and_the_next_message_is_still_read() -> None:
    context = Context()
    stream = _Stream(context)

    async def work() -> str:
        await asyncio.sleep(0)
        return "scored"

    assert await stream.unless_it_ends(work()) == "scored"
    context.messages.put_nowait("next")
    assert await stream.read() == "next"
    context.messages.put_nowait("last")
    assert await stream.read() == "last"


async def test_a_half_closed_stream_cancels_the_work() -> None:
    """A client that went away looks like a plain end of the stream."""
    context = Context()
    stream = _Stream(context)
    ended = asyncio.Event()

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    running = asyncio.create_task(stream.unless_it_ends(work()))
    await asyncio.sleep(0)
    context.messages.put_nowait(grpc.aio.EOF)
    assert await running is None
    assert ended.is_set()


async def test_a_message_in_the_middle_is_kept_for_later() -> None:
    context = Context()
    stream = _Stream(context)
    go = asyncio.Event()

    async def work() -> str:
        await go.wait()
        return "scored"

    running = asyncio.create_task(stream.unless_it_ends(work()))
    context.messages.put_nowait("trailers")
    await asyncio.sleep(0.01)
    go.set()
    assert await running == "scored"
    assert await stream.read() == "trailers"


async def test_a_cancelled_call_cancels_the_work() -> None:
    context = Context()
    stream = _Stream(context)
    ended = asyncio.Event()

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    running = asyncio.create_task(stream.unless_it_ends(work()))
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()
    stream.close()


async def test_failing_work_raises() -> None:
    stream = _Stream(Context())

    async def work() -> str:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await stream.unless_it_ends(work())
    stream.close()


class Waiting(Pipeline):
    """A pipeline that never gets done with a request at one of its stages, and notes that it was told to stop."""

    def __init__(self, stage: str) -> None:
        super().__init__()
        self.began, self.ended = asyncio.Event(), asyncio.Event()
        self.abandoned = 0
        self._stage = stage

    async def open(self, ticket: Ticket, _body: bytes) -> Ticket:
        return await self._at("open", ticket)

    async def prepare(self, ticket: Ticket) -> Ticket:
        return await self._at("prepare", ticket)

    def abandon(self, _ticket: Ticket) -> None:
        self.abandoned += 1

    async def _at(self, stage: str, ticket: Ticket) -> Ticket:
        if stage == self._stage:
            self.began.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.set()
        return ticket


class Call(Context):
    """One ext_proc call; what is written goes nowhere."""

    def invocation_metadata(self) -> tuple[()]:
        return ()

    async def write(self, _message: Any) -> None:
        return None


@pytest.mark.parametrize("stage", ["open", "prepare"])
async def test_a_client_that_goes_away_ends_the_reading_of_its_request(stage: str) -> None:
    """Nobody waits for what it says any more, nor for its evidence."""
    pipeline, call = Waiting(stage), Call()
    server = Server(pipeline, address="127.0.0.1:0")
    call.messages.put_nowait(pb.ProcessingRequest(request_headers=pb.HttpHeaders()))
    call.messages.put_nowait(pb.ProcessingRequest(request_body=pb.HttpBody(body=b"{}", end_of_stream=True)))
    running = asyncio.create_task(server._process(None, call))
    await asyncio.wait_for(pipeline.began.wait(), 30)
    call.messages.put_nowait(grpc.aio.EOF)
    await asyncio.wait_for(running, 30)
    assert pipeline.ended.is_set()
    assert pipeline.abandoned == 1


class Leaving(Call):
    """A call whose client has gone: nothing can be written, and no end is read."""

    async def write(self, _message: Any) -> None:
        raise grpc.aio.InternalError("the call is over")


class OwnTask:
    """A driver that acknowledges from a task of its own, as one does that has scored a sentence."""

    droppable, full, outcome, task = False, False, None, None

    async def feed(self, _emit: Any) -> None: ...

    async def aclose(self) -> None:
        assert self.task is not None
        await asyncio.wait({self.task})


async def test_a_client_that_leaves_during_a_write_ends_the_stream_without_an_error() -> None:
    """The write may be that of the driver's own task, whose exception nobody would read."""
    driver = OwnTask()

    class Streams(Pipeline):
        def flow(self, _ticket: Ticket, emit: Any) -> Any:
            driver.task = asyncio.create_task(emit(Ack(b"piece", end=False)))
            return driver

    class Streaming:
        state, ticket, concluded = State.STREAM, object(), False

        def passed(self, body: bytes, *, end: bool, outcome: Any) -> Any:
            return MoreTime(1.0)

    server = Server(Streams(), address="127.0.0.1:0")
    following = asyncio.create_task(server._follow(Streaming(), {}, _Stream(Leaving())))
    await asyncio.wait({following}, timeout=30)
    assert following.cancelled()
    assert driver.task is not None
    assert driver.task.exception() is None
