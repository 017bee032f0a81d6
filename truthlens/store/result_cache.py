"""Keep results that models gave, by what they were asked: in the memory of a process, and in Redis for several.

Knows nothing of models, prompts or claims: parts make a key, JSON is the value. One event loop uses it.

Where several ask for one result at a time, one of them computes and the others wait for it. If the one that computes is
cancelled, one of the others computes in its place. If its computation fails, its exception stays its own, for it may be
about its own budget or deadline alone; each of the others then computes for itself at once, so that nobody waits for more
than one failure of another. Nothing is kept of exceptions.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from truthlens.core.cache_settings import CacheSettings

if TYPE_CHECKING:
    from truthlens.store.redis_result_cache import RedisResults

MOST_VALUE_BYTES = 256 * 1024
"""The largest result that is kept, as JSON; larger ones are given and not kept."""

ENTRY_BYTES = 320
"""What an entry takes in memory besides its value, about: its key, its time, its place in the order."""

_DOMAIN = b"truthlens result 1\0"
_PREFIX = b"truthlens-result/1\n"
_LENGTH_BYTES = 8


class CacheEvent(NamedTuple):
    """What came of one use of a tier; the labels of the metric.

    ``result`` is ``hit``, ``miss``, ``shared`` (given by a computation that another one had begun), ``unkept`` (computed,
    and too large or no JSON), or ``error``.
    """

    result: str
    tier: str


class Found(NamedTuple):
    """What a shared tier has: the bytes, and the seconds that they are still good for, ``None`` for ever."""

    value: bytes
    left_s: float | None


class _End(Enum):
    """How a computation ended that gave nothing."""

    FAILED = "failed"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class _Given:
    """What a computation gave; ``encoded`` is ``None`` where JSON cannot hold it."""

    value: object
    encoded: bytes | None

    def own(self) -> object:
        """Return a copy for one caller: all get what a later hit will give, and none can change another's."""
        return self.value if self.encoded is None else json.loads(self.encoded.removeprefix(_PREFIX))


