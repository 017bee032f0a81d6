"""In which order jobs are taken: as they came, but for those that give way to later ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

from truthlens.core.cancellation import StopCheck
from truthlens.core.records.plan import DetectorSpec
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.workers import DetectorStep, Ended, Job, Workers

PATIENCE_S = 30.0


def job(run: Callable[[], None]) -> Job:
    def step(_stop: StopCheck) -> Sequence[DetectorResult]:
        run()
        return ()

    return Job([DetectorStep(DetectorSpec("encoder"), step)], texts=0)


async def order_of(gives_way_s: Sequence[float | None], *, cancelled: Sequence[int] = ()) -> list[int]:
    """The order in which jobs run that come one after the other while the one worker is busy."""
    workers = Workers(workers=1, queue_limit=64, queue_observer=None)
    busy, go = threading.Event(), threading.Event()
    ran: list[int] = []

    def first() -> None:
        busy.set()
        go.wait(PATIENCE_S)

    running = [asyncio.create_task(workers.run(job(first), timeout_s=PATIENCE_S))]
    await asyncio.to_thread(busy.wait, PATIENCE_S)
    for place, gives_way in enumerate(gives_way_s):

        def note(place: int = place) -> None:
            ran.append(place)

        running.append(
            asyncio.create_task(workers.run(job(note), timeout_s=PATIENCE_S, gives_way_s=gives_way))
        )
        await asyncio.sleep(0)
    for place in cancelled:
        running[place + 1].cancel()
    await asyncio.sleep(0)
    assert workers.waiting == len(gives_way_s) - len(cancelled)
    go.set()
    ended = await asyncio.gather(*running, return_exceptions=True)
    assert [each for each in ended if isinstance(each, Ended)] == [Ended.FINISHED] * (
        len(running) - len(cancelled)
    )
    await workers.aclose()
    assert (workers.waiting, workers.inflight) == (0, 0)
    return ran


async def test_jobs_are_taken_as_they_came() -> None:
    assert await order_of([None] * 4) == [0, 1, 2, 3]


async def test_parts_of_streams_give_way_to_whole_answers_that_came_later() -> None:
    assert await order_of([60.0, 60.0, None, 60.0, None]) == [2, 4, 0, 1, 3]


async def test_a_job_that_was_given_up_takes_no_place_in_the_order() -> None:
    assert await order_of([60.0, None, None, 60.0], cancelled=[1, 3]) == [2, 0]


async def test_streams_in_their_dozens_take_no_place_of_other_answers() -> None:
    """Each has one scoring at a time, which waits as long as it may; the bound is for the others."""
    workers = Workers(workers=1, queue_limit=2, queue_observer=None)
    busy, go = threading.Event(), threading.Event()

    def first() -> None:
        busy.set()
        go.wait(PATIENCE_S)

    def nothing() -> None: ...

    running = [asyncio.create_task(workers.run(job(first), timeout_s=PATIENCE_S))]
    await asyncio.to_thread(busy.wait, PATIENCE_S)
    for gives_way_s in (*[60.0] * 20, None, None, None):
        work = workers.run(job(nothing), timeout_s=PATIENCE_S, gives_way_s=gives_way_s)
        running.append(asyncio.create_task(work))
        await asyncio.sleep(0)
    assert workers.behind_s > 0.0
    go.set()
    ended = await asyncio.gather(*running)
    assert workers.behind_s == 0.0
    assert ended == [Ended.FINISHED] * 23 + [Ended.REFUSED]
    await workers.aclose()
