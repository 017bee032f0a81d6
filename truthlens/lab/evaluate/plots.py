"""The plots of ``truthlens eval --report``, drawn with matplotlib, which is imported only when one is drawn.

One quiet style for all: few colours that print in grey, values on a common 0..1 axis, the chance or base rate
as a dashed line. ``docs/evaluation.md`` says how to read each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from truthlens.core.errors import TruthLensError
from truthlens.core.records.enums import Aggregation
from truthlens.lab.evaluate.curves import reliability_bins, threshold_curve
from truthlens.lab.evaluate.evaluation import Evaluation, Tallied
from truthlens.lab.evaluate.metrics import ece
from truthlens.lab.evaluate.reliability import LENGTHS, SHORT_ANSWER_TOKENS, Length, Sample, samples
from truthlens.lab.evaluate.summary import risk_coverage_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WRONG, _RIGHT, _THIRD, _QUIET = "#b2182b", "#2166ac", "#1b7837", "#767676"
_CYCLE = ("#2166ac", "#b2182b", "#1b7837", "#e08214", "#762a83", "#35978f", "#c51b7d", "#4d4d4d")
_OF_LENGTH: dict[Length, tuple[str, str]] = {
    "all": ("#333333", "o"),
    "short": (_RIGHT, "s"),
    "long": (_WRONG, "^"),
}
_DPI = 110
_PANEL = 4.4
_MOST_LINES = len(_CYCLE)
_SHARE_BARS = 20
# A bin of fewer scores has a rate that means nothing; as a point in a line it only distracts.
_LEAST_IN_BIN = 5


class PlotError(TruthLensError):
    """The plots cannot be drawn here; the message says what to install."""


def require_plots() -> None:
    """Raise an error if plots cannot be drawn.

    Raises:
        PlotError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise PlotError(
            "plots need matplotlib, which is not installed; install it with: pip install 'truthlens[eval]'"
        )


def draw(found: Evaluation, folder: Path) -> list[tuple[str, str]]:
    """Write the plots of ``found`` into ``folder`` as PNG files.

    Returns:
        File name and caption of each, in the order in which a reader wants them. A plot whose rows have no
        labels for it is left out.

    Raises:
        PlotError: matplotlib is not installed.
    """
    require_plots()
    written = []
    for name, caption, figure in _figures(found):
        _save(figure, folder / name)
        written.append((name, caption))
    return written


def _figures(found: Evaluation) -> Iterator[tuple[str, str, Figure]]:
    base_rate: float | None = found.settings["base_rate"]
    threshold: float = found.settings["threshold"]
    pooled = found.pooled
    labels = pooled.tally.labels
    both = bool(labels.any()) and not bool(labels.all())
    if both:
        yield "roc.png", "ROC", _roc(found, base_rate)
        yield "precision_recall.png", "Precision and recall, with the base rate", _pr(found, base_rate)
    if len(labels):
        yield "scores.png", "Response scores by label", _scores(pooled, threshold)
    if both:
        yield "thresholds.png", "F1, recall and false-positive rate by threshold", _thresholds(pooled, threshold, base_rate)  # fmt: skip
    if len(labels):
        yield "risk_coverage.png", "Risk and coverage", _risk(found, threshold, base_rate)
    drawn = [sample for sample in samples(pooled.tally, base_rate=base_rate) if len(sample.scores)]
    if drawn:
        default = Aggregation(found.settings.get("aggregation", Aggregation.SPAN_NOISY_OR))
        yield "reliability.png", "Reliability of token, span and response scores", _levels(drawn, default)
        yield "reliability_aggregations.png", "Reliability under each aggregation", _aggregations(drawn)


