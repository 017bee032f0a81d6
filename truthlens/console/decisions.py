"""The page ``/decisions``: every decision's threshold on the scores of the last 24 hours, and what others would flag."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from truthlens.console.pages import Pages
from truthlens.console.reasons import described
from truthlens.core.records.plan import Plan
from truthlens.policy import PolicyHolder
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.score_history import BINS, ScoreFigures

# Of the drawing, in its own units.
WIDTH, HEIGHT = 500, 100
_BAR = WIDTH / BINS
_TENTHS = 10


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the table: what a threshold of ``threshold`` would flag, and the scores up to the next one."""

    threshold: float
    reaching: int
    share: float
    between: int


@dataclass(frozen=True, slots=True)
class ShownDecision:
    """A decision with its drawing; ``under`` and ``over`` are the paths of the bars below its threshold and from it on."""

    plan: Plan
    figures: ScoreFigures
    under: str
    over: str
    line: float
    steps: tuple[Step, ...]
    unchecked: tuple[tuple[str, str, int], ...]
    partial: tuple[tuple[str, str, int], ...]

    @property
    def flagged_share(self) -> float:
        """The share (0..1) of scored answers that were flagged; 0 where there are none."""
        return self.figures.flagged / self.figures.scored if self.figures.scored else 0.0


class DecisionsPage:
    """``GET /decisions``."""

    def __init__(self, pages: Pages, policy: PolicyHolder, signals: Metrics) -> None:
        self._pages, self._policy, self._signals = pages, policy, signals

    async def page(self, request: Request) -> Response:
        """Return the page."""
        policy = self._policy.current
        shown = [
            shown_decision(plan, self._signals.score_history.figures(plan.decision))
            for plan in (*policy.plans, policy.default)
        ]
        return self._pages.page(request, "decisions.html.j2", decisions=shown, width=WIDTH, height=HEIGHT)


def shown_decision(plan: Plan, figures: ScoreFigures) -> ShownDecision:
    """Return what the page shows of a decision."""
    most = max(figures.bins) or 1
    bars = [_bar(place, count, most) for place, count in enumerate(figures.bins)]
    cut = max(0, min(BINS, math.ceil(plan.threshold * BINS - 1e-9)))
    scored = figures.scored
    reaching = [figures.reaching(step / _TENTHS) for step in range(_TENTHS)]
    return ShownDecision(
        plan=plan,
        figures=figures,
        under="".join(bars[:cut]),
        over="".join(bars[cut:]),
        line=round(plan.threshold * WIDTH, 1),
        steps=tuple(
            Step(step / _TENTHS, count, count / scored if scored else 0.0, count - behind)
            for step, (count, behind) in enumerate(zip(reaching, [*reaching[1:], 0], strict=True))
        ),
        unchecked=_by_reason(figures.unchecked),
        partial=_by_reason(figures.partial),
    )


def _bar(place: int, count: int, most: int) -> str:
    if not count:
        return ""
    # Square roots: next to thousands of clean answers the flagged ones would not be seen.
    height = max(1.0, HEIGHT * math.sqrt(count / most))
    return f"M{place * _BAR + 0.5:g} {HEIGHT}v-{height:.1f}h{_BAR - 1:g}v{height:.1f}z"


def _by_reason(counts: Mapping[str, int]) -> tuple[tuple[str, str, int], ...]:
    return tuple((reason, described(reason), count) for reason, count in counts.items())
