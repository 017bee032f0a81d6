"""Count what of an answer was not scored in its verdict, so that coverage never omits it.

Tokens of text that no tokenizer saw are estimated by its characters (``llm.token_estimate``): within a factor
of about two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.exchange import Answer
from truthlens.core.records.mitigation_result import Assessment
from truthlens.core.records.outcome import Reasoned
from truthlens.core.records.verdict import Coverage, Verdict
from truthlens.llm.token_estimate import text_tokens

REASONING_UNSCORED = "reasoning-unscored"
"""The note that says that there was reasoning, and that the plan lets it pass."""

_NO_TEXT = (Reason.EMPTY_ANSWER, Reason.TOOL_CALL)


def counted(
    verdicts: Sequence[Verdict], assessment: Assessment, answers: Sequence[Answer]
) -> tuple[Verdict, ...]:
    """Return the verdicts with all text of each choice counted: unread text, and scored reasoning.

    Where some choice was scored, one that was not has a coverage as well: its text, none of which was.

    Args:
        verdicts: One per answer.
        assessment: What they come from, for the verdicts on reasoning.
        answers: The choices as the backend gave them; none for an exchange without any.
    """
    if not answers:
        return tuple(verdicts)
    reasoning = assessment.reasoning or (None,) * len(answers)
    found = [
        _with_unread(_with_reasoning(verdict, thought), answer.unread_tokens)
        for verdict, thought, answer in zip(verdicts, reasoning, answers, strict=True)
    ]
    known = [
        verdict.coverage for verdict in found if verdict.score is not None and verdict.coverage is not None
    ]
    if not known:
        return tuple(found)
    evidence = max(coverage.evidence_tokens for coverage in known)
    return tuple(
        verdict if verdict.score is not None else _with_nothing(verdict, answer, evidence)
        for verdict, answer in zip(found, answers, strict=True)
    )


def reasoned(assessment: Assessment, answers: Sequence[Answer]) -> tuple[Reasoned | None, ...]:
    """Return what reasoning came with each answer."""
    verdicts = assessment.reasoning or (None,) * len(answers)
    return tuple(
        Reasoned(len(answer.reasoning), verdict) if answer.reasoning.strip() else None
        for answer, verdict in zip(answers, verdicts, strict=True)
    )


def notes_of(found: Sequence[Reasoned | None]) -> tuple[str, ...]:
    """Return the notes that reasoning gives rise to."""
    return (REASONING_UNSCORED,) if any(each is not None and each.verdict is None for each in found) else ()


def _with_unread(verdict: Verdict, tokens: int) -> Verdict:
    if not tokens:
        return verdict
    if verdict.score is None:
        # What seemed to hold no text holds some, and nobody knows what it says.
        return replace(verdict, reason=Reason.DIALECT) if verdict.reason in _NO_TEXT else verdict
    coverage = verdict.coverage
    return replace(
        verdict,
        status=Status.PARTIAL,
        reason=verdict.reason or Reason.DIALECT,
        coverage=replace(coverage, answer_tokens=coverage.answer_tokens + tokens) if coverage else None,
    )


def _with_reasoning(verdict: Verdict, thought: Verdict | None) -> Verdict:
    """Return the verdict on an answer and its reasoning: higher score, poorer status, tokens of both."""
    if thought is None:
        return verdict
    scores = [each.score for each in (verdict, thought) if each.score is not None]
    lacking = [each for each in (verdict, thought) if each.status is not Status.CHECKED]
    status = Status.CHECKED if not lacking else Status.PARTIAL if scores else Status.UNCHECKED
    return replace(
        verdict,
        status=status,
        reason=lacking[0].reason if lacking else None,
        score=max(scores, default=None),
        coverage=_sum(verdict.coverage, thought.coverage),
    )


def _sum(one: Coverage | None, other: Coverage | None) -> Coverage | None:
    if one is None or other is None:
        return one or other
    poorer = min(one, other, key=lambda coverage: coverage.evidence_ratio)
    return replace(
        poorer,
        answer_tokens=one.answer_tokens + other.answer_tokens,
        answer_tokens_scored=one.answer_tokens_scored + other.answer_tokens_scored,
        windows=one.windows + other.windows,
    )


def _with_nothing(verdict: Verdict, answer: Answer, evidence_tokens: int) -> Verdict:
    tokens = text_tokens(answer.text) + answer.unread_tokens + answer.call_tokens
    return replace(verdict, coverage=Coverage(tokens, 0, evidence_tokens, 0)) if tokens else verdict