def _roc(found: Evaluation, base_rate: float | None) -> Figure:
    figure, (axes,) = _panels(1)
    for colour, one in _lines(found):
        curve = threshold_curve(one.tally.labels, one.tally.scores, weights=one.tally.weights(base_rate))
        x, y = np.append(0.0, curve.false_positive_rate), np.append(0.0, curve.recall)
        axes.plot(x, y, color=colour, label=_legend(one, "AUROC", one.figures["example"]["auroc"]))
    axes.plot([0, 1], [0, 1], color=_QUIET, linestyle="--", linewidth=1, label="chance")
    _finish(axes, "share of supported answers flagged", "share of unsupported answers flagged")
    return figure


def _pr(found: Evaluation, base_rate: float | None) -> Figure:
    figure, (axes,) = _panels(1)
    for colour, one in _lines(found):
        curve = threshold_curve(one.tally.labels, one.tally.scores, weights=one.tally.weights(base_rate))
        figures = one.figures["example"]
        axes.step(
            np.append(0.0, curve.recall), np.append(curve.precision[0], curve.precision), where="pre",
            color=colour, label=_legend(one, "AUPRC", figures["auprc"]),
        )  # fmt: skip
        axes.axhline(one.figures["base_rate"], color=colour, linestyle="--", linewidth=1)
    axes.plot([], [], color=_QUIET, linestyle="--", linewidth=1, label="base rate")
    _finish(axes, "recall", "precision")
    return figure


def _scores(pooled: Tallied, threshold: float) -> Figure:
    figure, (axes,) = _panels(1)
    tally = pooled.tally
    edges = np.linspace(0, 1, _SHARE_BARS + 1)
    for wanted, colour, name in ((False, _RIGHT, "supported"), (True, _WRONG, "unsupported")):
        scores = tally.scores[tally.labels == wanted]
        if not len(scores):
            continue
        share = np.histogram(scores, edges)[0] / len(scores)
        axes.stairs(share, edges, color=colour, fill=True, alpha=0.25)
        axes.stairs(share, edges, color=colour, linewidth=1.6, label=f"{name} (n = {len(scores)})")
    axes.axvline(threshold, color=_QUIET, linestyle="--", linewidth=1, label=f"threshold {threshold:g}")
    _finish(axes, "response score", "share of the answers with that label", top=None)
    return figure


def _thresholds(pooled: Tallied, threshold: float, base_rate: float | None) -> Figure:
    figure, (axes,) = _panels(1)
    tally = pooled.tally
    curve = threshold_curve(tally.labels, tally.scores, weights=tally.weights(base_rate))
    for values, colour, style, name in (
        (curve.f1, "#333333", "-", "F1"),
        (curve.precision, _THIRD, "-.", "precision"),
        (curve.recall, _WRONG, "-", "recall"),
        (curve.false_positive_rate, _RIGHT, "-", "false-positive rate"),
    ):
        axes.step(curve.threshold, values, where="post", color=colour, linestyle=style, label=name)
    axes.axvline(threshold, color=_QUIET, linestyle="--", linewidth=1, label=f"threshold {threshold:g}")
    _finish(axes, "threshold", "")
    return figure


