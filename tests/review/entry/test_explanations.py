"""Spans of an entry are explained when it is made or, of one made in a hurry, when it is read."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.reviewed import EXCHANGE, queued
from truthlens.core.review_settings import ReviewSettings
from truthlens.review.entry.content import entry_of
from truthlens.review.entry.explanations import explained_content, explained_outcome
from truthlens.review.intake.intake import _BURST, _Budget
from truthlens.review.store.database import ReviewDatabase, checked_url
from truthlens.review.store.queue import ReviewQueue

KEPT, HASHED = ReviewSettings(keep_text=True), ReviewSettings()


def test_a_late_explanation_is_the_early_one(tmp_path: Path) -> None:
    """Read from the database, an entry made in a hurry says the same as one that was not."""
    early = entry_of(explained_outcome(queued(), EXCHANGE), EXCHANGE, KEPT, created=1.0)
    late = entry_of(queued(), EXCHANGE, KEPT, created=1.0)
    assert "kind" in early.content["choices"][0]["spans"][0]
    assert "kind" not in late.content["choices"][0]["spans"][0]
    database = ReviewDatabase(checked_url(f"sqlite:///{tmp_path}/r.db"))
    database.upgrade()
    queue = ReviewQueue(database)
    queue.add([late])
    assert queue.get(late.id).content == early.content
    database.dispose()


def test_what_is_explained_or_has_no_texts_stays() -> None:
    """Nothing is computed twice, and nothing of texts that are not there."""
    outcome = explained_outcome(queued(), EXCHANGE)
    assert explained_outcome(outcome, EXCHANGE) is outcome
    for made in (
        entry_of(outcome, EXCHANGE, KEPT, created=1.0),
        entry_of(queued(), EXCHANGE, HASHED, created=1.0),
    ):
        assert explained_content(made.content) is made.content


def test_only_so_many_are_explained_a_second() -> None:
    """A flood of flagged answers does not take the processor from the next ones."""
    now = [0.0]
    budget = _Budget(20, _BURST, clock=lambda: now[0])
    assert sum(budget.takes() for _ in range(1000)) == _BURST
    now[0] = 0.1
    assert sum(budget.takes() for _ in range(1000)) == 2
    now[0] = 100.0
    assert sum(budget.takes() for _ in range(1000)) == _BURST
