"""Measure what many streams at once cost through a real Envoy, and what they cost other clients.

Side by side in front of one backend that notes in every token when it was written: a bare Python processor that
only acknowledges (``bare.py``), and TruthLens with checking off, observing, and gating. At each number of streams
and rate every lane reads one stream after the other for a while; beside them another client sends short JSON
exchanges that must be checked (``on_unchecked: block``).

*lost* counts answers, of streams and of the other client, that left without a verdict of ours: Envoy failed open,
or the stream ended without its verdict chunk. *refused* counts those that TruthLens itself did not check
(``overloaded``, ``timeout``), and says so. *CPU a frame* is that of the processor for the streams, scoring included, and the event loop's is
that of its first thread: gRPC, reading, deciding, and all of the other client's exchanges but their scoring.
A frame carries one token. *lag* is the time from the writing of the last token to the arrival of the done marker.

    python -m bench.streaming.run [--streams 1 16 64 200] [--rates 25 200] [--tree FOLDER]... [--smoke]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop

from bench.common.script import command, machine, write_result
from bench.streaming.client import Lane, Stream, request_bytes
from bench.streaming.cpu import Spent, cpu_figures
from bench.streaming.gateways import PATHS, Route, routes, truthlens
from bench.streaming.memory import held_memory
from bench.streaming.others import Others
from bench.streaming.report import figures, lost, show
from bench.streaming.texts import REQUEST, WORDS

ROOT = Path(__file__).parents[2]
TOKENS = 100
FIRST_S = 0.05


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16, 64, 200], help="streams at once")
    parser.add_argument("--rates", type=float, nargs="+", default=[25, 200], help="tokens a second of each")
    parser.add_argument("--paths", nargs="+", default=list(PATHS), choices=PATHS, help="what is measured")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each path at each load, at least")
    parser.add_argument("--held", type=int, default=0, help="streams held at once for figures of memory")
    parser.add_argument(
        "--tree", type=Path, action="append", help="working tree of the sidecar; default: this one"
    )
    parser.add_argument(
        "--smoke", action="store_true", help="a few streams for a moment: does it run at all?"
    )
    options = parser.parse_args()
    if options.smoke:
        options.streams, options.rates, options.seconds = [1, 4], [200], 0.5
    results = {}
    for tree in [each.resolve() for each in options.tree or [ROOT]]:
        results[tree.name] = uvloop.run(measure(tree, options))
    target = write_result(options.out, "stream", results)
    show(results)
    print(f"\nwritten to {target}")
    if missing := lost(results):
        raise SystemExit(f"{missing} answers left without a verdict")


async def measure(tree: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Measure all figures of one tree."""
    loads = []
    with (
        tempfile.TemporaryDirectory() as folder,
        truthlens(Path(folder), max_hold_s=3.0, tree=tree) as stack,
        routes(stack, options.paths) as found,
    ):
        for route in found:
            await asyncio.gather(*[_lane(route, 2 * len(WORDS), 0.005, time.monotonic()) for _ in range(2)])
        one_s = await _one_exchange_s(found[-1], stack.url)
        for rate in options.rates:
            for count in options.streams:
                rows = {}
                for route in found:
                    row = await load(route, stack.url, count, rate, options.seconds, one_s=one_s)
                    rows[route.name] = row
                    print(json.dumps({route.name: rows[route.name]}), flush=True)
                loads.append({"streams": count, "rate": rate, "paths": rows})
    return {
        "machine": machine(),
        "loads": loads,
        "memory": await held_memory(streams=options.held) if options.held else None,
    }


async def _one_exchange_s(route: Route, url: str) -> float:
    """Return the CPU seconds of TruthLens for one exchange of the other client."""
    before = Spent.of(route)
    with Others(url) as others:
        await asyncio.sleep(2.0)
    return Spent.of(route).since(before).processor / others.count


async def load(
    route: Route, url: str, count: int, rate: float, seconds: float, *, one_s: float
) -> dict[str, Any]:
    """Return the row of one path: ``count`` lanes, begun spread over the time of one stream.

    ``one_s`` are CPU seconds of one exchange of the other client, which are no part of a frame's.
    """
    duration_s = FIRST_S + TOKENS / rate
    before = Spent.of(route)
    with Others(url) as others:
        ends = time.monotonic() + max(seconds, 1.5 * duration_s)
        lanes = [
            _lane(route, TOKENS, 1 / rate, ends, delay_s=duration_s * number / count)
            for number in range(count)
        ]
        read = [stream for streams in await asyncio.gather(*lanes) for stream in streams]
        spent = Spent.of(route).since(before)
    frames = sum(len(stream.received) for stream in read)
    return {
        **figures(read, checked=route.checked),
        **cpu_figures(spent, frames, others_s=others.count * one_s if route.headers else 0.0),
        "others": others.figures(),
    }


async def _lane(
    route: Route, tokens: int, interval_s: float, ends: float, *, delay_s: float = 0.0
) -> Sequence[Stream]:
    """Read one stream after the other until ``ends``; one at least."""
    timing = {"tokens": tokens, "interval_s": interval_s, "first_s": FIRST_S}
    request = request_bytes(str(route.address), {**route.headers, "x-bench": json.dumps(timing)}, REQUEST)
    await asyncio.sleep(delay_s)
    lane = await Lane.open(route.address.host, route.address.port)
    found = []
    try:
        while not found or time.monotonic() < ends:
            stream = await lane.ask(request)
            if len(stream.received) != tokens:
                raise RuntimeError(f"{route.name}: a stream has lost or doubled tokens")
            found.append(stream)
    finally:
        lane.close()
    return found


if __name__ == "__main__":
    main()
