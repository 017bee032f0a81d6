"""Measure what a cascade saves in calls and loses in F1 against asking a judge about every answer.

python -m bench.detection.cascade [--rows 300] [--accuracy 0.9] [--plot docs/cascade-frontier.png]

Rows are twins that no model was fitted on (data/twins/test), a fixed sample. The first stage is the shipped policy's, as it is
served. The judge is scripted: it tells right from wrong with the given accuracy, the same of each answer in every plan, and says so
through the real detector, engine and fusion. The time of a call is drawn (log-normal, median 0.8 s, two calls an answer), not
slept: the seconds are those of that model of a judge, and no measurement.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from truthlens.core.records.calls import Completion, ModelRequest
from truthlens.core.records.enums import AskWhen, Stage
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.plan import CascadeSettings, DetectorSpec, Plan
from truthlens.core.records.verdict import Verdict
from truthlens.detection.building import LateModel, build_engine
from truthlens.detection.engine import Engine
from truthlens.detection.judge.options import Options
from truthlens.detection.models.loading import load_encoder
from truthlens.model_store import BUNDLED_MODEL
from truthlens.training.data.dataset import Example, as_exchange
from truthlens.training.data.twins import read_twin_folder, twin_examples

_MEDIAN_S, _SPREAD = 0.8, 0.5
_BANDS = ((0.5, 0.6), (0.4, 0.6), (0.3, 0.6), (0.2, 0.6), (0.1, 0.6), (0.0, 0.6), (0.3, 0.8), (0.1, 0.9))
_THRESHOLD = 0.6


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled answer, what the first stage says, and what the judge will say and take."""

    label: int
    exchange: Exchange
    answer: Answer
    first: Verdict
    risk: float
    seconds: float


class ScriptedJudge:
    """An ``Ask`` whose judge gives one risk."""

    def __init__(self, risk: float) -> None:
        self.risk, self.calls = risk, 0

    async def __call__(self, request: ModelRequest) -> Completion:
        """Return a critique, or the fields where they are asked for."""
        self.calls += 1
        if "response_format" not in request.body:
            return Completion("a critique", request.model)
        scores = ("completeness_score", "relevance_score", "citation_quality_score", "consistency_score")
        lists = ("unsupported_claims", "invalid_citations", "contradictory_info", "over_extrapolation")
        hallucination = {"has_risk": self.risk > 0.3, "risk_score": self.risk, **{name: [] for name in lists}}
        fields = {
            "score": 1.0 - self.risk,
            "reasoning": "scripted",
            "confidence": 0.9,
            "decision": "synthesize",
            "hallucination": hallucination,
            **dict.fromkeys(scores, 1.0 - self.risk),
        }
        return Completion(json.dumps(fields), request.model)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--twins", type=Path, default=Path("data/twins/test"))
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--accuracy", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    options = parser.parse_args()
    with asyncio.Runner() as runner:
        result = runner.run(_measured(options))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "cascade.json").write_text(json.dumps(result, indent=2) + "\n")
    rows = result["plans"]
    assert isinstance(rows, list)
    print("| plan | asked | calls for 1,000 answers | F1 | recall | false alarms | added p50 | added p99 |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(
            f"| {row['plan']} | {row['asked']:.0%} | {row['calls_per_1000']:.0f} | {row['f1']:.3f} | {row['recall']:.2f} |"
            f" {row['false_alarms']:.2f} | {row['p50_s']:.1f} s | {row['p99_s']:.1f} s |"
        )
    if options.plot is not None:
        _plot(rows, options.plot, accuracy=options.accuracy)


async def _measured(options: argparse.Namespace) -> dict[str, object]:
    judge = DetectorSpec("judge", options=Options(model="judge"), models=("judge",))
    first = (DetectorSpec("encoder"), DetectorSpec("numbers"))
    base = Plan("bench", threshold=_THRESHOLD, timeout_s=60.0, detectors=(*first, judge))
    model = LateModel(
        lambda: load_encoder(Path("models") / BUNDLED_MODEL, use_cpu=True, threads=1, max_windows=256)
    )
    engine = build_engine([base], model, queue_limit=1_000)
    rng = random.Random(options.seed)
    examples = twin_examples(read_twin_folder(options.twins))
    rows = [
        await _row(engine, base, each, rng, options.accuracy) for each in rng.sample(examples, options.rows)
    ]
    plans = [("first stage alone", replace(base, detectors=first))]
    plans += [
        (
            f"band {low:g} to {high:g}",
            replace(base, cascade=CascadeSettings(band=(low, high), timeout_s=60.0)),
        )
        for low, high in _BANDS
    ]
    plans.append(("always", replace(base, cascade=CascadeSettings(when=AskWhen.ALWAYS, timeout_s=60.0))))
    found = [{"plan": name, **await _figures(engine, plan, rows)} for name, plan in plans]
    await engine.aclose()
    return {
        "rows": len(rows),
        "wrong": sum(row.label for row in rows),
        "accuracy": options.accuracy,
        "seed": options.seed,
        "plans": found,
    }


async def _row(engine: Engine, plan: Plan, example: Example, rng: random.Random, accuracy: float) -> Row:
    exchange, answer = as_exchange(example.query, example.context, example.response)
    (first,) = await engine.detect(plan, exchange, [answer])
    says_wrong = bool(example.label) == (rng.random() < accuracy)
    risk = rng.uniform(0.7, 0.95) if says_wrong else rng.uniform(0.02, 0.2)
    seconds = sum(_MEDIAN_S * math.exp(rng.gauss(0.0, _SPREAD)) for _ in range(2))
    return Row(example.label, exchange, answer, first, risk, seconds)


async def _figures(engine: Engine, plan: Plan, rows: Sequence[Row]) -> dict[str, float]:
    hits = alarms = asked = calls = 0
    waits: list[float] = []
    for row in rows:
        ask = ScriptedJudge(row.risk)
        (verdict,) = await engine.examine(plan, row.exchange, [row.answer], [row.first], ask=ask, time_s=60.0)
        was_asked = verdict.stage is not Stage.FIRST
        asked += was_asked
        calls += ask.calls
        waits.append(row.seconds if was_asked else 0.0)
        hits += verdict.flagged and row.label == 1
        alarms += verdict.flagged and row.label == 0
    wrong = sum(row.label for row in rows)
    waits.sort()
    return {
        "asked": asked / len(rows),
        "calls_per_1000": 1000 * calls / len(rows),
        "f1": 2 * hits / (hits + alarms + wrong),
        "recall": hits / wrong,
        "false_alarms": alarms / (len(rows) - wrong),
        "p50_s": waits[len(waits) // 2],
        "p99_s": waits[int(0.99 * (len(waits) - 1))],
    }


def _plot(rows: Sequence[dict[str, float | str]], file: Path, *, accuracy: float) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for row in rows:
        axes.plot(row["calls_per_1000"], row["f1"], "o", color="tab:blue")
        axes.annotate(
            str(row["plan"]), (float(row["calls_per_1000"]), float(row["f1"])), textcoords="offset points",
            xytext=(4, -8), fontsize=6, rotation=-40, va="top",
        )  # fmt: skip
    axes.set_xlabel("calls to models for 1,000 answers")
    axes.set_ylabel("F1 of flagged answers")
    axes.set_title(
        f"Scripted judge, right of {accuracy:.0%} of the answers; {_THRESHOLD:g} threshold", fontsize=9
    )
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
