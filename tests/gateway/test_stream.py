"""Work on a stream ends when the stream does."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from truthlens.gateway.server import _Stream


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
        return "judged"

    assert await stream.unless_it_ends(work()) == "judged"
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
        return "judged"

    running = asyncio.create_task(stream.unless_it_ends(work()))
    context.messages.put_nowait("trailers")
    await asyncio.sleep(0.01)
    go.set()
    assert await running == "judged"
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
