"""Turn streams that were read into figures, and figures into the table."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.streaming.client import Stream

# Why TruthLens itself has not checked an answer, or not all of it.
_REFUSED = (" overloaded", " timeout")


def figures(streams: Sequence[Stream], *, checked: bool) -> dict[str, Any]:
    """Return the times in milliseconds, and how the streams ended; ``checked``: each must have a verdict."""
    verdicts = Counter(stream.status or "none" for stream in streams)
    refused = sum(count for name, count in verdicts.items() if name.endswith(_REFUSED))
    return {
        "streams": len(streams),
        "gap_ms": spread([gap for stream in streams for gap in stream.gaps_ms]),
        "token_delay_ms": spread([delay for stream in streams for delay in stream.delays_ms]),
        "lag_ms": spread([stream.ending_ms for stream in streams]),
        "verdicts": dict(verdicts),
        "refused": refused,
        "lost": len(streams) - verdicts["checked"] - refused if checked else 0,
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median, 99th percentile (the largest of fewer than a hundred) and largest."""
    ordered = sorted(values)
    return {
        "p50": statistics.median(ordered),
        "p99": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
        "max": ordered[-1],
    }


def others_lost(others: Mapping[str, Any]) -> int:
    """Return how many answers of the other client left with 200 and without a verdict."""
    return sum(
        count for end, count in others["ends"].items() if end.startswith("200") and end != "200 checked"
    )


def lost(results: Mapping[str, Any]) -> int:
    """Return how many answers of TruthLens's paths left without a verdict, in all."""
    return sum(
        row["lost"] + (others_lost(row["others"]) if name != "bare echo" else 0)
        for result in results.values()
        for load in result["loads"]
        for name, row in load["paths"].items()
    )


def show(results: Mapping[str, Any]) -> None:
    """Print the figures as tables."""
    console = Console(width=200)
    for tree, result in results.items():
        table = Table(title=f"{tree}; {result['machine']}")
        columns = ("streams", "tokens/s each", "path", "frames/s", "CPU µs a frame", "event loop's", "Envoy's", "machine busy", "token delay p50", "p99", "lag p50",
                   "p99", "read", "lost", "refused", "others p50", "p99", "max ms", "others' ends")  # fmt: skip
        for column in columns:
            table.add_column(column, justify="left" if column in ("path", "others' ends") else "right")
        for load in result["loads"]:
            for path, row in load["paths"].items():
                others = row["others"]
                table.add_row(
                    str(load["streams"]),
                    f"{load['rate']:g}",
                    path,
                    f"{row['frames_per_s']:.0f}",
                    f"{row['frame_us']:.0f}",
                    f"{row['loop_frame_us']:.0f}",
                    f"{row['envoy_frame_us']:.0f}",
                    f"{row['machine_busy']:.0%}",
                    *(
                        f"{row[figure][part]:.0f}"
                        for figure in ("token_delay_ms", "lag_ms")
                        for part in ("p50", "p99")
                    ),
                    str(row["streams"]),
                    str(row["lost"]),
                    str(row["refused"]),
                    *(f"{others['ms'][part]:.0f}" for part in ("p50", "p99", "max")),
                    ", ".join(f"{count}x {end}" for end, count in others["ends"].items()),
                )
        console.print(table)
        if result["memory"] is not None:
            console.print(_memory(result["memory"]))


def _memory(memory: Mapping[str, Any]) -> Table:
    title = f"memory of {memory['streams']} streams held beside {memory['first']} others, {memory['tokens']} tokens each"
    table = Table(title=title)
    for column in (
        "mode",
        "body KB/stream",
        "sidecar KB/stream",
        "Envoy KB/stream",
        "sidecar MB, none",
        "first",
        "both",
    ):
        table.add_column(column, justify="left" if column == "mode" else "right")
    for mode, row in memory["modes"].items():
        table.add_row(
            mode,
            f"{row['body_kb']:.0f}",
            f"{row['sidecar_kb']:.0f}",
            f"{row['envoy_kb']:.0f}",
            *(f"{row['sidecar_mb'][when]:.1f}" for when in ("none", "first", "both")),
        )
    return table
