"""Tests of ``truthlens.lab.evaluate.plots``: which plots are drawn, and that they are pictures."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from tests.fakes.scored_answers import made_tally
from truthlens.lab.evaluate.evaluation import Evaluation, Tallied
from truthlens.lab.evaluate.plots import PlotError, draw, require_plots
from truthlens.lab.evaluate.score_table import EvaluationTally
from truthlens.lab.evaluate.summary import breakdown

ALL = [
    "roc.png",
    "precision_recall.png",
    "scores.png",
    "thresholds.png",
    "risk_coverage.png",
    "reliability.png",
    "reliability_aggregations.png",
]


def _evaluation(*tallies: EvaluationTally) -> Evaluation:
    files = [
        Tallied(f"_file-$1$-{n}.jsonl", one, breakdown(one, threshold=0.5)) for n, one in enumerate(tallies)
    ]
    whole = EvaluationTally.join(tallies)
    pooled = files[0] if len(files) == 1 else Tallied("all files", whole, breakdown(whole, threshold=0.5))
    return Evaluation({"threshold": 0.5, "base_rate": None, "aggregation": "noisy_or"}, tuple(files), pooled)


def test_every_plot_is_drawn_and_is_not_empty(tmp_path: Path) -> None:
    """Seven PNG files with captions, none of them blank; a file of one class does not hinder the others."""
    tally = made_tally(seed=1)
    one_class = replace(tally, labels=np.ones(len(tally), dtype=bool))
    written = draw(_evaluation(made_tally(), one_class), tmp_path)
    assert [name for name, _ in written] == ALL
    assert all(caption for _, caption in written)
    for name in ALL:
        picture = matplotlib.image.imread(tmp_path / name)
        assert min(picture.shape[:2]) > 300
        assert float(np.std(picture[..., :3])) > 0.02


def test_plots_without_labels_for_them_are_left_out(tmp_path: Path) -> None:
    """One class has no ROC; a detector without token scores has no reliability diagram."""
    tally = made_tally(read=False)
    one_class = replace(tally, labels=np.zeros(len(tally), dtype=bool))
    assert [name for name, _ in draw(_evaluation(one_class), tmp_path)] == ["scores.png", "risk_coverage.png"]
    assert [name for name, _ in draw(_evaluation(tally), tmp_path)] == ALL[:5]


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the command that installs it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotError, match=r"pip install 'truthlens\[eval\]'"):
        require_plots()
