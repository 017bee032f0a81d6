"""``calibrate``: the response threshold for a miss rate or a cost ratio, or for a share of unlabelled answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from truthlens import __version__
from truthlens.cli import options
from truthlens.cli.asked_models import models_of
from truthlens.cli.calibration_target import scorer_of, set_threshold
from truthlens.cli.plan_target import Target, find_target
from truthlens.cli.review.threshold import check_source, from_queue, goal_of
from truthlens.cli.share_result import ShareResult
from truthlens.core.errors import TruthLensError
from truthlens.core.net import Address
from truthlens.core.scoring_version import SCORING_VERSION
from truthlens.policy.files import replace_file
from truthlens.policy.plans.threshold_record import (
    CostGoal,
    DataFile,
    MissRateGoal,
    ScoredWith,
    ThresholdRecord,
    options_of,
)
from truthlens.settings import DEFAULT_CONSOLE, DEFAULT_EXTPROC, Settings
from truthlens.training.calibrate.conformal import OperatingPoint
from truthlens.training.calibrate.flag_share import score_traffic, shares_at, threshold_for_share
from truthlens.training.calibrate.threshold import (
    LabelledScores,
    Scorer,
    ThresholdChoice,
    choose,
    score_labelled,
)
from truthlens.training.data.dataset import DataError, read_examples
from truthlens.training.data.traffic import read_traffic

out = Console(highlight=False, soft_wrap=True, markup=False)
# Progress goes where it does not mix with --json.
progress_out = Console(stderr=True, highlight=False)

_CURVE = {f"{step / 10:.1f}": step / 10 for step in range(1, 10)}


def calibrate(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Labelled JSON lines, plain or .gz; with --flag-share unlabelled ones; with --from-review none.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    max_miss_rate: Annotated[
        float | None,
        typer.Option(
            help="Largest expected share of unsupported answers that may pass unflagged.", show_default=False
        ),
    ] = None,
    cost_ratio: Annotated[
        float | None,
        typer.Option(help="What a miss costs, over what a false alarm costs.", show_default=False),
    ] = None,
    prior: Annotated[
        float | None,
        typer.Option(
            help="With --cost-ratio: share of unsupported answers in your traffic (default: the file's).",
            show_default=False,
        ),
    ] = None,
    flag_share: Annotated[
        float | None,
        typer.Option(help="Share of unlabelled answers that is to be flagged.", show_default=False),
    ] = None,
    from_review: Annotated[
        bool,
        typer.Option(
            "--from-review", help="Take scores and verdicts from the review queue, in place of a FILE."
        ),
    ] = False,
    database: options.QueueDatabase = None,
    since: Annotated[
        str | None,
        typer.Option(help="With --from-review: answers from this time on, such as 30d.", show_default=False),
    ] = None,
    best_f1: Annotated[bool, typer.Option("--best-f1", help="With --from-review: most F1 of flags.")] = False,
    max_false_alarms: Annotated[
        float | None,
        typer.Option(
            help="With --from-review: largest expected share of correct answers that may be flagged.",
            show_default=False,
        ),
    ] = None,
    config: options.Config = None,
    decision: Annotated[
        str, typer.Option(help="Decision of the policy whose plan is calibrated.")
    ] = "default",
    write: Annotated[
        bool, typer.Option("--write", help="Set that decision's threshold in the policy file.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Threshold record to write (JSON). With --write and --max-miss-rate by default beside the policy.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    model: options.ModelName = None,
    models: options.Models = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="First rows of the file only.", show_default=False)
    ] = None,
    threads: options.Threads = 1,
    upstream: options.Upstream = None,
    replies: options.Replies = None,
    recorded: options.Recorded = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Choose the threshold from labelled answers: for a bounded miss rate (conformal risk control), or for least cost.

    Each line: {context, query, response, label, group}, context a list of texts, label 1 where it does not support all of
    the response. Rows with one group (by default: one context) count together. How to choose: docs/thresholds.md.

    Without labels: --flag-share sets the threshold that flags that share. Each line: {context, query, response}, or a
    line of the gateway's log with texts.

    With --from-review: from the scores and verdicts of the review queue, no texts needed. See docs/review-learning.md.
    """
    only_review = (since, max_false_alarms, best_f1 or None)
    check_source(file, (flag_share, output, model, limit), only_review, from_review=from_review)
    if file is None:
        from_queue(
            goal_of(max_miss_rate, max_false_alarms, cost_ratio, best_f1=best_f1),
            prior=prior,
            database=database,
            since=since,
            config=config,
            decision=decision,
            models=models,
            write=write,
            as_json=as_json,
        )
        return
    _check_options(
        max_miss_rate,
        cost_ratio,
        flag_share,
        prior,
        config=config,
        decision=decision,
        write=write,
        model=model,
    )
    settings = Settings(
        Address.parse(DEFAULT_EXTPROC, name="--extproc"),
        Address.parse(DEFAULT_CONSOLE, name="--console"),
        models=models,
        threads=threads,
    )
    target = find_target(settings, config, decision, model)
    now = {} if target.threshold is None else {"the plan's now": target.threshold}
    asked = models_of(target.plan, target.models, upstream=upstream, replies=replies, recorded=recorded)
    scorers = partial(scorer_of, target, threads=threads, models=asked)
    choice: ThresholdChoice | ShareResult
    if flag_share is not None:
        choice = _flag_share(file, flag_share, target, now, limit=limit, scorers=scorers)
    else:
        choice = _labelled(file, max_miss_rate, cost_ratio, prior, target, now, limit=limit, scorers=scorers)
    record = _record(choice, target, file)
    if output is None and write and isinstance(choice.goal, MissRateGoal):
        assert config is not None
        output = config.parent / f"{decision}.threshold.json"
    if output is not None:
        _save(output, record)
    remaining = set_threshold(target, record, output, settings) if write else None
    if as_json:
        told = choice.as_object(record) if isinstance(choice, ShareResult) else _as_object(record, choice)
        files = {"record": output, "policy": config if write else None}
        places = {key: None if path is None else str(path) for key, path in files.items()}
        typer.echo(json.dumps({**told, **places}))
        return
    if isinstance(choice, ShareResult):
        choice.show(record, out)
    else:
        _show(record, choice)
    if output is not None:
        out.print(f"record     {output}")
    if write:
        out.print(f"policy     {config}: threshold of {decision} set")
    if remaining:
        out.print(
            f"           it still has {remaining} other error(s): truthlens check {config}", markup=False
        )


