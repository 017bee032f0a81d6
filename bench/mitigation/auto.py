"""Simulate whether mode auto finds the best mode and follows when it changes.

python -m bench.mitigation.auto [--days 28] [--per-day 150] [--runs 20] [--half-life-days 7] [--out bench/results]

"thompson" is what TruthLens does; "no bound" lets an arm add up without end, "no decay" lets it forget
nothing either. Flagged answers come evenly over the days; at half time the world changes. Regret of an
exchange is the expected reward of the mode that is best at that time, less that of the mode taken. No model
is called: how often a mode corrects, how long it takes and what it spends are made up, and are printed with
the result.
"""

from __future__ import annotations

import asyncio
import math
import random
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias, cast

from rich.console import Console
from rich.table import Table

from bench.common.script import command, write_result
from truthlens.core.records.enums import Mode
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import AutoSettings, PremiumSettings
from truthlens.mitigation.auto.bandit import Bandit
from truthlens.mitigation.auto.reward import reward
from truthlens.store.arm_store import MemoryArms

DAY_S = 86400.0
THRESHOLD = 0.6
MODES = (Mode.LIGHTWEIGHT, Mode.STANDARD, Mode.PREMIUM)
STRATEGIES = ("thompson", "thompson, no bound", "thompson, no decay", "always standard", "always premium")


@dataclass(frozen=True, slots=True)
class Result:
    """How a mode performs: share of answers corrected (0..1), seconds and tokens on average."""

    corrected: float
    latency_s: float
    tokens: int


World: TypeAlias = Mapping[Mode, Result]
_NOTHING = Result(0.0, 0.02, 0)
_USUAL = {
    Mode.LIGHTWEIGHT: _NOTHING,
    Mode.STANDARD: Result(0.55, 3.0, 2_500),
    Mode.PREMIUM: Result(0.85, 6.0, 7_000),
}
WORLDS: Mapping[str, tuple[World, World]] = {
    "nothing changes": (_USUAL, _USUAL),
    "the answering model gets better": (_USUAL, _USUAL | {Mode.STANDARD: Result(0.9, 2.0, 2_000)}),
    "the other models stop answering": (_USUAL, _USUAL | {Mode.PREMIUM: Result(0.05, 15.0, 3_000)}),
    "the evidence no longer holds the answer": (
        _USUAL,
        _USUAL | {Mode.STANDARD: Result(0.03, 6.0, 6_000), Mode.PREMIUM: Result(0.05, 9.0, 12_000)},
    ),
}


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--days", type=float, default=28.0)
    parser.add_argument("--per-day", type=int, default=150)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--half-life-days", type=float, default=AutoSettings().half_life_s / DAY_S)
    options = parser.parse_args()
    settings = AutoSettings(half_life_s=options.half_life_days * DAY_S)
    exchanges = round(options.days * options.per_day)
    rows = []
    for world, phases in WORLDS.items():
        expected = [expectations(phase, settings) for phase in phases]
        for strategy in STRATEGIES:
            runs = [
                asyncio.run(
                    play(
                        strategy,
                        phases,
                        expected,
                        settings=settings,
                        exchanges=exchanges,
                        apart_s=DAY_S / options.per_day,
                        seed=seed,
                    )
                )
                for seed in range(options.runs)
            ]
            rows.append(summary(world, strategy, expected, runs))
    show(rows, exchanges=exchanges, runs=options.runs)
    found = {
        "exchanges": exchanges,
        "runs": options.runs,
        "settings": settings.model_dump(mode="json"),
        "worlds": {
            name: [{mode.value: asdict(result) for mode, result in phase.items()} for phase in phases]
            for name, phases in WORLDS.items()
        },
        "rows": rows,
    }
    write_result(options.out, "auto", found)


