"""Retry a model that fails now and then, but not one that is down: retries, circuit breaker, bound on calls.

Nothing here knows HTTP. All waiting is bounded by the deadline of the exchange; a cancelled attempt gives its
slot back and does not count for the breaker.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure
from truthlens.llm.breaker import Breaker, Result
from truthlens.llm.errors import AttemptError

_WAITING_PER_SLOT = 4


class Limiter:
    """Admits at most ``limit`` holders at a time, in order of arrival; a full queue refuses at once.

    Args:
        limit: 1 or more.
    """

    def __init__(self, limit: int) -> None:
        self._slots = asyncio.Semaphore(limit)
        self._most_waiting = limit * _WAITING_PER_SLOT
        self._waiting = 0
        self.limit = limit

    @asynccontextmanager
    async def slot(self, wait_s: float) -> AsyncIterator[None]:
        """Hold a slot for the body of the ``async with``; wait for it ``wait_s`` seconds at most.

        Raises:
            CallError: ``busy``: none came free in time, or too many wait already.
        """
        if self._slots.locked():
            await self._wait(wait_s)
        else:
            await self._slots.acquire()  # does not wait
        try:
            yield
        finally:
            self._slots.release()

    async def _wait(self, wait_s: float) -> None:
        if wait_s <= 0 or self._waiting >= self._most_waiting:
            raise CallError(CallFailure.BUSY)
        self._waiting += 1
        try:
            async with asyncio.timeout(wait_s):
                await self._slots.acquire()
        except TimeoutError:
            raise CallError(CallFailure.BUSY) from None
        finally:
            self._waiting -= 1


T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

MOST_ATTEMPTS = 3
_FIRST_BACKOFF_S = 0.25
_LONGEST_BACKOFF_S = 4.0
# A call that finds no slot within this time had better go without: the exchange has other things to try.
_LONGEST_QUEUE_S = 5.0
# A model that has let an attempt wait this long, until the deadline ended it, counts as failing; with less
# time, the exchange was late and the model may be well.
_PATIENCE_S = 10.0
_SIGNS_OF_ILLNESS = frozenset(
    {CallFailure.CONNECTION, CallFailure.TIMEOUT, CallFailure.SERVER_ERROR, CallFailure.BAD_RESPONSE}
)


class ModelGate:
    """What one model's attempts pass through: its bound on calls in flight, then its breaker.

    Args:
        max_concurrency: attempts in flight at a time.
        clock: seconds, monotonic.
        longest_queue_s: how long an attempt waits for a slot at most.
        limiter: one that several gates share, in place of one of its own.
    """

    def __init__(
        self,
        max_concurrency: int,
        clock: Callable[[], float],
        *,
        longest_queue_s: float = _LONGEST_QUEUE_S,
        limiter: Limiter | None = None,
    ) -> None:
        self.limiter = limiter or Limiter(max_concurrency)
        self._breaker = Breaker(clock)
        self._clock = clock
        self._longest_queue_s = longest_queue_s

    def resize(self, max_concurrency: int) -> None:
        """Set how many attempts may be in flight; those that are keep their slots."""
        if max_concurrency != self.limiter.limit:
            self.limiter = Limiter(max_concurrency)

    async def attempt(self, send: Callable[[], Awaitable[T]], *, deadline: Deadline) -> T:
        """Return the result of ``send``, ended by the deadline.

        Raises:
            CallError: ``busy`` or ``circuit-open``, and ``send`` was not begun; ``deadline``; or what
                ``send`` raised.
        """
        if deadline.passed:
            raise CallError(CallFailure.DEADLINE)
        async with self.limiter.slot(min(deadline.remaining_s, self._longest_queue_s)):
            permit = self._breaker.admit()
            result = Result.UNKNOWN
            began = self._clock()
            try:
                async with asyncio.timeout(deadline.remaining_s):
                    answer = await send()
                result = Result.GOOD
            except TimeoutError:
                if self._clock() - began >= _PATIENCE_S:
                    result = Result.BAD
                raise CallError(CallFailure.DEADLINE) from None
            except CallError as error:
                # Whoever refuses a request, or a pace, is there and works.
                result = Result.BAD if error.failure in _SIGNS_OF_ILLNESS else Result.GOOD
                raise
            finally:
                self._breaker.settle(permit, result)
            return answer


async def with_retries(
    attempt: Callable[[], Awaitable[T]], *, deadline: Deadline, sleep: Sleep, rng: random.Random
) -> T:
    """Return the result of the first attempt that succeeds; raise the last one's error if none does.

    Attempts whose error says ``again`` are repeated, ``MOST_ATTEMPTS`` in all, after exponential backoff with
    full jitter, which comes on top of what the model asked to wait. A wait that does not fit into the
    deadline is not begun.

    Source: Brooker, "Exponential Backoff and Jitter" (AWS Architecture Blog, 2015), full jitter.
    """

    def wait_s(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        least = error.least_wait_s if isinstance(error, AttemptError) else 0.0
        backoff = min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2 ** (state.attempt_number - 1))
        return least + rng.uniform(0.0, backoff)

    def does_not_fit(state: RetryCallState) -> bool:
        return state.upcoming_sleep >= deadline.remaining_s

    retrying = AsyncRetrying(
        sleep=sleep,
        wait=wait_s,
        stop=lambda state: stop_after_attempt(MOST_ATTEMPTS)(state) or does_not_fit(state),
        retry=retry_if_exception(lambda error: isinstance(error, AttemptError) and error.again),
        reraise=True,
    )
    return await retrying(attempt)
