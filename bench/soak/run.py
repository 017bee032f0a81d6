"""Soak a deployment: mixed exchanges through a real Envoy for hours, while one thing after the other fails.

    python -m bench.soak.run [--exchanges N] [--faults all|none|NAME,...] [--resume]

Two sidecars behind Envoy, a Redis, a PostgreSQL, a backend with scripted models. The outcome of every exchange is known: from
the same exchange without faults, or from what is promised of its kind. Told: exchanges with a wrong ``checked``, with bytes
lost or doubled, hung, with an error that no fault explains, with another verdict; memory and its slope, file descriptors,
threads; latency. ``soak.partial.json`` has what is known so far, and ``--resume`` goes on from it. Ends with status 1 where
anything was wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, astuple
from typing import Any

from bench.common.script import command, machine, write_result
from bench.soak.deployment import Deployment, deployed
from bench.soak.exchanges import FIRST, Exchange, Pool
from bench.soak.expectations import Judge, Wrong
from bench.soak.faults import FAULTS, weather_of
from bench.soak.load import Load, Tally
from bench.soak.samples import Life, Sampler, at_rest, figures
from tests.integration.support.chaos.rounds import complaints

PARTIAL = "soak.partial"


async def soak(deployment: Deployment, options: argparse.Namespace) -> dict[str, Any]:
    """Learn, load, let things fail; return the result."""
    before = _partial(options)
    load = Load(deployment, Judge(options.seed), tally=Tally.read(before["tally"]) if before else Tally())
    deployment.weather("storm")
    pool = Pool(options.seed, options.every)
    learnt = pool.cases()
    began = time.monotonic()
    unclear = await load.learn(learnt, options.clients)
    print(f"learnt {len(learnt)} cases in {time.monotonic() - began:.0f} s", flush=True)
    for finding in unclear:
        print(f"without a fault: {finding}", flush=True)
    sampler = Sampler(
        deployment, lambda: load.tally.done, [Life(*each) for each in before["lives"]] if before else []
    )
    run = Run(load, sampler, pool, options, before)
    # Told to end, it makes no further exchange, and says what it has found.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, run.end)
    async with deployment.supervised():
        await run.until_done()
    left = await at_rest(deployment, 120.0)
    result = {
        **run.state(),
        "unclear": [asdict(each) for each in unclear],
        "left": left,
        "machine": machine(options.note),
    }
    known = before or {}
    result["exits"] = {
        each.name: [*known.get("exits", {}).get(each.name, ()), *map(asdict, each.exits)]
        for each in deployment.replicas
    }
    lines = [line for each in deployment.replicas for line in complaints(each.stack)]
    result["complaints"] = [*known.get("complaints", ()), *lines][:50]
    names = ("a", "b", "envoy")
    result["processes"] = [figures(sampler.lives, name) for name in names]
    return result


class Run:
    """The load with its faults, and what is written of it on the way."""

    def __init__(
        self,
        load: Load,
        sampler: Sampler,
        pool: Pool,
        options: argparse.Namespace,
        before: dict[str, Any] | None,
    ) -> None:
        self._deployment, self._load, self._sampler, self._pool = load.deployment, load, sampler, pool
        self._options = options
        self._began = time.monotonic() - (before["seconds"] if before else 0.0)
        self._faults_before: dict[str, list[float]] = before["faults"] if before else {}
        self._over = self._ended = False

    def end(self) -> None:
        """Make no further exchange."""
        self._ended = True

    async def until_done(self) -> None:
        """Make all exchanges, or as many as there is time for, while the faults go on."""
        names = _faults(self._options, self._deployment)
        pause_s = self._options.pause
        async with asyncio.TaskGroup() as group:
            aside = [group.create_task(self._sampler.run()), group.create_task(self._write())]
            weather = group.create_task(
                weather_of(
                    self._options.seed,
                    self._deployment,
                    self._load.calendar,
                    names,
                    pause_s=pause_s,
                    over=self._is_over,
                )
            )
            await self._load.run(self._exchanges(), self._options.clients)
            self._over = True
            await weather
            for task in aside:
                task.cancel()

    def _is_over(self) -> bool:
        return self._over

    def _exchanges(self) -> Iterator[Exchange]:
        most_s = self._options.minutes * 60
        for number in range(self._load.tally.done, self._options.exchanges):
            if self._ended or (most_s and time.monotonic() - self._began > most_s):
                return
            yield self._pool.exchange(FIRST + number)

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(self._options.partial)
            state = self.state()
            write_result(self._options.out, PARTIAL, state)
            tally = self._load.tally
            memory = {
                life.name: f"{life.samples[-1][1]:.0f} MiB" for life in self._sampler.lives if life.samples
            }
            print(
                f"{tally.done} of {self._options.exchanges}, {state['seconds']:.0f} s, {tally.checked} checked, {tally.touched} with a "
                f"fault, wrong: {dict(tally.wrong) or 'none'}, {memory}", flush=True,
            )  # fmt: skip

    def _faults(self) -> Iterator[tuple[str, list[float]]]:
        """Yield how often each fault was at work, and for how many seconds."""
        windows = self._load.calendar.windows
        for name in FAULTS:
            own = [each for each in windows if each.fault == name]
            times, seconds = self._faults_before.get(name, (0, 0.0))
            seconds += sum(each.until - each.since for each in own if each.until != float("inf"))
            if times + len(own):
                yield name, [times + len(own), seconds]

    def state(self) -> dict[str, Any]:
        """Return what is known so far."""
        return {
            "seed": self._options.seed,
            "exchanges": self._options.exchanges,
            "clients": self._options.clients,
            "detectors": self._options.detectors or "as shipped",
            "fail_open": not self._options.fail_closed,
            "seconds": time.monotonic() - self._began,
            "tally": self._load.tally.as_json(),
            "percentiles": self._load.tally.percentiles(),
            "faults": dict(self._faults()),
            "not_tried": _missing(self._deployment),
            "lives": [astuple(life) for life in self._sampler.lives],
        }


def _missing(deployment: Deployment) -> dict[str, str]:
    return {name: why for name, fault in FAULTS.items() if (why := fault.missing(deployment))}


def _faults(options: argparse.Namespace, deployment: Deployment) -> list[str]:
    """Return the faults that are tried, and say which are not."""
    missing = _missing(deployment)
    for name, why in missing.items():
        print(f"NOT TRIED: {name}: {why}", file=sys.stderr, flush=True)
    if options.faults == "none":
        return []
    wanted = list(FAULTS) if options.faults == "all" else options.faults.split(",")
    if unknown := [name for name in wanted if name not in FAULTS]:
        raise SystemExit(f"no such fault: {', '.join(unknown)}; there are {', '.join(FAULTS)}")
    return [name for name in wanted if name not in missing]


def _wants_clock(options: argparse.Namespace) -> bool:
    """Return whether a clock is to jump: what makes that possible costs each process that has it."""
    return options.faults == "all" or "jump-clock" in options.faults.split(",")


def _partial(options: argparse.Namespace) -> dict[str, Any] | None:
    """Return what an earlier run of the same seed has written, where that is to be gone on with."""
    if not options.resume:
        return None
    path = options.out / f"{PARTIAL}.json"
    if not path.exists():
        raise SystemExit(f"nothing to resume: {path} is not there")
    found: dict[str, Any] = json.loads(path.read_text())
    if found["seed"] != options.seed:
        raise SystemExit(f"{path} is of seed {found['seed']}, not {options.seed}")
    return found


def is_wrong(result: dict[str, Any]) -> bool:
    """Return whether anything in a result must not be."""
    unwanted = [one for exits in result["exits"].values() for one in exits if not one["wanted"]]
    wrong = {name: count for name, count in result["tally"]["wrong"].items() if name != Wrong.LATE}
    unclear = [each for each in result["unclear"] if each["wrong"] != Wrong.LATE]
    return bool(wrong or unclear or result["left"] or result["complaints"] or unwanted)


def table(result: dict[str, Any]) -> str:
    """Return the result as Markdown."""
    tally = result["tally"]
    wrong = tally["wrong"]
    unwanted = sum(not one["wanted"] for exits in result["exits"].values() for one in exits)
    lines = [
        f"# Soak: {tally['done']:,} exchanges, seed {result['seed']}", "",
        (f"{result['machine']}. {result['seconds'] / 60:.0f} minutes, {result['clients']} clients, detectors {result['detectors']},"
        f" Envoy fails {'open' if result['fail_open'] else 'closed'}. {tally['touched']:,} exchanges overlapped with a fault,"
        f" {tally['checked']:,} were checked, {tally['left']:,} were left by their clients,"
        f" {wrong.get(Wrong.LATE, 0):,} were late, and said so."), "",
        "| must be 0 | |", "| --- | --- |",
        *(f"| {each.value} | {wrong.get(each.value, 0)} |" for each in Wrong if each is not Wrong.LATE),
        f"| processes that ended without being told to | {unwanted} |",
        f"| exchanges, streams or bytes held at the end | {len(result['left'])} |",
        f"| complaints in the logs | {len(result['complaints'])} |", "",
        "| process | lives | RSS MiB: start, end, most | MiB per 1,000 exchanges (95 %) | descriptors: least, end, most | threads: end, most |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_process_row(each) for each in result["processes"]), "",
        "| latency, ms | exchanges | p50 | p95 | p99 | most |", "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {name} | {row['exchanges']:.0f} | {row['p50']:.0f} | {row['p95']:.0f} | {row['p99']:.0f} | {row['most']:.0f} |"
            for name, row in result["percentiles"].items()
        ), "",
        "| fault | times | seconds | exchanges: what came of them |", "| --- | --- | --- | --- |",
        *(
            f"| {name} | {times:.0f} | {seconds:.0f} | {_shares(tally['by_fault'].get(name, {}))} |"
            for name, (times, seconds) in result["faults"].items()
        ),
        *(f"| {name} | NOT TRIED: {why} | | |" for name, why in result["not_tried"].items()),
    ]  # fmt: skip
    return "\n".join(lines)


def _process_row(row: dict[str, Any]) -> str:
    slope = row["slope_mb_per_1000"]
    fitted = (
        f"{slope[0]:+.2f} ({slope[1]:+.2f} to {slope[2]:+.2f}), {row['blocks']} blocks"
        if slope
        else "too short to tell"
    )
    numbers = [", ".join(f"{value:.0f}" for value in row[name]) for name in ("rss_mb", "fds", "threads")]
    return f"| {row['process']} | {row['lives']} | {numbers[0]} | {fitted} | {numbers[1]} | {numbers[2]} |"


def _shares(counts: dict[str, int]) -> str:
    return ", ".join(
        f"{count} {name}" for name, count in sorted(counts.items(), key=lambda each: -each[1])[:6]
    )


def main() -> None:
    """Run it."""
    parser = command(__doc__)
    parser.add_argument("--exchanges", type=int, default=200_000)
    parser.add_argument(
        "--minutes", type=float, default=0, help="end after so many minutes, whatever is left; 0: never"
    )
    parser.add_argument("--clients", type=int, default=12, help="exchanges at the same time")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--faults", default="all", help=f"all, none, or some of {', '.join(FAULTS)}")
    parser.add_argument(
        "--pause", type=float, default=8.0, help="seconds without a fault between two of them"
    )
    parser.add_argument(
        "--detectors",
        default="",
        help="detectors of the policy, separated by commas; default: the shipped ones",
    )
    parser.add_argument("--every", type=int, default=1, help="use each so-manieth case of the pool only")
    parser.add_argument(
        "--fail-closed", action="store_true", help="Envoy refuses what no sidecar has looked at"
    )
    parser.add_argument(
        "--patient", action="store_true", help="give sidecars 30 s for a health check: for busy machines"
    )
    parser.add_argument("--partial", type=float, default=30.0, help="seconds between two partial results")
    parser.add_argument("--note", default="", help="what else the machine does meanwhile, for the table")
    parser.add_argument(
        "--resume", action="store_true", help="go on from the partial result of the same seed"
    )
    options = parser.parse_args()
    # Whoever ends it before it has learnt leaves no server behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    detectors = [each for each in options.detectors.split(",") if each]
    with deployed(
        options.seed, detectors=detectors, fail_open=not options.fail_closed, patient=options.patient
    ) as deployment:
        result = asyncio.run(soak(deployment, options))
    text = table(result)
    print(f"{text}\n\n{write_result(options.out, 'soak', result, text)}")
    if result["tally"]["done"] < options.exchanges:
        write_result(options.out, PARTIAL, result)  # to be gone on with
    else:
        (options.out / f"{PARTIAL}.json").unlink(missing_ok=True)
    sys.exit(is_wrong(result))


if __name__ == "__main__":
    main()
