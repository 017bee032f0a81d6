"""Keep what mode auto has learned in Redis, shared by all processes of a fleet.

One hash per decision (``{prefix}:arms:{decision}``, fields ``{mode}:successes``, ``{mode}:failures``,
``{mode}:at``). Decaying and adding is one script, so that no reward of another process is lost, and Redis's
clock alone dates what is stored: a process whose clock is wrong spoils nothing. A reward is written at most
once, even where the reply to its first writing was lost. Hashes that get no additions expire.

The serving path never waits longer than ``timeout_s`` and never sees an error: a choice then rests on what
was last read together with this process's own rewards that wait to be written; these are written when Redis
is back. Redis Cluster is not supported, and nothing is kept on disk.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from redis.exceptions import ResponseError

from truthlens.core.records.enums import Mode
from truthlens.store.arm_store import MOST_DECISIONS, MOST_REWARDS, Counts
from truthlens.store.redis_client import connect

_ADD = """
local function figure(text)
  local value = tonumber(text or '0')
  if not value or value ~= value or value < 0 or value == math.huge then return 0 end
  return value
end
local sequence, mode, reward = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local age_s, half_life_s = tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local stored = redis.call('HMGET', KEYS[1], mode .. ':successes', mode .. ':failures', mode .. ':at')
local successes, failures = figure(stored[1]), figure(stored[2])
local at = math.min(figure(stored[3]), now)
if tonumber(redis.call('GET', KEYS[2]) or '0') < sequence then
  local came = now - age_s
  local newest = math.max(at, came)
  local left = 0.5 ^ ((newest - at) / half_life_s)
  local weight = 0.5 ^ ((newest - came) / half_life_s)
  successes = successes * left + weight * reward
  failures = failures * left + weight * (1 - reward)
  local most = tonumber(ARGV[8])
  local kept = most / math.max(most, successes + failures)
  successes, failures = kept * successes, kept * failures
  at = newest
  redis.call('HSET', KEYS[1], mode .. ':successes', string.format('%.17g', successes),
    mode .. ':failures', string.format('%.17g', failures), mode .. ':at', string.format('%.6f', at))
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[7])
end
return {string.format('%.6f', now), {mode .. ':successes', string.format('%.17g', successes),
  mode .. ':failures', string.format('%.17g', failures), mode .. ':at', string.format('%.6f', at)}}
