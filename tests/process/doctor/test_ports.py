"""Addresses of a sidecar: free where it is planned, answering where it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2

from tests.fakes.http_sources import answering, silent, source_server
from tests.fakes.setups import at_paths, grpc_health, here, setup_of, wrong
from truthlens.process.doctor.findings import CheckResult
from truthlens.process.doctor.ports import Seen, look_at_addresses, of_addresses
from truthlens.process.doctor.setup import Setup

READY = {"ready": True, "models": [], "policy": {"version": "1", "last_error": None}, "warnings": []}


async def found(setup: Setup) -> dict[str, CheckResult]:
    """What is wrong with the addresses."""
    return wrong(of_addresses(setup, await look_at_addresses(setup)))


async def test_free_addresses_are_right_for_a_planned_set_up(tmp_path: Path) -> None:
    """And wrong for one whose Envoy runs, for then a sidecar is expected there."""
    setup = setup_of(tmp_path)
    assert await found(setup) == {}
    running = setup_of(tmp_path, admin="http://127.0.0.1:1")
    assert set(await found(running)) == {"ports.extproc", "ports.health", "ports.console"}


async def test_a_sidecar_that_serves_is_right(tmp_path: Path) -> None:
    """Its gRPC health and /readyz answer."""
    async with grpc_health() as ports, source_server(at_paths({"/readyz": READY})) as console:
        port = int(console.url.rpartition(":")[2])
        setup = setup_of(tmp_path, extproc=ports.extproc, health=ports.health, console=here(port))
        assert await found(setup) == {}
        assert (await look_at_addresses(setup)).readyz == READY


@pytest.mark.parametrize("readyz", [b"<html>", {"status": "ok"}, [1], {"ready": True, "policy": 1}])
async def test_another_program_at_the_consoles_address_is_named(tmp_path: Path, readyz: Any) -> None:
    """Whether a sidecar runs beside it or is to be started."""
    async with source_server(answering(readyz)) as console:
        port = int(console.url.rpartition(":")[2])
        planned = await found(setup_of(tmp_path, console=here(port)))
        assert set(planned) == {"ports.console"}
        assert "taken by another process" in planned["ports.console"].what
        assert "--console" in planned["ports.console"].change
        async with grpc_health() as ports:
            setup = setup_of(tmp_path, extproc=ports.extproc, health=ports.health, console=here(port))
            beside = await found(setup)
    assert set(beside) == {"ports.console"}
    assert "another program answers" in beside["ports.console"].what


async def test_a_process_that_drains_is_wrong(tmp_path: Path) -> None:
    """Its health says so, and so does its console."""
    draining = at_paths({"/readyz": {**READY, "ready": False}})
    status = health_pb2.HealthCheckResponse.NOT_SERVING
    async with grpc_health(status) as ports, source_server(draining) as console:
        port = int(console.url.rpartition(":")[2])
        told = await found(setup_of(tmp_path, extproc=ports.extproc, health=ports.health, console=here(port)))
    assert set(told) == {"ports.health", "ports.console"}
    assert "NOT_SERVING" in told["ports.health"].what


async def test_what_accepts_and_says_nothing_costs_the_deadline_alone(tmp_path: Path) -> None:
    """It counts as no health check and no console."""
    async with source_server(silent) as server:
        address = here(int(server.url.rpartition(":")[2]))
        setup = setup_of(tmp_path, extproc=address, health=address, console=address, timeout_s=0.2)
        seen = await look_at_addresses(setup)
    assert seen == Seen(extproc=True, console=True)


def test_with_tls_the_health_is_not_asked(tmp_path: Path) -> None:
    """The certificate of a server need not be trusted here."""
    setup = setup_of(tmp_path, tls_certificate=tmp_path / "cert.pem")
    seen = Seen(extproc=True, console=True, readyz=READY, ready=True, certificate=b"shown")
    assert wrong(of_addresses(setup, seen)) == {}
