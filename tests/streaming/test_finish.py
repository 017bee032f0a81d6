"""What is said at the end of a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from truthlens.api.sse.chunks import Chunk, ChunkKind, Delta, Transcript
from truthlens.api.sse.completeness import limited
from truthlens.core.records.enums import (
    Action,
    AnswerKind,
    Endpoint,
    OnFlagged,
    OnUnchecked,
    Provenance,
    Reason,
    Status,
    Streaming,
)
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.mitigation_result import Assessment
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import StreamSettings
from truthlens.core.records.verdict import DetectorResult, Span, ValueClaim, Verdict, unchecked
from truthlens.streaming.finish import Ending, Gated, answers_of, ending_of

PLAN = Plan("p", threshold=0.5, streaming=Streaming.OBSERVE, warning_template="Beware.")
EXCHANGE = Exchange(
    Endpoint.CHAT, "m", "q", (Passage("The ferry is free.", Provenance.DOCUMENTS),), stream=True
)
TEXT = "The ferry costs nine euros. It is blue."


def verdict(score: float, *spans: tuple[int, int]) -> Verdict:
    return Verdict(
        Status.CHECKED, score=score, threshold=0.5, spans=tuple(Span(a, b, score) for a, b in spans)
    )


def ending(
    *verdicts: Verdict,
    plan: Plan = PLAN,
    exchange: Exchange = EXCHANGE,
    texts: tuple[str, ...] = (TEXT,),
    first: tuple[Verdict, ...] | None = None,
    **fields: Any,
) -> Ending:
    answers = [Answer(place, AnswerKind.TEXT, text) for place, text in enumerate(texts)]
    return ending_of(
        plan,
        exchange,
        answers,
        Assessment(verdicts, first or verdicts),
        model="model",
        **{"details": True, **fields},
    )


def test_a_flagged_answer_ends_with_the_warning() -> None:
    told = ending(verdict(0.9, (16, 26)))
    assert told.closing == {0: "\n\nBeware."}
    assert (told.outcome.action, told.outcome.body) == (Action.WARN, None)
    assert told.details is not None
    (choice,) = told.details["choices"]
    assert (choice["warned"], choice["spans"][0]["text"]) == (True, "nine euros")


def test_an_unflagged_answer_ends_as_it_is() -> None:
    told = ending(verdict(0.1))
    assert (told.closing, told.outcome.action) == ({}, Action.PASS)


@pytest.mark.parametrize(
    ("plan", "exchange", "text"),
    [
        (replace(PLAN, stream=StreamSettings(warning=False)), EXCHANGE, TEXT),
        (PLAN, replace(EXCHANGE, structured=True), TEXT),
        (PLAN, EXCHANGE, '{"price": 9}'),
    ],
    ids=["switched-off", "structured", "json"],
)
def test_no_warning_where_none_may_stand(plan: Plan, exchange: Exchange, text: str) -> None:
    """The verdict still says that the answer is flagged."""
    told = ending(verdict(0.9), plan=plan, exchange=exchange, texts=(text,))
    assert (told.closing, told.outcome.action) == ({}, Action.WARN)
    assert told.outcome.verdict.flagged


def test_a_marked_answer_gets_no_second_warning_and_its_spans_count_the_marks() -> None:
    """Offsets are characters of what the client received."""
    gated = Gated(texts={0: TEXT}, insertions={0: [(27, " [?]")]}, marked=frozenset({0}))
    told = ending(verdict(0.9, (16, 26), (34, 38)), gated=gated)
    assert (told.closing, told.outcome.action) == ({}, Action.WARN)
    assert told.details is not None
    (choice,) = told.details["choices"]
    assert [span["text"] for span in choice["spans"]] == ["nine euros", "blue"]
    assert choice["spans"][1]["start"] == 34 + len(" [?]")


def test_a_span_that_holds_a_mark_ends_behind_it() -> None:
    gated = Gated(texts={0: TEXT}, insertions={0: [(27, " [?]")]}, marked=frozenset({0}))
    told = ending(verdict(0.9, (16, 38)), gated=gated)
    assert told.details is not None
    (choice,) = told.details["choices"]
    assert choice["spans"][0]["text"] == "nine euros. [?] It is blue"


def test_claims_stand_where_they_were_received() -> None:
    """Values that a detector compared count the marks as spans do."""
    said = ValueClaim(22, 26, "money", 9.0, "contradicted", verified=False)
    late = replace(said, start=34, end=38)
    seen = replace(verdict(0.9, (16, 26)), results=(DetectorResult("numbers", 0.9, claims=(said, late)),))
    gated = Gated(texts={0: TEXT}, insertions={0: [(27, " [?]")]}, marked=frozenset({0}))
    told = ending(seen, gated=gated)
    assert told.details is not None
    claims = told.details["choices"][0]["detectors"][0]["flagged_claims"]
    assert [claim["original_text"] for claim in claims] == [TEXT[22:26], "blue"]


def test_a_withheld_sentence_is_a_replacement_with_the_first_score() -> None:
    gated = Gated(texts={0: " It is blue."}, insertions={0: [(0, "[gone]")]}, withheld=frozenset({0}))
    told = ending(verdict(0.1), texts=(" It is blue.",), first=(verdict(0.9),), gated=gated)
    assert (told.outcome.action, told.outcome.initial_score) == (Action.REPLACE, 0.9)
    assert told.outcome.verdict.score == 0.1
    assert "withheld" in told.outcome.notes


def test_a_stopped_stream_is_a_block_without_a_body() -> None:
    gated = Gated(texts={0: ""}, insertions={0: [(0, "[stop]")]}, withheld=frozenset({0}), stopped=True)
    told = ending(verdict(0.9), texts=("",), gated=gated)
    assert (told.outcome.action, told.outcome.body, told.closing) == (Action.BLOCK, None, {})
    assert "stopped" in told.outcome.notes


def test_what_was_not_seen_makes_a_verdict_partial() -> None:
    (some, nothing) = limited([verdict(0.2), unchecked(Reason.EMPTY_ANSWER)], Reason.TOO_LARGE)
    assert (some.status, some.reason, some.score) == (Status.PARTIAL, Reason.TOO_LARGE, 0.2)
    assert (nothing.status, nothing.reason) == (Status.UNCHECKED, Reason.TOO_LARGE)
    (called,) = limited([unchecked(Reason.TOOL_CALL)], Reason.TOO_LARGE)
    assert called.reason is Reason.TOOL_CALL


def test_a_stream_without_an_answer_says_why_it_was_not_checked() -> None:
    told = ending(texts=(), reason=Reason.DIALECT)
    assert (told.outcome.verdict.status, told.outcome.verdict.reason) == (Status.UNCHECKED, Reason.DIALECT)


def test_an_unchecked_answer_says_so_where_a_verdict_was_asked_for() -> None:
    """The headers have left without a word of it, so also where the plan passes such answers."""
    plan = replace(PLAN, on_unchecked=OnUnchecked.PASS)
    details = ending(unchecked(Reason.LANGUAGE), plan=plan).details
    assert details is not None
    assert (details["status"], details["reason"]) == ("unchecked", "language")


def test_what_could_not_be_checked_any_more_is_not_blocked_after_it_has_left() -> None:
    """Under a gate the text was decided sentence by sentence."""
    told = ending(unchecked(Reason.TIMEOUT), plan=replace(PLAN, on_unchecked=OnUnchecked.BLOCK))
    assert (told.outcome.action, told.outcome.body) == (Action.PASS, None)


def test_reasoning_stands_in_place_of_an_answer_only_where_all_was_read() -> None:
    """Beyond the bounds the answer may have come where nobody read: megabytes of reasoning are not scored for it."""
    transcript = Transcript(Endpoint.CHAT)
    transcript.add(Chunk(ChunkKind.CHOICES, deltas=(Delta(0, reasoning="The ferry is free."),)))
    (answer,) = answers_of(transcript, EXCHANGE, over=True)
    assert (answer.kind, answer.text) == (AnswerKind.REASONING, "The ferry is free.")
    (answer,) = answers_of(transcript, EXCHANGE, over=True, overflowed=True)
    assert (answer.kind, answer.text) == (AnswerKind.EMPTY, "")


@pytest.mark.parametrize(
    ("streaming", "on_flagged", "would"),
    [
        (Streaming.OBSERVE, OnFlagged.STOP, Action.WARN),
        (Streaming.GATE, OnFlagged.MARK, Action.WARN),
        (Streaming.GATE, OnFlagged.WITHHOLD, Action.REPLACE),
        (Streaming.GATE, OnFlagged.STOP, Action.BLOCK),
    ],
)
def test_in_shadow_a_stream_ends_as_it_came(
    streaming: Streaming, on_flagged: OnFlagged, would: Action
) -> None:
    """No warning behind it; what a gate would have done is said."""
    plan = replace(PLAN, streaming=streaming, on_flagged=on_flagged, shadow=True).in_shadow()
    found = ending(verdict(0.9, (0, 10)), plan=plan)
    assert found.closing == {}
    assert (found.outcome.action, found.outcome.shadow_action) == (Action.PASS, would)
    assert found.details is not None
    assert found.details["shadow_action"] == would.value
    clean = ending(verdict(0.1), plan=plan).outcome
    assert (clean.action, clean.shadow_action) == (Action.PASS, Action.PASS)
