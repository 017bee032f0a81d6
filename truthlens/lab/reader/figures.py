"""Measure a reader on twins: how often the wrong side scores higher, by kind and wording."""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.lab.data.dataset import Example
from truthlens.lab.evaluate.metrics import auroc
from truthlens.lab.evaluate.ranking import pairwise_ranking, twin_ranking


def twin_figures(rows: Sequence[Example], scores: Sequence[float]) -> dict[str, float | int | None]:
    """Return twin and pairwise ranking, AUROC, the share of errors found at 5 % false alarms, and twins by kind and style."""
    labels = [row.label for row in rows]
    figures: dict[str, float | int | None] = {
        "rows": len(rows),
        "twins": twin_ranking(rows, scores),
        "pairwise": pairwise_ranking(rows, scores),
        "auroc": auroc(labels, list(scores)),
        "found_at_5": found_at(labels, scores, 0.05),
    }
    for style in sorted({row.style for row in rows}):
        figures[f"style {style}"] = _ranking_of([row.style == style for row in rows], rows, scores)
    for kind in sorted({row.kind for row in rows}):
        figures[f"kind {kind}"] = _ranking_of([row.kind == kind for row in rows], rows, scores)
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()}


def found_at(labels: Sequence[int], scores: Sequence[float], false_alarms: float) -> float | None:
    """Return the share of wrong answers above the threshold that ``false_alarms`` (0..1) of the right ones exceed."""
    right = sorted((score for label, score in zip(labels, scores, strict=True) if not label), reverse=True)
    wrong = [score for label, score in zip(labels, scores, strict=True) if label]
    if not right or not wrong:
        return None
    threshold = right[min(int(false_alarms * len(right)), len(right) - 1)]
    return sum(score > threshold for score in wrong) / len(wrong)


def _ranking_of(keep: Sequence[bool], rows: Sequence[Example], scores: Sequence[float]) -> float | None:
    kept = [place for place, kept in enumerate(keep) if kept]
    return twin_ranking([rows[place] for place in kept], [scores[place] for place in kept])
