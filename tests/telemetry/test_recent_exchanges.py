"""The last exchanges: bounded in number and in bytes, without texts unless they are allowed."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from truthlens.core.records.agentic_run import (
    AgenticNode,
    AgenticRun,
    AgenticStep,
    AgenticStop,
    CollectedPassage,
)
from truthlens.core.records.calls import CallRecord, Role
from truthlens.core.records.claims import ClaimOutcome, Finding, JudgedClaim
from truthlens.core.records.enums import AnswerKind, Endpoint, Mode, Provenance, Status
from truthlens.core.records.exchange import Answer, Exchange, Message, Passage
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.mitigation_result import Correction, Stop
from truthlens.core.records.outcome import Outcome, Reasoned
from truthlens.core.records.plan import Plan
from truthlens.core.records.retrieval import SearchedFor, SearchRecord, SearchResult
from truthlens.core.records.verdict import DetectorResult, Span, Verdict
from truthlens.telemetry.recent_exchanges import Recent

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def verdict(spans: int, differences: int = 0) -> Verdict:
    """A verdict with so many spans, the strongest at the end of the answer."""
    return Verdict(
        Status.CHECKED,
        score=0.9,
        spans=tuple(
            Span(
                place * 2,
                place * 2 + 1,
                place / spans,
                explanation=Explanation(
                    SpanKind.UNSUPPORTED,
                    0.5,
                    "it is",
                    differences=tuple(
                        Difference(DifferenceKind.NUMBER, each, each + 1) for each in range(differences)
                    ),
                ),
            )
            for place in range(spans)
        ),
    )


def outcome(answer: str = "Tea.", **fields: object) -> Outcome:
    base = Outcome(Plan("d"), verdict(1), (verdict(1),), answers=(Answer(0, AnswerKind.TEXT, answer),))
    return replace(base, **fields)  # type: ignore[arg-type]


def exchange(text: str) -> Exchange:
    return Exchange(Endpoint.CHAT, "m", "q", (Passage(text, Provenance.TOOL),))


def test_ids_find_their_entries_and_cannot_be_guessed() -> None:
    """64 random bits each; the oldest entries go first."""
    recent = Recent(limit=3)
    for number in range(5):
        recent.add(outcome(latency_s=number), time=NOW)
    kept = recent.entries()
    assert [entry.outcome.latency_s for entry in kept] == [4, 3, 2]
    assert len({entry.id for entry in kept} & {f"{n:016x}" for n in range(100)}) == 0
    assert all(len(entry.id) == 16 and recent.get(entry.id) is entry for entry in kept)
    assert recent.get("0" * 16) is None


def test_without_leave_no_text_is_kept() -> None:
    """Neither the answer's nor the body's nor a mended one's."""
    recent = Recent()
    corrected = Correction("secret words", verdict(1), Mode.STANDARD, Stop.CLEAN)
    recent.add(outcome("secret words", body=b"secret words", corrections=(corrected,)), time=NOW)
    assert "secret" not in repr(recent.entries()[0])


@pytest.mark.parametrize(("size", "kept"), [(1_000, True), (1_000_000, False)])
def test_texts_that_are_too_large_are_dropped_and_said_to_be(size: int, kept: bool) -> None:
    """Of question, evidence and answer together."""
    recent = Recent()
    recent.add(outcome("a" * size), time=NOW, exchange=exchange("b"), keep_text=True)
    recent.add(outcome(), time=NOW, exchange=exchange("b" * size), keep_text=True)
    for entry in recent.entries():
        assert (entry.exchange is not None, bool(entry.outcome.answers), entry.text_dropped) == (
            kept,
            kept,
            not kept,
        )


def test_what_no_page_shows_is_not_kept() -> None:
    """It would not count, and may be as large as a request or an answer."""
    recent = Recent()
    answer = Answer(0, AnswerKind.TEXT, "Tea.", lead="secret", reasoning="secret")
    ended = outcome(answers=(answer,), first=(verdict(1),), reasoned=(Reasoned(6, verdict(1)),))
    asked = replace(exchange("Tea."), model="secret", messages=(Message("user", "secret"),), echoed="secret")
    recent.add(ended, time=NOW, exchange=asked, keep_text=True)
    (entry,) = recent.entries()
    assert entry.exchange is not None
    assert "secret" not in repr(entry)
    assert (entry.outcome.first, entry.outcome.reasoned) == ((), ())


def test_a_large_exchange_keeps_its_strongest_spans_and_says_that_it_was_cut() -> None:
    """In the answer's order; the count of all of them stays."""
    recent = Recent()
    large = verdict(5_000, differences=100)
    recent.add(outcome(verdict=large, verdicts=(large,) * 50), time=NOW)
    (entry,) = recent.entries()
    (spans, *_) = [each.spans for each in entry.outcome.verdicts]
    assert [span.start for span in spans] == sorted(span.start for span in large.spans[-len(spans) :])
    assert (entry.spans, entry.cut) == (250_000, True)
    recent.add(outcome(), time=NOW)
    assert recent.entries()[0].cut is False


