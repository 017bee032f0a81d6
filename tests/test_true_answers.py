"""True answers that repeat their evidence in another form, under the shipped policy and with the bundled model: none is flagged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from truthlens.cli.plan_target import find_target, offline_settings
from truthlens.core.records.enums import Status
from truthlens.lab.evaluate.plan_scorer import PlanScorer


@dataclass(frozen=True)
class TrueAnswer:
    """An answer that follows from its evidence; ``kind`` is the form in which it says so."""

    kind: str
    evidence: str
    query: str
    answer: str


POOL = (
    "The pool opens at seven in the morning and closes at six in the evening. The sauna is closed on Mondays."
)
MARKET = (
    "The market hall opens at 8:00 and closes at 19:00 on weekdays. On Saturdays it opens at 9:00 and closes at 14:00. "
    "On Sundays it is closed."
)
ANSWERS = (
    TrueAnswer("a clock in figures", POOL, "When does the pool close?", "The pool closes at 18:00."),
    TrueAnswer("a clock in figures", "The last ferry to the island leaves at half past nine in the evening.",
               "When is the last ferry?", "The last ferry to the island leaves at 21:30."),
    TrueAnswer("a clock in figures", "The pharmacy on Mill Street is open until eight in the evening, from Monday to Friday.",
               "How long is the pharmacy open?", "From Monday to Friday the pharmacy on Mill Street is open until 8 p.m."),
    TrueAnswer("a span of time in another unit", "Books may be kept for three weeks and renewed once.",
               "How long may I keep a book?", "You may keep a book for 21 days."),
    TrueAnswer("a span of time in another unit", "The warranty of the pump runs for two years from the day of purchase.",
               "How long is the warranty?", "The pump has a warranty of 24 months from the day of purchase."),
    TrueAnswer("a span of time in another unit", "The tour of the old mill takes an hour and a half.",
               "How long is the tour?", "The tour of the old mill takes 90 minutes."),
    TrueAnswer("a table", MARKET, "When is the market hall open? Give a table.",
               "| Day | Opens | Closes |\n| --- | --- | --- |\n| Weekdays | 8:00 | 19:00 |\n| Saturday | 9:00 | 14:00 |\n| Sunday | closed | closed |"),
    TrueAnswer("a table", "A day ticket costs 12 euros for adults and 7 euros for children. A week ticket costs 50 euros for adults and "
               "30 euros for children.", "What do tickets cost? Give a table.",
               "| Ticket | Adults | Children |\n| --- | --- | --- |\n| Day ticket | 12 euros | 7 euros |\n| Week ticket | 50 euros | 30 euros |"),
    TrueAnswer("a table", "The north lot has 120 spaces and is free. The south lot has 45 spaces and costs 2 euros an hour.",
               "Compare the parking lots in a table.",
               "| Lot | Spaces | Price |\n| --- | --- | --- |\n| North | 120 | free |\n| South | 45 | 2 euros an hour |"),
    TrueAnswer("JSON", "The gallery opens at nine and closes at six.", "When is the gallery open? Answer in JSON.",
               '{"opens": 9, "closes": 18}'),
    TrueAnswer("JSON", "The hotel Adler has 64 rooms, a garden and no lift. Breakfast costs 15 euros.",
               "Describe the hotel in JSON.", '{"hotel": "Adler", "rooms": 64, "garden": true, "lift": false, "breakfast_euros": 15}'),
    TrueAnswer("JSON", "Order 4417 was shipped on 3 May 2024 and weighs 2.5 kg.", "Give the order as JSON.",
               '```json\n{\n  "order": 4417,\n  "shipped": "2024-05-03",\n  "weight_kg": 2.5\n}\n```'),
    TrueAnswer("about, by calculation", "Membership costs 5 dollars a year.", "What is that a month?",
               "Membership costs about 42 cents a month."),
    TrueAnswer("about, by calculation", "The survey asked 600 people, and 198 of them cycle to work.", "How many cycle to work?",
               "About a third of the 600 people cycle to work."),
    TrueAnswer("about, by calculation", "The reservoir held 4.92 million cubic metres of water in April.",
               "How much water was there in April?", "In April the reservoir held roughly 5 million cubic metres of water."),
)  # fmt: skip


@pytest.fixture(scope="module")
def scorer() -> Iterator[PlanScorer]:
    """The default decision of the shipped policy."""
    with find_target(offline_settings(None, None), "default").scorer() as opened:
        yield opened


@pytest.mark.parametrize("row", ANSWERS, ids=lambda row: f"{row.kind}: {row.answer[:40]!r}")
def test_a_true_answer_in_another_form_is_not_flagged(scorer: PlanScorer, row: TrueAnswer) -> None:
    """At 0.6, and it was judged."""
    verdict = scorer.verdict_on(row.query, [row.evidence], row.answer)
    assert (verdict.status, verdict.threshold) == (Status.CHECKED, 0.6)
    assert verdict.score is not None
    assert verdict.score < 0.6
