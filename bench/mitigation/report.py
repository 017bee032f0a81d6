"""Figures of the runs by human labels, with 95 % intervals over prompts, as JSON and as a markdown table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthlens.lab.evaluate.metrics import base_rate_weights, resamples

Row = Mapping[str, Any]
Floats = NDArray[np.float64]
_ROUNDS = 1000
_BASE_RATE = 0.18
"""Natural share of unsupported answers: that of the benchmark's official test set."""


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return all figures of one configuration, raw and weighted to the natural unsupported rate."""
    columns = _columns(rows)
    wrong = columns["wrong_before"] > 0
    groups = [row["group"] for row in rows]
    result: dict[str, Any] = {"rows": len(rows), "prompts": len(set(groups))}
    for name, weights in (
        ("raw", np.ones(len(rows))),
        ("weighted", base_rate_weights(wrong, base_rate=_BASE_RATE)),
    ):
        drawn = [weights * drawn for drawn in resamples(groups, rounds=_ROUNDS)]
        result[name] = {
            figure: {"value": formula(columns, weights), "interval": _interval(columns, formula, drawn)}
            for figure, formula in FIGURES.items()
        }
    result["stops"] = _counts(row["stop"] for row in rows if row["stop"])
    result["attempts"] = _counts(attempt for row in rows for attempt in row["attempts"])
    result["notes"] = _counts(note for row in rows for note in row["notes"])
    return result


def table(found: Mapping[str, Mapping[str, Any]], *, weighting: str) -> str:
    """Return the main figures, one line a configuration; intervals where they matter most."""
    lines = ["| " + " | ".join(("configuration", *(title for title, _, _ in _SHOWN))) + " |"]
    lines.append("| --- |" + " ---: |" * len(_SHOWN))
    for name, result in found.items():
        cells = []
        for _, figure, form in _SHOWN:
            one = result[weighting][figure]
            cells.append("–" if one["value"] is None else _cell(one, form))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _ratio(upper: str, lower: str) -> Callable[[Mapping[str, Floats], Floats], float | None]:
    """Return the weighted sum of one column over that of another; ``None`` where that is 0."""

    def formula(columns: Mapping[str, Floats], weights: Floats) -> float | None:
        below = float(weights @ columns[lower])
        return float(weights @ columns[upper]) / below if below > 0.0 else None

    return formula


def _reduction(before: str, after: str) -> Callable[[Mapping[str, Floats], Floats], float | None]:
    def formula(columns: Mapping[str, Floats], weights: Floats) -> float | None:
        whole = float(weights @ columns[before])
        return 1.0 - float(weights @ columns[after]) / whole if whole > 0.0 else None

    return formula


FIGURES = {
    "wrong_before": _ratio("wrong_before", "one"),
    "wrong_after": _ratio("wrong_after", "one"),
    "wrong_reduction": _reduction("wrong_before", "wrong_after"),
    "unsupported_before": _ratio("unsupported_before", "one"),
    "unsupported_after": _ratio("unsupported_after", "one"),
    "unsupported_reduction": _reduction("unsupported_before", "unsupported_after"),
    "mended_of_flagged": _ratio("mended_flagged", "flagged_wrong"),
    "invented_after": _ratio("invented_after", "one"),
    "lost_characters": _ratio("lost_characters", "of_characters"),
    "lost_sentences": _ratio("lost_sentences", "of_sentences"),
    "lost_content": _ratio("lost_content", "of_content"),
    "unknown": _ratio("unknown", "characters_after"),
    "flagged": _ratio("flagged", "one"),
    "flagged_of_wrong": _ratio("flagged_wrong", "wrong_before"),
    "flagged_after": _ratio("flagged_after", "one"),
    "changed": _ratio("changed", "one"),
    "worse": _ratio("worse", "one"),
    "better": _ratio("better", "one"),
    "made_wrong": _ratio("made_wrong", "one"),
    "calls": _ratio("calls", "one"),
    "tokens": _ratio("tokens", "one"),
    "tokens_of_first": _ratio("tokens", "first_tokens"),
    "latency_s": _ratio("latency_s", "one"),
    "detection_s": _ratio("detection_s", "one"),
}
"""Each from columns and weights; ``_before`` and ``_after`` are means per answer, times in seconds."""

_SHOWN = (
    ("wrong after", "wrong_after", "share±"),
    ("fewer wrong", "wrong_reduction", "share±"),
    ("of flagged", "mended_of_flagged", "share"),
    ("unsupported chars", "unsupported_after", "number"),
    ("fewer chars", "unsupported_reduction", "share±"),
    ("supported text lost", "lost_characters", "share±"),
    ("its words lost", "lost_content", "share"),
    ("changed", "changed", "share"),
    ("made worse", "worse", "share"),
    ("calls", "calls", "number"),
    ("tokens", "tokens", "number"),
    ("× first call", "tokens_of_first", "number"),
    ("latency s", "latency_s", "number"),
    ("detection s", "detection_s", "number"),
)


def _columns(rows: Sequence[Row]) -> dict[str, Floats]:
    def column(read: Callable[[Row], float]) -> Floats:
        return np.array([read(row) for row in rows], dtype=np.float64)

    return {
        "one": np.ones(len(rows)),
        "wrong_before": column(lambda row: row["before"]["wrong"]),
        "wrong_after": column(lambda row: row["after"]["wrong"]),
        "made_wrong": column(lambda row: row["after"]["wrong"] and not row["before"]["wrong"]),
        "unsupported_before": column(lambda row: row["before"]["unsupported"]),
        "unsupported_after": column(lambda row: row["after"]["unsupported"]),
        "invented_after": column(lambda row: row["after"]["invented"]),
        "characters_after": column(lambda row: row["after"]["characters"]),
        "unknown": column(lambda row: row["after"]["unknown"]),
        "lost_characters": column(lambda row: row["loss"]["characters"]),
        "of_characters": column(lambda row: row["loss"]["of_characters"]),
        "lost_sentences": column(lambda row: row["loss"]["sentences"]),
        "of_sentences": column(lambda row: row["loss"]["of_sentences"]),
        "lost_content": column(lambda row: row["loss"]["content"]),
        "of_content": column(lambda row: row["loss"]["of_content"]),
        "flagged": column(lambda row: row["flagged"]),
        "flagged_wrong": column(lambda row: row["flagged"] and row["before"]["wrong"]),
        "mended_flagged": column(
            lambda row: row["flagged"] and row["before"]["wrong"] and not row["after"]["wrong"]
        ),
        "flagged_after": column(lambda row: row["flagged_after"]),
        "changed": column(lambda row: row["changed"]),
        "worse": column(lambda row: row["after"]["unsupported"] > row["before"]["unsupported"]),
        "better": column(lambda row: row["after"]["unsupported"] < row["before"]["unsupported"]),
        "calls": column(lambda row: len(row["calls"])),
        "tokens": column(lambda row: row["prompt_tokens"] + row["completion_tokens"]),
        "first_tokens": column(lambda row: row["first_tokens"]),
        "latency_s": column(lambda row: row["latency_s"]),
        "detection_s": column(lambda row: row["detection_s"]),
    }


def _interval(
    columns: Mapping[str, Floats],
    formula: Callable[[Mapping[str, Floats], Floats], float | None],
    drawn: Sequence[Floats],
) -> tuple[float, float] | None:
    found = [value for weights in drawn if (value := formula(columns, weights)) is not None]
    if not found:
        return None
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)


def _cell(one: Mapping[str, Any], form: str) -> str:
    value = one["value"]
    if form == "number":
        return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    if form == "share":
        return f"{100 * value:.1f} %"
    low, high = one["interval"]
    return f"{100 * value:.1f} % ({100 * low:.0f}–{100 * high:.0f})"


def _counts(names: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items(), key=lambda item: -item[1]))
