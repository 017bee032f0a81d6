"""A real Envoy sends a route's metadata to the sidecar, and nothing that a client sends in their place."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import grpc
import httpx
import pytest
import yaml
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from tests.fakes.ports import free_port
from truthlens.core.net import Address, Upstream
from truthlens.envoy.config import EnvoySettings, envoy_config
from truthlens.envoy.process import envoy_binary
from truthlens.gateway import wire
from truthlens.gateway.server import _route_metadata

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0

pytestmark = pytest.mark.envoy


class Recorder:
    """An ext_proc server that notes each stream's metadata and gives up."""

    def __init__(self) -> None:
        self.seen: list[Mapping[str, str]] = []
        self._server = grpc.aio.server()
        handler = grpc.stream_stream_rpc_method_handler(self._process)
        handlers = grpc.method_handlers_generic_handler(wire.SERVICE, {"Process": handler})
        self._server.add_generic_rpc_handlers((handlers,))
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    async def _process(self, _requests: Any, context: Any) -> None:
        self.seen.append(_route_metadata(context))
        await context.abort(grpc.StatusCode.INTERNAL, "only here to listen")

    async def __aenter__(self) -> Self:
        await self._health.set("", health_pb2.HealthCheckResponse.SERVING)
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(0)


@pytest.fixture
async def recorder() -> AsyncIterator[Recorder]:
    """The sidecar's stand-in."""
    async with Recorder() as running:
        yield running


@pytest.fixture
def ports() -> tuple[int, int, int]:
    """Listener, admin, and a backend where nothing listens."""
    listener, admin, backend = (free_port() for _ in range(3))
    return listener, admin, backend


@pytest.fixture
def envoy(recorder: Recorder, ports: tuple[int, int, int], tmp_path: Path) -> Iterator[None]:
    """Envoy with the README's route before the checked one."""
    listener, admin, backend = ports
    config = envoy_config(
        EnvoySettings(
            listen=Address("127.0.0.1", listener),
            extproc=[Address("127.0.0.1", recorder.port)],
            health=[Address("127.0.0.1", recorder.port)],
            upstream=Upstream("127.0.0.1", backend, tls=False),
            admin=Address("127.0.0.1", admin),
            access_log=None,
        )
    )
    text = (ROOT / "envoy" / "README.md").read_text("utf-8")
    (example,) = re.findall(r"^```yaml\n(- match:.*?)^```", text, re.MULTILINE | re.DOTALL)
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    manager["route_config"]["virtual_hosts"][0]["routes"][:0] = yaml.safe_load(example)
    path = tmp_path / "envoy.yaml"
    path.write_text(yaml.safe_dump(config))
    arguments = [
        envoy_binary(),
        "-c",
        str(path),
        "--use-dynamic-base-id",
        "--concurrency",
        "1",
        "--log-level",
        "error",
    ]
    process = subprocess.Popen(arguments)
    yield
    process.kill()
    process.wait()


async def _until_healthy(client: httpx.AsyncClient, admin: int) -> None:
    stats = f"http://127.0.0.1:{admin}/stats?filter=cluster.truthlens.membership_healthy"
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                if (await client.get(stats)).text.strip().endswith(": 1"):
                    return
            except httpx.TransportError:
                pass  # not up yet
            await asyncio.sleep(0.05)


@pytest.mark.usefixtures("envoy")
async def test_only_the_route_sets_metadata(recorder: Recorder, ports: tuple[int, int, int]) -> None:
    """The clinic's route sends its domain; a client that sends headers of those names changes nothing, on any route."""
    listener, admin, _ = ports
    forged = {"truthlens-domain": "creative", "x-truthlens-domain": "creative", "truthlens-decision": "weak"}
    async with httpx.AsyncClient() as client:
        await _until_healthy(client, admin)
        for path in ("/clinic/v1/chat/completions", "/v1/chat/completions"):
            await client.post(f"http://127.0.0.1:{listener}{path}", json={}, headers=forged)
    assert recorder.seen == [{"truthlens-domain": "healthcare"}, {}]
