"""``calibrate``: the response threshold for a miss rate or a cost ratio, or for a share of unlabelled answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from truthlens.cli import options
from truthlens.cli.calibration_target import CalibrationJob, data_file, made, name_of, progress_out, save
from truthlens.cli.fusion_fit import fit_weights
from truthlens.cli.plan_target import Target
from truthlens.cli.review.threshold import check_source, from_queue, goal_of
from truthlens.lab.calibrate.conformal import OperatingPoint
from truthlens.lab.calibrate.flag_share import ShareChoice, score_traffic, shares_at, threshold_for_share
from truthlens.lab.calibrate.threshold import LabelledScores, ThresholdChoice, choose, score_labelled
from truthlens.lab.data.dataset import DataError, read_examples
from truthlens.lab.data.traffic import read_traffic
from truthlens.lab.evaluate.plan_scorer import PlanScorer
from truthlens.policy.plans.threshold_record import (
    CostGoal,
    FlagShareGoal,
    Measured,
    MissRateGoal,
    RowCounts,
    ThresholdRecord,
)

_CURVE = {f"{step / 10:.1f}": step / 10 for step in range(1, 10)}


@options.in_place_of("job", CalibrationJob)
def calibrate(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Labelled JSON lines, plain or .gz; with --flag-share unlabelled ones; with --from-review none; with --fusion left out "
            "for the shipped twins.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    max_miss_rate: Annotated[
        float | None,
        typer.Option(help="Largest expected share of unsupported answers that may pass unflagged."),
    ] = None,
    cost_ratio: Annotated[
        float | None, typer.Option(help="What a miss costs, over what a false alarm costs.")
    ] = None,
    prior: Annotated[
        float | None,
        typer.Option(
            help="With --cost-ratio: share of unsupported answers in your traffic (default: the file's)."
        ),
    ] = None,
    flag_share: Annotated[
        float | None, typer.Option(help="Share of unlabelled answers that is to be flagged.")
    ] = None,
    fusion: Annotated[
        bool,
        typer.Option(
            "--fusion", help="Fit the weights of the verdict (docs/verdict.md) for the plan's detectors."
        ),
    ] = False,
    from_review: Annotated[
        bool,
        typer.Option(
            "--from-review", help="Take scores and verdicts from the review queue, in place of a FILE."
        ),
    ] = False,
    database: options.QueueDatabase = None,
    since: Annotated[
        str | None, typer.Option(help="With --from-review: answers from this time on, such as 30d.")
    ] = None,
    best_f1: Annotated[bool, typer.Option("--best-f1", help="With --from-review: most F1 of flags.")] = False,
    max_false_alarms: Annotated[
        float | None,
        typer.Option(
            help="With --from-review: largest expected share of correct answers that may be flagged."
        ),
    ] = None,
    job: CalibrationJob,
) -> None:
    """Choose the threshold from labelled answers: for a bounded miss rate (conformal risk control), or for least cost.

    Each line: {context, query, response, label, group}, context a list of texts, label 1 where it does not support all of
    the response. Rows with one group (by default: one context) count together. How to choose: docs/thresholds.md.

    Without labels: --flag-share sets the threshold that flags that share. Each line: {context, query, response}, or a
    line of the gateway's log with texts.

    With --fusion: no threshold, but what the finding of each detector is worth. See docs/verdict.md.

    With --from-review: from the scores and verdicts of the review queue, no texts needed. See docs/review-learning.md.
    """
    if fusion:
        fit_weights(file, job, others=(max_miss_rate, cost_ratio, prior, flag_share, from_review or None))
        return
    only_review = (since, max_false_alarms, best_f1 or None)
    check_source(file, (flag_share, job.output, job.model, job.limit), only_review, from_review=from_review)
    if file is None:
        goal = goal_of(max_miss_rate, max_false_alarms, cost_ratio, best_f1=best_f1)
        from_queue(goal, job, prior=prior, database=database, since=since)
    else:
        _from_file(file, _Wanted(max_miss_rate, cost_ratio, flag_share, prior), job)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the threshold is to do: one of the first three, ``prior`` with costs alone."""

    max_miss_rate: float | None
    cost_ratio: float | None
    flag_share: float | None
    prior: float | None

    def check(self) -> None:
        """Check that it is one goal, and its numbers.

        Raises:
            typer.BadParameter: it is not.
        """
        if [self.max_miss_rate, self.cost_ratio, self.flag_share].count(None) != 2:
            raise typer.BadParameter("give one of --max-miss-rate, --cost-ratio and --flag-share")
        if self.prior is not None and self.cost_ratio is None:
            raise typer.BadParameter("--prior goes with --cost-ratio")
        share = (1.0, "a share between 0 and 1")
        for name, value, (below, expected) in (
            ("flag-share", self.flag_share, share),
            ("max-miss-rate", self.max_miss_rate, share),
            ("cost-ratio", self.cost_ratio, (float("inf"), "a number above 0")),
            ("prior", self.prior, share),
        ):
            if value is not None and not 0.0 < value < below:
                raise typer.BadParameter(f"--{name} is {value:g}; expected {expected}")

    def goal(self, scored: LabelledScores) -> MissRateGoal | CostGoal:
        """Return the goal for labelled answers."""
        if self.max_miss_rate is not None:
            return MissRateGoal(max_miss_rate=self.max_miss_rate)
        assert self.cost_ratio is not None
        if self.prior is None and not 0.0 < scored.base_rate < 1.0:
            kind = "unsupported" if scored.base_rate else "supported"
            raise DataError(
                f"the file has {kind} answers only, so what mistakes cost cannot be measured; add others"
            )
        return CostGoal(
            cost_ratio=self.cost_ratio, prior=scored.base_rate if self.prior is None else self.prior
        )


