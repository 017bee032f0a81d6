"""Further Envoys in front of a benchmark's backend, with another processor than TruthLens or with none."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable

from tests.fakes.ports import free_port
from tests.integration.support.stack import Stack, wait_for
from truthlens.core.net import Address, Upstream
from truthlens.envoy.config import EnvoySettings, envoy_config
from truthlens.envoy.ports import is_listening
from truthlens.envoy.process import envoy_binary


def another_envoy(
    stack: Stack,
    extproc: Address | None,
    processes: contextlib.ExitStack,
    *,
    answers: Callable[[str], bool],
) -> tuple[Address, int]:
    """Start an Envoy in front of the stack's backend, and return it and its process id.

    Args:
        stack: whose backend it fronts.
        extproc: another processor; ``None`` for no filter at all.
        processes: ends it.
        answers: whether the processor answers at a URL; Envoy finds it healthy only after its first check.
    """
    address = Address("127.0.0.1", free_port())
    settings = EnvoySettings(
        listen=address,
        extproc=[extproc or stack.extproc],
        health=[extproc or stack.health],
        upstream=Upstream("127.0.0.1", stack.backend.port, tls=False),
        access_log=str(stack.folder / f"access-{address.port}.log"),
    )
    config = envoy_config(settings)
    if extproc is None:
        manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
        manager["http_filters"] = manager["http_filters"][1:]
        manager["route_config"]["virtual_hosts"][0]["routes"] = [
            {"match": {"prefix": "/"}, "route": {"cluster": "llm_backend", "timeout": "0s"}}
        ]
        config["static_resources"]["clusters"] = config["static_resources"]["clusters"][:1]
    file = stack.folder / f"envoy-{address.port}.json"
    file.write_text(json.dumps(config))
    arguments = ["-c", str(file), "--log-level", "error", "--use-dynamic-base-id", "--concurrency", "1"]
    process = subprocess.Popen([envoy_binary(), *arguments])
    processes.callback(process.kill)
    wait_for(lambda: is_listening(address), "an Envoy")
    if extproc is not None:
        wait_for(lambda: answers(f"http://{address}/v1/chat/completions"), "the bare processor in the path")
    return address, process.pid
