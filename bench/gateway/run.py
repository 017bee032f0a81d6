"""Measure what TruthLens costs an exchange through a real Envoy: latency, CPU, and throughput.

Side by side on one machine, with one scripted backend: Envoy alone; Envoy with a bare Python processor that
only acknowledges messages (``bench/common/bare.py``); and TruthLens where the request head says "do not
check", where the policy says so after reading the request, where both bodies are read and nothing can be
scored, and with detection. Sequential requests go round-robin over them, and the throughput runs take turns in short rounds, so
that a noisy moment hits all alike; CPU is given as a ratio to the bare processor.

    python -m bench.gateway.run [--requests 1000] [--clients 32] [--seconds 8]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table

from bench.common.envoys import another_envoy
from bench.common.script import command, machine, percentile, write_result
from tests.integration.support.backend import completion, json_reply
from tests.integration.support.stack import Stack, free_port, wait_for
from truthlens.core.net import Address
from truthlens.envoy.ports import is_listening

POLICY = """\
trusted_headers: [x-domain]
hallucination: {enabled: true, default_mode: lightweight, threshold: 0.99}
signals:
  domains:
    - {name: bypass, headers: {x-domain: [bypass]}}
decisions:
  - name: bypass
    priority: 90
    rules: {operator: OR, conditions: [{type: domain, name: bypass}]}
    plugins: [{type: hallucination, configuration: {enabled: false}}]
  - name: not-checked
    priority: 80
    rules: {operator: OR, conditions: [{type: model, name: not-checked}]}
    plugins: [{type: hallucination, configuration: {enabled: false, client_may_choose: true}}]
"""
CONTEXT = (
    "The river ferry runs between the old harbour and the market square from March to October. It leaves every twenty "
    "minutes on weekdays and every half hour at weekends. A single ticket costs four euros, a day ticket nine euros. "
    "Bicycles travel free of charge outside the rush hours. Dogs must be kept on a lead. "
)
ANSWER = (
    "The ferry connects the old harbour with the market square between March and October. On weekdays it leaves every "
    "twenty minutes. A single ticket costs four euros, and bicycles are free outside the rush hours."
)
REQUEST = {
    "model": "bench",
    "messages": [
        {"role": "user", "content": f"<context>{CONTEXT * 3}</context>\nHow do I get to the market square?"}
    ],
}
# Marked nowhere as evidence: both bodies are read, nothing is scored.
BARE = "How do I get to the market square? " * 25
PAD = "x" * 3000  # bodies of about 4 KB
ROUNDS = 4


def cpu_seconds(pid: int) -> float:
    """Return the user and system time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    line = next(
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")
    )
    return int(line.split()[1]) / 1024


@dataclass(frozen=True)
class Route:
    """One way through a gateway: where to post what, and the process whose CPU is counted."""

    url: str
    headers: dict[str, str]
    body: dict
    pid: int | None
    compare: str | None = None


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--requests", type=int, default=1000, help="sequential requests per path")
    parser.add_argument("--clients", type=int, default=32, help="concurrent clients for throughput")
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="duration of the throughput run of each path, in rounds"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as processes:
        stack = Stack(Path(folder), POLICY)
        processes.callback(stack.stop)
        stack.backend.reply = lambda _request: json_reply(completion(ANSWER, pad=PAD))
        stack.start()
        direct, _ = another_envoy(stack, None, processes, answers=_is_bare)
        bare_address = Address("127.0.0.1", free_port())
        bare = subprocess.Popen([sys.executable, "-m", "bench.common.bare", str(bare_address)])
        processes.callback(bare.kill)
        wait_for(lambda: is_listening(bare_address), "the bare processor")
        bare_gateway, _ = another_envoy(stack, bare_address, processes, answers=_is_bare)
        result = measure(stack, direct, bare_gateway, bare.pid, options)
    target = write_result(options.out, "gateway", result)
    show(result)
    print(f"\nwritten to {target}")


def _is_bare(url: str) -> bool:
    return "x-bare" in httpx.post(url, json=REQUEST).headers


def _latencies(paths: dict[str, Route], requests: int) -> dict[str, list[float]]:
    """Return the seconds of ``requests`` requests of each path, the paths in turn, after some to warm up."""
    latencies: dict[str, list[float]] = {name: [] for name in paths}
    with httpx.Client(timeout=30) as client:
        for _ in range(40):
            for path in paths.values():
                client.post(path.url, headers=path.headers, json=path.body).raise_for_status()
        checked = paths["TruthLens, detection"]
        assert client.post(checked.url, json=REQUEST).headers["x-truthlens-status"] == "checked"
        for _ in range(requests):
            for name, path in paths.items():
                started = time.perf_counter()
                client.post(path.url, headers=path.headers, json=path.body)
                latencies[name].append(time.perf_counter() - started)
    return latencies