def test_the_riskiest_claims_are_kept_and_texts_of_them_where_allowed() -> None:
    """A key of a JSON answer and what a database gives are texts; findings of detectors are not kept at all."""
    claim = JudgedClaim(0, 1, ClaimOutcome.CONTRADICTED, 0.9, "numbers", reason="secret", path="/secret")
    many = tuple(replace(claim, start=at, end=at + 1, risk=at / 1000) for at in range(1000))
    found = DetectorResult("encoder", 0.9, findings=(Finding(0, 1, 0.9),) * 1000)
    given = replace(verdict(1), claims=many, results=(found,))
    recent = Recent()
    for keep_text in (False, True):
        recent.add(
            outcome(verdict=given, verdicts=(given,)), time=NOW, exchange=exchange("b"), keep_text=keep_text
        )
        entry = recent.entries()[0]
        kept = entry.outcome.verdicts[0]
        assert [each.start for each in kept.claims] == list(range(800, 1000))
        assert entry.cut
        assert kept.results[0].findings == ()
        assert ("secret" in repr(kept)) is keep_text
    assert "secret" not in repr(entry.without_text())


def run(steps: int, passages: int = 1, text: str = "Tea.") -> AgenticRun:
    """A run behind two passages of the request, whose steps give so many passages each."""
    own = (CollectedPassage("S1", "request", "secret"),) * 2
    found = tuple(
        CollectedPassage(f"secret-{n}", "shelf", text, "secret", "secret", "secret")
        for n in range(steps * passages)
    )
    made = tuple(
        AgenticStep(
            AgenticNode.EXECUTE_TOOL, "text_search", 0.1, "1 new", (2 + n * passages, 2 + (n + 1) * passages)
        )
        for n in range(steps)
    )
    return AgenticRun("secret", AgenticStop.TIME, steps, 10, made, own + found, partial_answer="secret")


def corrected(made: AgenticRun) -> Correction:
    return Correction("Tea.", verdict(1), Mode.AGENTIC, Stop.DEADLINE, run=made)


@pytest.mark.parametrize("keep_text", [False, True])
def test_a_run_is_kept_with_what_its_tools_gave(keep_text: bool) -> None:
    """Each step knows its own passages; of them the source alone without leave, and the request's are no step's."""
    recent = Recent()
    recent.add(
        outcome(corrections=(corrected(run(3, passages=2)), None)),
        time=NOW,
        exchange=exchange("b"),
        keep_text=keep_text,
    )
    (entry,) = recent.entries()
    first, _ = entry.outcome.corrections
    assert first is not None
    assert first.run is not None
    assert [step.passages for step in first.run.steps] == [(0, 2), (2, 4), (4, 6)]
    assert [each.source for each in first.run.passages] == ["shelf"] * 6
    assert [each.text for each in first.run.passages] == ["Tea." if keep_text else ""] * 6
    assert ("secret" in repr(first)) is keep_text
    assert not first.run.answer + first.run.partial_answer
    assert not entry.cut
    assert "secret" not in repr(entry.without_text())


def test_a_long_run_is_cut_and_said_to_be() -> None:
    """In steps, in passages and in the characters of each; what it keeps counts."""
    recent = Recent()
    long = run(500, passages=3, text="x" * 100_000)
    recent.add(outcome(corrections=(corrected(long),)), time=NOW, exchange=exchange("b"), keep_text=True)
    (entry,) = recent.entries()
    (first,) = entry.outcome.corrections
    assert first is not None
    assert first.run is not None
    assert (len(first.run.steps), len(first.run.passages)) == (40, 60)
    assert first.run.steps[-1].passages == (60, 60)
    assert all(len(each.text) <= 301 for each in first.run.passages)
    assert entry.cut
    assert entry.exchange is not None
    many = (corrected(run(30, passages=2, text="é" * 300)),) * 16
    recent.add(outcome(corrections=many), time=NOW, exchange=exchange("b"), keep_text=True)
    assert recent.entries()[0].text_dropped


def test_searches_and_sources_are_kept_without_any_text() -> None:
    """So many of them; a passage of the request has no source."""
    made = tuple(SearchRecord("shelf", SearchResult.OK, 0.1, 1, SearchedFor.CLAIM) for _ in range(100))
    passages = (
        Passage("secret", Provenance.TOOL),
        *(Passage("secret", Provenance.RETRIEVED, source="shelf") for _ in range(300)),
    )
    recent = Recent()
    asked = replace(exchange("b"), passages=passages, searches=made)
    recent.add(outcome(), time=NOW, exchange=asked)
    recent.add(outcome(), time=NOW, exchange=replace(asked, searches=made[:2]), keep_text=True)
    second, first = recent.entries()
    assert (len(first.searches), first.cut) == (40, True)
    assert (second.searches, second.cut) == (made[:2], False)
    assert second.exchange is not None
    assert second.exchange.searches == ()
    assert "secret" not in repr(first)
    assert dict(first.sources) == dict.fromkeys(range(1, 201), "shelf")


@pytest.mark.slow
def test_memory_is_bounded_whatever_the_exchanges_hold() -> None:
    """A hundred of the largest stay within the bound, measured and not only estimated."""
    bound = 4 << 20
    recent = Recent(limit=100, max_bytes=bound)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(40):
            hostile = outcome(
                "é" * 60_000,
                verdicts=tuple(verdict(300, differences=30) for _ in range(20)),
                calls=tuple(CallRecord("m" * 100_000, Role.REFINER) for _ in range(100)),
                corrections=(corrected(run(100, passages=2, text="x" * 10_000)),),
                body=b"x" * 1_000_000,
            )
            recent.add(hostile, time=NOW, exchange=exchange("b" * 100_000), keep_text=True)
        del hostile
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert recent.entries()
    assert held < 1.5 * bound
