"""What ``POST /v1/ask`` takes and gives, as types from which its OpenAPI is made."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

import pydantic
from pydantic import Field, StringConstraints
from typing_extensions import TypedDict  # pydantic asks for it before Python 3.12

from truthlens.core.records.agentic_run import AgenticNode, AgenticStop
from truthlens.process.detect_schema import DetectReply

MOST_QUESTION_CHARS = 10_000
_MOST_NAMES = 64

Name = Annotated[str, StringConstraints(min_length=1, max_length=300)]
_Value = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_QUESTION_CHARS)]


class AskRequest(pydantic.BaseModel):
    """Body of ``POST /v1/ask``.

    `decision` picks the plan whose limits hold and whose detectors score, left out the default one. `model`
    takes the steps that the plan's `agentic` names none for. `sources` left out are all that may be searched.
    `scope` says what sources with a `filter` are searched for; only a reviewer may give it.
    """

    model_config = pydantic.ConfigDict(extra="forbid")

    question: _Text
    decision: str | None = None
    model: Name | None = None
    sources: Annotated[list[Name], Field(min_length=1, max_length=_MOST_NAMES)] | None = None
    scope: Annotated[dict[Name, _Value], Field(max_length=_MOST_NAMES)] = Field(default_factory=dict)


class AskStep(TypedDict):
    """One step of the run; `seconds` are its own, `summary` is a code or a count."""

    node: AgenticNode
    tool: str | None
    seconds: float
    summary: str


class AskSource(TypedDict):
    """A passage that was found; the answer cites it as `[id]` where it is `cited`."""

    id: str
    title: str | None
    source: str
    cited: bool


class AskReply(TypedDict):
    """The answer, how the run ended, and the verdict, whose passages are counted as `sources` are, from 0.

    `stop` is `accepted`, or why the answer was not accepted. `verdict` is null where there is no evidence to
    check by, or detection is off.
    """

    answer: str
    accepted: bool
    stop: AgenticStop | Literal["released"]
    failure: str | None
    search_failed: bool
    iterations: int
    tokens: int
    steps: list[AskStep]
    sources: list[AskSource]
    verdict: DetectReply | None


class AskFault(TypedDict):
    """Why a question was not answered; `code` is of a closed list."""

    message: str
    type: Literal["invalid_request_error", "upstream_error"]
    code: NotRequired[str | None]
    param: NotRequired[None]


class AskProblem(TypedDict):
    """An error's body."""

    error: AskFault
