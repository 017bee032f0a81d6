"""Lay out the drawings of the figures; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from truthlens.console.reviews.schemas import PeriodFigures
from truthlens.review.figures.estimates import Estimate

WIDTH, HEIGHT = 720, 150


@dataclass(frozen=True, slots=True)
class Point:
    """An estimate at ``x``; ``y``, ``low`` and ``high`` go down from the top. ``label`` is ``""`` where there is no room for one."""

    x: float
    y: float
    low: float
    high: float
    label: str


@dataclass(frozen=True, slots=True)
class Bar:
    """An estimate on a line that is 100 wide: the dot at ``x`` between ``low`` and ``high``."""

    x: float
    low: float
    high: float


def points_of(periods: Sequence[PeriodFigures]) -> list[Point]:
    """Return the precision of each period that has one, in a drawing of ``WIDTH`` by ``HEIGHT``."""
    step = WIDTH / max(1, len(periods))
    every = -(-len(periods) // 8)
    points = []
    for place, period in enumerate(periods):
        found = period.figures.precision
        if found is None:
            continue
        y, low, high = (round(HEIGHT * (1 - share), 1) for share in (found.share, found.low, found.high))
        # The last one has a label: how it is now is what people look for.
        label = period.start[5:] if (len(periods) - 1 - place) % every == 0 else ""
        points.append(Point(round(step * (place + 0.5), 1), y, low, high, label))
    return points


def bar_of(found: Estimate) -> Bar:
    """Return the drawing of one estimate."""
    return Bar(*(round(100 * share, 1) for share in (found.share, found.low, found.high)))