"""
_READ = """
local time = redis.call('TIME')
return {string.format('%.6f', time[1] + time[2] / 1000000), redis.call('HGETALL', KEYS[1])}
"""

_LONGEST_PAUSE_S = 5.0
_WRITER_KEPT_MS = 3_600_000
_HALF_LIVES_KEPT = 20  # then less than a millionth is left
_LONGEST_KEPT_S = 10 * 365 * 86400


@dataclass(frozen=True, slots=True)
class _Update:
    """A reward that is not written yet."""

    sequence: int
    decision: str
    mode: Mode
    reward: float
    at: float
    half_life_s: float


class RedisArms:
    """The arm store that several processes share.

    ``errors`` counts attempts to read or write that failed or came too late, ``dropped`` rewards that were
    lost for good, ``pending`` those that wait; ``up`` says whether the last attempt succeeded, and
    ``last_error`` names the type of the last exception, ``""`` if there was none.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``; it may contain user and password.
        prefix: what the keys begin with; deployments that share a Redis take different ones.
        timeout_s: the longest that a choice waits for Redis.
        patience_s: the longest that reading or writing may take in the background, connecting included.
        first_pause_s: for how long Redis is left alone after a failure; doubles with each further one, up to
            5 s.
        most_pending: rewards that may wait to be written; the oldest are dropped.
        most_decisions: decisions whose state is remembered here.
        clock: seconds since the epoch, the same clock as the bandit's.

    Raises:
        StartError: the URL cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "truthlens",
        timeout_s: float = 0.05,
        patience_s: float = 1.0,
        first_pause_s: float = 0.1,
        most_pending: int = 1000,
        most_decisions: int = MOST_DECISIONS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = connect(url, patience_s, text=True)
        self._prefix = prefix
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._first_pause_s = first_pause_s
        self._most_pending = most_pending
        self._most_decisions = most_decisions
        self._clock = clock
        self._writer = secrets.token_hex(8)
        self._sequence = 0
        self._pending: deque[_Update] = deque()
        self._read: OrderedDict[str, dict[Mode, Counts]] = OrderedDict()
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._writing: asyncio.Task[None] | None = None
        self._pause_s = self._first_pause_s
        self._resume_at = 0.0
        self.errors = 0
        self.dropped = 0
        self.up = True
        self.last_error = ""

    @property
    def pending(self) -> int:
        """Rewards that wait to be written."""
        return len(self._pending)

    async def counts(self, decision: str) -> Mapping[Mode, Counts]:
        """Return what all processes learned for a decision, or within ``timeout_s`` the latest known."""
        reading = self._reading.get(decision)
        if reading is None and time.monotonic() >= self._resume_at:
            reading = asyncio.create_task(self._refresh(decision))
            self._reading[decision] = reading
            reading.add_done_callback(lambda _: self._reading.pop(decision, None))
        if reading is not None:
            # Not cancelled when late: a far Redis would else never get its first connection.
            done, _ = await asyncio.wait({reading}, timeout=self._timeout_s)
            if not done:
                self.errors += 1
                self.last_error = TimeoutError.__name__
        return self.known(decision)

    def known(self, decision: str) -> Mapping[Mode, Counts]:
        """Return what was last read, with the rewards of this process that wait to be written."""
        learned = dict(self._read.get(decision, {}))
        for update in self._pending:
            if update.decision == decision:
                learned[update.mode] = learned.get(update.mode, Counts()).plus(
                    update.reward, at=update.at, half_life_s=update.half_life_s
                )
        return MappingProxyType(learned)

    async def add(self, decision: str, mode: Mode, reward: float, *, at: float, half_life_s: float) -> None:
        """Record a reward (0..1) that came at ``at``; it is written in the background."""
        self._sequence += 1
        self._pending.append(_Update(self._sequence, decision, mode, reward, at, half_life_s))
        if len(self._pending) > self._most_pending:
            self._pending.popleft()
            self.dropped += 1
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())

    async def aclose(self, *, timeout_s: float = 1.0) -> None:
        """Write what waits, for as long as ``timeout_s``, and close; what is left then is dropped."""
        if self._writing is not None:
            await asyncio.wait({self._writing}, timeout=timeout_s)
        running = [task for task in (self._writing, *self._reading.values()) if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self.dropped += len(self._pending)
        self._pending.clear()
        await self._client.aclose()

    async def _refresh(self, decision: str) -> None:
        await self._attempt(partial(self._load, decision))

    async def _load(self, decision: str) -> None:
        now, fields = await self._script(_READ, [self._arms_key(decision)])
        self._remember(decision, self._parse(now, fields))

    async def _write_all(self) -> None:
        """Write what waits, oldest first, until nothing does."""
        while self._pending:
            update = self._pending[0]
            written = await self._attempt(partial(self._write, update))
            if not written:
                await asyncio.sleep(self._pause_s)
            elif self._pending and self._pending[0] is update:
                self._pending.popleft()

    async def _write(self, update: _Update) -> None:
        kept_s = min(_LONGEST_KEPT_S, _HALF_LIVES_KEPT * update.half_life_s)
        try:
            now, fields = await self._script(
                _ADD,
                [self._arms_key(update.decision), f"{self._prefix}:writers:{self._writer}"],
                update.sequence,
                update.mode.value,
                repr(update.reward),
                repr(max(0.0, self._clock() - update.at)),
                repr(update.half_life_s),
                math.ceil(1000 * kept_s),
                _WRITER_KEPT_MS,
                repr(MOST_REWARDS),
            )
        except ResponseError as error:
            if "WRONGTYPE" not in str(error):
                raise
            # Somebody else's key: waiting helps nothing, and all other rewards would wait behind this one.
            self._count(error)
            self.dropped += 1
            return
        learned = self._parse(now, fields)
        self._remember(update.decision, {**self._read.get(update.decision, {}), **learned})

    async def _attempt(self, operation: Callable[[], Awaitable[None]]) -> bool:
        """Return whether the operation succeeded; after a failure, reads pause for ever longer times."""
        try:
            async with asyncio.timeout(self._patience_s):
                await operation()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the store, it never costs an answer
            self._count(error)
            self.up = False
            self._resume_at = time.monotonic() + self._pause_s
            self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)
            return False
        self.up = True
        self._pause_s = self._first_pause_s
        self._resume_at = 0.0
        return True

    def _count(self, error: Exception) -> None:
        self.errors += 1
        self.last_error = type(error).__name__

    async def _script(self, script: str, keys: list[str], *arguments: str | int) -> tuple[str, list[str]]:
        now, fields = await self._client.eval(script, len(keys), *keys, *arguments)
        return now, fields

    def _parse(self, redis_now: str, fields: list[str]) -> dict[Mode, Counts]:
        """Parse the arms by mode, with times on this process's clock; an arm without figures is left out."""
        now, offset = float(redis_now), self._clock() - float(redis_now)
        values = dict(zip(fields[::2], fields[1::2], strict=True))
        learned = {}
        for mode in Mode:
            names = [f"{mode.value}:{part}" for part in ("successes", "failures", "at")]
            if not any(name in values for name in names):
                continue
            try:
                successes, failures, at = (float(values[name]) for name in names)
            except (KeyError, ValueError) as error:
                self._count(error)
                continue
            if not all(math.isfinite(figure) and figure >= 0.0 for figure in (successes, failures, at)):
                self._count(ValueError())
                continue
            learned[mode] = Counts(successes, failures, min(at, now) + offset)
        return learned

    def _remember(self, decision: str, learned: dict[Mode, Counts]) -> None:
        self._read[decision] = learned
        self._read.move_to_end(decision)
        if len(self._read) > self._most_decisions:
            self._read.popitem(last=False)

    def _arms_key(self, decision: str) -> str:
        return f"{self._prefix}:arms:{decision}"
