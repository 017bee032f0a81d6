"""Measure what a cascade saves in calls and loses in F1 against asking a judge about every answer.

python -m bench.detection.cascade [--rows 300] [--accuracy 0.9] [--plot docs/cascade-frontier.png]

Rows are twins that no model was fitted on (data/twins/test), a fixed sample. The first stage is the shipped
policy's, as it is served. The judge is scripted: it tells right from wrong with the given accuracy, the
same of each answer in every plan, and says so through the real detector, engine and fusion. The verifier of
the plans "verify" is scripted likewise, right of each claim with the same accuracy on the average, and as
sure as it is right. The time of a call is drawn (log-normal; of the judge median 0.8 s, two calls an
answer; of the verifier 0.15 s, the slowest of those about an answer), not slept: the seconds are those of
these models of a judge and a verifier, and no measurement.
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

from bench.common.script import command, write_result
from truthlens.core.records.calls import Completion, ModelRequest, TokenLogprob
from truthlens.core.records.enums import AskWhen
from truthlens.core.records.exchange import Answer, Exchange, plain_exchange
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.settings import CascadeSettings
from truthlens.core.records.verdict import Verdict
from truthlens.detection.building import LateModel, build_engine
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.detectors.judge.options import Options
from truthlens.detection.detectors.verify.options import Options as VerifyOptions
from truthlens.detection.engine import Engine
from truthlens.lab.data.dataset import Example
from truthlens.lab.data.twins import read_twin_folder, twin_examples
from truthlens.lab.markdown import table
from truthlens.process.model_store import BUNDLED_MODEL

_MEDIAN_S, _VERIFY_S, _SPREAD = 0.8, 0.15, 0.5
_BANDS = ((0.5, 0.6), (0.4, 0.6), (0.3, 0.6), (0.2, 0.6), (0.1, 0.6), (0.0, 0.6), (0.3, 0.8), (0.1, 0.9))
_THRESHOLD = 0.6
_VERIFYING = (((0.15, 0.93), 0.6), ((0.15, 0.93), 0.75), ((0.4, 0.93), 0.6))


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled answer, what the first stage says, and what the judge will say and take."""

    label: int
    exchange: Exchange
    answer: Answer
    first: Verdict
    risk: float
    seconds: float
    spans: tuple[tuple[int, int], ...]


class ScriptedJudge:
    """An ``Ask`` whose judge gives one risk."""

    def __init__(self, risk: float, seconds: float) -> None:
        self.risk, self.calls, self.seconds = risk, 0, seconds

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


class ScriptedVerifier:
    """An ``Ask`` whose verifier is right of a claim with some accuracy, the same each time."""

    def __init__(self, row: Row, accuracy: float) -> None:
        self._row, self._accuracy = row, accuracy
        self.calls, self.seconds = 0, 0.0

    async def __call__(self, request: ModelRequest) -> Completion:
        """Return YES or UNSURE with log probabilities."""
        self.calls += 1
        messages = request.body["messages"]
        assert isinstance(messages, list)
        claim = messages[-1]["content"].split("<truthlens:claim>\n")[1].split("\n</truthlens:claim>")[0]
        text = self._row.answer.text
        rng = random.Random(f"{text} {self._row.label} {claim}")
        start = text.index(claim)
        is_wrong = any(begin < start + len(claim) and end > start for begin, end in self._row.spans)
        # As sure as it is right: on the average the accuracy, and seldom sure where it is mistaken.
        sure = 1.0 - 0.5 * rng.betavariate(1.0, 0.5 / (1.0 - self._accuracy) - 1.0)
        says_wrong = is_wrong == (rng.random() < sure)
        self.seconds = max(self.seconds, _VERIFY_S * math.exp(rng.gauss(0.0, _SPREAD)))
        yes = 1.0 - sure if says_wrong else sure
        word = "UNSURE" if says_wrong else "YES"
        top = (("YES", math.log(yes)), ("UNSURE", math.log(1.0 - yes)))
        return Completion(word, request.model, "stop", logprobs=(TokenLogprob(word, dict(top)[word], top),))


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--twins", type=Path, default=Path("data/twins/test"))
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--accuracy", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    with asyncio.Runner() as runner:
        result = runner.run(_measured(options))
    write_result(options.out, "cascade", result)
    rows = result["plans"]
    assert isinstance(rows, list)
    shown = {
        "plan": "{plan}", "asked": "{asked:.0%}", "calls for 1,000 answers": "{calls_per_1000:.0f}", "F1": "{f1:.3f}",
        "recall": "{recall:.2f}", "false alarms": "{false_alarms:.2f}", "added p50": "{p50_s:.1f} s", "added p99": "{p99_s:.1f} s",
    }  # fmt: skip
    print(table(list(shown), ([each.format(**row) for each in shown.values()] for row in rows)))
    if options.plot is not None:
        # A question of one token costs a fraction of a judge's two calls: the axis counts the judge's.
        judged = [row for row in rows if not row["plan"].startswith("verify")]
        _plot(judged, options.plot, accuracy=options.accuracy)


