"""The accuracy-cost frontier (white paper 3.4.1): unsupported answers that are left, against what mending costs."""

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

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5.6), sharey=True, layout="constrained")
    for name, result in found.items():
        _point(left, name, result[weighting], across="tokens", scale=1.0)
        _point(right, name, result[weighting], across="lost_characters", scale=100.0)
    left.set_xscale("symlog", linthresh=100.0)
    left.set_xlim(left=-20)
    left.set_xlabel("extra tokens per exchange, prompts and completions (log above 100)")
    right.set_xlabel("supported text of the first answer that is gone, %")
    left.set_ylabel("answers with an unsupported span after mending, %, by human labels")
    before = next(iter(found.values()))[weighting]["wrong_before"]["value"]
    for axes in (left, right):
        axes.axhline(100.0 * before, color=_QUIET, linestyle="--", linewidth=1.0)
        axes.grid(visible=True, color="#e6e6e6", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
    _frontier(left, found, weighting)
    left.annotate(
        "first answers",
        (0.0, 100.0 * before),
        textcoords="offset points",
        xytext=(4, 4),
        color=_QUIET,
        fontsize=8,
    )
    rows = next(iter(found.values()))["rows"]
    figure.suptitle(
        f"Accuracy and cost on {rows} real answers, scripted editor and judge; bars: 95 % over prompts",
        fontsize=11,
    )
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def _point(axes: Axes, name: str, figures: Mapping[str, Any], *, across: str, scale: float) -> None:
    mode = next(mode for mode in _COLOURS if name.startswith(mode))
    shape = next((mark for word, mark in _SHAPES.items() if word in name), "o")
    x, y = figures[across], figures["wrong_after"]
    axes.errorbar(
        scale * x["value"],
        100.0 * y["value"],
        xerr=_bar(x, scale),
        yerr=_bar(y, 100.0),
        fmt=shape,
        color=_COLOURS[mode],
        # Hollow: the verification models are asked only about flagged answers.
        markerfacecolor="white" if "flagged" in name else _COLOURS[mode],
        markersize=6.5,
        elinewidth=0.8,
        alpha=0.9,
    )
    axes.annotate(
        name.removeprefix("premium "),
        (scale * x["value"], 100.0 * y["value"]),
        textcoords="offset points",
        xytext=(6, 3),
        fontsize=7,
        color=_COLOURS[mode],
    )


def _bar(figure: Mapping[str, Any], scale: float) -> list[list[float]]:
    low, high = figure["interval"]
    value = figure["value"]
    return [[scale * max(0.0, value - low)], [scale * max(0.0, high - value)]]


def _frontier(axes: Axes, found: Mapping[str, Mapping[str, Any]], weighting: str) -> None:
    """Join the points that none beats in both figures."""
    points = sorted(
        (result[weighting]["tokens"]["value"], 100.0 * result[weighting]["wrong_after"]["value"])
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