async def play(
    strategy: str,
    phases: tuple[World, World],
    expected: list[dict[Mode, float]],
    *,
    settings: AutoSettings,
    exchanges: int,
    apart_s: float,
    seed: int,
) -> tuple[list[float], list[float]]:
    """Return for each half the mean regret, and the share of its last fifth that got the best mode."""
    dice = random.Random(seed)
    now = 0.0
    store = MemoryArms()
    if strategy != "thompson":  # the textbook's, with decay and without
        store = MemoryArms(most_rewards=math.inf)
    if strategy == "thompson, no decay":
        settings = settings.model_copy(update={"half_life_s": math.inf})
    plan = Plan(
        decision="simulated", auto=settings, premium=PremiumSettings(verification_models=("another",))
    )
    bandit = Bandit(store, clock=lambda: now, rng=random.Random(1_000_003 * seed + 7))
    regrets, best_shares = [], []
    for phase, worth in zip(phases, expected, strict=True):
        best = max(worth, key=worth.__getitem__)
        half = exchanges // 2
        taken = []
        for _ in range(half):
            now += apart_s
            mode = (
                Mode(strategy.removeprefix("always ")) if "always" in strategy else await bandit.choose(plan)
            )
            taken.append(mode)
            await bandit.learn(plan, mode, simulated_reward(phase[mode], settings, dice))
        regrets.append(statistics.fmean(worth[best] - worth[mode] for mode in taken))
        last = taken[-half // 5 :]
        best_shares.append(last.count(best) / len(last))
    return regrets, best_shares


def simulated_reward(result: Result, settings: AutoSettings, dice: random.Random) -> float:
    """Return the reward of one exchange; some uncorrected answers score lower than before."""
    first = dice.uniform(THRESHOLD, 1.0)
    if dice.random() < result.corrected:
        final = dice.uniform(0.0, THRESHOLD)
    else:
        final = max(THRESHOLD, first * dice.uniform(0.8, 1.0)) if result.tokens else first
    spread = dice.lognormvariate(-0.125, 0.5)  # mean 1: slow calls are the long ones
    return reward(
        first=first,
        final=final,
        threshold=THRESHOLD,
        latency_s=result.latency_s * spread,
        tokens=round(result.tokens * spread),
        settings=settings,
    )


def expectations(phase: World, settings: AutoSettings, *, draws: int = 20_000) -> dict[Mode, float]:
    """Return the mean reward of each mode, by simulation with a fixed seed."""
    dice = random.Random(20_000)
    return {
        mode: statistics.fmean(simulated_reward(phase[mode], settings, dice) for _ in range(draws))
        for mode in MODES
    }


def summary(
    world: str,
    strategy: str,
    expected: list[dict[Mode, float]],
    runs: list[tuple[list[float], list[float]]],
) -> dict[str, object]:
    totals = [statistics.fmean(regrets) for regrets, _ in runs]
    return {
        "world": world,
        "strategy": strategy,
        "expected": [{mode.value: value for mode, value in each.items()} for each in expected],
        "regret_first": statistics.fmean(regrets[0] for regrets, _ in runs),
        "regret_second": statistics.fmean(regrets[1] for regrets, _ in runs),
        "regret": statistics.fmean(totals),
        "regret_interval": 1.96 * statistics.stdev(totals) / math.sqrt(len(totals))
        if len(totals) > 1
        else 0.0,
        "best_first": statistics.fmean(shares[0] for _, shares in runs),
        "best_second": statistics.fmean(shares[1] for _, shares in runs),
    }


def show(rows: list[dict[str, object]], *, exchanges: int, runs: int) -> None:
    console = Console(width=132)
    table = Table(
        title=f"Mean regret of an exchange; {exchanges} flagged answers, {runs} runs, change at half time"
    )
    for heading in ("world", "strategy", "before", "after", "both", "best mode at the end: before", "after"):
        table.add_column(heading, justify="left" if heading in {"world", "strategy"} else "right")
    last = ""
    for row in rows:
        if last and row["world"] != last:
            table.add_section()
        table.add_row(
            "" if row["world"] == last else str(row["world"]),
            str(row["strategy"]),
            f"{row['regret_first']:.3f}",
            f"{row['regret_second']:.3f}",
            f"{row['regret']:.3f} ± {row['regret_interval']:.3f}",
            f"{row['best_first']:.0%}",
            f"{row['best_second']:.0%}",
        )
        last = str(row["world"])
    console.print(table)
    for name, phases in WORLDS.items():
        expected = cast(
            "list[dict[str, float]]", next(row["expected"] for row in rows if row["world"] == name)
        )
        for half, phase, worth in zip(("before", "after"), phases, expected, strict=True):
            told = "; ".join(
                f"{mode.value} corrects {phase[mode].corrected:.0%} in {phase[mode].latency_s:g} s with"
                f" {phase[mode].tokens} tokens: reward {worth[mode.value]:.2f}"
                for mode in MODES
            )
            console.print(f"{name}, {half}: {told}", highlight=False)


if __name__ == "__main__":
    main()
