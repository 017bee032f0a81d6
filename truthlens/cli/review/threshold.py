"""``calibrate --from-review``: propose a threshold from settled entries, and set it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from truthlens.cli.calibration_target import CalibrationJob
from truthlens.cli.review.filters import moment_of
from truthlens.cli.review.opening import opened
from truthlens.desk.proposal import Effect, Goal, Interval, Proposal, ThresholdTarget, effect, propose
from truthlens.review.records import Filters

WEEK_S = 7 * 86_400.0
_SAID = {
    Goal.F1: "of most F1",
    Goal.MISS_RATE: "the largest with an expected miss rate of at most {:g}",
    Goal.FALSE_ALARMS: "the smallest that is expected to flag at most {:g} of the correct answers",
    Goal.COST: "of least cost, where a miss costs {:g} false alarms",
}


def check_source(
    file: Path | None, only_file: Sequence[object], only_review: Sequence[object], *, from_review: bool
) -> None:
    """Check that the answers come from one source, and that the options of the other one are not given.

    Raises:
        typer.BadParameter: they do not, or are.
    """
    if from_review and (file is not None or any(each is not None for each in only_file)):
        raise typer.BadParameter(
            "--from-review goes without FILE, --flag-share, --output, --model and --limit"
        )
    if not from_review and any(each is not None for each in only_review):
        raise typer.BadParameter("--since, --best-f1 and --max-false-alarms go with --from-review")
    if not from_review and file is None:
        raise typer.BadParameter("give a FILE of answers, or --from-review")


def goal_of(
    max_miss_rate: float | None, max_false_alarms: float | None, cost_ratio: float | None, *, best_f1: bool
) -> ThresholdTarget:
    """Return what the options ask for.

    Raises:
        typer.BadParameter: it is not exactly one goal.
        ReviewError: its number is out of range.
    """
    given = {Goal.MISS_RATE: max_miss_rate, Goal.FALSE_ALARMS: max_false_alarms, Goal.COST: cost_ratio}
    chosen = [ThresholdTarget(goal, value) for goal, value in given.items() if value is not None]
    if best_f1:
        chosen.append(ThresholdTarget())
    if len(chosen) != 1:
        raise typer.BadParameter(
            "give one of --best-f1, --max-miss-rate, --max-false-alarms and --cost-ratio"
        )
    return chosen[0]


def from_queue(
    target: ThresholdTarget,
    job: CalibrationJob,
    *,
    prior: float | None,
    database: str | None,
    since: str | None,
) -> None:
    """Propose a threshold, say what it would change on the last week's entries, and with ``write`` set it."""
    if prior is not None:
        raise typer.BadParameter(
            "--prior goes without --from-review: the share is that of the settled entries"
        )
    if job.write and job.config is None:
        raise typer.BadParameter("--write needs --config POLICY")
    plan = job.target()
    plan.announce()
    with opened(database) as queue:
        found = propose(
            queue.settled(Filters(decision=job.decision, since=moment_of(since))),
            target,
            rate=plan.plan.expected_rate,
        )
        week = Filters(decision=job.decision, since=time.time() - WEEK_S)
        changes = effect(queue.summaries(week), found.even.value)
    data = asdict(found) | {"last_week": asdict(changes)}
    job.finish(plan, found.threshold.value, data, _lines(found, changes, plan.threshold))


def _lines(found: Proposal, changes: Effect, now: float | None) -> list[str]:
    value = found.target.value
    said = _SAID[found.target.goal].format(value)
    before = ", ".join(f"{each:g}" for each in found.before)
    lines = [
        f"entries    {found.rejected} rejected, {found.approved} approved; decided with threshold {before}",
        f"scores     probabilities where {found.rate:g} of the answers are unsupported (expected_rate)",
        f"threshold  {found.threshold.value:g}, {said}; interval {_range(found.threshold)} (95 %, bootstrap)",
    ]
    if now is not None:
        lines.append(f"now        {now:g} in the policy")
    shown = {
        "missed": (found.miss_rate, "of the hallucinations"),
        "flagged": (found.false_alarms, "of the correct answers"),
        "precision": (found.precision, "of the flagged answers are hallucinations"),
    }
    lines += [
        f"{name:10} {each.value:.4f} {of}; interval {_range(each)}" for name, (each, of) in shown.items()
    ]
    if found.bound is not None:
        lines.append(
            f"bound      {found.bound:.4f} with one more mistake; on average over such entries at most {value:g}"
        )
    else:
        lines.append("bound      none: it is fitted to these entries")
    lines += [
        f"last week  {changes.entries} entries, {changes.flagged} of them flagged",
        f"           {changes.new} more would be flagged (about {changes.new_weight:.0f} answers)",
        f"           {changes.gone} would not be any more (about {changes.gone_weight:.0f} answers), {changes.gone_rejected} of them rejected ones",
    ]
    return lines + [f"warning    {each}" for each in found.warnings]


def _range(interval: Interval) -> str:
    return f"{interval.low:.4f} to {interval.high:.4f}"