def _from_file(file: Path, wanted: _Wanted, job: CalibrationJob) -> None:
    wanted.check()
    if job.write and job.config is None:
        raise typer.BadParameter("--write needs --config POLICY")
    if job.write and job.model is not None:
        raise typer.BadParameter("--write sets the threshold for the plan's own model; leave --model out")
    target = job.target()
    asked = job.asked(target)
    target.announce()
    find = _labelled if wanted.flag_share is None else _flag_share
    choice = find(file, wanted, target, partial(target.scorer, asked), limit=job.limit)
    record = ThresholdRecord(
        threshold=choice.threshold,
        goal=choice.goal,
        measured=choice.measured,
        answers=choice.counts,
        data=data_file(file),
        **made(target),
    )
    value: float | dict[str, Any] = record.threshold
    output = job.output
    if isinstance(choice.goal, MissRateGoal):
        output = job.beside_policy("threshold")
        if output is not None:
            value = {"max_miss_rate": choice.goal.max_miss_rate, "calibration": name_of(output, target)}
    if output is not None:
        save(output, record.to_json())
    if isinstance(choice, _ShareResult):
        data, lines = choice.as_object(record), choice.lines(record)
    else:
        data, lines = _as_object(record, choice), _lines(record, choice)
    job.finish(target, value, data | {"record": output and str(output)}, lines, output=output)


@dataclass(frozen=True, slots=True)
class _ShareResult:
    """The threshold for a share, and the shares that others would flag.

    ``limits`` and ``shares`` are thresholds and shares of the checked answers by name; ``unscored`` counts the
    answers that could not be checked by their reason.
    """

    asked: float
    choice: ShareChoice
    unscored: Mapping[str, int]
    limits: Mapping[str, float]
    shares: Mapping[str, float]

    @property
    def threshold(self) -> float:
        """The threshold."""
        return self.choice.threshold

    @property
    def goal(self) -> FlagShareGoal:
        """What it is for."""
        return FlagShareGoal(flag_share=self.asked)

    @property
    def measured(self) -> Measured:
        """What it does to the answers."""
        return Measured(flagged=self.choice.share)

    @property
    def counts(self) -> RowCounts:
        """How many answers there were."""
        return RowCounts(unlabelled=self.choice.checked, unscored=sum(self.unscored.values()))

    def as_object(self, record: ThresholdRecord) -> dict[str, Any]:
        """Return the data of ``--json``."""
        return {
            **record.model_dump(mode="json"),
            "flagged_95": [round(self.choice.low, 4), round(self.choice.high, 4)],
            "compared": {
                name: {"threshold": limit, "flagged": self.shares[name]}
                for name, limit in self.limits.items()
            },
            "unscored": dict(self.unscored),
        }

    def lines(self, record: ThresholdRecord) -> list[str | Table]:
        """Return what is printed."""
        choice, made = self.choice, record.scored_with
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(self.unscored.items()))
        table = Table()
        for column in ("", "threshold", "flagged"):
            table.add_column(column, justify="right" if column else "left")
        for name, limit in sorted(self.limits.items(), key=lambda item: item[1]):
            shown = name if name in ("chosen", "the plan's now") else ""
            table.add_row(shown, f"{limit:.4f}", f"{self.shares[name]:.4f}")
        return [
            f"model      {made.model}, aggregation {made.aggregation}",
            f"answers    {choice.checked} checked, without labels",
            *([f"unchecked  {self.counts.unscored} ({reasons}); they do not count"] if reasons else []),
            f"threshold  {choice.threshold}, for a share of {self.asked:g}",
            f"flagged    {choice.share:.4f} of the checked answers ({choice.flagged} of {choice.checked})",
            f"expected   {choice.low:.3f} to {choice.high:.3f} of further answers of the same traffic (95 %)",
            "           which of them are wrong is not known: this sets how many are flagged, not how well",
            table,
        ]


