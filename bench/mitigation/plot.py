"""Plot the accuracy-cost frontier (white paper 3.4.1): unsupported answers left, against cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"lightweight": "#4d4d4d", "standard": "#2166ac", "premium": "#b2182b"}
_SHAPES = {"judge": "o", "segment_vote": "s", "weighted_fusion": "^", "replacement": "D", "debate": "P"}
_QUIET = "#767676"


def draw(found: Mapping[str, Mapping[str, Any]], path: Path, *, weighting: str) -> None:
    """Write the plot: left over the tokens of an exchange, right over the supported text that was lost.

    Args:
        found: figures by the configuration's name.
        path: PNG file.
        weighting: ``raw`` or ``weighted``.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right, legend) = plt.subplots(
        1, 3, figsize=(14, 5.6), layout="constrained", width_ratios=(1.0, 1.0, 0.55)
    )
    right.sharey(left)
    for number, (name, result) in enumerate(found.items(), start=1):
        _point(left, number, name, result[weighting], across="tokens", scale=0.001)
        _point(right, number, name, result[weighting], across="lost_characters", scale=100.0)
        legend.annotate(
            f"{number}", (0.0, 1.0 - 0.045 * number), color=_colour(name), fontsize=8.5, ha="right"
        )
        legend.annotate(name, (0.06, 1.0 - 0.045 * number), fontsize=8.5)
    legend.set_axis_off()
    legend.annotate("hollow: others asked only about flagged answers", (-0.05, 0.0), color=_QUIET, fontsize=8)
    left.set_xlabel("extra tokens per exchange, prompts and completions, thousands")
    right.set_xlabel("supported text of the first answer that is gone, %")
    left.set_ylabel("answers with an unsupported span, %, by human labels")
    before = next(iter(found.values()))[weighting]["wrong_before"]["value"]
    for axes in (left, right):
        axes.axhline(100.0 * before, color=_QUIET, linestyle="--", linewidth=1.0)
        axes.grid(visible=True, color="#e6e6e6", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
        axes.set_ylim(bottom=0.0)
    right.annotate(
        "first answers", (1.0, 100.0 * before), xycoords=("axes fraction", "data"), textcoords="offset points",
        xytext=(0, 4), color=_QUIET, fontsize=8, ha="right",
    )  # fmt: skip
    _frontier(left, found, weighting)
    rows = next(iter(found.values()))["rows"]
    figure.suptitle(
        f"Accuracy and cost on {rows} real answers, scripted editor and judge; bars: 95 % over prompts",
        fontsize=11,
    )
    figure.savefig(path, dpi=100, metadata={"Software": None})
    plt.close(figure)


def _colour(name: str) -> str:
    return next(colour for mode, colour in _COLOURS.items() if name.startswith(mode))


def _point(
    axes: Axes, number: int, name: str, figures: Mapping[str, Any], *, across: str, scale: float
) -> None:
    colour = _colour(name)
    x, y = figures[across], figures["wrong_after"]
    place = scale * x["value"], 100.0 * y["value"]
    axes.errorbar(
        *place, xerr=_bar(x, scale), yerr=_bar(y, 100.0), fmt="none", ecolor=colour, elinewidth=0.7, alpha=0.3
    )
    axes.plot(
        *place,
        marker=next((mark for word, mark in _SHAPES.items() if word in name), "o"),
        color=colour,
        markerfacecolor="white" if "flagged" in name else colour,
        markersize=6.0,
    )
    axes.annotate(f"{number}", place, textcoords="offset points", xytext=(5, 4), fontsize=8, color=colour)


def _bar(figure: Mapping[str, Any], scale: float) -> list[list[float]]:
    low, high = figure["interval"]
    value = figure["value"]
    return [[scale * max(0.0, value - low)], [scale * max(0.0, high - value)]]


def _frontier(axes: Axes, found: Mapping[str, Mapping[str, Any]], weighting: str) -> None:
    """Join the points that none beats in both figures."""
    points = sorted(
        (0.001 * result[weighting]["tokens"]["value"], 100.0 * result[weighting]["wrong_after"]["value"])
        for result in found.values()
    )
    best: list[tuple[float, float]] = []
    for x, y in points:
        if not best or y < best[-1][1]:
            best.append((x, y))
    axes.plot(
        [x for x, _ in best],
        [y for _, y in best],
        color=_QUIET,
        linewidth=1.0,
        drawstyle="steps-post",
        zorder=0,
    )
