"""The frozen records that cross borders between stages.

A stage never changes a record that it was given; it returns a new one. Nothing here does I/O, knows
YAML, protobuf or HTTP, or decides anything: the records only carry what was decided.

Words (one per idea): *exchange* request plus answer · *passage* one piece of evidence with its
provenance · *query* what the user asked · *span* characters of the answer, start inclusive, end
exclusive · *score* one detector's figure, 0 to 1, higher is worse · *verdict* the fused result for an
answer · *decision* a named policy of the YAML · *plan* a compiled decision · *mode* · *action* ·
*outcome* everything about one exchange.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from truthlens.core.explanation import Explanation

if TYPE_CHECKING:
    from truthlens.core.calls import CallRecord
    from truthlens.core.mitigation_result import Mended
    from truthlens.core.plan import Plan


class Status(StrEnum):
    """How much of an answer was checked. ``unchecked`` is never reported as clean."""

    CHECKED = "checked"
    PARTIAL = "partial"
    UNCHECKED = "unchecked"
    PENDING = "pending"


class Reason(StrEnum):
    """Why an answer was not, or not wholly, checked (the value of ``X-TruthLens-Reason``)."""

    DISABLED = "disabled"
    NO_CONTEXT = "no-context"
    EMPTY_ANSWER = "empty-answer"
    TOOL_CALL = "tool-call"
    DIALECT = "dialect"
    ENCODING = "encoding"
    TOO_LARGE = "too-large"
    UPSTREAM_ERROR = "upstream-error"
    DETECTOR_ERROR = "detector-error"
    TIMEOUT = "timeout"
    OVERLOADED = "overloaded"
    LANGUAGE = "language"
    UNAVAILABLE = "unavailable"


class Mode(StrEnum):
    """What is done about an unsupported answer."""

    LIGHTWEIGHT = "lightweight"
    STANDARD = "standard"
    PREMIUM = "premium"
    AGENTIC = "agentic"
    AUTO = "auto"


class Action(StrEnum):
    """What was done to the answer."""

    PASS = "pass"  # noqa: S105 - an action, not a password
    WARN = "warn"
    REFINE = "refine"
    REPLACE = "replace"
    BLOCK = "block"


class Risk(StrEnum):
    """Risk level of a score: low up to 0.3, moderate up to 0.6, high above."""

    LOW = "low"
    MODERATE = "moderate"
    HIGH = "high"


class Aggregation(StrEnum):
    """How token scores become one response score (white paper, definition 4 and 3.1.3)."""

    NOISY_OR = "noisy_or"
    SPAN_MAX = "span_max"
    SPAN_NOISY_OR = "span_noisy_or"


class Streaming(StrEnum):
    """What a plan does with an SSE answer."""

    OBSERVE = "observe"
    GATE = "gate"
    BUFFER = "buffer"


class OnUnchecked(StrEnum):
    """What happens to an exchange that was not fully checked."""

    PASS = "pass"  # noqa: S105 - an action, not a password
    ANNOTATE = "annotate"
    BLOCK = "block"


class OnFlagged(StrEnum):
    """What a gated stream does with a flagged sentence."""

    MARK = "mark"
    WITHHOLD = "withhold"
    STOP = "stop"


class WarningPosition(StrEnum):
    """Where the warning stands relative to the answer."""

    BEFORE = "before"
    AFTER = "after"


class Provenance(StrEnum):
    """Where in the request a passage came from."""

    TOOL = "tool"
    SYSTEM = "system"
    DOCUMENTS = "documents"
    USER = "user"


class Endpoint(StrEnum):
    """The API of an exchange."""

    CHAT = "chat"
    COMPLETIONS = "completions"


class Reasoning(StrEnum):
    """What a plan does about a model's reasoning: let it pass, and say so, or score it as well."""

    PASS = "pass"  # noqa: S105 - an action, not a password
    SCORE = "score"


class AnswerKind(StrEnum):
    """What one choice of a response holds.

    Only ``TEXT`` can be changed, or have anything put beside it. A ``TOOL_CALL`` and a ``REFUSAL`` may have text
    of their own; the text of ``OTHER`` stands, wholly or in part, in other members than the API's; that of
    ``REASONING`` is reasoning that came in place of an answer.
    """

    TEXT = "text"
    TOOL_CALL = "tool-call"
    REFUSAL = "refusal"
    OTHER = "other"
    REASONING = "reasoning"
    EMPTY = "empty"


