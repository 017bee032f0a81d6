"""Spans of an entry are explained when it is made or, of one made in a hurry, when it is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.fakes.reviewed import EXCHANGE, queued
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.verdict import Span
from truthlens.core.review_settings import ReviewSettings
from truthlens.review.entry.content import entry_of, judged_claims
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


def test_an_entry_that_is_read_tells_the_nearest_sentence_of_its_claims() -> None:
    """Of one whose spans were explained when it was made, and only where its texts were kept."""
    claims = (
        JudgedClaim(0, 30, ClaimOutcome.NOT_STATED, 0.9, "encoder"),
        JudgedClaim(31, 56, ClaimOutcome.SUPPORTED, 0.2, "encoder"),
    )
    (span,) = explained_outcome(queued(), EXCHANGE).verdicts[0].spans
    verdict = replace(queued().verdict, spans=(span,), claims=claims)
    given = replace(queued(), verdict=verdict, verdicts=(verdict,))
    made = entry_of(given, EXCHANGE, KEPT, created=1.0)
    read = explained_content(made.content)
    first, second = judged_claims(read["choices"][0])
    assert span.explanation is not None
    assert first.nearest is not None
    assert (first.nearest.passage, first.nearest.start, first.nearest.end) == (0, 0, 49)
    assert second == claims[1]
    assert read == entry_of(explained_outcome(given, EXCHANGE), EXCHANGE, KEPT, created=1.0).content
    hashed = entry_of(given, EXCHANGE, HASHED, created=1.0).content
    assert explained_content(hashed) is hashed


def test_what_is_explained_or_has_no_texts_stays() -> None:
    """Nothing is computed twice, and nothing of texts that are not there."""
    outcome = explained_outcome(queued(), EXCHANGE)
    assert explained_outcome(outcome, EXCHANGE) is outcome
    for made in (
        entry_of(outcome, EXCHANGE, KEPT, created=1.0),
        entry_of(queued(), EXCHANGE, HASHED, created=1.0),
    ):
        assert explained_content(made.content) is made.content


def test_what_a_detector_explained_stays_beside_a_late_explanation() -> None:
    """Of an entry that was made in a hurry the values that ``numbers`` compared are still those, for all detectors."""
    (encoder,) = queued().verdict.spans
    own = Explanation(
        SpanKind.CONTRADICTED,
        0.7,
        "why",
        (0, 49),
        0.5,
        (Difference(DifferenceKind.NUMBER, 18, 29, (38, 48)),),
    )
    numbers = Span(18, 29, 0.8, "numbers", passage=0, explanation=own)
    verdict = replace(queued().verdict, spans=(encoder, numbers))
    made = entry_of(replace(queued(), verdict=verdict, verdicts=(verdict,)), EXCHANGE, KEPT, created=1.0)
    first, second = explained_content(made.content)["choices"][0]["spans"]
    assert second == made.content["choices"][0]["spans"][1]
    assert first["kind"]
    assert first["differences"] == second["differences"]


def test_only_so_many_are_explained_a_second() -> None:
    """A flood of flagged answers does not take the processor from the next ones."""
    now = [0.0]
    budget = _Budget(20, _BURST, clock=lambda: now[0])
    assert sum(budget.takes() for _ in range(1000)) == _BURST
    now[0] = 0.1
    assert sum(budget.takes() for _ in range(1000)) == 2
    now[0] = 100.0
    assert sum(budget.takes() for _ in range(1000)) == _BURST