def _risk(found: Evaluation, threshold: float, base_rate: float | None) -> Figure:
    figure, (axes,) = _panels(1)
    highest = 0.0
    for colour, one in _lines(found, both=False):
        curve = risk_coverage_of(one.tally, threshold=threshold, weights=one.tally.weights(base_rate))
        if curve is None:
            continue
        axes.plot(curve.coverage, curve.risk, color=colour, label=_legend(one, "AURC", curve.aurc))
        highest = max(highest, float(curve.risk[len(curve.risk) // 20 :].max()))
    _finish(axes, "share of answers kept, the surest first", "wrong decisions among them", top=None)
    axes.set_ylim(0, min(1.0, max(0.05, 1.25 * highest)))
    return figure


def _levels(drawn: Sequence[Sample], default: Aggregation) -> Figure:
    figure, panels = _panels(3)
    for axes, level in zip(panels, ("token", "span", "response"), strict=True):
        wanted = default if level == "response" else None
        _reliability(axes, [s for s in drawn if s.level == level and s.aggregation == wanted])
        axes.set_title(level if wanted is None else f"{level} ({wanted})")
    return figure


def _aggregations(drawn: Sequence[Sample]) -> Figure:
    figure, panels = _panels(len(Aggregation))
    for axes, aggregation in zip(panels, Aggregation, strict=True):
        _reliability(axes, [sample for sample in drawn if sample.aggregation == aggregation])
        axes.set_title(f"response ({aggregation})")
    return figure


def _reliability(axes: Axes, drawn: Sequence[Sample]) -> None:
    axes.plot([0, 1], [0, 1], color=_QUIET, linestyle="--", linewidth=1)
    by_length = {sample.length: sample for sample in drawn}
    for length in LENGTHS:
        sample = by_length.get(length)
        if sample is None:
            continue
        colour, marker = _OF_LENGTH[length]
        every = reliability_bins(sample.labels, sample.scores, weights=sample.weights)
        bins = [one for one in every if one.rows >= _LEAST_IN_BIN]
        scores, rates = [one.score for one in bins], np.array([one.rate for one in bins])
        gap = ece(sample.labels, sample.scores, weights=sample.weights)
        label = f"{_named(length)}: n = {len(sample.scores)}, ECE {gap:.3f}"
        if length == "all":
            # Weighted rates can lie outside an interval that is made for unweighted ones only by rounding.
            below = np.maximum(0.0, rates - [one.low for one in bins])
            above = np.maximum(0.0, np.array([one.high for one in bins]) - rates)
            axes.errorbar(scores, rates, yerr=np.stack([below, above]), color=colour, marker=marker, markersize=4,
                          capsize=2, elinewidth=0.8, linewidth=1.6, label=label)  # fmt: skip
            axes.bar(
                [one.score for one in bins], [0.18 * one.share for one in bins], width=0.03, color=_QUIET, alpha=0.45,
                label="where the scores lie (bars, not to scale)",
            )  # fmt: skip
        else:
            axes.plot(scores, rates, color=colour, marker=marker, markersize=4, linewidth=1, label=label)
    _finish(axes, "mean score of the bin", "share unsupported")


def _named(length: Length) -> str:
    match length:
        case "all":
            return "all"
        case "short":
            return f"answers ≤ {SHORT_ANSWER_TOKENS} tokens"
        case "long":
            return f"answers > {SHORT_ANSWER_TOKENS} tokens"


def _lines(found: Evaluation, *, both: bool = True) -> Iterator[tuple[str, Tallied]]:
    """Yield colour and rows of each file, if few enough for a plot, and always of all together.

    With ``both``, files whose answers have one label only are left out.
    """
    if len(found.files) > 1:
        yield "#000000", found.pooled
    if len(found.files) <= _MOST_LINES:
        for colour, one in zip(_CYCLE, found.files, strict=False):
            if len(one.tally) and not (both and one.tally.labels.all() == one.tally.labels.any()):
                yield colour, one


def _legend(one: Tallied, figure: str, value: float | None) -> str:
    # A leading underscore would hide the line from the legend, and $ would start a formula.
    name = Path(one.name).name.lstrip("_").replace("$", r"\$")
    return f"{name}: n = {len(one.tally)}" + (f", {figure} {value:.3f}" if value is not None else "")


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(
        figsize=(_PANEL * 1.25 if count == 1 else _PANEL * count, _PANEL), layout="constrained"
    )
    axes = figure.subplots(1, count, squeeze=False)
    return figure, list(axes[0])


def _finish(axes: Axes, x: str, y: str, *, top: float | None = 1.02) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(0, top)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    # Below the axes, where it hides no curve.
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), fontsize=8, frameon=False)


def _save(figure: Figure, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    write: Callable[..., None] = FigureCanvasAgg(figure).print_png
    figure.set_dpi(_DPI)
    write(str(path))
