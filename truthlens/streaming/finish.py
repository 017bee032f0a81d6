"""What is said at the end of a streamed answer: the outcome, the warning, the ``truthlens`` object. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from truthlens.api.members.filter import FIELDS_DROPPED, LOGPROBS_DROPPED
from truthlens.api.sse.chunks import Transcript, choice_answer
from truthlens.api.sse.completeness import STREAM_ERROR
from truthlens.core.records.enums import Action, AnswerKind, OnFlagged, Reason, Streaming, WarningPosition
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.mitigation_result import Assessment
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.delivery import Delivery, Warned, outcome_of, truthlens_object, warn

WITHHELD = "withheld"
STOPPED = "stopped"
_OF_GATES = {
    OnFlagged.MARK: Action.WARN,
    OnFlagged.WITHHOLD: Action.REPLACE,
    OnFlagged.STOP: Action.BLOCK,
}


@dataclass(frozen=True, slots=True)
class Gated:
    """What a gate did to the answers, by choice.

    ``texts`` are the answers that the client got, without marks and notices; ``insertions`` those marks and notices,
    each with its place in that text; in order. ``logprobs_dropped``: log probabilities were taken out;
    ``fields_dropped``: other members were, whose text nobody scored or that may repeat what was withheld.
    """

    texts: Mapping[int, str] = field(default_factory=dict)
    insertions: Mapping[int, Sequence[tuple[int, str]]] = field(default_factory=dict)
    marked: frozenset[int] = frozenset()
    withheld: frozenset[int] = frozenset()
    stopped: bool = False
    logprobs_dropped: bool = False
    fields_dropped: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of one stream: the outcome, per choice the text to be added, and the ``truthlens`` object if wanted."""

    outcome: Outcome
    closing: Mapping[int, str]
    details: Mapping[str, object] | None


def answers_of(
    transcript: Transcript, exchange: Exchange, *, over: bool = False, overflowed: bool = False
) -> tuple[Answer, ...]:
    """Return the answers of a stream so far, without what the backend was asked to repeat before them, and reasoning.

    Only once it is ``over`` is it known whether reasoning came in place of an answer, and what stood beside it; of a
    stream that has ``overflowed`` it is not: the answer may have come where nobody read any more.
    """
    if over:
        found = (
            choice_answer(choice, transcript, echoed=exchange.echoed)[0]
            for choice in transcript.choices.values()
        )
        return tuple(
            replace(answer, kind=AnswerKind.EMPTY, text="")
            if overflowed and answer.kind is AnswerKind.REASONING
            else answer
            for answer in found
        )
    return tuple(
        Answer(
            index,
            AnswerKind.EMPTY if choice.kind is AnswerKind.TEXT and not text.strip() else choice.kind,
            text,
        )
        for index, choice in transcript.choices.items()
        for text in [choice.text.removeprefix(exchange.echoed)[choice.answer_start :]]
    )


def ending_of(
    plan: Plan,
    exchange: Exchange,
    answers: Sequence[Answer],
    assessment: Assessment,
    *,
    model: str,
    details: bool,
    gated: Gated | None = None,
    reason: Reason | None = None,
    failed: bool = False,
    choose: Callable[[Outcome], Outcome] | None = None,
) -> Ending:
    """The end of a stream whose answers were assessed.

    Args:
        plan: the exchange's plan, of mode lightweight.
        exchange: the request half.
        answers: what the client got, without marks and notices.
        assessment: the verdicts on these, and on what the backend sent.
        model: name of the detector's model.
        details: whether the ``truthlens`` object is wanted.
        gated: what the gate did; ``None`` for a stream that was observed.
        reason: why nothing was checked, where there is no answer to hold a verdict.
        failed: whether the backend sent an error within the stream.
        choose: gives the outcome its review id, where it is to be queued.
    """
    gated = gated or Gated()
    outcome = outcome_of(plan, assessment, answers, model=model)
    if not answers and reason is not None:
        outcome = replace(outcome, verdict=unchecked(reason, threshold=plan.threshold))
    changed = bool(gated.withheld) or gated.stopped
    outcome = replace(
        outcome,
        # Whatever could be blocked was stopped by the gate: this text has left.
        body=None,
        action=_action(outcome, gated),
        shadow_action=_shadow_action(outcome),
        initial_score=outcome_of(
            plan, Assessment(assessment.first, assessment.first), answers, model=model
        ).verdict.score
        if changed
        else None,
        notes=(*outcome.notes, *_notes(gated, failed=failed)),
    )
    if choose is not None:
        outcome = choose(outcome)
    warned = _warned(outcome, exchange, answers, gated)
    closing = {
        delivery.index: delivery.text[len(answer.text) :]
        for answer, delivery in zip(answers, warned.deliveries, strict=True)
        if delivery.warned
    }
    # Whoever asked for a verdict gets one, whatever it is: the headers have left without.
    if not details:
        return Ending(warned.outcome, closing, None)
    return Ending(warned.outcome, closing, truthlens_object(_as_received(warned, gated), exchange))


