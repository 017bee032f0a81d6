"""The closed lists of words that policies, headers and records share. Nothing here decides anything."""

from __future__ import annotations

from enum import StrEnum


class Stricter(StrEnum):
    """Which of two values of a setting is the stricter one. Each setting declares it (``Annotated[int, Stricter.LOWER]``).

    ``LOWER``, ``HIGHER``: of numbers; ``true`` is higher than ``false``, and where a bound may be left out, no bound is the
    highest. ``LATER``: the member that stands later in its enumeration. ``MORE``: the list that holds all of the other.
    ``WIDER``: the range that holds the other. ``VISIBLE``: a text that a reader sees; none at all means a built-in one. ``NO_EFFECT``:
    both are as strict. ``UNKNOWN``: they cannot be compared, so that any difference counts as weaker.
    """

    LOWER = "lower"
    HIGHER = "higher"
    LATER = "later"
    MORE = "more"
    WIDER = "wider"
    VISIBLE = "visible"
    NO_EFFECT = "no-effect"
    UNKNOWN = "unknown"


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
    UNSURE_CONTEXT = "unsure-context"
    NOT_AN_ANSWER = "not-an-answer"
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
    RETRIEVAL_FAILED = "retrieval-failed"
    RETRIEVAL_EMPTY = "retrieval-empty"

    @property
    def is_failure(self) -> bool:
        """Whether something went wrong, in place of there being nothing to check."""
        return self in _FAILURES


_FAILURES = frozenset(
    {
        Reason.ENCODING,
        Reason.TOO_LARGE,
        Reason.UPSTREAM_ERROR,
        Reason.DETECTOR_ERROR,
        Reason.TIMEOUT,
        Reason.OVERLOADED,
        Reason.UNAVAILABLE,
        Reason.RETRIEVAL_FAILED,
    }
)


class LeftOut(StrEnum):
    """Why tokens of an answer that a model read count for nothing in its score (``Coverage.left_out``)."""

    PHRASES = "phrases"
    SIGNS = "signs"


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


class Trigger(StrEnum):
    """When evidence is retrieved: the request holds none, or an answer is not supported by what it holds."""

    NO_CONTEXT = "no-context"
    UNSUPPORTED = "unsupported"


class OnFailure(StrEnum):
    """What happens to an answer whose evidence could not be searched for."""

    UNCHECKED = "unchecked"
    WARN = "warn"
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
    """Where a passage came from: a part of the request, the answer, or a source that was searched."""

    TOOL = "tool"
    SYSTEM = "system"
    DOCUMENTS = "documents"
    USER = "user"
    ANSWER = "answer"
    RETRIEVED = "retrieved"


class SystemEvidence(StrEnum):
    """What of a system message may be evidence: nothing, what is marked, or also text that reads as reference text."""

    NEVER = "never"
    MARKED = "marked"
    AUTO = "auto"


class IntermediateCalls(StrEnum):
    """Which exchanges are steps of an application, whose answers no user reads: those seen to be, none, or all of a decision."""

    DETECT = "detect"
    NONE = "none"
    ALL = "all"


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


class AskWhen(StrEnum):
    """Which answers a plan asks models about, beside a sample: those whose score lies in its band, or all."""

    BAND = "band"
    ALWAYS = "always"


class Rescoring(StrEnum):
    """When a correction is judged by models as well: the last candidate alone, or every one."""

    END = "end"
    EVERY = "every"


class Stage(StrEnum):
    """Which stage of the cascade decided an answer, and why models were asked about it.

    ``first``: nobody was asked. ``band``: the first score lay in the band. ``unscored``: there was no first score.
    ``always`` and ``sample``: the plan says so. ``confirm``: it is a correction of an answer that models were asked about.
    """

    FIRST = "first"
    BAND = "band"
    UNSCORED = "unscored"
    ALWAYS = "always"
    SAMPLE = "sample"
    CONFIRM = "confirm"


class DetectorName(StrEnum):
    """Detectors that a plan may list."""

    ENCODER = "encoder"
    CITATIONS = "citations"
    NUMBERS = "numbers"
    CONTRADICTIONS = "contradictions"
    JUDGE = "judge"
    BUDGET = "budget"
    VERIFY = "verify"
    READER = "reader"
