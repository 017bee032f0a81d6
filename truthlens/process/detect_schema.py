"""What ``POST /v1/detect`` takes and gives, as types from which its OpenAPI is made."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

import pydantic
from typing_extensions import TypedDict  # pydantic asks for it before Python 3.12

from truthlens.core.records.claims import ClaimOutcome
from truthlens.core.records.enums import Reason, Risk, Stage, Status
from truthlens.core.records.explanation import DifferenceKind


class DetectRequest(pydantic.BaseModel):
    """Body of ``POST /v1/detect``; ``decision`` picks the plan, left out means the default one."""

    model_config = pydantic.ConfigDict(extra="forbid")

    context: list[Any] | str
    query: str = ""
    response: str
    decision: str | None = None

    @pydantic.field_validator("context")
    @classmethod
    def _texts(cls, context: list[Any] | str) -> list[str] | str:
        # One error for all items: pydantic's own would be one for each of a million.
        if not isinstance(context, str) and not all(isinstance(text, str) for text in context):
            raise ValueError("every item has to be a text")
        return context


class Piece(TypedDict):
    """Characters `start` to `end` of a text."""

    start: int
    end: int
    text: NotRequired[str]


class NearestPiece(Piece):
    """Characters `start` to `end` of `context[passage]`; `similarity` is their share of the claim."""

    passage: int
    similarity: float


class ClaimDifference(TypedDict):
    """Characters `start` to `end` of the answer, their text `answer`, and what the evidence gives instead.

    `evidence_start` and `evidence_end` count characters of the passage of the claim's `sentence`, or of its
    `nearest`. Without `evidence` it gives nothing instead.
    """

    type: DifferenceKind
    start: int
    end: int
    answer: NotRequired[str]
    evidence: NotRequired[str]
    evidence_start: NotRequired[int]
    evidence_end: NotRequired[int]


class DetectClaim(Piece):
    """A claim of the answer; `risk` is absent where `outcome` is `unjudged`.

    `detector` decided; `passage` is an index into `context`, `sentence` the characters of it that stand against the claim or prove it;
    `provenance` is `sql:NAME` where a database decided, `reason` what it gives. `path` is the JSON Pointer of a claim in JSON,
    `context` what of the answer it stands under. `nearest` is there where no `sentence` is: the sentence that
    shares most of the claim's words. It is where to look, and proves nothing. `differences` are those of a
    claim that is `contradicted` or `not-stated`.
    """

    outcome: ClaimOutcome
    risk: NotRequired[float]
    detector: NotRequired[str]
    passage: NotRequired[int]
    sentence: NotRequired[Piece]
    nearest: NotRequired[NearestPiece]
    differences: NotRequired[list[ClaimDifference]]
    provenance: NotRequired[str]
    reason: NotRequired[str]
    path: NotRequired[str]
    context: NotRequired[Piece]


class DetectReply(TypedDict):
    """The verdict on an answer; `claims` are the first 100, in the answer's order. Scores are 0..1; positions count characters."""

    decision: str
    policy_version: str
    status: Status
    reason: NotRequired[Reason]
    score: NotRequired[float]
    threshold: float
    detected: NotRequired[bool]
    risk: NotRequired[Risk]
    stage: NotRequired[Stage]
    first_score: NotRequired[float]
    original_confidence: NotRequired[float]
    adjusted_confidence: NotRequired[float]
    coverage: NotRequired[dict[str, Any]]
    claims: list[DetectClaim]
    spans: list[dict[str, Any]]
    detectors: list[dict[str, Any]]


class DetectError(TypedDict):
    """Why an answer could not be scored."""

    message: str
    type: Literal["invalid_request_error"]


class DetectProblem(TypedDict):
    """An error's body."""

    error: DetectError
