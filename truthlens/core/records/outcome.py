"""The frozen record of an exchange that has ended. What leaves, the figures and the log are made of it alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from truthlens.core.records.calls import CallRecord
from truthlens.core.records.enums import Action, Mode, Streaming
from truthlens.core.records.exchange import Answer
from truthlens.core.records.mitigation_result import Correction
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Reasoned:
    """The reasoning beside one answer: how many characters, and the verdict on them where the plan has it scored."""

    characters: int
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class ResponseRecord:
    """What the backend sent: ``size`` bytes, and what it says of them.

    ``id`` is ``""`` where it gave none that is an identifier; ``usage`` are the tokens that it counted.
    """

    size: int = 0
    id: str = ""
    usage: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


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
class Outcome:
    """Everything about one exchange, once it has ended.

    ``verdict`` is the worst one of the choices; ``verdicts`` has one per choice, in the response's order.
    ``body`` is the new response body, or ``None`` where the backend's bytes pass untouched; for the action
    ``block`` it is the error body that is sent in its place.
    ``iterations`` are the refinement rounds of the choice that took the most. ``first`` are the verdicts on the choices as
    the backend gave them.
    ``review_id`` is set where the answer is queued for review, ``review_rule`` then names the rule and its share of such answers.
    ``initial_score`` is set only where the answer was changed by an extra generation. ``corrections`` says, per choice,
    what was done about it (``None`` where nothing was), ``calls`` which models were asked for that; ``mitigation_s``
    are the seconds that it took after the first detection. ``disputed`` are the places of choices that carry the
    disclaimer because the models did not agree. ``stream`` is set for answers that came as a stream and were assessed.
    ``reasoned`` has, per choice, its reasoning beside the answer, ``None`` where there is none.
    ``answers`` are the choices, without warnings, that the positions in ``verdicts`` count in. ``shadow_action`` is what a plan
    in shadow would have done. ``trace_id`` is set where a trace with its span is sent. ``response`` is what the backend sent, as far as
    it was read.
    """

    plan: Plan
    verdict: Verdict
    verdicts: tuple[Verdict, ...] = ()
    mode: Mode = Mode.LIGHTWEIGHT
    action: Action = Action.PASS
    shadow_action: Action | None = None
    iterations: int = 0
    body: bytes | None = None
    initial_score: float | None = None
    review_id: str | None = None
    review_rule: tuple[str, float] | None = None
    latency_s: float = 0.0
    model: str = ""
    notes: tuple[str, ...] = ()
    corrections: tuple[Correction | None, ...] = ()
    first: tuple[Verdict, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    mitigation_s: float = 0.0
    disputed: frozenset[int] = frozenset()
    stream: StreamRecord | None = None
    reasoned: tuple[Reasoned | None, ...] = ()
    answers: tuple[Answer, ...] = ()
    trace_id: str = ""
    response: ResponseRecord = field(default_factory=ResponseRecord)

    @property
    def calls_made(self) -> tuple[CallRecord, ...]:
        """The calls that were made; one that was refused before it began is none."""
        return tuple(call for call in self.calls if call.attempts > 0)
