"""Read and validate the judge's reply: exactly the fields that were asked for, or an error."""

from __future__ import annotations

from typing import Annotated, Literal

import pydantic

from truthlens.core.records.calls import CUT_OFF, Completion
from truthlens.detection.asking.failures import ReplyError
from truthlens.prompts.json_replies import one_object

Unit = Annotated[float, pydantic.Field(ge=0, le=1, allow_inf_nan=False)]
Text = Annotated[str, pydantic.Field(max_length=20_000)]
Entries = Annotated[list[Text], pydantic.Field(max_length=100)]


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)


class Hallucination(_Strict):
    """What the judge found unfounded; lists quote the answer."""

    has_risk: bool
    risk_score: Unit
    unsupported_claims: Entries
    invalid_citations: Entries
    contradictory_info: Entries
    over_extrapolation: Entries
    notes: Text | None = None


class TwoStage(_Strict):
    """The reply of the second stage."""

    score: Unit
    reasoning: Text
    confidence: Unit
    decision: Literal["continue", "refine_search", "synthesize", "reject"]
    hallucination: Hallucination
    completeness_score: Unit
    relevance_score: Unit
    citation_quality_score: Unit
    consistency_score: Unit
    completeness_notes: Text | None = None
    relevance_notes: Text | None = None
    citation_notes: Text | None = None
    consistency_notes: Text | None = None

    @property
    def risk(self) -> float:
        """The risk that the judge gave."""
        return self.hallucination.risk_score

    @property
    def dimensions(self) -> tuple[float, ...]:
        """The four scores besides the overall one."""
        return (
            self.completeness_score,
            self.relevance_score,
            self.citation_quality_score,
            self.consistency_score,
        )


class SingleStage(_Strict):
    """The reply of the single stage."""

    score: Unit
    reasoning: Text
    confidence: Unit
    decision: Literal["continue", "refine_search", "synthesize"]
    hallucination_risk: Unit
    hallucination_notes: Text | None = None

    @property
    def risk(self) -> float:
        """The risk that the judge gave."""
        return self.hallucination_risk

    @property
    def dimensions(self) -> tuple[float, ...]:
        """There are none in a single stage."""
        return ()


Judgement = TwoStage | SingleStage


def whole_text(reply: Completion) -> str:
    """Return the text of a reply that is whole.

    Raises:
        ReplyError: it was cut off.
    """
    if reply.finish_reason in CUT_OFF:
        raise ReplyError("the judge's reply was cut off, at its limit of tokens or by its server's filter")
    return reply.text


def read_reply(text: str, *, two_stage: bool) -> Judgement:
    """Return the one object in ``text``; prose or a fence may stand around it.

    Raises:
        ReplyError: none, several, a damaged one, or fields and values that were not asked for.
    """
    try:
        value = one_object(text)
    except ValueError as error:
        raise ReplyError(f"the judge's reply {error}") from None
    return validated(value, two_stage=two_stage)


def validated(value: object, *, two_stage: bool) -> Judgement:
    """Return the judgement that a value holds.

    Raises:
        ReplyError: it holds none, or members that were not asked for.
    """
    kind: type[TwoStage | SingleStage] = TwoStage if two_stage else SingleStage
    try:
        return kind.model_validate(value)
    except pydantic.ValidationError as error:
        raise ReplyError(f"the judge's reply has {error.error_count()} wrong fields") from None
