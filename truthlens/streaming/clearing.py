"""Search for evidence for flagged sentences of a gated stream, before they are marked or withheld.

A search holds a stream that a person is reading, so that one stream has as many as one answer has: as many
claims, and as many seconds. Whatever goes wrong, a flagged sentence stays flagged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

import structlog

from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.detection.engine import Engine
from truthlens.streaming.types import ScoredParts, Search

log = structlog.get_logger("truthlens.streaming")

_LEAST_TIME_S = 0.1
_GRACE_S = 0.1
_MOST_CHARS = 40_000


class Clearing:
    """The searches of one stream.

    Args:
        plan: of the exchange.
        engine: scores once more.
        search: retrieves.
        clock: monotonic, in seconds.
    """

    def __init__(self, plan: Plan, engine: Engine, search: Search, *, clock: Callable[[], float]) -> None:
        self._plan = plan
        self._engine = engine
        self._search = search
        self._clock = clock
        self._claims = max(1, plan.retrieval.max_claims)
        self._left_s = plan.retrieval.timeout_s
        self._wider: Exchange | None = None
        self._notes: tuple[str, ...] = ()
        self._cleared = False

    async def ranges(
        self, exchange: Exchange, parts: ScoredParts, *, time_s: float
    ) -> Sequence[Sequence[Verdict]]:
        """Return the verdicts on the parts, those that what was retrieved supports as no longer flagged.

        Args:
            exchange: the request half, without what was retrieved.
            parts: as they were scored.
            time_s: for searching and scoring together.
        """
        try:
            return await self._searched(exchange, parts, time_s)
        except Exception as error:  # noqa: BLE001 - the border of the searches: it clears nothing
            self._note_failure(error)
            return parts.verdicts

    async def whole(
        self, exchange: Exchange, answers: Sequence[Answer], verdicts: Sequence[Verdict], *, time_s: float
    ) -> tuple[Exchange, tuple[Verdict, ...]]:
        """Return the exchange with what was retrieved, and the verdicts by it; nothing is searched.

        Where no part was cleared, both stay as they are, but for the notes.
        """
        found = list(verdicts)
        again = [
            place
            for place, each in enumerate(verdicts)
            if self._cleared and each.flagged and answers[place].text.strip()
        ]
        if again:
            assert self._wider is not None
            following = self._engine.follow(self._plan, self._wider)
            scored = await following.detect([answers[place] for place in again], timeout_s=time_s)
            for place, second in zip(again, scored.verdicts, strict=True):
                found[place] = self._settled(exchange, found[place], second)
        shown = self._wider if self._cleared and self._wider is not None else exchange
        return replace(shown, notes=tuple(dict.fromkeys((*exchange.notes, *self._notes)))), tuple(found)

    async def _searched(
        self, exchange: Exchange, parts: ScoredParts, time_s: float
    ) -> Sequence[Sequence[Verdict]]:
        found = [list(own) for own in parts.verdicts]
        flagged = [
            (place, number)
            for place, own in enumerate(found)
            for number, each in enumerate(own)
            if each.flagged
        ]
        if not flagged or not self._may_search(exchange, time_s):
            return found
        until = self._clock() + time_s
        wider = await self._retrieved(
            exchange,
            [parts.answers[place] for place, _ in flagged],
            [found[place][number] for place, number in flagged],
            time_s,
        )
        left_s = until - self._clock()
        if len(wider.passages) == len(exchange.passages) or left_s < _LEAST_TIME_S:
            return found
        scored = await self._engine.follow(self._plan, wider).detect_ranges(
            parts.answers,
            [
                [parts.ranges[place][number] for at, number in flagged if at == place]
                for place in range(len(found))
            ],
            timeout_s=min(self._plan.timeout_s, left_s),
        )
        for (place, number), second in zip(flagged, chain(*scored), strict=True):
            found[place][number] = self._settled(exchange, found[place][number], second)
        return found

    def _may_search(self, exchange: Exchange, time_s: float) -> bool:
        added = () if self._wider is None else self._wider.passages[len(exchange.passages) :]
        return (
            self._claims > 0
            and min(time_s, self._left_s) >= _LEAST_TIME_S
            and sum(len(each.text) for each in added) < _MOST_CHARS
        )

    async def _retrieved(
        self, exchange: Exchange, answers: Sequence[Answer], verdicts: Sequence[Verdict], time_s: float
    ) -> Exchange:
        """Return the exchange with all that was retrieved for the stream so far."""
        began = self._clock()
        self._claims -= len(verdicts)
        limit_s = min(time_s, self._left_s)
        try:
            # A search ends by itself; where one does not, the stream goes on without it.
            async with asyncio.timeout(limit_s + _GRACE_S):
                wider = await self._search(self._wider or exchange, answers, verdicts, limit_s)
        finally:
            self._left_s -= self._clock() - began
        self._notes += wider.notes
        self._wider = wider
        return wider

    def _note_failure(self, error: Exception) -> None:
        # The type alone: a message or a traceback may quote what was searched for.
        log.error("a search within a stream failed", error=type(error).__name__, decision=self._plan.decision)
        self._notes += (Reason.RETRIEVAL_FAILED.value,)

    def _settled(self, exchange: Exchange, first: Verdict, second: Verdict) -> Verdict:
        from truthlens.exchange.retrieval_step import SOURCES_DISAGREE, settled

        found, disagree = settled(first, second, own=len(exchange.passages))
        if disagree:
            self._notes += (SOURCES_DISAGREE,)
        # What was checked less completely than before clears nothing.
        if found.flagged or found.status not in (Status.CHECKED, first.status):
            return first
        self._cleared = True
        return found
