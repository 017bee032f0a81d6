"""Whatever becomes of a stream, and at whatever moment, all that it held is given back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.fakes.detectors import HeldDetector
from tests.streaming.test_driver import DONE, OBSERVE, WORDS, chunk, gate, line
from truthlens.api.sse.frames import MAX_FRAME_BYTES
from truthlens.core.records.enums import OnFlagged, OnUnchecked, Reason, Status
from truthlens.core.records.plan import Plan
from truthlens.detection.engine import Detector
from truthlens.streaming.relay import MOST_FRAME_BYTES, MOST_TEXT_CHARS

# Time enough for megabytes on a busy machine.
WITHHOLD = gate(OnFlagged.WITHHOLD, max_hold_s=60.0)
BLOCK = gate(OnFlagged.WITHHOLD, max_hold_s=60.0, on_unchecked=OnUnchecked.BLOCK)
LONG = [
    chunk("The ferry is blue. It costs nine. " * 300) + chunk(" It is"),
    chunk(" free. ") * 900,
    chunk("So. " * 3000) + chunk(finish="stop"),
    DONE,
    b"",
]


async def fed(made: object, messages: Sequence[bytes]) -> None:
    await made.send(*messages, end=True)  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("plan", [OBSERVE, WITHHOLD, BLOCK], ids=["observe", "withhold", "block"])
@pytest.mark.parametrize("held", [False, True], ids=["scored", "never-scored"])
async def test_a_stream_that_is_cancelled_at_any_moment_gives_everything_back(plan: Plan, held: bool) -> None:
    """Envoy resets streams whenever it likes: within a step of reading, while there is no room, within an ending."""
    for steps in [*range(20), *range(20, 300, 23)]:
        detector: Detector = HeldDetector() if held else WORDS
        # Leaving makes sure that nothing is counted as held, and that the end was told once.
        async with line(plan, detector) as made:
            feeding = asyncio.create_task(fed(made, LONG))
            for _ in range(steps):
                await asyncio.sleep(0)
            feeding.cancel()
            await asyncio.wait({feeding})
            if isinstance(detector, HeldDetector):
                detector.release.set()


async def test_closing_that_is_cancelled_itself_gives_everything_back() -> None:
    detector = HeldDetector()
    async with line(WITHHOLD, detector) as made:
        await made.send(chunk("The ferry is blue. It"))
        closing = asyncio.create_task(made.flow.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait({closing})
        assert sum(made.held) == 0
        assert made.closed == 1
        detector.release.set()


async def test_there_is_room_again_once_a_scoring_has_ended() -> None:
    detector = HeldDetector()
    async with line(gate(OnFlagged.WITHHOLD, max_hold_s=30.0), detector, max_bytes=1 << 22) as made:
        await made.flow.feed(chunk("The ferry is blue. " * 6000), end=False)
        made.sent.append(b"")
        while not made.flow.full:
            await asyncio.sleep(0)
        waiting = asyncio.create_task(made.flow.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        detector.release.set()
        assert await waiting


FRAME = MOST_FRAME_BYTES + MAX_FRAME_BYTES
TOO_LARGE = {
    "a frame": [chunk("x" * FRAME)],
    "a frame without an end": [b"data: {" + b"x" * FRAME],
    "a text in one frame": [chunk("The ferry is blue. " * (MOST_TEXT_CHARS // 18))],
    "a text in many frames": [chunk("The ferry is blue. " * 40_000)] * 2,
}


@pytest.mark.slow
@pytest.mark.parametrize("plan", [WITHHOLD, BLOCK], ids=["withhold", "block"])
@pytest.mark.parametrize("name", TOO_LARGE)
async def test_what_is_too_large_for_a_live_check_passes_or_is_cut_as_the_plan_says(
    plan: Plan, name: str
) -> None:
    """And says why: nothing of it waits for a clock that is not ours."""
    messages = [chunk("The ferry is blue. "), *TOO_LARGE[name], b"\n\n" + chunk(finish="stop"), DONE, b""]
    async with line(plan, max_bytes=1 << 26) as made:
        await made.send(*messages, end=True)
        await made.wait(lambda: len(made.acks) == len(messages))
        assert made.outcome.verdict.reason is Reason.TOO_LARGE
        assert made.outcome.verdict.status is not Status.CHECKED
        if plan is BLOCK:
            assert len(made.received) < 2_000_000
            assert b"content_filter" in made.received
            assert made.received.endswith(DONE)
        else:
            assert made.received == b"".join(made.sent)


@pytest.mark.slow
@pytest.mark.parametrize("silence", [b": k\n\n", b"\n", b":\r\n\r\n", b": a\n: b\n\n"])
async def test_comments_in_a_burst_are_let_through_byte_for_byte(silence: bytes) -> None:
    """Before, within and behind an answer, a hundred thousand at once."""
    burst = silence * 100_000
    async with line(WITHHOLD, details=True, max_bytes=1 << 26) as made:
        await made.send(
            burst, chunk("The ferry is blue."), burst, chunk(finish="stop"), DONE, burst, b"", end=True
        )
        await made.wait(lambda: len(made.acks) == 7)
        assert made.outcome.verdict.status is Status.CHECKED
        assert made.received.count(silence) >= 300_000
        assert made.text == "The ferry is blue."
