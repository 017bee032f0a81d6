"""Choose a threshold for a goal from labelled answers: the function behind ``truthlens calibrate``.

The detector is an argument; nothing here loads one, reads a policy or writes a file. The numerics are in
``conformal``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from truthlens.core.errors import DetectorError
from truthlens.core.records.verdict import Verdict
from truthlens.core.thresholds import EVEN_ODDS, least_cost_threshold, threshold_from_cost
from truthlens.lab.calibrate.conformal import (
    UNSCORED,
    OperatingPoint,
    control_miss_rate,
    flagged_share,
    least_cost,
    operating_points,
)
from truthlens.lab.data.dataset import Example
from truthlens.lab.data.traffic import TrafficAnswer
from truthlens.lab.evaluate.plan_scorer import failure_of
from truthlens.policy.plans.threshold_record import CostGoal, Measured, MissRateGoal, RowCounts

Scorer = Callable[[str, Sequence[str], str], Verdict]
"""From query, passages and answer to the verdict."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelledScores:
    """Scores of labelled answers.

    ``labels`` (True: unsupported) and ``scores`` (0..1, or ``UNSCORED``) have shape (answers,); ``groups``
    are the source texts. ``unscored`` counts the answers without a score by their reason.
    """

    labels: NDArray[np.bool_]
    scores: NDArray[np.float64]
    groups: tuple[str, ...]
    unscored: Mapping[str, int]

    @property
    def base_rate(self) -> float:
        """Share of unsupported answers, 0..1; 0.0 for none at all."""
        return float(self.labels.mean()) if self.labels.size else 0.0


@dataclass(frozen=True, slots=True)
class ThresholdChoice:
    """The threshold for a goal, and what it and others do to the answers.

    ``compared`` has the chosen and other thresholds by name; it is empty where the answers are all of one
    kind. Its costs are for the goal's ratio and prior; for a miss rate both kinds of mistakes count alike.
    ``unscored`` counts the answers without a score by their reason.
    """

    threshold: float
    goal: MissRateGoal | CostGoal
    measured: Measured
    counts: RowCounts
    compared: Mapping[str, OperatingPoint]
    unscored: Mapping[str, int]


def verdicts_of(
    answers: Sequence[Example | TrafficAnswer],
    scorer: Scorer,
    *,
    console: Console | None = None,
    title: str = "scoring",
) -> Iterator[Verdict]:
    """Yield the verdict on each answer, one after another, with a progress bar on ``console``.

    Raises:
        DetectorError: the detector failed on one; a threshold from the rest would not be the plan's.
    """
    bar = track(answers, description=title, console=console or Console(quiet=True))
    for row, answer in enumerate(bar, start=1):
        verdict = scorer(answer.query, answer.context, answer.response)
        if (failure := failure_of(verdict)) is not None:
            raise DetectorError(
                f"the detector failed on row {row} ({failure}); fix the model or remove that row"
            )
        yield verdict


def score_labelled(
    examples: Sequence[Example], scorer: Scorer, *, console: Console | None = None, title: str = "scoring"
) -> LabelledScores:
    """Score ``examples`` once; see ``verdicts_of``."""
    verdicts = list(verdicts_of(examples, scorer, console=console, title=title))
    return LabelledScores(
        labels=np.array([example.label == 1 for example in examples], dtype=bool),
        scores=np.array([UNSCORED if v.score is None else v.score for v in verdicts], dtype=np.float64),
        groups=tuple(example.group for example in examples),
        unscored=dict(Counter(str(v.reason) for v in verdicts if v.score is None)),
    )


def choose(
    scored: LabelledScores,
    goal: MissRateGoal | CostGoal,
    *,
    expected_rate: float = EVEN_ODDS,
    others: Mapping[str, float] | None = None,
) -> ThresholdChoice:
    """Return the threshold for ``goal``.

    For a miss rate it is the largest one that ``conformal.control_miss_rate`` allows; for a cost ratio the
    one of least expected cost on these answers (``"least cost"`` in ``compared``), together with what the same
    costs mean in a policy (``"proposition 1"``) and for calibrated scores (``"calibrated scores"``). The
    first is measured; the others read the score as a probability and know nothing of the model.

    Args:
        scored: the labelled answers.
        goal: what the threshold is for.
        expected_rate: the base rate that the scores are probabilities at.
        others: further thresholds to compare, by name.

    Raises:
        UnattainableError: the answers do not allow such a threshold; the message says what would.
    """
    gold = scored.labels
    unsupported = [group for group, label in zip(scored.groups, gold, strict=True) if label]
    counts = RowCounts(
        unsupported=int(gold.sum()),
        unsupported_texts=len(set(unsupported)),
        supported=int((~gold).sum()),
        unscored=sum(scored.unscored.values()),
    )
    if isinstance(goal, MissRateGoal):
        found = control_miss_rate(scored.scores[gold], unsupported, max_miss_rate=goal.max_miss_rate)
        threshold = found.threshold
        alarms = flagged_share(scored.scores[~gold], threshold=threshold)
        measured = Measured(miss_rate=found.miss_rate, miss_bound=found.bound, supported_flagged=alarms)
        compared = _compare(scored, {"chosen": threshold, **(others or {})}, cost_ratio=1.0, prior=0.5)
    else:
        best = least_cost(gold, scored.scores, cost_ratio=goal.cost_ratio, prior=goal.prior)
        threshold = best.threshold
        measured = Measured(miss_rate=best.miss_rate, supported_flagged=best.false_alarm_rate)
        costs = {"cost_ratio": goal.cost_ratio, "prior": goal.prior}
        all_others = {
            "least cost": threshold,
            "proposition 1": threshold_from_cost(**costs),
            "calibrated scores": least_cost_threshold(**costs, rate=expected_rate),
            "flag everything": 0.0,
            **(others or {}),
        }
        compared = _compare(scored, all_others, cost_ratio=goal.cost_ratio, prior=goal.prior)
    return ThresholdChoice(threshold, goal, measured, counts, compared, scored.unscored)


def _compare(
    scored: LabelledScores, thresholds: Mapping[str, float], *, cost_ratio: float, prior: float
) -> dict[str, OperatingPoint]:
    if scored.labels.all() or not scored.labels.any():
        return {}
    points = operating_points(
        scored.labels, scored.scores, list(thresholds.values()), cost_ratio=cost_ratio, prior=prior
    )
    return dict(zip(thresholds, points, strict=True))
