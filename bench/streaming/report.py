"""Turn streams that were read into figures, and figures into the table."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.streaming.client import Stream

BASE, ECHO = "Envoy alone", "bare echo"


def figures(streams: Sequence[Stream]) -> dict[str, Any]:
    """Return the times in milliseconds: medians, and the 99th percentiles of what there are many of."""
    gaps = [gap for stream in streams for gap in stream.gaps_ms]
    delays = [delay for stream in streams for delay in stream.delays_ms]
    first = [stream.first_token_ms for stream in streams]
    return {
        "streams": len(streams),
        "first_token_ms": spread(first),
        "first_written_ms": spread([stream.first_written_ms for stream in streams]),
        "gap_ms": spread(gaps),
        "token_delay_ms": spread(delays),
        "ending_ms": spread([stream.ending_ms for stream in streams]),
        "verdicts": dict(Counter(stream.status or "none" for stream in streams)),
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median, 99th percentile (the largest of fewer than a hundred) and largest."""
    ordered = sorted(values)
    return {
        "p50": statistics.median(ordered),
        "p99": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
        "max": ordered[-1],
    }


def compare(rows: Mapping[str, dict[str, Any]]) -> None:
    """Add to each row its excess over Envoy alone, and its CPU as a ratio to the bare processor's."""
    base, echo = rows[BASE], rows[ECHO]
    for row in rows.values():
        if row["processor_cpu_ms"] is not None:
            row["cpu_ratio"] = row["processor_cpu_ms"] / echo["processor_cpu_ms"]
        row["added"] = {
            "first_token_p50_ms": row["first_token_ms"]["p50"] - base["first_token_ms"]["p50"],
            # Of it, what was over before the backend had the request.
            "request_p50_ms": row["first_written_ms"]["p50"] - base["first_written_ms"]["p50"],
            "token_delay_p50_ms": row["token_delay_ms"]["p50"] - base["token_delay_ms"]["p50"],
            "token_delay_p99_ms": row["token_delay_ms"]["p99"] - base["token_delay_ms"]["p99"],
            "verdict_lag_p50_ms": row["ending_ms"]["p50"] - base["ending_ms"]["p50"],
            "verdict_lag_p99_ms": row["ending_ms"]["p99"] - base["ending_ms"]["p99"],
        }


def show(result: Mapping[str, Any]) -> None:
    """Print the figures as tables."""
    console = Console(width=220)
    for name, load in result["loads"].items():
        table = Table(
            title=f"{name} streams at once, {load['tokens_per_s']:.0f} tokens/s in all; {result['machine']}"
        )
        for column in ("path", "streams", "first token", "added", "before the model", "gap p50", "gap p99", "token delay p50", "p99",
                       "verdict lag p50", "p99", "sidecar CPU ms/stream", "µs/token", "to echo", "Envoy CPU ms/stream", "machine busy", "of it others",
                       "verdicts"):  # fmt: skip
            table.add_column(
                column,
                justify="left" if column in ("path", "verdicts") else "right",
                no_wrap=column in ("path", "verdicts"),
            )
        for path, row in load["paths"].items():
            cpu = row["processor_cpu_ms"]
            table.add_row(
                path,
                str(row["streams"]),
                f"{row['first_token_ms']['p50']:.2f}",
                f"{row['added']['first_token_p50_ms']:+.2f}",
                f"{row['added']['request_p50_ms']:+.2f}",
                f"{row['gap_ms']['p50']:.2f}",
                f"{row['gap_ms']['p99']:.2f}",
                f"{row['token_delay_ms']['p50']:.2f}",
                f"{row['token_delay_ms']['p99']:.2f}",
                f"{row['added']['verdict_lag_p50_ms']:+.2f}",
                f"{row['added']['verdict_lag_p99_ms']:+.2f}",
                f"{cpu:.1f}" if cpu is not None else "–",
                f"{cpu / load['tokens'] * 1000:.0f}" if cpu is not None else "–",
                f"{row['cpu_ratio']:.2f}" if cpu is not None else "–",
                f"{row['envoy_cpu_ms']:.1f}",
                f"{row['machine_busy']:.0%}",
                f"{row['others_busy']:.0%}",
                ", ".join(f"{count}x {status}" for status, count in row["verdicts"].items()),
            )
        console.print(table)
    scoring = result["scoring"]
    console.print(
        f"scored at once without a stream: the answer {scoring['answer_added_ms']:.1f} ms, "
        f"its first sentence {scoring['sentence_added_ms']:.1f} ms (added to Envoy alone, median)"
    )
    memory = result["memory"]
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
    console.print(table)
