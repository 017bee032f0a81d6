"""Clients that make exchanges one after the other, and the count of what came of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.soak.client import Outcome, ask
from bench.soak.deployment import Deployment
from bench.soak.exchanges import Exchange
from bench.soak.expectations import Cost, Finding, Judge, Wrong
from bench.soak.faults import FAULTS, Calendar

MOST_FINDINGS = 300
MOST_TRIES = 20


@dataclass
class Tally:
    """What came of exchanges so far; everything in it can be written as JSON and read again."""

    done: int = 0
    left: int = 0
    touched: int = 0
    """How many overlapped with a fault."""
    checked: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """By family, HTTP status, and the verdict's status and reason."""
    by_fault: dict[str, Counter[str]] = field(default_factory=dict)
    wrong: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)
    milliseconds: dict[str, Counter[str]] = field(default_factory=dict)
    """How many exchanges of a family, with and without a fault, took so long; the keys are rounded to two digits."""

    def as_json(self) -> dict[str, Any]:
        """Return what ``read`` takes."""
        nested = {
            name: {key: dict(each) for key, each in getattr(self, name).items()}
            for name in ("by_fault", "milliseconds")
        }
        return {**vars(self), "outcomes": dict(self.outcomes), "wrong": dict(self.wrong), **nested}

    @classmethod
    def read(cls, value: dict[str, Any]) -> Tally:
        """Return what ``as_json`` wrote."""
        counters = {name: Counter(value[name]) for name in ("outcomes", "wrong")}
        nested = {
            name: {key: Counter(each) for key, each in value[name].items()}
            for name in ("by_fault", "milliseconds")
        }
        return cls(**{**value, **counters, **nested})

    def add(self, exchange: Exchange, outcome: Outcome, faults: list[str], findings: list[Finding]) -> None:
        """Count one exchange."""
        self.done += 1
        self.left += outcome.left
        self.touched += bool(faults)
        said = outcome.said
        self.checked += said.get("status") == "checked"
        status = "left" if outcome.left else outcome.error or (outcome.got and outcome.got.status) or "hung"
        name = f"{status} {said.get('status', '')} {said.get('reason', '')}".strip()
        self.outcomes[f"{exchange.family}: {name}"] += 1
        for fault in faults:
            self.by_fault.setdefault(fault, Counter())[name] += 1
        if not outcome.left:
            took = f"{outcome.seconds * 1000:.2g}"
            self.milliseconds.setdefault(f"{exchange.family}{', faults' if faults else ''}", Counter())[
                str(float(took))
            ] += 1
        for finding in findings:
            self.wrong[finding.wrong] += 1
            if len(self.findings) < MOST_FINDINGS:
                self.findings.append({**asdict(finding), "faults": faults})

    def percentiles(self) -> dict[str, dict[str, float]]:
        """Return milliseconds by family: median, 95 %, 99 %, most."""
        found = {}
        for name, counts in sorted(self.milliseconds.items()):
            values = sorted((float(value), count) for value, count in counts.items())
            total = sum(counts.values())
            row = {"exchanges": float(total), "most": values[-1][0]}
            for share in (0.5, 0.95, 0.99):
                reached = 0
                for value, count in values:
                    reached += count
                    if reached >= share * total:
                        row[f"p{share * 100:g}"] = value
                        break
            found[name] = row
        return found


@dataclass
class Load:
    """Clients of one deployment."""

    deployment: Deployment
    judge: Judge
    calendar: Calendar = field(default_factory=Calendar)
    tally: Tally = field(default_factory=Tally)

    async def learn(self, exchanges: Iterable[Exchange], clients: int) -> list[Finding]:
        """Make exchanges while nothing fails, and keep their outcomes; return what was wrong with them."""
        found: list[Finding] = []

        async def lane(left: Iterator[Exchange]) -> None:
            for exchange in left:
                for _ in range(MOST_TRIES):
                    found.extend(_read(self.judge.learn, exchange, await self._ask(exchange)))
                    if exchange.key in self.judge.learnt:
                        break
                else:
                    raise RuntimeError(
                        f"this machine is too busy to learn {exchange.kind}, case {exchange.case}"
                    )

        await self._lanes(lane, exchanges, clients)
        return found

    async def run(self, exchanges: Iterable[Exchange], clients: int) -> None:
        """Make exchanges, and count what comes of them."""

        async def lane(left: Iterator[Exchange]) -> None:
            for exchange in left:
                outcome = await self._ask(exchange)
                faults = self.calendar.between(outcome.began, outcome.began + outcome.seconds)
                costs = frozenset(cost for fault in faults for cost in FAULTS[fault].costs)
                self.tally.add(
                    exchange,
                    outcome,
                    faults,
                    _read(self.judge.findings, exchange, outcome, self._open(costs)),
                )

        await self._lanes(lane, exchanges, clients)

    def _open(self, costs: frozenset[Cost]) -> frozenset[Cost]:
        """Return the costs of a dead sidecar as Envoy's failure mode makes them."""
        return (
            costs
            if self.deployment.fail_open or Cost.VERDICT not in costs
            else costs - {Cost.VERDICT} | {Cost.REFUSED}
        )

    async def _ask(self, exchange: Exchange) -> Outcome:
        return await ask(exchange, self.deployment.front.listen, self.deployment.console(exchange.number))

    async def _lanes(self, lane: Any, exchanges: Iterable[Exchange], clients: int) -> None:
        left = iter(exchanges)
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(lane(left))


def _read(look: Any, exchange: Exchange, *arguments: Any) -> list[Finding]:
    """Return what is wrong with an exchange; an answer that cannot even be read is."""
    try:
        return list(look(exchange, *arguments))
    except (ValueError, KeyError, TypeError, LookupError, EOFError, OSError) as problem:
        return [
            Finding(
                exchange.number, exchange.kind, exchange.case, Wrong.BYTES, f"cannot be read: {problem!r}"
            )
        ]
