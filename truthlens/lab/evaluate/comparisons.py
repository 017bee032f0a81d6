"""Figures that compare answers with each other, detectors with each other, and a model with a blind one.

The keys are those of ``truthlens eval --json``; ``docs/evaluation.md`` says what each means. A figure that the rows
give no grounds for is ``None``, never 0.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthlens.lab.evaluate.metrics import Floats, Ranking, interval, prf_of_flags, resamples, rounded
from truthlens.lab.evaluate.ranking import outranked
from truthlens.lab.evaluate.score_table import Bools, EvaluationTally

Figures = dict[str, Any]
MOST_BLIND = 0.55
"""The blind gate: written data that a blind model ranks better than this is not trained on as it is."""


def comparisons(
    tally: EvaluationTally, *, threshold: float, base_rate: float | None = None, rounds: int = 0
) -> Figures:
    """Return rankings, shares by type and style, AUROC within generators, detectors, and what is gained over blind.

    Args:
        tally: scored answers.
        threshold: response score from which an answer counts as flagged.
        base_rate: weigh the rows so that this share is unsupported, where that changes a figure.
        rounds: resamples of whole groups for the 95 % intervals; 0 for none.
    """
    pairs = _Pairs(tally, tally.scores)
    flagged = tally.scores >= threshold
    return {
        "ranking": {**pairs.figures(), "intervals": pairs.intervals(rounds)},
        "types": _by(tally, tally.kind, flagged, pairs),
        "styles": _by(tally, tally.style, flagged, pairs),
        "within_generators": _within(tally, tally.generator),
        "detectors": _detectors(tally, threshold=threshold, base_rate=base_rate),
        "blind": _blind(tally, pairs, rounds),
    }


class _Pairs:
    """How often an unsupported row outranks its supported siblings, and its twin; one share a row."""

    def __init__(self, tally: EvaluationTally, scores: Floats) -> None:
        self._tally = tally
        self.shares = {
            "pairwise": outranked(tally.labels, scores, tally.sibling.tolist()),
            "twins": outranked(tally.labels, scores, tally.twin.tolist()),
        }

    def figures(self, rows: Bools | None = None) -> Figures:
        """Return both rankings, 0..1, over the chosen rows, and how many unsupported ones each is over."""
        found: Figures = {}
        for name, shares in self.shares.items():
            known = shares[~np.isnan(shares) & (True if rows is None else rows)]
            found[name] = rounded(float(known.mean())) if len(known) else None
            found[f"{name}_rows"] = len(known)
        return found

    def intervals(self, rounds: int, *, over: _Pairs | None = None) -> Figures:
        """Return the 95 % interval of each ranking, or of its difference from that of ``over``."""
        found: Figures = {}
        for name, own in self.shares.items():
            shares = own - (0.0 if over is None else over.shares[name])
            known = ~np.isnan(shares)
            drawn = (mass[known] for mass in resamples(self._tally.group.tolist(), rounds=rounds))
            found[name] = rounded(
                interval(float(np.average(shares[known], weights=mass)) for mass in drawn if mass.sum() > 0.0)
            )
        return found


def _by(tally: EvaluationTally, names: NDArray[np.str_], flagged: Bools, pairs: _Pairs) -> Figures:
    """Return, by name, how many are flagged of the unsupported and of the supported rows, and both rankings.

    The rankings are of the unsupported rows of a name against their supported siblings of any name.
    """
    found: Figures = {}
    for name in sorted(set(names.tolist()) - {""}):
        rows = names == name
        wrong, right = rows & tally.labels, rows & ~tally.labels
        found[name] = {
            "unsupported": int(wrong.sum()),
            "flagged": _share(flagged, wrong),
            "supported": int(right.sum()),
            "supported_flagged": _share(flagged, right),
            **pairs.figures(rows),
        }
    return found


def _within(tally: EvaluationTally, names: NDArray[np.str_]) -> Figures | None:
    """Return the AUROC over pairs of answers of one generator, and how many such pairs there are.

    ``None`` where fewer than two generators are named: a gateway mostly sees one, and knowing which of several
    wrote an answer tells much of its label.
    """
    named = sorted(set(names.tolist()) - {""})
    if len(named) < 2:
        return None
    total = mass = 0.0
    for name in named:
        labels, scores = tally.labels[names == name], tally.scores[names == name]
        area = Ranking.of(labels, scores).auroc()
        if area is not None:
            pairs = float(labels.sum()) * float((~labels).sum())
            total, mass = total + area * pairs, mass + pairs
    return {"auroc": rounded(total / mass) if mass else None, "generators": len(named), "pairs": int(mass)}


def _detectors(tally: EvaluationTally, *, threshold: float, base_rate: float | None) -> Figures:
    """Return the figures of all detectors together, and of each one alone and left out.

    Without a score (a detector abstained, or could not run) an answer counts as not flagged, with score 0.
    """
    if not tally.detectors:
        return {}
    weights = tally.weights(base_rate)

    def figures(scores: Floats) -> Figures:
        known = np.nan_to_num(scores, nan=0.0)
        flagged = ~np.isnan(scores) & (known >= threshold)
        found = prf_of_flags(tally.labels, flagged, weights=weights)
        rankings = _Pairs(tally, known).figures()
        return {
            "auroc": rounded(Ranking.of(tally.labels, known).auroc(weights)),
            **rounded(asdict(found)),
            "supported_flagged": _share(flagged, ~tally.labels),
            "pairwise": rankings["pairwise"],
            "twins": rankings["twins"],
            "scored": _share(~np.isnan(scores), np.ones(len(scores), dtype=bool)),
        }

    everything = np.ones(len(tally), dtype=bool)
    several = len(tally.detectors) > 1
    return {
        "all": figures(np.where(tally.scored, tally.scores, np.nan)),
        "each": {
            name: {
                "alone": figures(tally.parts[:, place, 0]),
                "left_out": figures(tally.parts[:, place, 1]) if several else None,
                "abstained": _share(tally.abstained[:, place], everything),
            }
            for place, name in enumerate(tally.detectors)
        },
    }


def _blind(tally: EvaluationTally, pairs: _Pairs, rounds: int) -> Figures | None:
    """Return what a blind model ranks, what the model gains over it, and whether the rows pass the gate."""
    if np.isnan(tally.blind).any() or not len(tally):
        return None
    blind = _Pairs(tally, tally.blind)
    own = {"auroc": rounded(Ranking.of(tally.labels, tally.scores).auroc()), **pairs.figures()}
    without = {"auroc": rounded(Ranking.of(tally.labels, tally.blind).auroc()), **blind.figures()}
    names = ("auroc", "pairwise", "twins")
    ranked = [without[name] for name in names if without[name] is not None]
    return {
        **{name: without[name] for name in names},
        "gained": {
            name: None if own[name] is None or without[name] is None else rounded(own[name] - without[name])
            for name in names
        },
        "intervals": pairs.intervals(rounds, over=blind),
        "gate": MOST_BLIND,
        "passes": max(ranked) <= MOST_BLIND if ranked else None,
    }


def _share(chosen: Bools, among: Bools) -> float | None:
    return rounded(float(chosen[among].mean())) if among.any() else None
