"""Retries, and what a model's gate lets through."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from tests.fakes.llm_backends import Clock
from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure
from truthlens.llm.errors import AttemptError
from truthlens.llm.retries import Limiter, ModelGate, with_retries


class Scripted:
    """An attempt that fails with each of the errors in turn, then succeeds."""

    def __init__(self, *errors: CallError) -> None:
        self._errors = list(errors)
        self.attempts = 0

    async def __call__(self) -> str:
        self.attempts += 1
        if self._errors:
            raise self._errors.pop(0)
        return "done"


class HighRandom(random.Random):
    """Draws the upper bound."""

    def uniform(self, a: float, b: float) -> float:
        return b


def passing(failure: CallFailure = CallFailure.SERVER_ERROR, least_wait_s: float = 0.0) -> AttemptError:
    return AttemptError(failure, again=True, least_wait_s=least_wait_s)


async def retried(attempt: Callable[[], Awaitable[str]], clock: Clock, seconds: float = 60.0) -> str:
    deadline = Deadline.after(seconds, clock=clock)
    return await with_retries(attempt, deadline=deadline, sleep=clock.sleep, rng=HighRandom())


async def test_an_attempt_that_may_do_better_is_repeated_with_growing_backoff() -> None:
    clock, attempt = Clock(), Scripted(passing(), passing())
    assert await retried(attempt, clock) == "done"
    assert clock.slept == [0.25, 0.5]


async def test_after_three_attempts_the_last_error_is_told() -> None:
    attempt = Scripted(passing(), passing(), passing(CallFailure.RATE_LIMITED), passing())
    with pytest.raises(AttemptError) as caught:
        await retried(attempt, Clock())
    assert (attempt.attempts, caught.value.failure) == (3, CallFailure.RATE_LIMITED)


@pytest.mark.parametrize("error", [AttemptError(CallFailure.CLIENT_ERROR), CallError(CallFailure.BUSY)])
async def test_an_error_that_another_attempt_cannot_help_ends_it(error: CallError) -> None:
    attempt = Scripted(error)
    with pytest.raises(CallError):
        await retried(attempt, Clock())
    assert attempt.attempts == 1


async def test_the_wait_that_the_model_asks_for_is_the_least() -> None:
    clock = Clock()
    await retried(Scripted(passing(least_wait_s=7.0)), clock)
    assert clock.slept == [7.25]


async def test_a_wait_that_does_not_fit_into_the_deadline_is_not_begun() -> None:
    clock, attempt = Clock(), Scripted(passing(CallFailure.RATE_LIMITED, least_wait_s=30.0))
    with pytest.raises(AttemptError) as caught:
        await retried(attempt, clock, seconds=30.0)
    assert caught.value.failure is CallFailure.RATE_LIMITED
    assert (attempt.attempts, clock.slept) == (1, [])


async def test_jitter_is_drawn_from_the_whole_backoff() -> None:
    waits = []
    for seed in range(200):
        clock = Clock()
        deadline = Deadline.after(60.0, clock=clock)
        await with_retries(Scripted(passing()), deadline=deadline, sleep=clock.sleep, rng=random.Random(seed))
        waits += clock.slept
    assert 0.0 <= min(waits) < 0.03
    assert 0.22 < max(waits) <= 0.25


async def test_cancellation_ends_the_retries_at_once() -> None:
    attempts = 0

    async def attempt() -> str:
        nonlocal attempts
        attempts += 1
        await asyncio.Event().wait()
        return "never"

    task = asyncio.create_task(retried(attempt, Clock()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert attempts == 1


async def failing(gate: ModelGate, clock: Clock, failure: CallFailure, times: int) -> None:
    for _ in range(times):
        with pytest.raises(CallError):
            await gate.attempt(Scripted(AttemptError(failure)), deadline=Deadline.after(60.0, clock=clock))


async def is_open(gate: ModelGate, clock: Clock) -> bool:
    try:
        await gate.attempt(Scripted(), deadline=Deadline.after(60.0, clock=clock))
    except CallError as error:
        return error.failure is CallFailure.CIRCUIT_OPEN
    return False


@pytest.mark.parametrize("failure", list(CallFailure))
async def test_only_signs_of_illness_open_the_circuit(failure: CallFailure) -> None:
    clock = Clock()
    gate = ModelGate(4, clock)
    await failing(gate, clock, failure, 5)
    assert await is_open(gate, clock) == (
        failure.value in ("timeout", "connection", "server-error", "bad-response")
    )


async def hanging() -> str:
    await asyncio.Event().wait()
    return "never"


async def test_an_attempt_is_ended_by_the_deadline() -> None:
    with pytest.raises(CallError) as caught:
        await ModelGate(1, Clock()).attempt(hanging, deadline=Deadline.after(0.01))
    assert caught.value.failure is CallFailure.DEADLINE


async def test_after_the_deadline_nothing_is_begun() -> None:
    attempt = Scripted()
    with pytest.raises(CallError) as caught:
        await ModelGate(1, Clock()).attempt(attempt, deadline=Deadline.after(0.0))
    assert (attempt.attempts, caught.value.failure) == (0, CallFailure.DEADLINE)


@pytest.mark.parametrize(("waited_s", "opens"), [(0.1, False), (12.0, True)])
async def test_a_deadline_counts_against_the_model_only_where_it_had_its_time(
    waited_s: float, opens: bool
) -> None:
    clock = Clock()
    gate = ModelGate(1, clock)

    async def slow() -> str:
        clock.advance(waited_s)
        return await hanging()

    for _ in range(5):
        with pytest.raises(CallError):
            await gate.attempt(slow, deadline=Deadline.after(0.005))
    assert await is_open(gate, clock) == opens


async def test_cancelled_attempts_give_their_slot_back_and_never_open_the_circuit() -> None:
    clock = Clock()
    gate = ModelGate(1, clock)

    async def slow() -> str:
        clock.advance(100.0)
        return await hanging()

    for _ in range(6):
        task = asyncio.create_task(gate.attempt(slow, deadline=Deadline.after(1e9, clock=clock)))
        await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not await is_open(gate, clock)


async def test_a_cancelled_probe_makes_room_for_the_next() -> None:
    clock = Clock()
    gate = ModelGate(2, clock)
    await failing(gate, clock, CallFailure.CONNECTION, 5)
    clock.advance(10.0)
    task = asyncio.create_task(gate.attempt(hanging, deadline=Deadline.after(1e6, clock=clock)))
    await asyncio.sleep(0.001)
    assert await is_open(gate, clock)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not await is_open(gate, clock)


async def test_no_more_attempts_than_allowed_are_in_flight_and_the_next_is_busy() -> None:
    clock = Clock()
    gate = ModelGate(2, clock, longest_queue_s=0.0)
    deadline = Deadline.after(60.0, clock=clock)
    running = [asyncio.create_task(gate.attempt(hanging, deadline=deadline)) for _ in range(2)]
    await asyncio.sleep(0.001)
    attempt = Scripted()
    with pytest.raises(CallError) as caught:
        await gate.attempt(attempt, deadline=deadline)
    assert (attempt.attempts, caught.value.failure) == (0, CallFailure.BUSY)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    assert await gate.attempt(attempt, deadline=deadline) == "done"


async def test_no_more_than_the_limit_hold_a_slot_and_all_get_one_in_turn() -> None:
    limiter, holding, most, order = Limiter(2), 0, 0, []

    async def hold(number: int) -> None:
        nonlocal holding, most
        async with limiter.slot(10.0):
            holding += 1
            most = max(most, holding)
            order.append(number)
            await asyncio.sleep(0)
            holding -= 1

    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(hold(number))
    assert (most, order) == (2, list(range(8)))


async def test_who_finds_no_slot_in_time_is_told_busy() -> None:
    limiter = Limiter(1)
    async with limiter.slot(0.0):
        for wait_s in (0.0, 0.001):
            with pytest.raises(CallError) as caught:
                async with limiter.slot(wait_s):
                    pass
            assert caught.value.failure is CallFailure.BUSY
    async with limiter.slot(0.0):
        pass


async def test_a_full_queue_refuses_at_once() -> None:
    limiter = Limiter(1)
    done = asyncio.Event()

    async def hold() -> None:
        async with limiter.slot(10.0):
            await done.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(hold())
        await asyncio.sleep(0)
        with pytest.raises(CallError) as caught:
            async with limiter.slot(10.0):
                pass
        done.set()
    assert caught.value.failure is CallFailure.BUSY


async def test_a_cancelled_holder_and_a_cancelled_waiter_give_their_slots_back() -> None:
    limiter = Limiter(1)

    async def hold() -> None:
        async with limiter.slot(10.0):
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(hold()) for _ in range(3)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with limiter.slot(0.0):
        pass
