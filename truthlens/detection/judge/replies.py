"""Read and validate the judge's reply: exactly the fields that were asked for, or an error."""

from __future__ import annotations

import json
from typing import Annotated, Literal, NoReturn

import pydantic

from truthlens.core.errors import DetectorError

_MOST_CHARS = 200_000
Unit = Annotated[float, pydantic.Field(ge=0, le=1, allow_inf_nan=False)]
Text = Annotated[str, pydantic.Field(max_length=20_000)]
Entries = Annotated[list[Text], pydantic.Field(max_length=100)]


class ReplyError(DetectorError):
    """The judge's reply is not what was asked for; the message holds none of it."""


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


def read_reply(text: str, *, two_stage: bool) -> Judgement:
    """Return the one object in ``text``; prose or a fence may stand around it.

    Raises:
        ReplyError: none, several, a damaged one, or fields and values that were not asked for.
    """
    start = text.find("{")
    if len(text) > _MOST_CHARS or start < 0:
        raise ReplyError(
            "the judge's reply is too long" if start >= 0 else "the judge's reply holds no object"
        )
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
    try:
        value, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        raise ReplyError("the judge's reply holds a damaged object") from None
    if "{" in text[end:]:
        raise ReplyError("the judge's reply holds more than one object")
    return validated(value, two_stage=two_stage)


def validated(value: object, *, two_stage: bool) -> Judgement:
    """Return the judgement that a value holds; members that were not asked for are dropped.

    Raises:
        ReplyError: it holds none.
    """
    kind: type[TwoStage | SingleStage] = TwoStage if two_stage else SingleStage
    try:
        return kind.model_validate(_asked_for(value, kind))
    except pydantic.ValidationError as error:
        raise ReplyError(f"the judge's reply has {error.error_count()} wrong fields") from None


def _asked_for(value: object, kind: type[TwoStage | SingleStage]) -> object:
    if not isinstance(value, dict):
        return value
    known = {name: each for name, each in value.items() if name in kind.model_fields}
    inner = known.get("hallucination")
    if isinstance(inner, dict):
        known["hallucination"] = {
            name: each for name, each in inner.items() if name in Hallucination.model_fields
        }
    return known


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _constant(_: str) -> NoReturn:
    raise ValueError("not a number of JSON")
