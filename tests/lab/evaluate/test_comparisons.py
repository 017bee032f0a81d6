"""Tests of ``truthlens.lab.evaluate.comparisons``: rankings, types, detectors and blind models by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.fakes.scored_answers import made_tally
from truthlens.lab.data.dataset import Example
from truthlens.lab.evaluate.comparisons import comparisons
from truthlens.lab.evaluate.ranking import outranked, pairwise_ranking, twin_ranking
from truthlens.lab.evaluate.score_table import EvaluationTally


def tally_of(labels: list[int], scores: list[float], **columns: Any) -> EvaluationTally:
    """A tally of these rows; columns that are not given are alike for all rows, and no row is a twin."""
    rows = len(labels)
    alike: dict[str, Any] = {
        "labels": np.array(labels, dtype=bool),
        "scores": np.array(scores),
        "sibling": np.array(["one"] * rows),
        "twin": np.array([f"own-{row}" for row in range(rows)]),
        "kind": np.array([""] * rows),
        "generator": np.array([""] * rows),
    }
    given = {name: tuple(held) if name == "detectors" else np.array(held) for name, held in columns.items()}
    return replace(made_tally(rows, marked=False, read=False), **{**alike, **given})


def test_a_wrong_answer_is_compared_with_its_supported_siblings_alone() -> None:
    """One beats one of two siblings and ties with the other; answers to another evidence do not count."""
    tally = tally_of([1, 0, 0, 1, 0], [0.5, 0.4, 0.5, 0.1, 0.9], sibling=["a", "a", "a", "b", "c"])
    found = comparisons(tally, threshold=0.6)["ranking"]
    assert (found["pairwise"], found["pairwise_rows"]) == (0.75, 1)
    assert (found["twins"], found["twins_rows"]) == (None, 0)
    assert found["intervals"] == {"pairwise": None, "twins": None}


def test_the_rankings_are_those_of_the_workshop() -> None:
    """The same figures from rows of examples as from the columns of a tally."""
    dice = np.random.default_rng(3)
    rows = [
        Example(
            str(n), "s", "qa", "q", (f"c{n % 3}",), f"r{n % 4}", int(dice.random() < 0.5), None, f"g{n % 2}"
        )
        for n in range(60)
    ]
    scores = dice.random(60).round(1).tolist()
    keys = [str((row.group, row.context)) for row in rows]
    tally = tally_of(
        [row.label for row in rows],
        scores,
        sibling=keys,
        twin=[f"{row.group} {row.response}" for row in rows],
    )
    found = comparisons(tally, threshold=0.6, rounds=50)["ranking"]
    assert found["pairwise"] == pytest.approx(pairwise_ranking(rows, scores), abs=1e-4)
    assert found["twins"] == pytest.approx(twin_ranking(rows, scores), abs=1e-4)
    low, high = found["intervals"]["twins"]
    assert low <= found["twins"] <= high


def test_supported_rows_have_no_rank() -> None:
    """Nor has an unsupported one that stands alone."""
    assert np.isnan(outranked([False, True, True], [0.1, 0.2, 0.3], ["a", "a", "b"])).tolist() == [
        True,
        False,
        True,
    ]


def test_types_count_what_is_flagged_of_either_label() -> None:
    """Errors of a type and supported rows of a type are different shares; rows without a type are in none."""
    tally = tally_of([1, 1, 0, 0, 0], [0.9, 0.1, 0.7, 0.0, 0.05], kind=["money", "money", "free", "free", ""])
    found = comparisons(tally, threshold=0.6)["types"]
    assert sorted(found) == ["free", "money"]
    assert (found["money"]["unsupported"], found["money"]["flagged"]) == (2, 0.5)
    assert (found["money"]["supported"], found["money"]["supported_flagged"]) == (0, None)
    assert (found["free"]["supported_flagged"], found["free"]["pairwise"]) == (0.5, None)
    assert found["money"]["pairwise"] == pytest.approx((1 + 2 / 3) / 2, abs=1e-4)


def test_within_generators_knowing_the_generator_is_worth_nothing() -> None:
    """Scores that follow the generator alone rank well over all rows and at chance within each."""
    labels = [1, 1, 1, 0, 0, 0, 0, 1]
    scores = [0.9] * 4 + [0.1] * 4
    found = comparisons(tally_of(labels, scores, generator=["weak"] * 4 + ["strong"] * 4), threshold=0.6)
    assert found["within_generators"] == {"auroc": 0.5, "generators": 2, "pairs": 6}
    assert comparisons(tally_of(labels, scores), threshold=0.6)["within_generators"] is None


def test_what_each_detector_adds() -> None:
    """Figures of all, of each alone and left out; an answer without a score is not flagged, abstained is counted."""
    nan = np.nan
    tally = tally_of(
        [1, 1, 0, 0],
        [0.9, 0.8, 0.2, 0.1],
        detectors=["encoder", "numbers"],
        parts=[
            [[0.2, 0.9], [0.9, 0.2]],
            [[0.8, nan], [nan, 0.8]],
            [[0.2, nan], [nan, 0.2]],
            [[0.1, nan], [nan, 0.1]],
        ],
        abstained=[[False, False], [False, True], [False, True], [False, True]],
    )
    found = comparisons(tally, threshold=0.6)["detectors"]
    assert (found["all"]["auroc"], found["all"]["f1"], found["all"]["recall"]) == (1.0, 1.0, 1.0)
    encoder, numbers = found["each"]["encoder"], found["each"]["numbers"]
    assert (encoder["alone"]["recall"], encoder["abstained"]) == (0.5, 0.0)
    assert encoder["alone"] == numbers["left_out"]
    assert (numbers["alone"]["recall"], numbers["alone"]["scored"], numbers["abstained"]) == (0.5, 0.25, 0.75)


def test_one_detector_cannot_be_left_out() -> None:
    """Alone it is all; there is no figure without it."""
    parts = np.array([[[0.9, np.nan]], [[0.1, np.nan]]])
    tally = tally_of([1, 0], [0.9, 0.1], detectors=["encoder"], parts=parts, abstained=[[False], [False]])
    found = comparisons(tally, threshold=0.6)["detectors"]
    assert found["each"]["encoder"]["left_out"] is None
    assert found["each"]["encoder"]["alone"] == found["all"]


@pytest.mark.parametrize(("blind", "passes"), [([0.5, 0.5, 0.5, 0.5], True), ([0.9, 0.8, 0.1, 0.2], False)])
def test_what_is_gained_over_blind(blind: list[float], passes: bool) -> None:
    """The difference of both models, and whether wording alone ranks beyond the gate."""
    tally = tally_of([1, 1, 0, 0], [0.9, 0.8, 0.2, 0.1], blind=blind)
    found = comparisons(tally, threshold=0.6, rounds=20)["blind"]
    assert found["passes"] is passes
    assert found["gained"]["auroc"] == pytest.approx(1.0 - found["auroc"])
    assert found["gained"]["pairwise"] == pytest.approx(0.5 if passes else 0.0)
    assert found["gained"]["twins"] is None
    assert found["intervals"]["pairwise"] is not None


def test_without_a_blind_model_nothing_is_said() -> None:
    """No comparison, and none where only some rows were scored blindly."""
    assert comparisons(made_tally(), threshold=0.6)["blind"] is None
    tally = tally_of([1, 0], [0.9, 0.1], blind=[0.5, np.nan])
    assert comparisons(tally, threshold=0.6)["blind"] is None