class CachedResults:
    """The cache of results: an implementation of ``detection.interfaces.ResultCache``.

    Args:
        settings: its bounds, of the policy.
        shared: the tier of all processes; ``None`` for none. It is asked only where the settings allow it.
        most_value_bytes: results that are larger as JSON are not kept.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        settings: CacheSettings | None = None,
        *,
        shared: RedisResults | None = None,
        most_value_bytes: int = MOST_VALUE_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings or CacheSettings()
        self._scope: tuple[str, ...] = ()
        self._shared = shared
        self._most_value_bytes = most_value_bytes
        self._memory = _Memory(clock)
        self._flights: dict[str, asyncio.Future[_Given | _End]] = {}
        self._events: Counter[CacheEvent] = Counter()

    @property
    def entries(self) -> int:
        """Results in memory."""
        return len(self._memory)

    @property
    def size(self) -> int:
        """Bytes that they take, about."""
        return self._memory.size

    def events(self) -> dict[CacheEvent, int]:
        """Return how often each thing has happened since the start, errors of the shared tier too."""
        errors = self._shared.errors if self._shared is not None else 0
        return {**self._events, CacheEvent("error", "redis"): errors}

    def use(self, settings: CacheSettings, *, scope: Sequence[str] = ()) -> None:
        """Keep to other settings from now on: what exceeds them is forgotten, everything where they disable the cache.

        Args:
            settings: the bounds.
            scope: what every result depends on besides its parts, such as the addresses of the models.
        """
        self._scope = tuple(scope)
        self._settings = settings
        self._memory.fit(settings)

    async def of(self, parts: Sequence[str], compute: Callable[[], Awaitable[object]]) -> object:
        """Return the result that is kept for ``parts``, or compute it, keep it and return it.

        What is returned is a copy of the caller's own, as JSON gives it back: tuples are lists. A result that JSON cannot
        hold, or that is too large, is returned and not kept.

        Args:
            parts: all that the result depends on.
            compute: gives the result. What it raises is raised here.
        """
        if not self._settings.enabled:
            return await compute()
        key = key_of((*self._scope, *parts))
        while True:
            encoded = self._memory.get(key)
            if encoded is not None:
                self._count("hit")
                return _decoded(encoded)
            flight = self._flights.get(key)
            if flight is None:
                return await self._compute(key, compute)
            # Waiting for it, other than awaiting it, does not cancel it with the one that waits.
            await asyncio.wait((flight,))
            match flight.result():
                case _Given() as given:
                    self._count("shared")
                    return given.own()
                case _End.FAILED:
                    return await self._compute(key, compute)
                case _End.ABANDONED:
                    pass

    async def _compute(self, key: str, compute: Callable[[], Awaitable[object]]) -> object:
        """Give the result to the caller and to all that come meanwhile, unless another computation serves those."""
        self._count("miss")
        flight: asyncio.Future[_Given | _End] | None = None
        if key not in self._flights:
            flight = self._flights[key] = asyncio.get_running_loop().create_future()
        ended: _Given | _End = _End.ABANDONED
        try:
            ended = given = await self._from_shared(key) or await self._from_compute(key, compute)
            return given.own()
        except Exception:
            ended = _End.FAILED
            raise
        finally:
            if flight is not None:
                del self._flights[key]
                flight.set_result(ended)

    async def _from_shared(self, key: str) -> _Given | None:
        if self._shared is None or not self._settings.redis:
            return None
        found = await self._shared.get(key)
        if found is None or len(found.value) > self._most_value_bytes + len(_PREFIX):
            self._count("miss", "redis")
            return None
        try:
            value = _decoded(found.value)
        except (ValueError, RecursionError):
            self._count("miss", "redis")
            return None
        self._count("hit", "redis")
        self._memory.put(key, found.value, self._settings, left_s=found.left_s)
        return _Given(value, found.value)

    async def _from_compute(self, key: str, compute: Callable[[], Awaitable[object]]) -> _Given:
        value = await compute()
        try:
            encoded = _encoded(value)
        except (TypeError, ValueError, RecursionError):
            self._count("unkept")
            return _Given(value, None)
        if len(encoded) > self._most_value_bytes + len(_PREFIX):
            self._count("unkept")
        elif self._settings.enabled:  # which may have changed meanwhile
            self._memory.put(key, encoded, self._settings)
            if self._shared is not None and self._settings.redis:
                self._shared.put(key, encoded, ttl_s=self._settings.ttl_s)
        return _Given(value, encoded)

    def _count(self, result: str, tier: str = "memory") -> None:
        self._events[CacheEvent(result, tier)] += 1


class _Memory:
    """Bytes by key: bounded in number and size, good for a time; the least recently used go first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str) -> bytes | None:
        """Return what is kept under ``key`` and still good."""
        found = self._kept.get(key)
        if found is None:
            return None
        if self._clock() >= found[0]:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return found[1]

    def put(self, key: str, value: bytes, settings: CacheSettings, *, left_s: float | None = None) -> None:
        """Keep ``value`` for as long as the settings say, or for ``left_s`` where that is less."""
        ttl_s = settings.ttl_s if left_s is None else min(left_s, settings.ttl_s)
        self._drop(key)
        if ttl_s <= 0 or len(value) + ENTRY_BYTES > settings.max_bytes:
            return
        self._kept[key] = (self._clock() + ttl_s, value)
        self.size += len(value) + ENTRY_BYTES
        self._shrink(settings)

    def fit(self, settings: CacheSettings) -> None:
        """Forget what exceeds ``settings``; a shorter time counts from now."""
        if not settings.enabled:
            self._kept.clear()
            self.size = 0
            return
        latest = self._clock() + settings.ttl_s
        for key, (until, value) in self._kept.items():
            if until > latest:
                self._kept[key] = (latest, value)
        self._shrink(settings)

    def _shrink(self, settings: CacheSettings) -> None:
        while len(self._kept) > settings.max_entries or self.size > settings.max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: str) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self.size -= len(found[1]) + ENTRY_BYTES


def key_of(parts: Sequence[str]) -> str:
    """Return the key of ``parts``: a SHA-256 in hex that differs wherever a part, or a border of parts, does."""
    digest = hashlib.sha256(_DOMAIN)
    for part in parts:
        # JSON may hold half a surrogate pair, and so may the text of a user.
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(_LENGTH_BYTES, "big"))
        digest.update(data)
    return digest.hexdigest()


def _encoded(value: object) -> bytes:
    return _PREFIX + json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def _decoded(encoded: bytes) -> object:
    """Return the value of kept bytes.

    Raises:
        ValueError: they were written by another version, or are no JSON.
        RecursionError: they are nested too deeply.
    """
    if not encoded.startswith(_PREFIX):
        raise ValueError("not written by this version")
    value: object = json.loads(encoded[len(_PREFIX) :], parse_constant=_refuse)
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
