"""Measure how much resident memory of sidecar and Envoy grows with the number of open streams.

Streams are opened in two groups, and the second is counted: what the first scorings take of memory for good
is there by then. Each mode has a sidecar of its own, since memory that one mode has freed would be found
there by the next.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from bench.gateway.run import rss_mb
from bench.streaming.client import Lane, Stream, request_bytes
from bench.streaming.gateways import MODES, truthlens
from bench.streaming.texts import REQUEST
from tests.integration.support.stack import Stack

FIRST_STREAMS = 16
TOKENS, INTERVAL_S, SETTLED_S = 150, 0.03, 1.5
WRITTEN_S = TOKENS * INTERVAL_S
# The first group stays open while the second comes: what a gate has not scored by then it holds.
MAX_HOLD_S = MESSAGE_TIMEOUT_S = 30.0


async def held_memory(*, streams: int) -> dict[str, Any]:
    """Return each mode's memory for ``streams`` streams that lack only a sentence's end and the finish."""
    rows = {}
    for mode in MODES:
        with (
            tempfile.TemporaryDirectory() as folder,
            truthlens(Path(folder), max_hold_s=MAX_HOLD_S, message_timeout_s=MESSAGE_TIMEOUT_S) as stack,
        ):
            start = _rss(stack)
            stall_s = WRITTEN_S + 2 * SETTLED_S
            first = asyncio.create_task(_read(stack, mode, FIRST_STREAMS, stall_s=stall_s))
            await asyncio.sleep(WRITTEN_S + SETTLED_S)
            before = _rss(stack)
            second = asyncio.create_task(_read(stack, mode, streams, stall_s=2 * SETTLED_S))
            await asyncio.sleep(WRITTEN_S + SETTLED_S)
            held = _rss(stack)
            if first.done() or second.done():
                raise RuntimeError(f"{mode}: streams have ended before their memory was taken")
            read = await first + await second
        rows[mode] = {
            "body_kb": sum(stream.size for stream in read) / len(read) / 1024,
            "sidecar_kb": (held[0] - before[0]) / streams * 1024,
            "envoy_kb": (held[1] - before[1]) / streams * 1024,
            "sidecar_mb": {"none": start[0], "first": before[0], "both": held[0]},
        }
    return {"first": FIRST_STREAMS, "streams": streams, "tokens": TOKENS, "modes": rows}


async def _read(stack: Stack, mode: str, count: int, *, stall_s: float) -> list[Stream]:
    timing = {"tokens": TOKENS, "interval_s": INTERVAL_S, "stall_s": stall_s, "endless": True}
    headers = {"x-domain": mode, "x-bench": json.dumps(timing)}
    request = request_bytes(str(stack.listen), headers, REQUEST)
    lanes = [await Lane.open(stack.listen.host, stack.listen.port) for _ in range(count)]
    try:
        return list(await asyncio.gather(*(lane.ask(request) for lane in lanes)))
    finally:
        for lane in lanes:
            lane.close()


def _rss(stack: Stack) -> tuple[float, float]:
    assert stack.sidecar is not None
    assert stack.envoy is not None
    return rss_mb(stack.sidecar.pid), rss_mb(stack.envoy.pid)