class DetectorName(StrEnum):
    """Detectors that a plan may list."""

    ENCODER = "encoder"
    CITATIONS = "citations"
    NUMBERS = "numbers"
    JUDGE = "judge"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Passage:
    """One piece of evidence.

    ``text`` is data, never an instruction. ``id`` is the label the request gave it (``S0``,
    ``doc_7``), or ``""``.
    """

    text: str
    provenance: Provenance
    id: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message, its content parts joined to plain text."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """The request half of an exchange, as the stages need it.

    ``structured`` is true where the client asked for JSON (``response_format`` other than text,
    ``guided_json`` and the like): no warning may be pasted into such an answer. ``echoed`` is text that the
    backend was asked to repeat before the answer (completions with ``echo``). ``choices`` is how many answers were
    asked for (``n``). ``notes`` are codes of what limited the taking of evidence.
    """

    endpoint: Endpoint
    model: str
    query: str
    passages: tuple[Passage, ...]
    messages: tuple[Message, ...] = ()
    stream: bool = False
    structured: bool = False
    echoed: str = ""
    choices: int = 1
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The request as known before its body.

    ``headers`` has lower-case names; of a repeated header the values are joined by ``", "``. ``route`` is the
    gRPC initial metadata that the operator set on the Envoy route, never anything that a client sent.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    route: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """Status and headers (lower-case names) of the backend's response."""

    status: int
    headers: Mapping[str, str]

    @property
    def media_type(self) -> str:
        """The body's media type in lower case, without parameters; ``""`` where none is given."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def streams(self) -> bool:
        """Whether the body is a stream of server-sent events."""
        return self.media_type == "text/event-stream"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the policy may look at once the body is known.

    ``text`` is the text of all user messages, ``language`` a code such as ``en`` or ``zh``, ``""`` if unknown.
    ``context`` are the other texts of the request; they can only make the plan stricter.
    """

    head: RequestHead
    model: str = ""
    text: str = ""
    language: str = ""
    context: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """One choice of the response: ``text`` is what of it is scored.

    ``lead`` is reasoning that stands right before the text, in the same member. ``reasoning`` is all reasoning
    beside the text, the lead included. ``unread_tokens`` estimates what else a client can show, and nothing here
    reads; ``call_tokens`` what stands in tool calls.
    """

    index: int
    kind: AnswerKind
    text: str = ""
    lead: str = ""
    reasoning: str = ""
    unread_tokens: int = 0
    call_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """Characters ``start`` (inclusive) to ``end`` (exclusive) of the answer.

    ``score`` is in 0..1. ``passage`` is the index, in the exchange's passages, of the one that
    contradicts the span or comes nearest, or ``None``. ``explanation`` is ``None`` where nobody explained it.
    """

    start: int
    end: int
    score: float
    detector: str = DetectorName.ENCODER
    passage: int | None = None
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much was looked at, in the model's own tokens; estimated by characters where no tokenizer saw the text.

    ``evidence_tokens_seen`` counts evidence that was compared with the answer, by the sentence
    selector or by the encoder; ``evidence_tokens_read`` what stood in at least one encoder window.
    """

    answer_tokens: int
    answer_tokens_scored: int
    evidence_tokens: int
    evidence_tokens_seen: int
    evidence_tokens_read: int = 0
    windows: int = 0

    @property
    def answer_ratio(self) -> float:
        """Share of answer tokens that were scored, 0..1; 1.0 for an answer without tokens."""
        return self.answer_tokens_scored / self.answer_tokens if self.answer_tokens else 1.0

    @property
    def evidence_ratio(self) -> float:
        """Share of evidence tokens that were seen, 0..1; 1.0 where there is no evidence."""
        return self.evidence_tokens_seen / self.evidence_tokens if self.evidence_tokens else 1.0

    @property
    def complete(self) -> bool:
        """Whether every answer token was scored against all of the evidence."""
        return (
            self.answer_tokens_scored == self.answer_tokens
            and self.evidence_tokens_seen == self.evidence_tokens
        )


@dataclass(frozen=True, slots=True)
class DetectorResult:
    """What one detector says of one answer, or (``reason`` set, ``score`` ``None``) why it did not run.

    ``abstained`` (``score`` and ``reason`` ``None``): there was nothing in the answer for this detector to judge.
    ``floor`` (0..1) is what the fused score is at least, for findings that are facts and not estimates.
    ``details`` holds further figures that are safe to show (numbers and names from configuration,
    no text of users or models).
    """

    detector: str
    score: float | None
    spans: tuple[Span, ...] = ()
    coverage: Coverage | None = None
    reason: Reason | None = None
    explanation: str = ""
    duration_s: float = 0.0
    weight: float = 1.0
    abstained: bool = False
    floor: float = 0.0
    details: Mapping[str, float | str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The fused result for one answer.

    ``score`` is ``None`` exactly where ``status`` is ``unchecked`` or ``pending``; ``reason`` is ``None``
    exactly where it is ``checked``. ``flagged`` is ``score >= threshold``.
    """

    status: Status
    reason: Reason | None = None
    score: float | None = None
    threshold: float = 0.0
    spans: tuple[Span, ...] = ()
    coverage: Coverage | None = None
    results: tuple[DetectorResult, ...] = ()

    @property
    def flagged(self) -> bool:
        """Whether the answer was scored and the score reached the threshold."""
        return self.score is not None and self.score >= self.threshold


