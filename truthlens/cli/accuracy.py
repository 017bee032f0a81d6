"""``accuracy``: the numeric claims of labelled answers, and how right the detector ``numbers`` is about them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Annotated, Any

import typer

from truthlens.cli import options
from truthlens.cli.plan_target import find_target
from truthlens.core.errors import PolicyError
from truthlens.core.net import Address
from truthlens.core.records.enums import DetectorName
from truthlens.settings import DEFAULT_CONSOLE, DEFAULT_EXTPROC, Settings
from truthlens.training.evaluate.evaluation import labelled_answers
from truthlens.training.evaluate.plan_scorer import PlanScorer

_RULE = "=" * 60


def accuracy(
    files: options.LabelledFiles,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    target_rate: Annotated[
        float,
        typer.Option("--target", min=0, max=100, help="Highest share of unverified claims, in percent."),
    ] = 5.0,
    config: options.Config = None,
    decision: Annotated[
        str, typer.Option(help="Decision of the policy whose settings of numbers count.")
    ] = "default",
    models: options.Models = None,
) -> None:
    """Report how often `numbers` is right on labelled answers, and what share of their numeric claims is unverified.

    Each line: {context: [text], query, response, label}. An answer is predicted to be wrong where a value is flagged.
    """
    settings = Settings(
        Address.parse(DEFAULT_EXTPROC, name="--extproc"),
        Address.parse(DEFAULT_CONSOLE, name="--console"),
        models=models,
    )
    target = find_target(settings, config, decision, None)
    specs = tuple(spec for spec in target.plan.detectors if spec.name == DetectorName.NUMBERS)
    if not specs:
        raise PolicyError(
            "the plan does not list the detector numbers; add it to `detectors`, or give --config"
        )
    counts: Counter[str] = Counter()
    with PlanScorer(replace(target.plan, detectors=specs), target.folder) as score:
        for file in files:
            for row in labelled_answers(file):
                (found,) = score(row.query, row.context, row.response).verdict.results
                flagged = bool(found.details.get("has_hallucinations", 0.0))
                counts[("tp" if row.label else "fp") if flagged else ("fn" if row.label else "tn")] += 1
                for name in ("total_claims", "verified_claims", "unverified_claims"):
                    counts[name] += int(found.details.get(name, 0))
    figures = accuracy_figures(counts, target_percent=target_rate)
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


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def report_text(figures: dict[str, Any]) -> str:
    """Return the report of ``accuracy_figures`` as text."""
    met = {None: "-", True: "YES", False: "NO"}[figures["meets_target"]]
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
{_RULE}"""