Scorers = Callable[[], AbstractContextManager[Scorer]]


def _labelled(
    file: Path,
    max_miss_rate: float | None,
    cost_ratio: float | None,
    prior: float | None,
    target: Target,
    now: Mapping[str, float],
    *,
    limit: int | None,
    scorers: Scorers,
) -> ThresholdChoice:
    examples = read_examples(file)[:limit]
    if not examples:
        raise DataError(f"{file} has no rows; expected labelled JSON lines")
    with scorers() as scorer:
        scored = score_labelled(examples, scorer, console=progress_out, title=file.name)
    goal = _goal(max_miss_rate, cost_ratio, prior, scored)
    return choose(scored, goal, expected_rate=target.plan.expected_rate, others=_CURVE | dict(now))


def _flag_share(
    file: Path,
    share: float,
    target: Target,
    now: Mapping[str, float],
    *,
    limit: int | None,
    scorers: Scorers,
) -> ShareResult:
    answers = read_traffic(file)[:limit]
    with scorers() as scorer:
        scored = score_traffic(answers, scorer, console=progress_out, title=file.name)
    choice = threshold_for_share(scored, share)
    limits = {"chosen": choice.threshold, **_CURVE, **now}
    return ShareResult(share, choice, scored.unscored, limits, shares_at(scored.scores, limits))


