"""What TruthLens costs an exchange: added latency, CPU, and throughput, through a real Envoy.

Four deployments stand side by side on one machine, with the same scripted backend: Envoy alone; TruthLens where the
request head already says "do not check" (bypass); where the policy says so after the body was read (buffered
request); with detection. Requests go round-robin over them, so that a noisy moment hits all alike; figures are told
as differences and ratios to Envoy alone.

    python bench/gateway.py [--requests 1000] [--clients 32] [--seconds 8]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.integration.backend import completion, json_reply
from tests.integration.stack import Stack, free_port
from truthlens.proxy.config import Address

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
    plugins: [{type: hallucination, configuration: {enabled: false}}]
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


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    """Resident memory of a process."""
    line = next(
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")
    )
    return int(line.split()[1]) / 1024


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=1000, help="sequential requests per path")
    parser.add_argument("--clients", type=int, default=32, help="concurrent clients for throughput")
    parser.add_argument("--seconds", type=float, default=8.0, help="duration of each throughput run")
    parser.add_argument("--out", type=Path, default=Path("bench/results"), help="folder for the JSON result")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder), POLICY)
        stack.backend.reply = lambda _request: json_reply(completion(ANSWER, pad=PAD))
        stack.start()
        direct = _direct_listener(stack)
        try:
            result = measure(stack, direct, options)
        finally:
            stack.stop()
            direct[1].kill()
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / "gateway.json"
    target.write_text(json.dumps(result, indent=1) + "\n")
    show(result)
    print(f"\nwritten to {target}")


def _direct_listener(stack: Stack):
    """A second Envoy in front of the same backend, without the ext_proc filter."""
    import subprocess

    from tests.integration.stack import wait_for
    from truthlens.proxy.config import EnvoySettings, Upstream, envoy_config
    from truthlens.proxy.process import envoy_binary, is_listening

    address = Address("127.0.0.1", free_port())
    settings = EnvoySettings(
        listen=address,
        extproc=[stack.extproc],
        upstream=Upstream("127.0.0.1", stack.backend.port, tls=False),
        access_log=None,
    )
    config = envoy_config(settings)
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    manager["http_filters"] = manager["http_filters"][1:]
    manager["route_config"]["virtual_hosts"][0]["routes"] = [
        {"match": {"prefix": "/"}, "route": {"cluster": "llm_backend"}}
    ]
    config["static_resources"]["clusters"] = config["static_resources"]["clusters"][:1]
    path = stack.folder / "direct.json"
    path.write_text(json.dumps(config))
    process = subprocess.Popen(
        [
            envoy_binary(),
            "-c",
            str(path),
            "--log-level",
            "error",
            "--use-dynamic-base-id",
            "--concurrency",
            "1",
        ]
    )
    wait_for(lambda: is_listening(address), "the direct Envoy")
    return address, process


def measure(stack: Stack, direct, options) -> dict:
    """All figures."""
    gateway = f"{stack.url}/v1/chat/completions"
    paths = {
        "envoy alone": (f"http://{direct[0]}/v1/chat/completions", {}, REQUEST),
        "bypass": (gateway, {"x-domain": "bypass"}, REQUEST),
        "request read, no detection": (gateway, {}, {**REQUEST, "model": "not-checked"}),
        "both bodies read, no evidence": (
            gateway,
            {},
            {**REQUEST, "messages": [{"role": "user", "content": BARE}]},
        ),
        "detection": (gateway, {}, REQUEST),
    }
    latencies: dict[str, list[float]] = {name: [] for name in paths}
    with httpx.Client(timeout=30) as client:
        for _ in range(40):
            for url, headers, body in paths.values():
                client.post(url, headers=headers, json=body).raise_for_status()
        assert client.post(gateway, json=REQUEST).headers["x-truthlens-status"] == "checked"
        for _ in range(options.requests):
            for name, (url, headers, body) in paths.items():
                started = time.perf_counter()
                client.post(url, headers=headers, json=body)
                latencies[name].append(time.perf_counter() - started)
    base = statistics.median(latencies["envoy alone"])
    result: dict = {
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
        "requests": options.requests,
        "latency_ms": {
            name: {
                "p50": statistics.median(values) * 1000,
                "p99": percentile(values, 0.99) * 1000,
                "added_p50": (statistics.median(values) - base) * 1000,
                "added_p99": (percentile(values, 0.99) - percentile(latencies["envoy alone"], 0.99)) * 1000,
            }
            for name, values in latencies.items()
        },
        "throughput": {},
    }
    assert stack.sidecar is not None
    for name, (url, headers, body) in paths.items():
        before = cpu_seconds(stack.sidecar.pid)
        done, seconds, statuses = asyncio.run(load(url, headers, body, options.clients, options.seconds))
        cpu = cpu_seconds(stack.sidecar.pid) - before
        result["throughput"][name] = {
            "requests_per_s": done / seconds,
            "sidecar_cpu_us_per_request": cpu / done * 1e6,
            "statuses": statuses,
        }
    result["sidecar_rss_mb"] = rss_mb(stack.sidecar.pid)
    return result


async def load(
    url: str, headers: dict, body: dict, clients: int, seconds: float
) -> tuple[int, float, dict[str, int]]:
    """Keep ``clients`` requests in flight; returns requests done, seconds, and how often each status was seen."""
    statuses: dict[str, int] = {}
    payload = json.dumps(body).encode()
    sent = {"content-type": "application/json", **headers}
    end = time.perf_counter() + seconds

    async def one(client: httpx.AsyncClient) -> None:
        while time.perf_counter() < end:
            response = await client.post(url, content=payload, headers=sent)
            key = f"{response.status_code} {response.headers.get('x-truthlens-status', '')} {response.headers.get('x-truthlens-reason', '')}".strip()
            statuses[key] = statuses.get(key, 0) + 1

    started = time.perf_counter()
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(timeout=60, limits=limits) as client, asyncio.TaskGroup() as tasks:
        for _ in range(clients):
            tasks.create_task(one(client))
    return sum(statuses.values()), time.perf_counter() - started, statuses


def show(result: dict) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{result['machine']}; {result['requests']} sequential requests a path")
    for column in (
        "path",
        "p50 ms",
        "p99 ms",
        "added p50",
        "added p99",
        "req/s",
        "sidecar CPU µs/req",
        "answers",
    ):
        table.add_column(column, justify="left" if column in ("path", "answers") else "right")
    for name, row in result["latency_ms"].items():
        loaded = result["throughput"][name]
        table.add_row(
            name,
            *(f"{row[key]:.2f}" for key in ("p50", "p99", "added_p50", "added_p99")),
            f"{loaded['requests_per_s']:.0f}",
            f"{loaded['sidecar_cpu_us_per_request']:.0f}",
            ", ".join(f"{count}× {status}" for status, count in loaded["statuses"].items()),
        )
    Console(width=160).print(table)
    Console().print(f"sidecar memory {result['sidecar_rss_mb']:.0f} MB")


if __name__ == "__main__":
    main()
