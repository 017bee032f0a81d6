"""``calibrate --from-review``: from settled entries to a threshold in the policy."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.cli.review.test_review import Result, run
from tests.fakes.review_entries import change, new_entry
from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.thresholds import at_rate
from truthlens.review.records import ReviewStatus
from truthlens.review.store.database import ReviewDatabase, checked_url
from truthlens.review.store.queue import ReviewQueue

POLICY = """\
# The house policy.
hallucination:
  expected_rate: 0.1
  threshold: 0.6   # for everyone
"""


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReviewQueue]:
    url = f"sqlite:///{tmp_path / 'reviews.db'}"
    monkeypatch.setenv("TRUTHLENS_REVIEW_DATABASE", url)
    database = ReviewDatabase(checked_url(url))
    database.upgrade()
    yield ReviewQueue(database)
    database.dispose()


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_encoder(tmp_path / "models" / "truthlens-minilm-en-v2")
    monkeypatch.setenv("TRUTHLENS_MODELS", str(tmp_path / "models"))
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


def fill(queue: ReviewQueue, *, rate: float = 0.1, lowest: float = 0.0, count: int = 300) -> None:
    """Settle so many of the last days."""
    dice = np.random.default_rng(1)
    now = time.time()
    names = []
    for number in range(count):
        wrong = bool(dice.random() < 0.4)
        even = max(lowest, round(float(dice.beta(5, 2) if wrong else dice.beta(2, 5)), 3))
        score = at_rate(even, rate)
        threshold = at_rate(0.7, rate)
        names.append((f"e{number}", ReviewStatus.REJECTED if wrong else ReviewStatus.APPROVED))
        queue.add([new_entry(f"e{number}", score=score, even_score=even, threshold=threshold, flagged=even >= 0.7,
                             created=now - 86_400.0 * (number % 20))])  # fmt: skip
    for start in range(0, count, 200):
        queue.change_many([change(*each) for each in names[start : start + 200]], actor="ann")


def calibrate(*options: object) -> Result:
    return run("calibrate", "--from-review", *options)


@pytest.mark.parametrize(
    "goal", [("--best-f1",), ("--max-miss-rate", "0.1"), ("--max-false-alarms", "0.1"), ("--cost-ratio", "5")], ids=" ".join
)  # fmt: skip
def test_each_goal_gives_a_threshold_that_is_written(
    queue: ReviewQueue, policy: Path, goal: tuple[str, ...]
) -> None:
    """On the plan's own scale; nothing else of the file changes."""
    fill(queue)
    told = calibrate(*goal, "--config", policy, "--json")
    assert told.status == 0, told.stderr
    found = json.loads(told.stdout)
    assert policy.read_text() == POLICY
    value = found["threshold"]["value"]
    assert found["threshold"]["low"] <= value <= found["threshold"]["high"]
    assert value == pytest.approx(at_rate(found["even"]["value"], 0.1), abs=1e-3)
    assert found["last_week"]["entries"] == pytest.approx(7 * 300 / 20, abs=15)
    written = calibrate(*goal, "--config", policy, "--write")
    assert written.status == 0, written.stderr
    assert policy.read_text() == POLICY.replace("threshold: 0.6", f"threshold: {value}")
    for each in ("last week", "interval", "now        0.6 in the policy", "threshold of default set"):
        assert each in written.stdout


def test_flagged_answers_alone_can_only_raise_it(queue: ReviewQueue) -> None:
    """And the output says so."""
    fill(queue, rate=0.5, lowest=0.7)
    told = calibrate("--cost-ratio", "100")
    assert told.status == 0, told.stderr
    assert "this can only raise it" in told.stdout
    found = json.loads(calibrate("--cost-ratio", "100", "--json").stdout)
    assert found["threshold"]["value"] >= 0.7


def test_too_few_entries_are_an_error(queue: ReviewQueue) -> None:
    """With the number that is needed; older ones can be left out."""
    assert "at least 20 and 20 are needed" in calibrate("--best-f1").stderr
    fill(queue, count=200)
    assert calibrate("--best-f1").status == 0
    late = calibrate("--best-f1", "--since", "1d")
    assert (late.status, late.stdout) == (1, "")
    assert calibrate("--best-f1", "--decision", "other").status == 1


@pytest.mark.parametrize(
    "options",
    [(), ("--best-f1", "--cost-ratio", "2"), ("--best-f1", "--write"), ("--flag-share", "0.1"), ("--best-f1", "--limit", "3"),
     ("--cost-ratio", "2", "--prior", "0.1")],
    ids=" ".join,
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(queue: ReviewQueue, options: tuple[str, ...]) -> None:
    fill(queue, count=100)
    assert calibrate(*options).status == 2


@pytest.mark.parametrize(
    "options",
    [(), ("--best-f1",), ("{file}", "--max-false-alarms", "0.1"), ("{file}", "--from-review", "--best-f1"), ("{file}", "--since", "1d")],
    ids=" ".join,
)  # fmt: skip
def test_a_file_or_the_queue_is_given(tmp_path: Path, options: tuple[str, ...]) -> None:
    """One of them, with its own options."""
    file = tmp_path / "rows.jsonl"
    file.write_text("{}")
    assert run("calibrate", *(each.format(file=file) for each in options)).status == 2


def test_a_share_out_of_range_is_refused(queue: ReviewQueue) -> None:
    """With what is expected."""
    refused = calibrate("--max-miss-rate", "1.5")
    assert (refused.status, "expected a share between 0 and 1" in refused.stderr) == (1, True)
