"""``accuracy``: the numeric claims of labelled answers, and how right the detector ``numbers`` is about them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import typer

from truthlens.cli import options
from truthlens.cli.plan_target import demand_detection, find_target, offline_settings
from truthlens.core.errors import PolicyError
from truthlens.core.records.enums import DetectorName
from truthlens.detection.detectors.numbers.options import Options as NumberOptions
from truthlens.lab.evaluate.evaluation import labelled_answers

_RULE = "=" * 60
_MET = {None: "-", True: "YES", False: "NO"}


def accuracy(
    files: options.LabelledFiles,
    as_json: options.AsJson = False,
    target_rate: options.TargetRate = None,
    config: options.Config = None,
    decision: options.Decision = "default",
    models: options.Models = None,
) -> None:
    """Report how often `numbers` is right on labelled answers, and what share of their numeric claims is unverified.

    Each line: {context: [text], query, response, label}. An answer is predicted to be wrong where a value is flagged.
    """
    target = find_target(offline_settings(config, models), decision, use_records=False)
    demand_detection(target)
    specs = tuple(spec for spec in target.plan.detectors if spec.name == DetectorName.NUMBERS)
    if not specs:
        raise PolicyError(
            f"{target.policy.file}: the decision {decision!r} does not list the detector numbers; add it to `detectors`"
        )
    settings_of = specs[0].options
    numbers = settings_of if isinstance(settings_of, NumberOptions) else NumberOptions()
    counts: Counter[str] = Counter()
    seconds: list[float] = []
    target = replace(target, plan=replace(target.plan, detectors=specs), overrides=("numbers alone",))
    with target.scorer() as score:
        target.announce()
        for file in files:
            for row in labelled_answers(file):
                (found,) = score(row.query, row.context, row.response).verdict.results
                seconds.append(found.duration_s)
                flagged = bool(found.details.get("has_hallucinations", 0.0))
                counts[("tp" if row.label else "fp") if flagged else ("fn" if row.label else "tn")] += 1
                for name in ("total_claims", "verified_claims", "unverified_claims"):
                    counts[name] += int(found.details.get(name, 0))
    figures = accuracy_figures(counts, target_percent=target_percent(target_rate, numbers))
    figures |= time_figures(seconds, target_ms=numbers.target_time_ms)
    typer.echo(json.dumps(figures) if as_json else report_text(figures))


def accuracy_figures(counts: Counter[str], *, target_percent: float) -> dict[str, Any]:
    """Return the figures of the report; a share of nothing is ``None``.

    Args:
        counts: ``tp``, ``fp``, ``fn``, ``tn``, and the sums of total, verified and unverified claims.
        target_percent: the rate of unverified claims to stay below, in percent.
    """
    tp, fp, fn, tn = (counts[name] for name in ("tp", "fp", "fn", "tn"))
    total, unverified = counts["total_claims"], counts["unverified_claims"]
    rate = _share(unverified, total)
    return {
        "total_cases": tp + fp + fn + tn,
        "tp": tp, "fp": fp, "fn": fn, "tn": tn,
        "accuracy": _share(tp + tn, tp + fp + fn + tn),
        "precision": _share(tp, tp + fp),
        "recall": _share(tp, tp + fn),
        "f1": _share(2 * tp, 2 * tp + fp + fn),
        "total_claims": total,
        "verified_claims": counts["verified_claims"],
        "unverified_claims": unverified,
        "hallucination_rate": rate,
        "target_rate": target_percent / 100,
        "meets_target": None if rate is None else rate < target_percent / 100,
    }  # fmt: skip


def target_percent(written: float | None, numbers: NumberOptions) -> float:
    """Return the rate of unverified claims to stay below, in percent: what was written, else what the options say."""
    return 100.0 * numbers.target_rate if written is None else written


def time_figures(seconds: Sequence[float], *, target_ms: float) -> dict[str, Any]:
    """Return the mean time of an answer beside the time to stay below, both in milliseconds."""
    mean = 1000.0 * fmean(seconds) if seconds else None
    return {
        "time_ms": mean,
        "target_time_ms": target_ms,
        "meets_target_time": None if mean is None else mean < target_ms,
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def report_text(figures: dict[str, Any]) -> str:
    """Return the report of ``accuracy_figures`` as text, with its ``time_figures`` where it has any."""
    met = _MET[figures["meets_target"]]
    mean = figures.get("time_ms")
    times = (
        ""
        if mean is None
        else f"""
Verification Time:
  Mean per Answer:    {mean:.1f} ms
  Target Time:        {figures["target_time_ms"]:g} ms
  Meets Target:       {_MET[figures["meets_target_time"]]}
"""
    )
    return f"""{_RULE}
Hallucination Detection Accuracy Report
{_RULE}

Total Test Cases: {figures["total_cases"]}

Confusion Matrix:
  True Positives (TP):  {figures["tp"]}
  False Positives (FP): {figures["fp"]}
  False Negatives (FN): {figures["fn"]}
  True Negatives (TN):  {figures["tn"]}

Metrics:
  Accuracy:  {_percent(figures["accuracy"])}
  Precision: {_percent(figures["precision"])}
  Recall:    {_percent(figures["recall"])}
  F1 Score:  {_percent(figures["f1"])}

Claims:
  Total Claims:       {figures["total_claims"]}
  Verified Claims:    {figures["verified_claims"]}
  Unverified Claims:  {figures["unverified_claims"]}
  Hallucination Rate: {_percent(figures["hallucination_rate"])}
  Target Rate:        {_percent(figures["target_rate"])}
  Meets Target:       {met}
{times}{_RULE}"""
