"""Search the sources of a policy: each within its bounds, results of one search kept for a while, all of them put in one order."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import structlog

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.agentic_settings import ToolName
from truthlens.core.records.retrieval import (
    FoundPassage,
    Retrieved,
    RetrievedPassage,
    Search,
    SearchedFor,
    SearchRecord,
    SearchResult,
    SourceSpec,
    SourceTool,
)
from truthlens.core.registry import SourceContext, SourceOptions, source_types
from truthlens.llm.breaker import Breaker, Result
from truthlens.retrieval.interfaces import EvidenceSource, SourceError, ToolSource, WrongArgumentsError

log = structlog.get_logger("truthlens.retrieval")

MOST_QUERY_CHARS = 2_000
"""Of a longer question or claim so many characters are searched for."""

_RANK_SHIFT = 60
_LEAST_S = 0.05
_MOST_KEPT = 1_000
_MOST_KEPT_CHARS = 20_000_000
_BAD = frozenset((SearchResult.TIMEOUT, SearchResult.UNAVAILABLE, SearchResult.BAD_RESPONSE))

_Passages = tuple[FoundPassage, ...]
_Key = tuple[str, ...]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Asker:
    """On whose behalf a search is made: what the operator says the exchange is about, and the client's Authorization header."""

    scope: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    authorization: str | None = None