def _check_options(
    max_miss_rate: float | None,
    cost_ratio: float | None,
    flag_share: float | None,
    prior: float | None,
    *,
    config: Path | None,
    decision: str,
    write: bool,
    model: str | None,
) -> None:
    if sum(goal is not None for goal in (max_miss_rate, cost_ratio, flag_share)) != 1:
        raise typer.BadParameter("give one of --max-miss-rate, --cost-ratio and --flag-share")
    if flag_share is not None and not 0.0 < flag_share < 1.0:
        raise typer.BadParameter(f"--flag-share is {flag_share:g}; expected a share between 0 and 1")
    if max_miss_rate is not None and not 0.0 < max_miss_rate < 1.0:
        raise typer.BadParameter(f"--max-miss-rate is {max_miss_rate:g}; expected a share between 0 and 1")
    if cost_ratio is not None and not 0.0 < cost_ratio < float("inf"):
        raise typer.BadParameter(f"--cost-ratio is {cost_ratio:g}; expected a number above 0")
    if prior is not None and cost_ratio is None:
        raise typer.BadParameter("--prior goes with --cost-ratio")
    if prior is not None and not 0.0 < prior < 1.0:
        raise typer.BadParameter(f"--prior is {prior:g}; expected a share between 0 and 1")
    if config is None and (write or decision != "default"):
        raise typer.BadParameter("--write and --decision need --config POLICY")
    if write and model is not None:
        raise typer.BadParameter("--write sets the threshold for the plan's own model; leave --model out")


def _goal(
    max_miss_rate: float | None, cost_ratio: float | None, prior: float | None, scored: LabelledScores
) -> MissRateGoal | CostGoal:
    if max_miss_rate is not None:
        return MissRateGoal(max_miss_rate=max_miss_rate)
    assert cost_ratio is not None
    if prior is None and not 0.0 < scored.base_rate < 1.0:
        kind = "unsupported" if scored.base_rate else "supported"
        raise DataError(
            f"the file has {kind} answers only, so what mistakes cost cannot be measured; add others"
        )
    return CostGoal(cost_ratio=cost_ratio, prior=scored.base_rate if prior is None else prior)


def _record(choice: ThresholdChoice | ShareResult, target: Target, file: Path) -> ThresholdRecord:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return ThresholdRecord(
        threshold=choice.threshold,
        goal=choice.goal,
        measured=choice.measured,
        answers=choice.counts,
        scored_with=ScoredWith(
            model=target.identity.name,
            model_sha256=target.identity.sha256,
            aggregation=target.plan.aggregation or target.identity.aggregation,
            detectors={spec.name: spec.weight for spec in target.plan.detectors},
            options=options_of(target.plan),
            scoring_version=SCORING_VERSION,
            expected_rate=target.plan.expected_rate,
        ),
        data=DataFile(name=file.name, sha256=digest),
        date=datetime.now(UTC).date().isoformat(),
        truthlens=__version__,
    )


def _save(path: Path, record: ThresholdRecord) -> None:
    try:
        replace_file(path, record.to_json())
    except OSError as error:
        raise TruthLensError(f"{path} cannot be written: {error.strerror}; give another --output") from error


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


def _show(record: ThresholdRecord, choice: ThresholdChoice) -> None:
    counts, measured, made = record.answers, record.measured, record.scored_with
    lines = [
        f"model      {made.model}, aggregation {made.aggregation}",
        f"scores     probabilities where {made.expected_rate:g} of the answers are unsupported (expected_rate)",
    ]
    texts = f"{counts.unsupported} unsupported from {counts.unsupported_texts} source texts"
    lines.append(f"answers    {texts}, {counts.supported} supported")
    if choice.unscored:
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(choice.unscored.items()))
        lines.append(f"unscored   {counts.unscored} ({reasons}); they count as not flagged")
    lines += _cost_lines(record.goal, choice) if isinstance(record.goal, CostGoal) else _miss_lines(record)
    alarms = measured.supported_flagged
    share = "unknown, there are no" if alarms is None else f"{alarms:.4f} of the"
    lines.append(f"flagged    {share} supported answers")
    for line in lines:
        out.print(line)
    if choice.compared:
        out.print(_table(record, choice.compared))


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
