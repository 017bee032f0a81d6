"""Measure what TruthLens costs a stream through a real Envoy: delays, verdict lag, CPU and memory.

Side by side on one machine, in front of one backend that notes in every token when it was written: Envoy
alone; Envoy with a bare Python processor that only acknowledges (``stream_bare.py``); TruthLens observing;
TruthLens gating. At each level of concurrency the paths take turns in short rounds of which all carry the
same number of streams, so that a noisy moment hits all alike and none of them shares the machine with
another. Tokens come every 20 ms, or more slowly where so many streams would write more than ``--rate`` tokens
a second in all: the share of the machine that was busy is given with every figure.

*verdict lag* is the time from the backend's writing of the last token to the arrival of the done marker,
behind the verdict, less the same time of Envoy alone.

    python bench/streaming/run.py [--concurrency 1 16 64] [--tokens 100] [--rate 800] [--out bench/results]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import uvloop

from bench.gateway.run import machine
from bench.streaming.client import Lane, Stream, request_bytes
from bench.streaming.cpu import Spent, cpu_figures
from bench.streaming.gateways import Route, paths, truthlens
from bench.streaming.memory import held_memory
from bench.streaming.report import BASE, compare, figures, show
from bench.streaming.texts import REQUEST, SENTENCE_WORDS, WORDS

FIRST_S = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 16, 64], help="streams at once")
    parser.add_argument("--tokens", type=int, default=100, help="tokens a stream")
    parser.add_argument("--interval-ms", type=float, default=20.0, help="least time between tokens")
    parser.add_argument("--rate", type=float, default=800.0, help="most tokens a second of all streams")
    parser.add_argument("--streams", type=int, default=128, help="streams a path at each level, about")
    parser.add_argument("--held", type=int, default=48, help="streams held at once for the memory figures")
    parser.add_argument("--out", type=Path, default=Path("bench/results"), help="folder for the JSON result")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = uvloop.run(measure(Path(folder), options))
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / "stream.json"
    target.write_text(json.dumps(result, indent=1) + "\n")
    show(result)
    print(f"\nwritten to {target}")


async def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Measure all figures."""
    loads = {}
    with truthlens(folder, max_hold_s=3.0) as stack, paths(stack) as routes:
        for count in options.concurrency:
            interval_s = max(options.interval_ms / 1000, count / options.rate)
            loads[str(count)] = await load(routes, count, interval_s, options)
        scoring = whole_answers(routes)
    return {
        "machine": f"{machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
        "tokens": options.tokens,
        "loads": loads,
        "scoring": scoring,
        "memory": await held_memory(streams=options.held),
    }


async def load(
    routes: Sequence[Route], count: int, interval_s: float, options: argparse.Namespace
) -> dict[str, Any]:
    """Return the rows of all paths at one level of concurrency, in rounds that take turns."""
    timing = {"tokens": options.tokens, "interval_s": interval_s, "first_s": FIRST_S}
    each, rounds = _shape(count, min(options.streams, 32 * count))
    streams: dict[str, list[Stream]] = {route.name: [] for route in routes}
    spent: dict[str, list[Spent]] = {route.name: [] for route in routes}
    for route in routes:
        await stream_round(route, min(count, 4), 1, {**timing, "tokens": len(WORDS)})
    for number in range(rounds):
        turn = number % len(routes)
        for route in (*routes[turn:], *routes[:turn]):
            before = Spent.of(route)
            streams[route.name] += await stream_round(route, count, each, timing)
            spent[route.name].append(Spent.of(route).since(before))
    rows = {}
    for route in routes:
        read = streams[route.name]
        rows[route.name] = {**figures(read), **cpu_figures(spent[route.name], len(read), route)}
    compare(rows)
    return {
        "tokens": options.tokens,
        "interval_ms": interval_s * 1000,
        "tokens_per_s": count / interval_s,
        "paths": rows,
    }


def _shape(count: int, wanted: int) -> tuple[int, int]:
    """Return the streams of a lane per round, and rounds.

    At least two streams a lane, so that most overlap.
    """
    each = max(2, 8 // count)
    return each, max(2, round(wanted / (each * count)))


async def stream_round(route: Route, count: int, each: int, timing: dict[str, Any]) -> list[Stream]:
    """Run ``count`` lanes that each read ``each`` streams in a row, begun spread over the time of one."""
    headers = {**route.headers, "x-bench": json.dumps(timing)}
    request = request_bytes(str(route.address), headers, REQUEST)
    duration_s = timing["first_s"] + timing["tokens"] * timing["interval_s"]

    async def one(lane: Lane, delay_s: float) -> list[Stream]:
        await asyncio.sleep(delay_s)
        return [await lane.ask(request) for _ in range(each)]

    lanes = [await Lane.open(route.address.host, route.address.port) for _ in range(count)]
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(one(lane, duration_s * number / count)) for number, lane in enumerate(lanes)
            ]
        found = [stream for task in running for stream in task.result()]
    finally:
        for lane in lanes:
            lane.close()
    if short := [stream for stream in found if len(stream.received) != timing["tokens"]]:
        raise RuntimeError(f"{route.name}: {len(short)} streams have lost or doubled tokens")
    return found


def whole_answers(routes: Sequence[Route]) -> dict[str, float]:
    """Measure what scoring adds to answers that do not stream, to compare the verdict's lag; milliseconds.

    Times in milliseconds.
    """
    alone = next(route for route in routes if route.name == BASE)
    checked = next(route for route in routes if route.name == "observe")
    taken: dict[tuple[str, int], list[float]] = {}
    with httpx.Client(timeout=30) as client:
        for _ in range(40):
            for words in (len(WORDS), SENTENCE_WORDS):
                for route in (alone, checked):
                    headers = {**route.headers, "x-bench": json.dumps({"tokens": words})}
                    started = time.perf_counter()
                    url = f"http://{route.address}/v1/chat/completions"
                    client.post(url, headers=headers, json=REQUEST).raise_for_status()
                    taken.setdefault((route.name, words), []).append(time.perf_counter() - started)
    added = {
        words: (statistics.median(taken["observe", words]) - statistics.median(taken[BASE, words])) * 1000
        for words in (len(WORDS), SENTENCE_WORDS)
    }
    return {"answer_added_ms": added[len(WORDS)], "sentence_added_ms": added[SENTENCE_WORDS]}


if __name__ == "__main__":
    main()