class Retriever:
    """All sources of the policy in force.

    Args:
        embed: makes vectors of texts by the bundled sentence model (``SourceContext.embed``).
        environ: where the keys of sources come from.
        observe: told of every search that ended.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        *,
        embed: Callable[[Sequence[str]], Awaitable[Any]],
        environ: Mapping[str, str],
        observe: Callable[[SearchRecord], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._embed, self._environ, self._clock = embed, environ, clock
        self._observe = observe or (lambda record: None)
        self._lanes: dict[str, _Lane] = {}
        self._kept = _Kept(clock)
        self._closing: set[asyncio.Task[None]] = set()

    def use(self, specs: Mapping[str, SourceSpec], folder: Path) -> None:
        """Search these sources from now on; one whose settings did not change goes on as it is.

        Args:
            specs: by name.
            folder: that of the policy file.

        Raises:
            ValueError: a source cannot be built from its options; the message says why and names no secret.
        """
        before, lanes = self._lanes, dict[str, _Lane]()
        try:
            for name, spec in specs.items():
                old = before.get(name)
                lanes[name] = old if old is not None and old.spec == spec else self._opened(spec, folder)
        except BaseException:
            self._close(lane for name, lane in lanes.items() if before.get(name) is not lane)
            raise
        self._lanes = lanes
        self._close(lane for name, lane in before.items() if lanes.get(name) is not lane)

    async def search(
        self, sources: Sequence[str], texts: Iterable[str], *, k: int, deadline: Deadline, asker: Asker
    ) -> Retrieved:
        """Return what all ``sources`` give for all ``texts``, at once and within ``deadline``; a search that fails fails alone.

        The first of ``texts`` is the question, those behind it are claims. Passages of several searches are
        ordered by reciprocal rank (k = 60; Cormack et al., 2009), each of them given once.
        """
        wanted = dict.fromkeys(text.strip()[:MOST_QUERY_CHARS] for text in texts)
        searches = [(place, name, text) for place, text in enumerate(wanted) if text for name in sources]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self.search_one(name, text, k, deadline, asker))
                for _, name, text in searches
            ]
        ended = [task.result() for task in tasks]
        for record, _ in ended:
            self._observe(record)
        ranked = [(record.source, passages) for record, passages in ended]
        records = (
            replace(record, sought=SearchedFor.CLAIM) if place else record
            for (place, *_), (record, _) in zip(searches, ended, strict=True)
        )
        return Retrieved(_merged(ranked), tuple(records))

    async def tools(self, sources: Sequence[str], *, deadline: Deadline) -> tuple[SourceTool, ...]:
        """Return the tools of ``sources`` that models may use; one that cannot be asked now offers none."""
        lanes = [lane for name in sources if (lane := self._lanes.get(name)) is not None]
        offered = await asyncio.gather(*(self._offered(lane, deadline) for lane in lanes))
        return tuple(tool for each in offered for tool in each)

    async def call_tool(
        self, tool: SourceTool, arguments: Mapping[str, Any], *, deadline: Deadline
    ) -> tuple[FoundPassage, ...]:
        """Return what a tool gives, within the bounds of its source; nothing of it is kept.

        Raises:
            WrongArgumentsError: the arguments do not fit the tool's schema.
            SourceError: the call failed.
        """
        began = self._clock()
        try:
            passages = await self._called(tool, arguments, deadline)
        except WrongArgumentsError:
            raise  # says nothing of the source, which was not asked
        except SourceError as error:
            self._observe(SearchRecord(tool.source, error.result, self._clock() - began))
            _tell(tool.source, error)
            raise
        result = SearchResult.OK if passages else SearchResult.EMPTY
        self._observe(SearchRecord(tool.source, result, self._clock() - began, len(passages)))
        return passages

    def tool_of(self, name: str) -> ToolName:
        """Return the tool of mode agentic that searches the source ``name``."""
        return self._lanes[name].tool

    async def aclose(self) -> None:
        """Close all sources."""
        self._close(self._lanes.values())
        await asyncio.gather(*self._closing)

    def _close(self, lanes: Iterable[_Lane]) -> None:
        for lane in lanes:
            task = asyncio.create_task(_closed(lane))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _opened(self, spec: SourceSpec, folder: Path) -> _Lane:
        context = SourceContext(spec.name, spec.options, folder, self._environ, self._embed)
        declared = source_types()[spec.type]
        places = asyncio.Semaphore(spec.options.max_concurrency)
        return _Lane(spec, declared.tool, declared.build(context), places, Breaker(self._clock))

    async def search_one(
        self, name: str, text: str, k: int, deadline: Deadline, asker: Asker
    ) -> tuple[SearchRecord, tuple[FoundPassage, ...]]:
        """Return how one search in the source ``name`` ended, and what it gave."""
        began = self._clock()

        def record(result: SearchResult, passages: _Passages = ()) -> tuple[SearchRecord, _Passages]:
            return SearchRecord(name, result, self._clock() - began, len(passages)), passages

        lane = self._lanes.get(name)
        if lane is None:  # the exchange began under an earlier policy, which still had the source
            return record(SearchResult.UNAVAILABLE)
        options: SourceOptions = lane.spec.options
        filters = {field: asker.scope.get(scope.lower(), "") for field, scope in options.filter.items()}
        if not all(filters.values()):
            return record(SearchResult.NO_SCOPE)
        passed = asker.authorization if options.auth == "passthrough" else None
        search = Search(text, MappingProxyType(filters), passed)
        key = _key(lane.spec, lane.source.revision, search, k)
        if (kept := self._kept.get(key)) is not None:
            return record(SearchResult.CACHED if kept else SearchResult.EMPTY, kept)
        try:
            passages = await self._shared(lane, key, search, k, _within(lane, deadline))
        except SourceError as error:
            _tell(name, error)
            return record(error.result)
        return record(SearchResult.OK if passages else SearchResult.EMPTY, passages)

    async def _shared(self, lane: _Lane, key: _Key, search: Search, k: int, within: Deadline) -> _Passages:
        """Return what a search gives; those who ask the same at one time wait for one search."""
        while (flight := lane.flights.get(key)) is not None:
            done, _ = await asyncio.wait({flight}, timeout=within.remaining_s)
            if not done:
                raise SourceError(SearchResult.TIMEOUT)
            if not flight.cancelled() and flight.exception() is None:
                return flight.result()
            # Its time was over, or its client went away: that says nothing about this one.
        if not _has_time(lane, within):
            raise SourceError(SearchResult.TIMEOUT)
        task = asyncio.create_task(self._searched(lane, search, k, within))
        lane.flights[key] = task
        try:
            passages = await task
        finally:
            task.cancel()
            del lane.flights[key]
        self._kept.put(key, passages, ttl_s=lane.spec.options.cache_ttl_s)
        return passages

    async def _searched(self, lane: _Lane, search: Search, k: int, within: Deadline) -> _Passages:
        work = partial(lane.source.search, search, k=k, deadline=within)
        return (await self._guarded(lane, within, partial(_with_text, work)))[:k]

    async def _called(self, tool: SourceTool, arguments: Mapping[str, Any], deadline: Deadline) -> _Passages:
        lane = self._lanes.get(tool.source)
        if lane is None or not isinstance(lane.source, ToolSource):  # as in a search, after a reload
            raise SourceError(SearchResult.UNAVAILABLE)
        within = _within(lane, deadline)
        work = partial(lane.source.call_tool, tool.name, arguments, deadline=within)
        return await self._guarded(lane, within, partial(_with_text, work))

    async def _offered(self, lane: _Lane, deadline: Deadline) -> Sequence[SourceTool]:
        if not isinstance(lane.source, ToolSource):
            return ()
        within = _within(lane, deadline)
        try:
            return await self._guarded(lane, within, partial(lane.source.tools, deadline=within))
        except SourceError as error:
            _tell(lane.spec.name, error)
            return ()

    async def _guarded(self, lane: _Lane, within: Deadline, work: Callable[[], Awaitable[_T]]) -> _T:
        """Return what ``work`` gives, a search or a call, within the source's bounds.

        Raises:
            SourceError: it failed.
        """
        try:
            permit = lane.breaker.admit()
        except CallError:
            raise SourceError(SearchResult.CIRCUIT_OPEN) from None
        result, searching = Result.UNKNOWN, False
        try:
            async with asyncio.timeout(within.remaining_s), lane.places:
                searching = _has_time(lane, within)
                if searching:
                    found = await work()
                    result = Result.GOOD
                    return found
        except TimeoutError:
            result = Result.BAD if searching else Result.UNKNOWN
            raise SourceError(SearchResult.TIMEOUT if searching else SearchResult.OVERLOADED) from None
        except SourceError as error:
            result = Result.BAD if error.result in _BAD else Result.UNKNOWN
            raise
        except (Exception, asyncio.CancelledError) as error:
            # The border of the sources: whatever one raises costs its search alone. A cancellation from within a source is
            # a failure too; one of the task itself is not.
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            # The type alone: a message of another library may quote the query or a document.
            result = Result.BAD
            raise SourceError(SearchResult.UNAVAILABLE, type(error).__name__) from None
        finally:
            lane.breaker.settle(permit, result)
        raise SourceError(SearchResult.OVERLOADED)


@dataclass(slots=True)
class _Lane:
    """One source with its bounds, and the searches that are under way."""

    spec: SourceSpec
    tool: ToolName
    source: EvidenceSource
    places: asyncio.Semaphore
    breaker: Breaker
    flights: dict[_Key, asyncio.Task[_Passages]] = field(default_factory=dict)


async def _closed(lane: _Lane) -> None:
    """Close a source once its searches that are under way have ended; one that fails at it is logged."""
    if lane.flights:
        await asyncio.wait(lane.flights.values())
    try:
        await lane.source.aclose()
    except Exception as error:  # noqa: BLE001 - the border of the sources, as in a search
        log.warning("a source failed to close", source=lane.spec.name, error=type(error).__name__)


def _within(lane: _Lane, deadline: Deadline) -> Deadline:
    """Return the deadline of one search or call."""
    return Deadline.after(min(lane.spec.options.timeout_s, deadline.remaining_s))


async def _with_text(work: Callable[[], Awaitable[Sequence[FoundPassage]]]) -> _Passages:
    return tuple(each for each in await work() if each.text.strip())


def _tell(source: str, error: SourceError) -> None:
    if error.result in _BAD:
        log.warning("a search failed", source=source, result=error.result.value, error=str(error))


def _has_time(lane: _Lane, within: Deadline) -> bool:
    """Return whether there is time for a search: one that can only run out of it would count against the source."""
    options: SourceOptions = lane.spec.options
    return within.remaining_s > min(_LEAST_S, options.timeout_s / 10)


class _Kept:
    """Passages by what was searched, for a time; bounded in number and characters, the oldest go first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._chars = clock, 0
        self._found: OrderedDict[_Key, tuple[float, int, _Passages]] = OrderedDict()

    def get(self, key: _Key) -> _Passages | None:
        """Return what is kept and still good."""
        until, _, passages = self._found.get(key, (0.0, 0, None))
        if passages is not None and until <= self._clock():
            self._drop(key)
            return None
        return passages

    def put(self, key: _Key, passages: _Passages, *, ttl_s: float) -> None:
        """Keep ``passages`` for ``ttl_s`` seconds."""
        self._drop(key)
        if ttl_s <= 0:
            return
        size = sum(len(each.text) + len(each.title) for each in passages)
        self._found[key] = (self._clock() + ttl_s, size, passages)
        self._chars += size
        while len(self._found) > _MOST_KEPT or self._chars > _MOST_KEPT_CHARS:
            self._drop(next(iter(self._found)))

    def _drop(self, key: _Key) -> None:
        _, size, _ = self._found.pop(key, (0.0, 0, ()))
        self._chars -= size


def _key(spec: SourceSpec, revision: str, search: Search, k: int) -> _Key:
    """Return all that a result depends on; of a client's Authorization a digest."""
    passed = hashlib.sha256((search.authorization or "").encode()).hexdigest() if search.authorization else ""
    filters = (part for each in sorted(search.filter.items()) for part in each)
    return (spec.name, repr(spec.options), revision, " ".join(search.text.split()), str(k), passed, *filters)


def _merged(ranked: Sequence[tuple[str, _Passages]]) -> tuple[RetrievedPassage, ...]:
    """Return the passages of several rankings in one order, each text once."""
    found: dict[str, tuple[float, RetrievedPassage]] = {}
    for source, passages in ranked:
        once: dict[str, tuple[int, FoundPassage]] = {}
        for rank, passage in enumerate(passages, 1):
            once.setdefault(" ".join(passage.text.split()), (rank, passage))
        for text, (rank, passage) in once.items():
            weight, first = found.get(text, (0.0, RetrievedPassage(source, passage)))
            found[text] = (weight + 1 / (_RANK_SHIFT + rank), first)
    return tuple(each for _, each in sorted(found.values(), key=lambda pair: -pair[0]))