def measure(stack: Stack, direct: Address, bare: Address, bare_pid: int, options: argparse.Namespace) -> dict:
    """Measure all figures."""
    assert stack.sidecar is not None
    gateway, pid = f"{stack.url}/v1/chat/completions", stack.sidecar.pid
    bare_url = f"http://{bare}/v1/chat/completions"
    bypass = {"x-domain": "bypass"}
    unmarked = {**REQUEST, "messages": [{"role": "user", "content": BARE}]}
    paths = {
        "Envoy alone": Route(f"http://{direct}/v1/chat/completions", {}, REQUEST, None),
        "bare processor, headers": Route(bare_url, bypass, REQUEST, bare_pid),
        "TruthLens, bypass by header": Route(gateway, bypass, REQUEST, pid, "bare processor, headers"),
        "bare processor, both bodies": Route(bare_url, {}, REQUEST, bare_pid),
        "TruthLens, switched off by model": Route(
            gateway, {}, {**REQUEST, "model": "not-checked"}, pid, "bare processor, both bodies"
        ),
        "TruthLens, both bodies, no evidence": Route(
            gateway, {}, unmarked, pid, "bare processor, both bodies"
        ),
        "TruthLens, detection": Route(gateway, {}, REQUEST, pid, "bare processor, both bodies"),
    }
    latencies = _latencies(paths, options.requests)
    base = latencies["Envoy alone"]
    rows: dict[str, dict] = {}
    loaded: dict[str, list[tuple[float, float]]] = {name: [] for name in paths}
    seen: dict[str, Counter[str]] = {name: Counter() for name in paths}
    for _ in range(ROUNDS):
        for name, path in paths.items():
            before = cpu_seconds(path.pid) if path.pid else 0.0
            took, found = asyncio.run(
                load(path.url, path.headers, path.body, options.clients, options.seconds / ROUNDS)
            )
            seen[name].update(found)
            loaded[name].append((took, cpu_seconds(path.pid) - before if path.pid else 0.0))
    for name, statuses in seen.items():
        done, own = statuses.total(), latencies[name]
        seconds, cpu = map(sum, zip(*loaded[name], strict=True))
        rows[name] = {
            "p50_ms": statistics.median(own) * 1000,
            "p99_ms": percentile(own, 0.99) * 1000,
            "added_p50_ms": (statistics.median(own) - statistics.median(base)) * 1000,
            "added_p99_ms": (percentile(own, 0.99) - percentile(base, 0.99)) * 1000,
            "requests_per_s": done / seconds,
            "processor_cpu_us": cpu / done * 1e6,
            "statuses": statuses,
        }
    for name, path in paths.items():
        if path.compare:
            bar = rows[path.compare]
            if bar["processor_cpu_us"]:  # a run of a moment may be shorter than the clock's tick
                rows[name]["cpu_ratio"] = rows[name]["processor_cpu_us"] / bar["processor_cpu_us"]
            rows[name]["added_latency_ratio"] = rows[name]["added_p50_ms"] / bar["added_p50_ms"]
    return {
        "machine": machine(),
        "requests": options.requests,
        "clients": options.clients,
        "paths": rows,
        "sidecar_rss_mb": rss_mb(pid),
    }


async def load(
    url: str, headers: dict, body: dict, clients: int, seconds: float
) -> tuple[float, dict[str, int]]:
    """Keep ``clients`` requests in flight; return the seconds, and how often each status was seen."""
    statuses: dict[str, int] = {}
    payload = json.dumps(body).encode()
    sent = {"content-type": "application/json", **headers}

    async def one(client: httpx.AsyncClient) -> None:
        while time.perf_counter() < end:
            response = await client.post(url, content=payload, headers=sent)
            key = f"{response.status_code} {response.headers.get('x-truthlens-status', '')} {response.headers.get('x-truthlens-reason', '')}".strip()
            statuses[key] = statuses.get(key, 0) + 1

    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(timeout=60, limits=limits) as client:
        started = time.perf_counter()
        end = started + seconds  # after the client is made, which takes a while
        async with asyncio.TaskGroup() as tasks:
            for _ in range(clients):
                tasks.create_task(one(client))
    return time.perf_counter() - started, statuses


def show(result: dict) -> None:
    """Print the figures as a table."""
    title = f"{result['machine']}; {result['requests']} sequential requests, then {result['clients']} clients"
    table = Table(title=title)
    columns = (
        "path",
        "p50 ms",
        "p99 ms",
        "added p50",
        "added p99",
        "req/s",
        "CPU µs/req",
        "CPU ratio",
        "answers",
    )
    for column in columns:
        table.add_column(column, justify="left" if column in ("path", "answers") else "right")
    for name, row in result["paths"].items():
        table.add_row(
            name,
            *(f"{row[key]:.2f}" for key in ("p50_ms", "p99_ms", "added_p50_ms", "added_p99_ms")),
            f"{row['requests_per_s']:.0f}",
            f"{row['processor_cpu_us']:.0f}" if row["processor_cpu_us"] else "–",
            f"{row['cpu_ratio']:.2f}" if "cpu_ratio" in row else "–",
            ", ".join(f"{count}x {status}" for status, count in row["statuses"].items()),
        )
    Console(width=190).print(table)
    Console().print(f"sidecar memory {result['sidecar_rss_mb']:.0f} MB")


if __name__ == "__main__":
    main()
