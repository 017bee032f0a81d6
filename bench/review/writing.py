"""What queueing costs the answers: time of a check with 200 flagged answers a second being queued, and with none.

    python -m bench.review.writing [--rate 200] [--blocks 8] [--seconds 6] [--database URL] [--output bench/results]

One process: checks of one answer by the shipped policy's detectors, one after the other, in blocks that take turns; in
every second block answers with texts, spans and passages are queued beside them. Writes review-writing.json and .md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.common.script import command, machine, percentile, write_result
from tests.fakes.ports import free_port
from truthlens.core.net import Address
from truthlens.core.records.enums import Action, AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.outcome import Outcome
from truthlens.core.review_settings import ReviewSettings
from truthlens.lab.markdown import table
from truthlens.process.app import node
from truthlens.process.settings import Settings, shipped_policy
from truthlens.review.service import ReviewService
from truthlens.telemetry.metrics import Metrics

PASSAGES = (
    (
        "Norvafen tablets contain 200 mg of ibuprofen. Adults may take one or two tablets up to three times a day with food. "
        "The maximum daily dose without medical advice is 1,200 mg."
    ),
    "Norvafen must not be taken during the last three months of pregnancy. Stop taking it and see a doctor if stomach pain occurs.",
    "Keep the tablets in a dry place below 25 degrees. A package holds 24 tablets and costs 6.90 euros.",
)
ANSWER = (
    "An adult may take up to eight tablets four times a day, to a maximum of 6,400 mg. It is best taken on an empty stomach, "
    "and the Karlsberg Institute recommends it throughout pregnancy. A package holds 24 tablets."
)
SETTINGS = ReviewSettings(keep_text=True)


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run the blocks and return the figures."""
    exchange = Exchange(
        Endpoint.CHAT,
        "main",
        "How much Norvafen may an adult take in a day?",
        tuple(Passage(text, Provenance.USER, rule="tag") for text in PASSAGES),
    )
    answer = Answer(0, AnswerKind.TEXT, ANSWER)
    settings = Settings(
        Address("127.0.0.1", free_port()),
        Address("127.0.0.1", free_port()),
        config=shipped_policy(),
        drain_notice_s=0.0,
        drain_grace_s=1.0,
    )
    service = ReviewService.opened(arguments.database, lambda: SETTINGS, Metrics())
    assert service is not None
    times: dict[str, list[float]] = {"without": [], "with": []}
    chosen_count = 0
    async with node(settings) as running:
        plan = running.policy.current.default
        verdict = await running.pipeline.score(plan, exchange, answer)
        outcome = Outcome(plan, verdict, verdicts=(verdict,), action=Action.WARN, answers=(answer,))

        async def queueing() -> None:
            nonlocal chosen_count
            started, made = time.perf_counter(), 0
            while True:
                wanted = int((time.perf_counter() - started) * arguments.rate)
                for _ in range(wanted - made):
                    chosen = service.intake.chosen(replace(outcome), SETTINGS)
                    if chosen.review_id is not None:
                        service.intake.queue(chosen, exchange, SETTINGS, query_id="", headers={})
                        chosen_count += 1
                made = wanted
                await asyncio.sleep(0.005)

        for block in range(arguments.blocks):
            arm = "with" if block % 2 else "without"
            task = asyncio.create_task(queueing()) if arm == "with" else None
            until = time.perf_counter() + arguments.seconds
            while time.perf_counter() < until:
                began = time.perf_counter()
                await running.pipeline.score(plan, exchange, answer)
                times[arm].append((time.perf_counter() - began) * 1000)
                await asyncio.sleep(0.01)  # answers do not come back to back
            if task is not None:
                task.cancel()
            while service.writer.figures().waiting:
                await asyncio.sleep(0.05)
        figures = service.writer.figures()
    await asyncio.to_thread(service.close)
    arms = {
        arm: {
            "checks": len(found),
            "p50_ms": round(statistics.median(found), 2),
            "p99_ms": round(percentile(found, 0.99), 2),
        }
        for arm, found in times.items()
    }
    seconds = arguments.seconds * (arguments.blocks // 2)
    return {
        "machine": machine(),
        "rate": arguments.rate,
        "queued": chosen_count,
        "queued_per_s": round(chosen_count / seconds, 1),
        "written": figures.written,
        "lost": figures.lost,
        **arms,
        "p50_ratio": round(arms["with"]["p50_ms"] / arms["without"]["p50_ms"], 3),
        "p99_ratio": round(arms["with"]["p99_ms"] / arms["without"]["p99_ms"], 3),
    }


def main() -> None:
    """Measure, print and write."""
    parser = command(__doc__, results=False)
    parser.add_argument("--rate", type=int, default=200, help="answers queued a second")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--database", default=f"sqlite:///{tempfile.mkdtemp()}/reviews.db")
    parser.add_argument("--output", type=Path, default=Path("bench/results"))
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments))
    print(json.dumps(found, indent=1))
    rows = (
        [f"{arm} queueing", *(str(found[arm][key]) for key in ("checks", "p50_ms", "p99_ms"))]
        for arm in ("without", "with")
    )
    text = (
        f"{found['machine']}\n\n{found['queued_per_s']} answers queued a second, {found['written']} written, lost: {found['lost'] or 'none'}\n\n"
        f"{table(('', 'checks', 'p50 ms', 'p99 ms'), rows)}"
    )
    write_result(arguments.output, "review-writing", found, text.rstrip())


if __name__ == "__main__":
    main()