def _shadow_action(outcome: Outcome) -> Action | None:
    """Return what would have become of a stream, under a gate too."""
    intended = outcome.plan.intended
    if intended is None or intended.streaming is not Streaming.GATE or not outcome.verdict.flagged:
        return outcome.shadow_action
    return _OF_GATES[intended.on_flagged]


def _action(outcome: Outcome, gated: Gated) -> Action:
    if outcome.shadow_action is not None:
        return outcome.action
    if gated.stopped:
        return Action.BLOCK
    if gated.withheld:
        return Action.REPLACE
    warned = gated.marked or outcome.verdict.flagged or outcome.action is Action.WARN
    return Action.WARN if warned else Action.PASS


def _notes(gated: Gated, *, failed: bool) -> list[str]:
    said = {
        STREAM_ERROR: failed,
        WITHHELD: bool(gated.withheld),
        STOPPED: gated.stopped,
        LOGPROBS_DROPPED: gated.logprobs_dropped,
        FIELDS_DROPPED: gated.fields_dropped,
    }
    return [note for note, true in said.items() if true]


def _warned(outcome: Outcome, exchange: Exchange, answers: Sequence[Answer], gated: Gated) -> Warned:
    """The warning goes behind answers in which the gate has said nothing yet."""
    said = gated.marked | gated.withheld
    after = replace(outcome, plan=replace(outcome.plan, warning_position=WarningPosition.AFTER))
    warned = warn(after, exchange, answers)
    warns = outcome.plan.stream.warning and not gated.stopped
    deliveries = tuple(
        delivery
        if warns and delivery.index not in said
        else Delivery(delivery.index, answer.text, lead=answer.lead)
        for answer, delivery in zip(answers, warned.deliveries, strict=True)
    )
    notes = warned.outcome.notes if warns else outcome.notes
    return Warned(replace(outcome, notes=notes), deliveries)


def _as_received(warned: Warned, gated: Gated) -> Warned:
    """The same with marks and notices in the texts, and the spans where they stand among them."""
    deliveries, verdicts = [], []
    for delivery, verdict in zip(warned.deliveries, warned.outcome.verdicts, strict=True):
        insertions = gated.insertions.get(delivery.index, ())
        deliveries.append(
            replace(
                delivery,
                text=_inserted(delivery.text, insertions),
                warned=delivery.warned or bool(insertions),
            )
        )
        verdicts.append(_placed(verdict, insertions))
    return Warned(replace(warned.outcome, verdicts=tuple(verdicts)), tuple(deliveries))


def _inserted(text: str, insertions: Sequence[tuple[int, str]]) -> str:
    pieces, place = [], 0
    for at, inserted in insertions:
        pieces += [text[place:at], inserted]
        place = at
    return "".join([*pieces, text[place:]])


def _placed(verdict: Verdict, insertions: Sequence[tuple[int, str]]) -> Verdict:
    """The verdict with spans and claims where they stand among the insertions; one right behind them is no part of them."""

    def start(place: int) -> int:
        return place + sum(len(inserted) for at, inserted in insertions if at <= place)

    def end(place: int) -> int:
        return place + sum(len(inserted) for at, inserted in insertions if at < place)

    return replace(
        verdict,
        spans=tuple(span.moved(start, end) for span in verdict.spans),
        results=tuple(result.moved(start, end) for result in verdict.results),
    )
