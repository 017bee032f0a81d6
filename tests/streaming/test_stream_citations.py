"""Streams whose evidence comes with the answer (Azure's ``data_sources``)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.streaming.test_driver import DONE, OBSERVE, chunk, gate, line, plan
from truthlens.api.answer_citations import ANSWER_CITATIONS
from truthlens.core.records.enums import Action, OnUnchecked, Provenance, Reason, Status, Streaming
from truthlens.core.records.plan import Plan

CITATIONS: dict[str, Any] = {
    "citations": [{"title": "Ferry", "url": "https://ferry", "content": "The ferry is free and blue."}],
    "intent": '["What does the ferry cost?"]',
}
FIRST = chunk(role="assistant", context=CITATIONS)


@pytest.mark.parametrize("of", [OBSERVE, gate()])
async def test_citations_in_the_first_chunk_are_evidence(of: Plan) -> None:
    """The answer is checked against them, and nothing of them counts as text that nobody read."""
    async with line(of, passages=(), notes=(ANSWER_CITATIONS,)) as made:
        await made.send(FIRST, chunk("It costs nine."), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 5)
        assert (made.outcome.verdict.status, made.outcome.verdict.flagged) == (Status.CHECKED, True)
        (passage,) = made.flow.exchange.passages
        assert (passage.provenance, passage.id, passage.title) == (Provenance.ANSWER, "doc1", "Ferry")


@pytest.mark.parametrize("of", [OBSERVE, gate()])
async def test_without_citations_there_is_no_context(of: Plan) -> None:
    """The request promised them, and the backend sent none."""
    async with line(of, passages=(), notes=(ANSWER_CITATIONS,)) as made:
        await made.send(chunk("It costs nine."), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 4)
        assert made.outcome.verdict.reason is Reason.NO_CONTEXT
        assert made.text == "It costs nine."


async def test_a_gate_that_must_check_stops_where_the_citations_are_missing() -> None:
    """Nothing unchecked leaves."""
    blocking = plan(Streaming.GATE, on_unchecked=OnUnchecked.BLOCK)
    async with line(blocking, passages=(), notes=(ANSWER_CITATIONS,)) as made:
        await made.send(
            chunk("It costs nine. "), chunk("It is blue."), chunk(finish="stop"), DONE, b"", end=True
        )
        await made.wait(lambda: bool(made.outcomes))
        assert made.outcome.action is Action.BLOCK
        assert "nine" not in made.text


async def test_beside_any_other_request_they_are_text_that_nobody_read() -> None:
    """Only who asked for them may take them as evidence."""
    async with line(OBSERVE) as made:
        await made.send(FIRST, chunk("The ferry is blue."), chunk(finish="stop"), DONE, b"", end=True)
        await made.wait(lambda: len(made.acks) == 5)
        assert (made.outcome.verdict.status, made.outcome.verdict.reason) == (Status.PARTIAL, Reason.DIALECT)
