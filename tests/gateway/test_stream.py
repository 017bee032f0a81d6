"""Work on a stream ends when the stream does."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from tests.gateway.test_session import Pipeline, at_response, made, response
from truthlens.core.records.enums import Streaming
from truthlens.exchange.ticket import Ticket
from truthlens.gateway._pb import ext_proc_pb2 as pb
from truthlens.gateway.events import Continue, MoreTime, Phase, ResponseBody, Trailers
from truthlens.gateway.server import _INBOX_BYTES, _INBOX_MESSAGES, Server, _batches, _Inbox, _Stream
from truthlens.gateway.session import State, StreamPiece
from truthlens.streaming.types import Ack


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

    def reads_at_once(self, _ticket: Ticket, _size: int) -> bool:
        return False

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


class Flow:
    """A driver that has room, or not."""

    def __init__(self, *, room: bool = True) -> None:
        self.open = asyncio.Event()
        if room:
            self.open.set()

    async def room(self) -> bool:
        return await self.open.wait()


def body(data: bytes, *, end: bool = False) -> pb.ProcessingRequest:
    return pb.ProcessingRequest(response_body=pb.HttpBody(body=data, end_of_stream=end))


async def settle() -> None:
    for _ in range(2000):
        await asyncio.sleep(0)


async def test_messages_that_came_meanwhile_are_taken_at_once_and_in_order() -> None:
    call = Call()
    inbox = _Inbox(_Stream(call), Flow())
    sent = [body(b"%d" % number) for number in range(5)]
    call.messages.put_nowait(sent[0])
    assert await inbox.take() == sent[:1]
    for message in sent[1:]:
        call.messages.put_nowait(message)
    await settle()
    assert await inbox.take() == sent[1:]
    call.messages.put_nowait(grpc.aio.EOF)
    assert await inbox.take() == []


async def test_what_came_before_the_end_of_the_stream_is_worked_on_first() -> None:
    call = Call()
    inbox = _Inbox(_Stream(call), Flow())
    for message in (body(b"1"), body(b"2"), grpc.aio.EOF):
        call.messages.put_nowait(message)
    await settle()
    assert len(await inbox.take()) == 2
    assert await inbox.take() == []


@pytest.mark.parametrize(("size", "most"), [(1, _INBOX_MESSAGES), (_INBOX_BYTES // 4, 4)])
async def test_no_more_is_read_ahead_than_fits(size: int, most: int) -> None:
    """What follows stays with Envoy; one message more is in hand, to notice the end of the stream."""
    call = Call()
    inbox = _Inbox(_Stream(call), Flow())
    for _ in range(most + 50):
        call.messages.put_nowait(body(b"x" * size))
    await settle()
    assert call.messages.qsize() == 49
    assert len(await inbox.take()) == most
    inbox.close()


async def test_nothing_more_is_taken_in_while_the_stream_holds_all_that_it_may() -> None:
    call, flow = Call(), Flow(room=False)
    inbox = _Inbox(_Stream(call), flow)
    for _ in range(3):
        call.messages.put_nowait(body(b"x"))
    await settle()
    assert call.messages.qsize() == 2
    flow.open.set()
    await settle()
    assert len(await inbox.take()) == 3
    inbox.close()


async def test_an_error_of_the_stream_is_raised_where_messages_are_waited_for() -> None:
    class Broken(Call):
        async def read(self) -> Any:
            raise grpc.aio.InternalError("the call is over")

    inbox = _Inbox(_Stream(Broken()), Flow())
    with pytest.raises(grpc.aio.InternalError):
        await inbox.take()


def test_pieces_that_follow_each_other_are_one_batch_and_trailers_keep_their_place() -> None:
    session = at_response(Pipeline(), made(streaming=Streaming.OBSERVE))
    session.receive(response(content_type="text/event-stream"))
    pieces = [ResponseBody(b"1", False), ResponseBody(b"2", False), ResponseBody(b"3", True)]
    trailers = Trailers(Phase.RESPONSE_TRAILERS)
    first, reply, last = _batches(session, [*pieces[:2], trailers, pieces[2]])
    assert first == [StreamPiece(b"1", False), StreamPiece(b"2", False)]
    assert reply == Continue(Phase.RESPONSE_TRAILERS)
    assert last == [StreamPiece(b"3", True)]


class Leaving(Call):
    """A call whose client has gone: nothing can be written, and no end is read."""

    async def write(self, _message: Any) -> None:
        raise grpc.aio.InternalError("the call is over")


class OwnTask:
    """A driver that acknowledges from a task of its own, as one does that has scored a sentence."""

    droppable, outcome, task = False, None, None

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

    class Followed:
        state, ticket, concluded = State.STREAM, object(), False

        def passed(self, body: bytes, *, end: bool, outcome: Any) -> Any:
            return MoreTime(1.0)

    server = Server(Streams(), address="127.0.0.1:0")
    following = asyncio.create_task(server._follow(Followed(), {}, _Stream(Leaving())))
    await asyncio.wait({following}, timeout=30)
    assert following.cancelled()
    assert driver.task is not None
    assert driver.task.exception() is None
