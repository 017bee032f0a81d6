"""Time of the review pages and their API with many entries, on SQLite and, where PostgreSQL is installed, on that.

    python -m bench.review.pages [--entries 100000] [--times 60] [--output bench/results]

Each request goes through the whole ASGI application of the console, one after the other, in this process. A third of the entries is
settled. Writes review-pages.json and .md.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from bench.common.script import command, machine, percentile, write_result
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.review_console import console_of, entry, queue_in
from truthlens.lab.markdown import table
from truthlens.review.records import Change, ReviewStatus
from truthlens.review.store.queue import ReviewQueue

PATHS = {
    "list": "/reviews",
    "all": "/reviews?status=all&order=score",
    "deep page": "/reviews?status=all&order=oldest&cursor={deep}",
    "by detector": "/reviews?detector=numbers&min_score=0.6",
    "rare filter": "/reviews?decision=rare&status=rejected",
    "open": "/reviews/{id}?detector=numbers&order=score",
    "figures": "/reviews/stats",
    "API list": "/api/reviews?limit=50",
    "API get": "/api/reviews/{id}",
    "API counts": "/api/reviews/counts?decision=support",
}


def fill(queue: ReviewQueue, count: int) -> None:
    """Add entries, and settle a third of them."""
    for start in range(0, count, 1_000):
        new = [
            replace(
                entry(number),
                created=1_780_000_000.0 + number * 60,
                decision="rare" if number % 10_007 == 3 else entry(number).decision,
            )
            for number in range(start, min(start + 1_000, count))
        ]
        queue.add(new)
        settled = [
            Change(each.id, 1, ReviewStatus.REJECTED if place % 4 else ReviewStatus.APPROVED)
            for place, each in enumerate(new)
            if place % 3 == 0
        ]
        queue.change_many(settled, actor=f"reviewer {start % 7}")


async def measure(queue: ReviewQueue, count: int, times: int) -> dict[str, Any]:
    """Return the milliseconds of each request, 50 % and 99 %."""
    figures: dict[str, Any] = {}
    drawn = random.Random(1)
    for name, path in PATHS.items():
        taken = []
        app = console_of(queue)
        for _ in range(times + 1):
            if name == "figures":
                # They are kept for some seconds by each application; a new one each time shows what they cost.
                app = console_of(queue)
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://localhost"
            ) as client:
                number = drawn.randrange(count)
                url = path.format(id=entry(number).id, deep=number)
                started = time.perf_counter()
                reply = await client.get(url)
                taken.append((time.perf_counter() - started) * 1000)
                reply.raise_for_status()
        del taken[0]  # it compiled the templates
        figures[name] = {
            "p50_ms": round(percentile(taken, 0.5), 1),
            "p99_ms": round(percentile(taken, 0.99), 1),
        }
    return figures


@contextmanager
def databases(folder: Path) -> Iterator[dict[str, ReviewQueue]]:
    """Open an empty queue on each kind of database that is installed."""
    queues = {"SQLite": queue_in(folder)}
    server = None
    if shutil.which("initdb") or any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        server = PostgresServer()
        server.start()
        queues["PostgreSQL"] = queue_in(folder, server.url())
    try:
        yield queues
    finally:
        for queue in queues.values():
            queue.database.dispose()
        if server:
            server.remove()


def main() -> None:
    """Print and write the tables."""
    parser = command(__doc__, results=False)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--output", type=Path, default=Path("bench/results"))
    arguments = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, databases(Path(folder)) as queues:
        for name, queue in queues.items():
            fill(queue, arguments.entries)
            found[name] = asyncio.run(measure(queue, arguments.entries, arguments.times))
    rows = (
        [request, *(f"{each[request]['p50_ms']} / {each[request]['p99_ms']}" for each in found.values())]
        for request in PATHS
    )
    text = f"{arguments.entries:,} entries, {machine()}; milliseconds, 50 % / 99 %\n\n{table(['request', *found], rows)}".rstrip()
    result = {"entries": arguments.entries, "machine": machine(), "figures": found}
    write_result(arguments.output, "review-pages", result, text)
    print(text)


if __name__ == "__main__":
    main()
