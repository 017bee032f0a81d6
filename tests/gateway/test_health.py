"""Health is told by threads of its own: serving while the event loop is busy, not serving where it is stuck or drained."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.fakes.ports import free_port
from tests.gateway.test_session import Pipeline
from truthlens.core.errors import StartError
from truthlens.core.net import Address
from truthlens.gateway import wire
from truthlens.gateway.health import STUCK_S, HealthServer, Pulse
from truthlens.gateway.server import Server

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
PATIENCE_S = 30.0


def check(address: Address, service: str = "") -> int:
    with grpc.insecure_channel(str(address)) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return stub.Check(
            health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE_S, wait_for_ready=True
        ).status


def free() -> Address:
    return Address("127.0.0.1", free_port())


@asynccontextmanager
async def started(health: Address) -> AsyncIterator[Server]:
    server = Server(Pipeline(), address=str(free()), health_at=health)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@pytest.mark.parametrize("service", ["", wire.SERVICE])
async def test_a_busy_process_says_that_it_serves(service: str) -> None:
    """Nothing else runs on the event loop from the question to the answer: the loop is held by the wait for it."""
    health = free()
    async with started(health) as server:
        await server.set_serving(True)
        with ThreadPoolExecutor(1) as asking:
            assert asking.submit(check, health, service).result(PATIENCE_S) == SERVING


async def test_it_does_not_serve_before_it_is_told_to_and_while_it_is_drained() -> None:
    health = free()
    async with started(health) as server:
        assert await asyncio.to_thread(check, health) == NOT_SERVING
        await server.set_serving(True)
        draining = asyncio.create_task(server.drain(notice_s=PATIENCE_S, grace_s=0.0))
        await asyncio.sleep(0)
        assert await asyncio.to_thread(check, health) == NOT_SERVING
        draining.cancel()


async def test_a_service_that_it_does_not_know_is_not_found() -> None:
    health = free()
    async with started(health):
        with pytest.raises(grpc.RpcError) as error:
            await asyncio.to_thread(check, health, "another")
        assert error.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(("passed_s", "alive"), [(0.0, True), (STUCK_S - 0.1, True), (STUCK_S, False)])
def test_a_loop_that_does_not_run_for_long_is_stuck(passed_s: float, alive: bool) -> None:
    now = [100.0]
    pulse = Pulse(clock=lambda: now[0])
    pulse.serving = True
    now[0] += passed_s
    assert pulse.alive is alive
    pulse.beat()
    assert pulse.alive


async def test_the_pulse_beats_as_long_as_the_loop_runs() -> None:
    now = [100.0]
    pulse = Pulse(clock=lambda: now[0])
    pulse.serving = True
    now[0] += STUCK_S
    beating = asyncio.create_task(pulse.keep_beating())
    await asyncio.sleep(0)
    assert pulse.alive
    beating.cancel()


def test_an_address_that_is_taken_is_named_with_its_flag() -> None:
    address = free()
    first = HealthServer(Pulse(), address=address, credentials=None, services=frozenset({""}))
    try:
        with pytest.raises(StartError, match=f"{address}.*--health"):
            HealthServer(Pulse(), address=address, credentials=None, services=frozenset({""}))
    finally:
        first.stop()


@pytest.mark.parametrize(
    ("extproc", "health"),
    [
        (Address("10.0.0.1", 18080), Address("10.0.0.1", 19080)),
        (Address("::1", 65000), Address("::1", 64000)),
        (Address("/run/truthlens.sock", 0), None),
    ],
)
def test_health_has_a_port_by_convention(extproc: Address, health: Address | None) -> None:
    assert extproc.health == health
