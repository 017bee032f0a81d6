"""Each fault of the soak once, on two sidecars behind a real Envoy with traffic all along: ``make test-chaos``.

Nothing here asserts on time: the traffic before, in and behind a fault is counted in exchanges.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Iterator

import pytest

from bench.soak.deployment import Deployment, deployed
from bench.soak.exchanges import FIRST, Exchange, Pool
from bench.soak.expectations import Judge, Wrong
from bench.soak.faults import FAULTS, strike
from bench.soak.load import Load
from bench.soak.samples import at_rest
from tests.integration.support.chaos.rounds import complaints

SEED = 20261128
# Without the reader, which takes most of the time of an answer, and of each start.
DETECTORS = ("encoder", "numbers", "contradictions")
CLIENTS, AROUND, POOL = 6, 24, Pool(SEED, 12)


@pytest.fixture(scope="module")
def weathered() -> Iterator[tuple[Deployment, Judge]]:
    """The deployment, and what its exchanges are like while nothing fails."""
    with deployed(SEED, detectors=DETECTORS, patient=True) as deployment:
        deployment.weather("storm")
        load = Load(deployment, Judge(SEED))
        findings = asyncio.run(load.learn(POOL.cases(), CLIENTS))
        assert {each.wrong for each in findings} <= {Wrong.LATE}, findings
        yield deployment, load.judge


def _sum(deployment: Deployment, name: str) -> float:
    return sum(each.metric(name) for each in deployment.replicas)


_RELOADS = 'truthlens_policy_reloads_total{{result="{}"}}'
# What a fault must have done, by figures that it moves: the metric of all replicas that has to be higher behind it.
MOVED: dict[str, tuple[str, float]] = {
    "edit-policy": (_RELOADS.format("ok"), 4),
    "break-policy": (_RELOADS.format("failed"), 2),
    "rotate-certificates": ('truthlens_tls_reloads_total{result="ok"}', 4),
    "fill-disk": ("truthlens_log_lines_lost_total", 1),
}
# Signals by which the second replica, or both, have ended.
ENDED = {"kill": [-9], "restart": [0, 0]}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_costs_what_it_may_and_no_more(weathered: tuple[Deployment, Judge], name: str) -> None:
    """No wrong ``checked``, no byte lost or doubled, none hung, no error and no other verdict that the fault does not explain."""
    deployment, judge = weathered
    if why := FAULTS[name].missing(deployment):
        pytest.skip(why)
    metric, least = MOVED.get(name, ("truthlens_actions_total", 0))
    before, exits = _sum(deployment, metric), [len(each.exits) for each in deployment.replicas]
    load = Load(deployment, judge)
    asyncio.run(_through(load, name))
    assert load.tally.wrong.keys() <= {Wrong.LATE}, load.tally.findings[:5]
    assert load.tally.touched
    assert load.tally.done - load.tally.touched >= AROUND
    ended = [
        one for each, known in zip(deployment.replicas, exits, strict=True) for one in each.exits[known:]
    ]
    assert [one.status for one in ended] == ENDED.get(name, [])
    assert all(one.wanted for one in ended)
    assert not [line for each in deployment.replicas for line in complaints(each.stack)]
    assert asyncio.run(at_rest(deployment, 120)) == {}
    if name in MOVED:
        assert _sum(deployment, metric) >= before + least


async def _through(load: Load, name: str) -> None:
    """Traffic before a fault, in it and behind it."""
    over = False

    def exchanges() -> Iterator[Exchange]:
        for number in itertools.count(FIRST):
            if over:
                return
            yield POOL.exchange(number)

    async def until(holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.05)

    async with load.deployment.supervised():
        running = asyncio.create_task(load.run(exchanges(), CLIENTS))
        await until(lambda: load.tally.done >= AROUND or running.done())
        await strike(name, load.deployment, load.calendar, random.Random(f"{SEED} {name}"))
        touched = load.tally.touched
        await until(lambda: load.tally.done >= touched + 2 * AROUND or running.done())
        over = True
        await running
