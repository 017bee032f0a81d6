"""Work that grows with the evidence runs on threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.fakes.premium_panel import BUILDER, CITY, HEIGHT, WRONG_HEIGHT, Script, heard, task_of, tools_of
from truthlens.core.records.exchange import Passage
from truthlens.core.records.settings import Consensus
from truthlens.mitigation.premium.panel import premium
from truthlens.mitigation.standard.loop import standard

FIRST = f"{BUILDER} {WRONG_HEIGHT} {CITY}"
RIGHT = f"{BUILDER} {HEIGHT} {CITY}"


class Watched(tuple[Passage, ...]):  # noqa: SLOT001 - it needs a place for what it notes
    """Evidence that notes the threads that go through it."""

    threads: set[threading.Thread]

    def __iter__(self) -> Iterator[Passage]:
        self.threads.add(threading.current_thread())
        return super().__iter__()


@pytest.mark.parametrize("consensus", [None, *Consensus])
async def test_evidence_is_never_gone_through_on_the_event_loop(consensus: Consensus | None) -> None:
    """Neither to write a prompt nor to find whether a candidate is about the same matter."""
    task = task_of(FIRST, consensus=consensus)
    passages = Watched(task.exchange.passages)
    passages.threads = set()
    task = replace(task, exchange=replace(task.exchange, passages=passages))
    tools = tools_of(Script(a=RIGHT, b=RIGHT, c=RIGHT, judge=RIGHT))
    if consensus is None:
        corrected = await standard(task, tools)
    else:
        corrected = await premium(task, tools, heard(RIGHT, RIGHT))
    assert corrected.text == RIGHT
    assert passages.threads
    assert threading.current_thread() not in passages.threads
