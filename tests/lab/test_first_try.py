"""The shipped verdict on what somebody tries first: one fact changed, and the same facts in other words (``data/plain``)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from truthlens.cli.plan_target import find_target, offline_settings
from truthlens.lab.data.dataset import read_examples

ROWS = Path(__file__).parents[2] / "data/plain/first_try.jsonl"
_FOUND, _FALSE_ALARMS = 27, 6
"""At least so many of the 38 wrong answers, at most so many of the 31 right ones: two less, and one more, than when this was written."""


@pytest.mark.slow
def test_one_changed_fact_is_flagged_and_other_words_are_not() -> None:
    target = find_target(offline_settings(None, None), "default")
    flagged: Counter[int] = Counter()
    rows = list(read_examples(ROWS))
    with target.scorer(None) as scorer:
        for row in rows:
            score = scorer(row.query, row.context, row.response).score
            assert score is not None, f"unchecked: {row.response}"
            flagged[row.label] += score >= target.plan.threshold
    assert Counter(row.label for row in rows) == {0: 31, 1: 38}
    assert flagged[1] >= _FOUND
    assert flagged[0] <= _FALSE_ALARMS
