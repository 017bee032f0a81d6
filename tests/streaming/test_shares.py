"""What all streams share: turns that leave others theirs, equal parts of the room, refusals of who has more than a part."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.limits import Limits
from truthlens.streaming.shares import Refusal, Share, Streams, Turns

FEW, MANY = 200, 4096
LIMITS = Limits.model_construct(max_streams=3, max_stream_bytes=300_000, max_stream_frames=900)


async def taken(turns: Turns, sizes: list[int]) -> list[int]:
    """The order in which waiting streams get their turn, by their places in ``sizes``."""
    order: list[int] = []

    async def one(place: int) -> None:
        await turns.take(sizes[place])
        order.append(place)

    await asyncio.gather(*(one(place) for place in range(len(sizes))))
    return order


async def test_who_brings_little_is_taken_before_who_empties_a_buffer() -> None:
    turns = Turns()
    sizes = [MANY] * 24 + [FEW] * 4
    order = await taken(turns, sizes)
    first_many_waiting = [place for place in order if place < 24]
    assert order.index(27) < order.index(first_many_waiting[-1])
    assert sorted(order) == list(range(28))


async def test_those_with_much_are_not_forgotten_while_others_come_again_and_again() -> None:
    turns = Turns()
    done = asyncio.Event()

    async def chatter() -> None:
        while not done.is_set():
            await turns.take(1000)
            await asyncio.sleep(0)

    async def burst() -> None:
        for _ in range(20):
            await turns.take(MANY)
        done.set()

    async with asyncio.timeout(30):
        await asyncio.gather(*(chatter() for _ in range(30)), burst())
    assert done.is_set()


async def test_between_two_rounds_everybody_else_has_a_turn() -> None:
    """What reads much in all gives way to the rest of the process at least once a few of its steps."""
    turns, others = Turns(), 0
    steps_since, longest = 0, 0

    async def other() -> None:
        nonlocal others, steps_since
        while True:
            others += 1
            steps_since = 0
            await asyncio.sleep(0)

    async def stream() -> None:
        nonlocal steps_since, longest
        for _ in range(10):
            await turns.take(MANY)
            steps_since += 1
            longest = max(longest, steps_since)

    task = asyncio.create_task(other())
    await asyncio.gather(*(stream() for _ in range(20)))
    task.cancel()
    assert longest <= 16
    assert others >= 10


async def test_a_stream_that_is_given_up_leaves_its_turn_to_the_next() -> None:
    turns = Turns()
    waiting = [asyncio.create_task(turns.take(MANY)) for _ in range(6)]
    await asyncio.sleep(0)
    waiting[-1].cancel()
    waiting[-2].cancel()
    async with asyncio.timeout(30):
        await asyncio.gather(*waiting, return_exceptions=True)
        await turns.take(MANY)


def test_one_more_than_may_be_followed_is_refused() -> None:
    refused: list[Refusal] = []
    streams = Streams(refused=refused.append)
    shares = [streams.join(LIMITS) for _ in range(3)]
    assert not streams.admits(LIMITS)
    shares[0].leave()
    shares[0].leave()
    assert streams.admits(LIMITS)
    assert (streams.count, refused) == (2, [Refusal.STREAMS])


def test_no_stream_is_begun_while_the_room_is_used_up() -> None:
    refused: list[Refusal] = []
    streams = Streams(refused=refused.append)
    share = streams.join(LIMITS)
    share.waits(300_001, 10)
    assert not streams.admits(LIMITS)
    share.waits(10, 901)
    assert not streams.admits(LIMITS)
    share.leave()
    assert streams.admits(LIMITS)
    assert set(refused) == {Refusal.BYTES, Refusal.FRAMES}


def test_who_has_its_part_is_not_read_on_and_the_parts_are_equal() -> None:
    streams = Streams()
    shares = [streams.join(LIMITS) for _ in range(3)]
    assert all(share.has_room(99_999, 299) for share in shares)
    assert not any(share.has_room(100_000, 0) or share.has_room(0, 300) for share in shares)
    shares[0].leave()
    assert shares[1].has_room(149_999, 449)


def test_only_who_has_more_than_its_part_has_to_go() -> None:
    """A burst of one client does not cost another client its verdict."""
    streams = Streams()
    greedy, modest, third = (streams.join(LIMITS) for _ in range(3))
    assert modest.waits(20_000, 20)
    assert third.waits(0, 0)
    assert not greedy.waits(290_000, 20)
    assert modest.waits(30_000, 30)
    greedy.leave()
    assert modest.waits(200_000, 20)


def test_no_stream_is_begun_while_the_event_loop_is_late_for_long() -> None:
    """One pause is no overload; those that run go on, and once it is over new ones are begun again."""
    refused: list[Refusal] = []
    streams = Streams(refused=refused.append)
    share = streams.join(LIMITS)
    streams.note_lag(60.0)
    assert streams.admits(LIMITS)
    for _ in range(4):
        streams.note_lag(0.5)
    assert not streams.admits(LIMITS)
    assert refused == [Refusal.LAG]
    assert share.waits(1000, 10)
    for _ in range(4):
        streams.note_lag(0.0)
    assert streams.admits(LIMITS)


def test_no_stream_is_begun_while_scorings_wait_for_long() -> None:
    refused: list[Refusal] = []
    streams = Streams(refused=refused.append)
    assert streams.admits(LIMITS, behind_s=2.0)
    assert not streams.admits(LIMITS, behind_s=2.1)
    assert refused == [Refusal.LAG]


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 200_000), st.integers(0, 600), st.booleans()), max_size=60
    )
)
def test_whatever_streams_do_the_sums_are_those_of_the_streams(
    steps: list[tuple[int, int, int, bool]],
) -> None:
    """Whoever leaves takes with it what it had, and there is never less than nothing."""
    streams = Streams()
    shares: dict[int, tuple[Share, int, int]] = {}
    for place, size, frames, leaves in steps:
        if leaves and place in shares:
            shares.pop(place)[0].leave()
        elif not leaves:
            share = shares[place][0] if place in shares else streams.join(LIMITS)
            share.waits(size, frames)
            shares[place] = (share, size, frames)
        assert streams.count == len(shares)
        assert streams.bytes == sum(size for _, size, _ in shares.values())
        assert streams.frames == sum(frames for _, _, frames in shares.values())
