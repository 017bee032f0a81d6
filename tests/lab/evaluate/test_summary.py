"""Tests of ``truthlens.lab.evaluate.summary``: figures of rows, of parts of them, and their intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.fakes.scored_answers import made_tally
from truthlens.core.records.enums import Aggregation
from truthlens.lab.evaluate.metrics import auroc, best_f1, char_prf
from truthlens.lab.evaluate.served_encoder import TokenReading
from truthlens.lab.evaluate.summary import breakdown, describe, intervals

TOKENS = TokenReading(
    p=np.array([0.9, 0.4, 0.1, 0.0], dtype=np.float32),
    gold=np.array([True, False, True, False]),
    spans=np.array([[0.9, 1.0]]),
    scores=dict.fromkeys(Aggregation, 0.9),
)


def test_token_figures_are_over_the_tokens_of_marked_answers() -> None:
    """One answer of four tokens: two flagged from 0.4 on, one of them right, one of two gold ones found."""
    tally = made_tally(3)
    tally = replace(tally, readings=(TOKENS, None, None))
    found = describe(tally, threshold=0.5, token_limit=0.4)["token"]
    assert (found["precision"], found["recall"], found["f1"]) == (0.5, 0.5, 0.5)
    assert (found["auroc"], found["base_rate"], found["tokens"]) == (0.75, 0.5, 4)
    without = describe(tally, threshold=0.5)["token"]
    assert (without["f1"], without["auroc"]) == (None, 0.75)


def test_a_detector_without_token_scores_has_no_token_figures() -> None:
    """Null, not zero."""
    found = describe(made_tally(6, read=False), threshold=0.5, token_limit=0.4)["token"]
    assert found["auroc"] is found["f1"] is None
    assert found["tokens"] == 0


def test_the_best_threshold_is_marked_as_optimistic() -> None:
    """It is the best one on these rows, and says that it was chosen on them."""
    tally = made_tally()
    f1, threshold = best_f1(tally.labels, tally.scores, above=0.0)
    found = describe(tally, threshold=0.5)["best"]
    assert found == {"f1": round(f1, 4), "threshold": round(threshold, 4), "optimistic": True}


def test_a_base_rate_reaches_every_figure_but_the_ranking() -> None:
    """Precision falls with fewer unsupported answers; AUROC and recall stay as they are."""
    tally = made_tally()
    plain, rare = describe(tally, threshold=0.5), describe(tally, threshold=0.5, base_rate=0.05)
    assert rare["base_rate"] == 0.05
    assert rare["example"]["auroc"] == plain["example"]["auroc"]
    assert rare["example"]["recall"] == plain["example"]["recall"]
    assert rare["example"]["precision"] < plain["example"]["precision"]
    assert rare["example"]["auprc"] < plain["example"]["auprc"]
    assert rare["ece"] != plain["ece"]
    assert rare["unsupported"] == plain["unsupported"] == 20


def test_the_risk_curve_ends_at_all_answers() -> None:
    """Twenty steps; at the last the risk is the error rate of all."""
    found = describe(made_tally(), threshold=0.5)["risk_coverage"]
    assert len(found["curve"]) == 20
    assert found["curve"][-1] == [1.0, found["risk_at_full_coverage"]]
    assert found["oracle_aurc"] <= found["aurc"] <= 1.0


def test_intervals_hold_the_figures_and_shrink_with_more_rows() -> None:
    """The interval is around the figure, and narrower where there are more source texts."""
    widths = []
    for rows in (60, 1200):
        tally = made_tally(rows)
        found = intervals(tally, threshold=0.5, rounds=200)
        figures = describe(tally, threshold=0.5)
        for name in ("precision", "recall", "f1", "auroc", "auprc"):
            low, high = found["example"][name]
            assert low <= figures["example"][name] <= high
        low, high = found["char"]["f1"]
        assert low <= figures["char"]["f1"] <= high
        widths.append(high - low)
    assert widths[1] < widths[0]


def test_intervals_draw_whole_source_texts() -> None:
    """With one source text there is nothing to vary; without resamples there are no intervals."""
    tally = made_tally()
    one = replace(tally, group=np.array(["a"] * len(tally)))
    area = round(auroc(tally.labels, tally.scores) or 0.0, 4)
    assert intervals(one, threshold=0.5, rounds=20)["example"]["auroc"] == [area, area]
    assert intervals(tally, threshold=0.5, rounds=0)["example"]["auroc"] is None


def test_a_breakdown_has_the_figures_of_every_part() -> None:
    """Two generators, each with its own rows; a task that all rows share is the whole."""
    tally = made_tally()
    found = breakdown(tally, threshold=0.5, rounds=20)
    assert list(found["generators"]) == ["model-0", "model-1"]
    part = tally.take(tally.generator == "model-1")
    assert found["generators"]["model-1"]["rows"] == 30
    assert found["generators"]["model-1"]["example"] == describe(part, threshold=0.5)["example"]
    assert found["tasks"]["qa"]["example"] == found["example"]
    assert found["generators"]["model-1"]["char"] == {"precision": None, "recall": None, "f1": None}


def test_rows_without_a_name_are_in_no_part() -> None:
    """No task, no part for it."""
    tally = made_tally()
    assert breakdown(replace(tally, task=np.array([""] * len(tally))), threshold=0.5)["tasks"] == {}


def test_char_counts_give_the_figures_of_their_ranges() -> None:
    """From counts as from ranges: the two ways to the character figures agree."""
    gold, predicted = [[(0, 4)], [(2, 3)]], [[(2, 6)], []]
    tally = replace(
        made_tally(2),
        marked=np.array([True, True]),
        chars=np.array([[2.0, 4.0, 4.0], [0.0, 0.0, 1.0]]),
    )
    expected = char_prf(gold, predicted)
    assert describe(tally, threshold=0.5)["char"]["f1"] == pytest.approx(expected.f1, abs=1e-4)
