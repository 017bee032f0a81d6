"""Define what the engine needs of a detector, of one that can score a growing answer, and of one that asks models."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from truthlens.core.cancellation import StopCheck
from truthlens.core.records.calls import Ask
from truthlens.core.records.enums import Aggregation, AnswerKind, Reason
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import DetectorResult
from truthlens.text.claims.non_claims import is_claimless

Ranges = Sequence[tuple[int, int]]
"""Characters of an answer: start inclusive, end exclusive."""

_Detector = TypeVar("_Detector")


class Detector(Protocol):
    """Scores the answers of one exchange; synchronous, and safe to call from several threads.

    It gets answers without their citation marks, unless it has ``reads_marks = True`` (``detection.plain_answers``).
    """

    @property
    def model(self) -> str:
        """Name of the model that it runs, ``""`` where it runs none."""

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Return whether the detector can read the language of the answer."""

    def detect_all(
        self,
        exchange: Exchange,
        answers: Sequence[Answer],
        *,
        aggregation: Aggregation | None,
        stop: StopCheck,
    ) -> Sequence[DetectorResult]:
        """Return one result per answer, in order; a result may say why it has no score.

        Any exception is taken for ``detector-error``, and so is a score or floor outside of 0..1, of its answer alone.
        ``stop`` returns true once the results are no longer needed.
        """


class Follower(Protocol):
    """Scores the answers of one exchange any number of times while they grow.

    Synchronous, safe in several threads.
    """

    def due(self, answers: Sequence[Answer]) -> bool:
        """Return whether ``ahead`` has something to do, by a rough count of characters; cheap."""
        return False

    def ahead(self, answers: Sequence[Answer], *, stop: StopCheck) -> None:
        """Do now what further text of the answers will not change."""

    def detect_all(
        self,
        answers: Sequence[Answer],
        ranges: Sequence[Ranges],
        *,
        aggregation: Aggregation | None,
        stop: StopCheck,
    ) -> Sequence[DetectorResult]:
        """Return one result per answer, then one per range of the first answer, of the second, and so on.

        Any exception is taken for ``detector-error``.
        """

    def detect_ranges(
        self,
        answers: Sequence[Answer],
        ranges: Sequence[Ranges],
        *,
        aggregation: Aggregation | None,
        stop: StopCheck,
    ) -> Sequence[DetectorResult]:
        """Return one result per range, answer by answer, from nearby text only, which is cheaper.

        Any exception is taken for ``detector-error``.
        """


def follower_of(detector: Detector, exchange: Exchange) -> Follower | None:
    """Return what follows the exchange's answers, ``None`` of a detector that does not follow."""
    follow = getattr(detector, "follow", None)
    return follow(exchange) if follow is not None else None


class AskingDetector(Protocol):
    """Scores one answer by asking models; runs on the event loop, after the detectors that ask nobody.

    One is told from a ``Detector`` by its declaration: it needs ``Need.CALLS``.
    """

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Return whether the detector can judge the language of the answer; models read any."""
        return True

    async def examine(
        self, exchange: Exchange, answer: Answer, first: Sequence[DetectorResult], *, ask: Ask
    ) -> DetectorResult:
        """Return what the models say of ``answer``.

        Args:
            exchange: query and passages.
            answer: a text with something to check in it.
            first: what the plan's other detectors said of it, those that failed too.
            ask: bound to the deadline, the budget and the accounts of the exchange.

        Raises:
            CallError: a call gave no usable text. It costs the result, and so does any other exception.
        """


class ResultCache(Protocol):
    """Keeps results of models by what they were asked."""

    async def of(self, parts: Sequence[str], compute: Callable[[], Awaitable[object]]) -> object:
        """Return the result that is kept for ``parts``, or compute it, keep it and return it.

        Args:
            parts: all that the result depends on: the model, the version of the prompt, evidence and claim.
            compute: gives a value that JSON can hold. What it raises is raised here, and nothing is kept. Several that
                ask for one result at a time share one computation.
        """


def reason_not_to_run(plan: Plan, exchange: Exchange, answer: Answer) -> Reason | None:
    """Return why no detector needs to score ``answer``, or ``None`` if they must."""
    if not plan.enabled or not plan.detectors:
        return Reason.DISABLED
    empty = Reason.TOOL_CALL if answer.kind is AnswerKind.TOOL_CALL else Reason.EMPTY_ANSWER
    if not answer.text.strip():
        return empty
    # What is next to a call, or in a refusal, is an answer as soon as it claims something.
    if answer.kind in (AnswerKind.TOOL_CALL, AnswerKind.REFUSAL) and is_claimless(answer.text):
        return empty
    return plan.not_checkable(exchange)


def running(
    chosen: Sequence[tuple[DetectorSpec, _Detector]], exchange: Exchange
) -> Sequence[tuple[DetectorSpec, _Detector]]:
    """Return those of a plan's detectors that have something to compare answers with: without passages, databases alone."""
    if exchange.not_checkable is None:
        return chosen
    return [(spec, detector) for spec, detector in chosen if spec.looks_up(exchange.scope)]