def unchecked(reason: Reason, *, threshold: float = 0.0) -> Verdict:
    """The verdict of an answer that nothing was scored of."""
    return Verdict(status=Status.UNCHECKED, reason=reason, threshold=threshold)


@dataclass(frozen=True, slots=True)
class Reasoned:
    """The reasoning beside one answer: how many characters, and the verdict on them where the plan has it scored."""

    characters: int
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """How a streamed answer went through.

    ``lag_s`` are the seconds between the end of the answer and its verdict, for which the end of the stream was held.
    ``held_s`` is the longest that text was held (under ``buffer`` without the time that the backend took), ``held_bytes``
    the most that was. ``sentences`` counts what was decided under ``gate``: ``passed``, ``flagged``, ``unchecked``.
    """

    streaming: Streaming
    lag_s: float = 0.0
    held_s: float = 0.0
    held_bytes: int = 0
    sentences: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Which model a folder holds, as far as its scores go.

    ``sha256`` (hex) changes with whatever changes a score: weights, tokenizer, input format, calibration.
    ``aggregation`` is the model's own, for plans that name none.
    """

    name: str
    sha256: str
    aggregation: Aggregation


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything about one exchange, once it has ended.

    ``verdict`` is the worst one of the choices; ``verdicts`` has one per choice, in the response's order.
    ``body`` is the new response body, or ``None`` where the backend's bytes pass untouched; for the action
    ``block`` it is the error body that is sent with the HTTP status ``block_status``.
    ``iterations`` are the refinement rounds of the choice that took the most. ``first`` are the verdicts on the choices as
    the backend gave them.
    ``initial_score`` is set only where the answer was changed by an extra generation. ``mended`` says, per choice,
    what was done about it (``None`` where nothing was), ``calls`` which models were asked for that; ``mending_s``
    are the seconds that it took after the first detection. ``disputed`` are the places of choices that carry the
    disclaimer because the models did not agree. ``stream`` is set for answers that came as a stream and were judged.
    ``reasoned`` has, per choice, its reasoning beside the answer, ``None`` where there is none.
    ``answers`` are the choices, without warnings, that the positions in ``verdicts`` count in.
    """

    plan: Plan
    verdict: Verdict
    verdicts: tuple[Verdict, ...] = ()
    mode: Mode = Mode.LIGHTWEIGHT
    action: Action = Action.PASS
    iterations: int = 0
    body: bytes | None = None
    initial_score: float | None = None
    review_id: str | None = None
    latency_s: float = 0.0
    model: str = ""
    block_status: int = 424
    notes: tuple[str, ...] = ()
    mended: tuple[Mended | None, ...] = ()
    first: tuple[Verdict, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    mending_s: float = 0.0
    disputed: frozenset[int] = frozenset()
    stream: StreamRecord | None = None
    reasoned: tuple[Reasoned | None, ...] = ()
    answers: tuple[Answer, ...] = ()
