"""Evidence for flagged sentences of a gated stream: what it supports leaves, the rest is as without it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.engines import engine_of
from tests.streaming.test_driver import DONE, EVIDENCE, WORDS, Line, chunk, gate, line
from truthlens.core.records.enums import Action, AnswerKind, Endpoint, OnFlagged, Provenance, Reason, Trigger
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import RetrievalSettings
from truthlens.core.records.verdict import Verdict
from truthlens.streaming.clearing import Clearing
from truthlens.streaming.types import ScoredParts

NINE, OWL = "A guide costs nine euros.", "An owl lives on board."
FREE = "The ferry is free and blue."


class Shelf:
    """Gives its passages to every search, or fails, hangs, breaks; keeps the claims that it was asked for."""

    def __init__(self, *texts: str, fails: bool = False, hangs: bool = False, breaks: bool = False) -> None:
        self.passages = tuple(Passage(text, Provenance.RETRIEVED, source="shelf") for text in texts)
        self.fails, self.hangs, self.breaks = fails, hangs, breaks
        self.asked: list[str] = []
        self.times: list[float] = []

    async def __call__(
        self, exchange: Exchange, answers: Sequence[Answer], verdicts: Sequence[Verdict], time_s: float
    ) -> Exchange:
        self.times.append(time_s)
        for answer, verdict in zip(answers, verdicts, strict=True):
            self.asked += [answer.text[claim.start : claim.end] for claim in verdict.claims]
        if self.hangs:
            await asyncio.Event().wait()
        if self.breaks:
            raise RuntimeError
        if self.fails:
            return replace(exchange, notes=(*exchange.notes, Reason.RETRIEVAL_FAILED.value))
        known = {each.text for each in exchange.passages}
        added = tuple(each for each in self.passages if each.text not in known)
        return replace(exchange, passages=(*exchange.passages, *added))


def searching(on_flagged: OnFlagged = OnFlagged.WITHHOLD, **retrieval: object) -> Plan:
    given: dict[str, Any] = {"sources": ("shelf",), "when": (Trigger.UNSUPPORTED,), **retrieval}
    return gate(on_flagged, retrieval=RetrievalSettings(**given), timeout_s=20.0)


async def played(made: Line, *texts: str) -> None:
    await made.send(*(chunk(text + " ") for text in texts), chunk(finish="stop"), DONE, b"", end=True)
    await made.wait(lambda: bool(made.acks) and made.acks[-1].end)


@pytest.mark.parametrize("on_flagged", list(OnFlagged))
async def test_a_sentence_that_a_source_supports_leaves(on_flagged: OnFlagged) -> None:
    """Unmarked, and the verdict at the end is by what was found, too; what needs no search waits for none."""
    shelf = Shelf(NINE)
    async with line(searching(on_flagged), search=shelf, details=True) as made:
        await played(made, FREE, NINE, FREE)
        assert made.text == f"{FREE} {NINE} {FREE} "
        assert (made.outcome.action, made.outcome.verdict.flagged) == (Action.PASS, False)
        assert shelf.asked == [NINE]
        assert [each.text for each in made.flow.exchange.passages][-1] == NINE


@pytest.mark.parametrize(
    ("how", "noted"),
    [({}, False), ({"fails": True}, True), ({"breaks": True}, True), ({"hangs": True}, True)],
    ids=str,
)
async def test_a_sentence_that_no_source_supports_is_withheld(how: dict[str, bool], *, noted: bool) -> None:
    """Whatever became of the search; a note tells of one that failed."""
    async with line(searching(timeout_s=0.2), search=Shelf(NINE, **how)) as made:
        await played(made, FREE, OWL)
        assert made.text == f"{FREE} [gone] "
        assert made.outcome.action is Action.REPLACE
        assert (Reason.RETRIEVAL_FAILED in made.flow.exchange.notes) is noted


async def test_each_sentence_is_judged_by_itself() -> None:
    """One that is cleared takes no other along."""
    async with line(searching(), search=Shelf(NINE)) as made:
        await played(made, NINE, OWL, NINE)
        assert made.text == f"{NINE} [gone] {NINE} "
        assert made.outcome.action is Action.REPLACE


async def cleared_by(
    shelf: Shelf, *, times: int = 1, time_s: float = 20.0, takes_s: float = 0.0, **retrieval: object
) -> list[bool]:
    """Ask for one flagged sentence over and over; whether it was cleared, each time."""
    plan, now, engine = searching(**retrieval), 0.0, engine_of({None: WORDS})
    exchange = Exchange(Endpoint.CHAT, "m", "q", EVIDENCE)
    answer = Answer(0, AnswerKind.TEXT, NINE)

    async def search(*asked: Any) -> Exchange:
        nonlocal now
        now += takes_s
        return await shelf(*asked)

    clearing = Clearing(plan, engine, search, clock=lambda: now)
    ranges = [(0, len(NINE))]
    found = await engine.follow(plan, exchange).detect_ranges([answer], [ranges])
    again = [
        await clearing.ranges(exchange, ScoredParts([answer], [ranges], found), time_s=time_s)
        for _ in range(times)
    ]
    await engine.aclose()
    return [not each[0][0].flagged for each in again]


async def test_one_stream_has_the_searches_of_one_answer() -> None:
    """So many claims, and so many seconds in all; what comes later stays flagged."""
    shelf = Shelf(NINE)
    assert await cleared_by(shelf, times=4, max_claims=2) == [True, True, False, False]
    slow = Shelf(NINE)
    assert await cleared_by(slow, times=4, takes_s=0.6, max_claims=9, timeout_s=1.0) == [
        True,
        True,
        False,
        False,
    ]
    assert slow.times == pytest.approx([1.0, 0.4])


@pytest.mark.parametrize("bounds", [{"time_s": 0.05}, {"time_s": -3.0}, {"takes_s": 20.0}])
async def test_what_has_no_time_left_stays_flagged(bounds: dict[str, float]) -> None:
    """Neither a search nor a second scoring is begun that could only run out of it."""
    assert await cleared_by(Shelf(NINE), **bounds) == [False]


async def test_a_client_that_goes_away_ends_the_search() -> None:
    shelf = Shelf(hangs=True)
    async with line(searching(timeout_s=60.0), search=shelf) as made:
        await made.send(chunk(OWL + " And"))
        while not shelf.asked:
            await asyncio.sleep(0.01)
    assert made.closed == 1
    assert made.outcomes == []