async def _measured(options: argparse.Namespace) -> dict[str, object]:
    judge = DetectorSpec("judge", options=Options(model="judge"), models=("judge",))
    first = (DetectorSpec("encoder"), DetectorSpec("numbers"))
    base = Plan("bench", threshold=_THRESHOLD, timeout_s=60.0, detectors=(*first, judge))
    model = LateModel(
        lambda: load_encoder(Path("models") / BUNDLED_MODEL, use_cpu=True, threads=1, max_windows=256)
    )
    always = CascadeSettings(when=AskWhen.ALWAYS, timeout_s=60.0)
    verifying = [
        (
            f"verify, {low:g} to {high:g}, threshold {threshold:g}",
            replace(base, detectors=(*first, _verify(low, high)), cascade=always, threshold=threshold),
        )
        for (low, high), threshold in _VERIFYING
    ]
    engine = build_engine([base, *(plan for _, plan in verifying)], model, queue_limit=1_000)
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
    plans += [("always", replace(base, cascade=always)), *verifying]
    found = [{"plan": name, **await _figures(engine, plan, rows, options.accuracy)} for name, plan in plans]
    await engine.aclose()
    return {
        "rows": len(rows),
        "wrong": sum(row.label for row in rows),
        "accuracy": options.accuracy,
        "seed": options.seed,
        "plans": found,
    }


def _verify(low: float, high: float) -> DetectorSpec:
    options = VerifyOptions(model="verifier", doubtful=(low, high))
    return DetectorSpec("verify", options=options, models=options.models)


async def _row(engine: Engine, plan: Plan, example: Example, rng: random.Random, accuracy: float) -> Row:
    exchange, answer = plain_exchange(example.query, example.context, example.response)
    (first,) = await engine.detect(plan, exchange, [answer])
    says_wrong = bool(example.label) == (rng.random() < accuracy)
    risk = rng.uniform(0.7, 0.95) if says_wrong else rng.uniform(0.02, 0.2)
    seconds = sum(_MEDIAN_S * math.exp(rng.gauss(0.0, _SPREAD)) for _ in range(2))
    return Row(example.label, exchange, answer, first, risk, seconds, example.spans or ())


async def _figures(engine: Engine, plan: Plan, rows: Sequence[Row], accuracy: float) -> dict[str, float]:
    hits = alarms = asked = calls = 0
    waits: list[float] = []
    for row in rows:
        verifies = any(spec.name == "verify" for spec in plan.asking)
        ask = ScriptedVerifier(row, accuracy) if verifies else ScriptedJudge(row.risk, row.seconds)
        (verdict,) = await engine.examine(plan, row.exchange, [row.answer], [row.first], ask=ask, time_s=60.0)
        asked += ask.calls > 0
        calls += ask.calls
        waits.append(ask.seconds if ask.calls else 0.0)
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
