"""Set-ups for the tests of ``truthlens doctor``: a policy with a small model, addresses of nobody, servers that are faked."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from tests.fakes.http_sources import Answer, Asked, SourceServer, reply, source_server
from tests.fakes.ports import free_port
from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.net import Address
from truthlens.process.doctor.findings import CheckLevel, CheckResult
from truthlens.process.doctor.setup import Setup
from truthlens.process.settings import Settings

RECORDED = json.loads(
    (Path(__file__).parents[1] / "process" / "doctor" / "envoy-1.40-admin.json").read_text()
)
"""What the admin interface of a real Envoy 1.40 said whose sidecar, at 127.0.0.1:21080, was not there; without what is not read."""


def here(port: int | None = None) -> Address:
    """An address of this machine."""
    return Address("127.0.0.1", port or free_port())


def setup_of(folder: Path, policy: str = "hallucination: {detectors: [encoder]}\n", **more: Any) -> Setup:
    """A set-up in ``folder`` whose policy needs one small model; ``more`` are fields of the settings or the set-up."""
    models = folder / "models"
    if not models.is_dir():
        write_encoder(models / "truthlens-minilm-en-v2")
    file = folder / "policy.yaml"
    file.write_text(policy)
    own = {
        name: more.pop(name)
        for name in ("envoys", "admin", "environ", "free_memory", "timeout_s")
        if name in more
    }
    given = {"extproc": here(), "console": here(), "config": file, "models": models, **more}
    return Setup(Settings(**given), **{"environ": {}, "timeout_s": 10.0, **own})


def wrong(found: Iterable[CheckResult]) -> dict[str, CheckResult]:
    """What is not in order, by id."""
    return {each.id: each for each in found if each.severity is not CheckLevel.OK}


def at_paths(contents: Mapping[str, object], *headers: str) -> Answer:
    """Answers each path with its content (text as it is, all else as JSON), others with 404."""

    async def answer(asked: Asked, writer: Any) -> None:
        path = asked.target.split()[1].partition("?")[0]
        content = contents.get(path)
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        status = "404 Not Found" if path not in contents else "200 OK"
        writer.write(reply(body, "content-type: application/json", *headers, status=status))

    return answer


@contextlib.asynccontextmanager
async def admin_of(recorded: Mapping[str, Any]) -> AsyncIterator[SourceServer]:
    """An admin interface that says what was recorded."""
    async with source_server(at_paths({f"/{name}": content for name, content in recorded.items()})) as server:
        yield server


def recorded(*, healthy: bool = True, port: int = 21080, health_port: int = 22080) -> dict[str, Any]:
    """The recorded Envoy, with its sidecar at ``port``; where it is ``healthy``, nothing has failed."""
    text = json.dumps(RECORDED).replace("21080", str(port)).replace("22080", str(health_port))
    told: dict[str, Any] = deepcopy(json.loads(text))
    if healthy:
        for cluster in told["clusters"]["cluster_statuses"]:
            for host in cluster["host_statuses"]:
                host["health_status"] = {"eds_health_status": "HEALTHY"}
        for stat in told["stats"]["stats"]:
            if ".ext_proc." in stat.get("name", ""):
                stat["value"] = 0
    return told


@dataclass
class HealthyPorts:
    """Where gRPC listens, and where it answers health checks."""

    extproc: Address
    health: Address


@contextlib.asynccontextmanager
async def grpc_health(
    status: int = health_pb2.HealthCheckResponse.SERVING,
) -> AsyncIterator[HealthyPorts]:
    """A gRPC server that answers health checks and takes no exchange."""
    servicer = health.aio.HealthServicer()
    await servicer.set("", status)
    server = grpc.aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    ports = [server.add_insecure_port("127.0.0.1:0") for _ in range(2)]
    await server.start()
    try:
        yield HealthyPorts(here(ports[0]), here(ports[1]))
    finally:
        await server.stop(0)
