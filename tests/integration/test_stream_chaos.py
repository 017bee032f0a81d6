"""Many streams at once over all plans, with backends that misbehave, clients that leave and a sidecar that dies."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.support.chaos.rounds import complaints, resident_mb
from tests.integration.support.chaos.stream_backend import BEHAVIOURS, REFUSED, StreamChaosBackend
from tests.integration.support.chaos.stream_faults import faults_of
from tests.integration.support.chaos.stream_rounds import Round, run_round, settle
from tests.integration.support.stack import Stack
from tests.integration.support.streams.gateway import policy
from tests.integration.support.streams.stage import envoy_stats

pytestmark = pytest.mark.envoy

SEED = 20261122
CLIENTS = 40


@contextmanager
def deployed(folder: Path, **options: Any) -> Iterator[Stack]:
    """A deployment of its own, which is checked when the test is done with it."""
    stack = Stack(
        folder,
        policy(),
        backend=StreamChaosBackend(SEED),
        arguments=("--drain-notice", "2.5", "--drain-grace", "4"),
        **options,
    )
    try:
        stack.start()
        yield stack
        settle(stack)
        assert not complaints(stack)
        assert "failed" not in (stack.folder / "sidecar.log").read_text()
        stats = envoy_stats(stack)
        assert (stats["spurious_msgs_received"], stats["rejected_header_mutations"]) == (0, 0)
    finally:
        stack.stop()


def assess(stack: Stack, done: Round, **circumstances: bool) -> None:
    """Look at every stream of a round."""
    # A case that Envoy refused never came to the backend.
    faults = [
        fault
        for number, got in sorted(done.got.items())
        for fault in faults_of(number, got, stack.backend.written.get(number, REFUSED), **circumstances)
    ]
    assert done.got
    assert not faults, f"{len(faults)} of {len(done.got)}:\n" + "\n".join(faults[:10])


async def test_nothing_is_lost_doubled_or_reordered(tmp_path: Path) -> None:
    """Whatever backends do and whoever leaves; and nothing of it stays behind."""
    with deployed(tmp_path) as stack:
        first = await run_round(stack, seed=SEED, first=1000, clients=CLIENTS, each=3, leaving=0.2)
        assess(stack, first)
        before = resident_mb(stack)
        second = await run_round(stack, seed=SEED, first=2000, clients=CLIENTS, each=3, leaving=0.2)
        assess(stack, second)
        settle(stack)
        assert resident_mb(stack) < before + 100
        assert set(stack.backend.drawn) == set(BEHAVIOURS)
        assert first.left + second.left > 10


@pytest.mark.parametrize("allow", [True, False], ids=["open", "closed"])
async def test_a_sidecar_that_dies_again_and_again_costs_what_the_failure_mode_says(
    tmp_path: Path, allow: bool
) -> None:
    """Fail open: every stream comes whole. Fail closed: some break off, none is made up."""
    with deployed(tmp_path, failure_mode_allow=allow) as stack:
        over = asyncio.Event()
        running = asyncio.create_task(
            run_round(stack, seed=SEED, first=10_000, clients=CLIENTS, each=400, leaving=0.1, over=over)
        )
        for number in (signal.SIGKILL, signal.SIGTERM):
            seen = len(stack.backend.written)
            while len(stack.backend.written) < seen + 40:
                assert not running.done()
                await asyncio.sleep(0.01)
            await asyncio.to_thread(stack.kill_sidecar, number)
            await asyncio.to_thread(stack.start_sidecar)
            await asyncio.to_thread(stack.wait_healthy)
        over.set()
        assess(stack, await running, killed=True, closed=not allow)


async def test_edits_of_the_policy_disturb_no_stream(tmp_path: Path) -> None:
    with deployed(tmp_path) as stack:
        over = asyncio.Event()
        running = asyncio.create_task(
            run_round(stack, seed=SEED, first=50_000, clients=10, each=400, leaving=0.1, over=over)
        )
        for turn in range(3):
            stack.policy.write_text(policy() + f"# edit {turn}\n")
            seen = len(stack.backend.written)
            while len(stack.backend.written) < seen + 20:
                assert not running.done()
                await asyncio.sleep(0.01)
        over.set()
        assess(stack, await running)
