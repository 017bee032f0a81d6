"""Choose the threshold that flags a given share of unlabelled answers: ``truthlens calibrate --flag-share``.

Nothing here knows which of them are wrong. Whoever knows about what share is, and that scores rank wrong answers
above right ones, gets a threshold of about the right height without labels.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console

from truthlens.core.intervals import wilson
from truthlens.lab.calibrate.conformal import UnattainableError
from truthlens.lab.calibrate.threshold import Scorer, verdicts_of
from truthlens.lab.data.dataset import DataError
from truthlens.lab.data.traffic import TrafficAnswer

LEAST_ANSWERS = 20
"""Checked answers below which no share is measured."""
LEAST_EACH_SIDE = 5
"""Checked answers that the share must put on either side of the threshold; fewer say little of the next ones."""
MOST_EXCESS = 0.1
"""How much of the share asked for may be flagged beyond it, where answers tie."""
_DIGITS = 4


@dataclass(frozen=True, slots=True, eq=False)
class TrafficScores:
    """Scores of the checked answers, shape (checked,), 0..1, and the others by their reason."""

    scores: NDArray[np.float64]
    unscored: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ShareChoice:
    """A threshold, and the share of the checked answers that it flags.

    ``low`` and ``high`` bound the share of further traffic of the same kind at 95 % (Wilson's interval).
    """

    threshold: float
    flagged: int
    checked: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """Share of the checked answers that are flagged, 0..1."""
        return self.flagged / self.checked


def score_traffic(
    answers: Sequence[TrafficAnswer],
    scorer: Scorer,
    *,
    console: Console | None = None,
    title: str = "scoring",
) -> TrafficScores:
    """Score ``answers`` once; see ``threshold.verdicts_of``."""
    verdicts = list(verdicts_of(answers, scorer, console=console, title=title))
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    unscored = Counter(str(verdict.reason) for verdict in verdicts if verdict.score is None)
    return TrafficScores(np.array(scores, dtype=np.float64), dict(unscored))


def threshold_for_share(scored: TrafficScores, share: float) -> ShareChoice:
    """Return the threshold whose flagged share of the checked answers is nearest to ``share``.

    Tied answers are flagged together or not at all; more than a tenth of ``share`` beyond it is never flagged.

    Raises:
        DataError: no answer could be checked, or too few were.
        UnattainableError: so many answers tie at the highest score that only more could be flagged.
        ValueError: ``share`` is not inside 0..1.
    """
    if not 0.0 < share < 1.0:
        raise ValueError(f"share is {share}; expected one between 0 and 1")
    count = len(scored.scores)
    if not count:
        reasons = ", ".join(f"{reason} {number}" for reason, number in sorted(scored.unscored.items()))
        raise DataError(
            f"no answer could be checked ({reasons or 'the file is empty'}); give answers with evidence"
        )
    needed = max(LEAST_ANSWERS, math.ceil(LEAST_EACH_SIDE / min(share, 1.0 - share) - 1e-9))
    if count < needed:
        raise DataError(
            f"{count} answers were checked, and a share of {share:g} needs at least {needed}; give more traffic"
        )
    distinct, sizes = np.unique(scored.scores, return_counts=True)
    flagged = np.cumsum(sizes[::-1])[::-1]
    allowed = flagged <= share * (1.0 + MOST_EXCESS) * count + 1e-9
    if not allowed.any():
        least = float(flagged[-1]) / count
        raise UnattainableError(
            f"{least:.1%} of the checked answers share the highest score, {distinct[-1]:.4f}, so a threshold flags that"
            f" many or none; ask for a share of {math.ceil(least * 1000) / 1000:g} or more"
        )
    places = np.flatnonzero(allowed)
    place = int(places[np.argmin(np.abs(flagged[places] / count - share))])
    low, high = wilson(int(flagged[place]) / count, count)
    return ShareChoice(_short(distinct, place), int(flagged[place]), count, low, high)


def shares_at(scores: ArrayLike, thresholds: Mapping[str, float]) -> dict[str, float]:
    """Return the share of ``scores`` at or above each threshold, by its name."""
    values = np.asarray(scores, dtype=np.float64)
    return {name: float((values >= limit).mean()) for name, limit in thresholds.items()}


def _short(distinct: NDArray[np.float64], place: int) -> float:
    """Return the score at ``place``, with four digits where that flags the same answers."""
    exact = float(distinct[place])
    short = math.floor(exact * 10**_DIGITS) / 10**_DIGITS
    below = float(distinct[place - 1]) if place else -1.0
    return short if below < short else exact