Scorers = Callable[[], PlanScorer]


def _others(target: Target) -> dict[str, float]:
    """Return further thresholds to compare, by name."""
    return _CURVE | ({} if target.threshold is None else {"the plan's now": target.threshold})


def _labelled(
    file: Path, wanted: _Wanted, target: Target, scorers: Scorers, *, limit: int | None
) -> ThresholdChoice:
    examples = read_examples(file)[:limit]
    if not examples:
        raise DataError(f"{file} has no rows; expected labelled JSON lines")
    with scorers() as scorer:
        scored = score_labelled(examples, scorer.verdict_on, console=progress_out, title=file.name)
    rate = target.plan.expected_rate
    return choose(scored, wanted.goal(scored), expected_rate=rate, others=_others(target))


def _flag_share(
    file: Path, wanted: _Wanted, target: Target, scorers: Scorers, *, limit: int | None
) -> _ShareResult:
    assert wanted.flag_share is not None
    answers = read_traffic(file)[:limit]
    with scorers() as scorer:
        scored = score_traffic(answers, scorer.verdict_on, console=progress_out, title=file.name)
    choice = threshold_for_share(scored, wanted.flag_share)
    limits = {"chosen": choice.threshold, **_others(target)}
    return _ShareResult(wanted.flag_share, choice, scored.unscored, limits, shares_at(scored.scores, limits))


def _as_object(record: ThresholdRecord, choice: ThresholdChoice) -> dict[str, Any]:
    left_out = set() if isinstance(record.goal, CostGoal) else {"cost"}
    return {
        **record.model_dump(mode="json"),
        "compared": {
            name: {key: figure for key, figure in asdict(point).items() if key not in left_out}
            for name, point in choice.compared.items()
        },
        "unscored": dict(choice.unscored),
    }


def _lines(record: ThresholdRecord, choice: ThresholdChoice) -> list[str | Table]:
    counts, alarms, made = record.answers, record.measured.supported_flagged, record.scored_with
    texts = f"{counts.unsupported} unsupported from {counts.unsupported_texts} source texts"
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(choice.unscored.items()))
    share = "unknown, there are no" if alarms is None else f"{alarms:.4f} of the"
    return [
        f"model      {made.model}, aggregation {made.aggregation}",
        f"scores     probabilities where {made.expected_rate:g} of the answers are unsupported (expected_rate)",
        f"answers    {texts}, {counts.supported} supported",
        *([f"unscored   {counts.unscored} ({reasons}); they count as not flagged"] if reasons else []),
        *(_cost_lines(record.goal, choice) if isinstance(record.goal, CostGoal) else _miss_lines(record)),
        f"flagged    {share} supported answers",
        *([_table(record, choice.compared)] if choice.compared else []),
    ]


def _miss_lines(record: ThresholdRecord) -> list[str]:
    assert isinstance(record.goal, MissRateGoal)
    goal, measured = f"{record.goal.max_miss_rate:g}", record.measured
    assert measured.miss_rate is not None
    missed = f"{measured.miss_rate:.4f} of the unsupported answers; each source text counts once"
    bound = f"{measured.miss_bound:.4f} with one more text that is missed"
    return [
        f"threshold  {record.threshold}, the largest with an expected miss rate of at most {goal}",
        f"missed     {missed}",
        f"bound      {bound}; guaranteed on average over such files: at most {goal}",
    ]


def _cost_lines(goal: CostGoal, choice: ThresholdChoice) -> list[str]:
    ratio, prior = goal.cost_ratio, goal.prior
    best = choice.compared["least cost"]
    bounds = f"flagging all of them {1 - prior:.4g}, none {ratio * prior:.4g}"
    return [
        f"threshold  {best.threshold}, of least expected cost on these answers (no guarantee)",
        f"costs      a miss costs {ratio:g} false alarms; {prior:.4g} of the answers are unsupported",
        f"           an answer costs {best.cost:.4g} false alarms on average; {bounds}",
        f"missed     {best.miss_rate:.4f} of the unsupported answers",
    ]


def _table(record: ThresholdRecord, compared: Mapping[str, OperatingPoint]) -> Table:
    costs = isinstance(record.goal, CostGoal)
    table = Table()
    for column in ("", "threshold", "missed", "supported flagged", *(["cost of an answer"] if costs else [])):
        table.add_column(column, justify="right" if column else "left")
    for name, point in sorted(compared.items(), key=lambda item: item[1].threshold):
        figures = [f"{point.threshold:.4f}", f"{point.miss_rate:.4f}", f"{point.false_alarm_rate:.4f}"]
        table.add_row("" if name in _CURVE else name, *figures, *([f"{point.cost:.4f}"] if costs else []))
    return table
