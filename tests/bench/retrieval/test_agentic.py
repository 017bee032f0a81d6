"""Figures of mode agentic's benchmark, of hand-made exchanges; its deployment is tried by the small benchmarks."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bench.retrieval.agentic import CaseOutcome, chosen, figures, rows_of, told
from bench.retrieval.corpus import QuestionKind, read_corpus


def outcome(before: str, after: str, flagged: bool | None, **more: Any) -> CaseOutcome:
    common: dict[str, Any] = {
        "strength": "strong", "question": "q", "kind": "answerable", "evidence": "none", "reason": "", "action": "pass",
        "cause": "accepted", "calls": 4, "tokens": 100, "latency_ms": 10, "answer": "a", "notes": (),
    }  # fmt: skip
    return CaseOutcome(before=before, after=after, flagged=flagged, **{**common, **more})


ALL = [
    outcome("right", "right", False),
    outcome("right", "declined", False, calls=6),
    outcome("right", "wrong", False, latency_ms=90),
    outcome("right", "right", True),
    outcome("wrong", "right", False),
    outcome("wrong", "wrong", True),
    outcome("wrong", "wrong", None, cause=""),
    outcome("wrong", "wrong", False, evidence="another page"),
]


def test_answers_are_counted_before_and_after() -> None:
    found = figures(ALL)
    assert found["right_first"] == {"all": 4, "right": 2, "declined": 1, "wrong": 1}
    assert (found["right_first_flagged"], found["right_to_wrong_unflagged"]) == (1, 1)
    assert found["wrong_first"] == {"all": 4, "right": 1, "declined": 0, "wrong": 3}
    assert found["still_wrong"] == {"flagged": 1, "unchecked": 1, "not flagged": 1}
    assert (found["checked_and_right"], found["calls"], found["tokens"]) == (2, 4.2, 100)
    assert (found["p50_ms"], found["p99_ms"]) == (10, 90)
    assert found["causes"] == {"accepted": 7, "no run": 1}


def test_a_row_is_one_strength_with_one_kind_of_evidence() -> None:
    rows = rows_of(ALL)
    assert [(row["model"], row["evidence"], row["exchanges"]) for row in rows] == [
        ("strong", "none", 7),
        ("strong", "another page", 1),
    ]
    assert len(told(rows).splitlines()) == 4


def test_a_part_of_the_questions_has_every_kind() -> None:
    """By its share; the same for the same seed."""
    corpus = read_corpus()
    some = chosen(corpus, 48, seed=1)
    assert some == chosen(corpus, 48, seed=1)
    assert abs(len(some) - 48) <= 1
    counts = Counter(each.kind for each in some)
    assert counts[QuestionKind.ANSWERABLE] > counts[QuestionKind.ABSENT] > 5
    assert {each.kind for each in chosen(corpus, 3, seed=1)} == set(QuestionKind)
    assert chosen(corpus, 0, seed=1) == corpus.questions
