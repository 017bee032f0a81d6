"""The stages of an exchange, in order, on one screen.

    request headers   admit   policy snapshot; bypass where the head alone says so
    request body      open    JSON -> Request -> plan; model ``auto`` resolved; the request goes on to the model
                      prepare Request -> Exchange (query, passages), while the model is at work
    response headers  skip    answers that cannot or need not be scored pass, and say why
    response body     assess  body -> answers -> verdicts, corrected by mode -> action -> new body and headers
                      flow    a stream that is observed or gated goes on piece by piece, its verdict at its end

This is the only module that knows the order. Stages return records; metrics and log lines are written here. ``open``,
``prepare`` and ``assess`` catch every exception (for streams ``streaming.driver`` does): whatever fails costs a verdict,
not an answer, unless the plan says ``on_unchecked: block``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import structlog

from truthlens.api.answer_citations import with_citations
from truthlens.api.encoding import decode_body
from truthlens.api.evidence.extract import check_evidence
from truthlens.api.lazy_request import LazyRequest
from truthlens.api.paths import Kind, kind_of
from truthlens.api.requests import read_request, set_model
from truthlens.api.responses import Response, check_answers, parse_response, rewrite_response
from truthlens.api.sse.buffered import StreamedResponse, parse_stream, rewrite_stream
from truthlens.api.sse.completeness import STREAM_ERROR, limited, reason_of
from truthlens.core.deadline import Deadline
from truthlens.core.errors import (
    BodyEncodingError,
    BodyTooLargeError,
    DialectError,
    OverloadedError,
    StoppedError,
    TruthLensError,
)
from truthlens.core.records.calls import CallRecord
from truthlens.core.records.enums import Action, Mode, OnUnchecked, Reason, Streaming
from truthlens.core.records.exchange import Answer, Exchange, Facts, RequestHead, ResponseHead
from truthlens.core.records.mitigation_result import Assessment
from truthlens.core.records.outcome import Outcome, StreamRecord
from truthlens.core.records.plan import MARGIN_S, Plan
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.delivery import (
    headers,
    outcome_of,
    pending_headers,
    truthlens_object,
    usage_object,
    warn,
)
from truthlens.detection.engine import Engine
from truthlens.llm.loop_guard import MARK_HEADER, Marks
from truthlens.memory_release import GiveBack
from truthlens.mitigator import Case, Mitigator
from truthlens.policy import EarlyPlans, Policy, PolicyHolder
from truthlens.reading_pool import Pool
from truthlens.review.intake.intake import ReviewIntake
from truthlens.streaming.driver import Emit, StreamDriver
from truthlens.telemetry.logs import log_abandoned, log_exchange, log_texts
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent
from truthlens.telemetry.tracing import Tracer, describe
from truthlens.ticket import Conclusion, HeldBytes, Ticket

log = structlog.get_logger("truthlens.pipeline")

# The model name that asks the policy to choose.
AUTO_MODEL = "auto"
# Reading takes about 2 ms and 1.5 ms per KB of a short request, most of it the search for evidence, and of hostile text 6 ms;
# larger bodies go to a worker thread, so that one long request does not hold up the others.
_INLINE_BYTES = 4 << 10
# Why a body was not read.
_UNREAD: Mapping[type[Exception], Reason] = {
    DialectError: Reason.DIALECT,
    BodyEncodingError: Reason.ENCODING,
    BodyTooLargeError: Reason.TOO_LARGE,
    OverloadedError: Reason.OVERLOADED,
    StoppedError: Reason.TIMEOUT,
    TimeoutError: Reason.TIMEOUT,
}
_MOST_ROUTE_WARNINGS = 100
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")

_T = TypeVar("_T")


class Pipeline:
    """The stages, wired to one policy holder, one engine and one set of metrics."""

    def __init__(
        self,
        policy: PolicyHolder,
        engine: Engine,
        signals: Metrics,
        recent: Recent,
        *,
        mitigator: Mitigator,
        marks: Marks,
        pool: Pool | None = None,
        give_back: GiveBack | None = None,
        tracer: Tracer | None = None,
        reviews: ReviewIntake | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._policy = policy
        self._pool = pool or Pool()
        self._give_back = give_back or GiveBack()
        self._engine = engine
        self._mitigator = mitigator
        self._marks = marks
        self._tracer = tracer or Tracer()
        self._reviews = reviews
        self._signals = signals
        self._recent = recent
        self._clock = clock
        self._held_bytes = 0
        self._warned_of_mark = False
        self._unknown_route_values: set[str] = set()
        self._early = EarlyPlans()

    @property
    def max_body_bytes(self) -> int:
        """Largest body that is scored, in bytes."""
        return self._policy.current.limits.max_body_bytes

    # --- request phase ------------------------------------------------------------------------------------

    def admit(self, head: RequestHead) -> Ticket:
        """Take the policy snapshot; find out whether the bodies are needed at all."""
        policy = self._policy.current
        kind = kind_of(head.method, head.path, head.headers)
        if kind is Kind.NO_ANSWER:
            return Ticket(policy, head, kind, policy.default)
        plan, strictest = self._early.of(policy, head)
        self._warn_of_unknown(policy, head)
        # Until the request has been read, and where it cannot be, the strictest plan that could apply to it does.
        ticket = Ticket(policy, head, kind, plan or strictest)
        if kind is Kind.DIALECT:
            return replace(ticket, reason=Reason.DIALECT)
        length = head.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > policy.limits.max_body_bytes:
            # It would only be brought here to be thrown away.
            return replace(ticket, reason=Reason.TOO_LARGE)
        if plan is not None and not plan.enabled and not plan.model_refs:
            return replace(ticket, reason=Reason.DISABLED)
        return ticket

    async def open(self, ticket: Ticket, body: bytes) -> Ticket:
        """Read the request, as far as it takes to send it on: which plan, which model."""
        started = self._clock()
        deadline, held, size = Deadline.after(ticket.plan.timeout_s), HeldBytes(hold=self._hold), len(body)
        misnamed = False
        try:
            if size > _INLINE_BYTES:  # what is smaller waits for nothing
                self._check_room(ticket.policy, size)
                held.add(size)
            try:
                plain = await self._decoded(ticket.policy, ticket.head, body, deadline)
            except BodyEncodingError:
                # Most servers do not look at the header of a request at all, and read the body as it is.
                plain, misnamed = body, True
            size = len(plain)
            opened = await self.read(lambda: self._open(ticket, body, plain), size, deadline.remaining_s)
        except Exception as error:  # noqa: BLE001 - the stage border, as in assess
            unread = misnamed and isinstance(error, DialectError)
            opened = replace(ticket, reason=Reason.ENCODING if unread else _why_unread(error))
        finally:
            held.release()
            self._give_back.after(size)
        return replace(self._keeping(opened), request_s=self._clock() - started)

    async def prepare(self, ticket: Ticket) -> Ticket:
        """Extract the evidence, the most expensive step of reading a request.

        It runs while the backend generates, so that it adds no latency.
        """
        reading = ticket.reading
        if reading is None:
            return ticket
        try:
            await self.read(reading.read, reading.size, ticket.plan.timeout_s)
        except Exception as error:  # noqa: BLE001 - the stage border, as in assess
            reading.give_up()
            return replace(ticket, reason=_why_unread(error))
        finally:
            self._give_back.after(reading.size)
        return ticket

    async def read(self, work: Callable[[], _T], size: int, timeout_s: float) -> _T:
        """The result of ``work`` on ``size`` bytes of a client or backend, off the event loop where that takes long.

        Raises:
            OverloadedError: too many bodies wait to be read.
            TimeoutError: it takes longer than ``timeout_s``; the work ends.
        """
        with self._signals.inflight.track_inprogress():
            return await self._read(work, size, timeout_s)

    async def _read(self, work: Callable[[], _T], size: int, timeout_s: float) -> _T:
        """``read`` for an exchange that is counted as in flight already."""
        if size <= _INLINE_BYTES:
            return work()
        return await self._pool.run(work, size=size, timeout_s=timeout_s)

    def held_bytes(self) -> HeldBytes:
        """What counts bytes as held that are not of an exchange of the gateway."""
        return HeldBytes(hold=self._hold)

    def check_room(self, size: int) -> None:
        """Raise ``OverloadedError`` where ``size`` more bytes may not be held."""
        self._check_room(self._policy.current, size)

    async def _decoded(
        self, policy: Policy, head: RequestHead | ResponseHead, body: bytes, deadline: Deadline
    ) -> bytes:
        encoding, limit = head.headers.get("content-encoding", ""), policy.limits.max_body_bytes
        if not encoding or len(body) > limit:
            return decode_body(body, encoding, limit=limit)
        # A few bytes may hold megabytes.
        return await self._pool.run(
            lambda: decode_body(body, encoding, limit=limit), size=len(body), timeout_s=deadline.remaining_s
        )

    def _open(self, ticket: Ticket, body: bytes, plain: bytes) -> Ticket:
        policy = ticket.policy
        request = read_request(plain, ticket.kind.endpoint, policy.limits)
        mark = ticket.head.headers.get(MARK_HEADER)
        if mark is not None:
            known = self._marks.accepts(mark, body)
            self._signals.marks.labels("accepted" if known else "unknown").inc()
            if known:
                # A call of our own that came back through the gateway: assessing it again would never end.
                return replace(ticket, plan=policy.default, reason=Reason.DISABLED)
            self._warn_of_mark()
        facts = Facts(ticket.head, request.model, request.user_text, context=request.context)
        plan = policy.select(facts)
        request_body, model = None, request.model
        if model == AUTO_MODEL and plan.model_refs:
            model = plan.model_refs[0]
            request_body = set_model(plain, model)
        if not plan.enabled:
            return replace(ticket, plan=plan, reason=Reason.DISABLED, request_body=request_body)
        scope = policy.scope(ticket.head)
        reading = LazyRequest(request, plan.evidence, policy.limits, size=len(plain), scope=scope)
        kept = plain if plan.corrects else b""
        return replace(ticket, plan=plan, reading=reading, request_body=request_body, plain=kept, model=model)

    # --- response phase -----------------------------------------------------------------------------------

    def skip(self, ticket: Ticket, reason: Reason) -> Conclusion:
        """Conclude an exchange whose answer is not scored; the backend's bytes pass."""
        return self._conclude(ticket, self._unscored(ticket, reason), ticket.exchange)

    async def assess(self, ticket: Ticket, head: ResponseHead, body: bytes) -> Conclusion:
        """Score the answer and act on the verdict."""
        started = self._clock()
        held, exchange = HeldBytes(hold=self._hold), ticket.exchange
        try:
            self._check_room(ticket.policy, len(body))
        except OverloadedError:
            outcome = self._unscored(ticket, Reason.OVERLOADED)
        else:
            held.add(len(body))
            try:
                with (
                    self._signals.inflight.track_inprogress(),
                    self._tracer.exchange(ticket.head.headers) as span,
                ):
                    outcome, exchange = await self._assess(ticket, head, body)
                    describe(span, outcome)
            except Exception as error:  # noqa: BLE001 - the stage border: a failure of ours costs a verdict, not an answer
                # The type alone: a message or a traceback may quote the text that was being assessed.
                log.error("assessment failed", error=type(error).__name__, decision=ticket.plan.decision)
                outcome = self._unscored(ticket, Reason.DETECTOR_ERROR)
            finally:
                held.release()
                self._give_back.after(max(len(body), ticket.size))
        response_s = self._clock() - started
        if head.streams:
            outcome = replace(
                outcome,
                stream=StreamRecord(
                    Streaming.BUFFER, lag_s=response_s, held_s=response_s, held_bytes=len(body)
                ),
            )
        return self._conclude(ticket, replace(outcome, latency_s=ticket.request_s + response_s), exchange)

    async def _assess(self, ticket: Ticket, head: ResponseHead, body: bytes) -> tuple[Outcome, Exchange]:
        """The outcome, and the exchange with the evidence that came with the answer."""
        exchange = ticket.exchange
        assert exchange is not None
        # One for all that is done about the answer: reading it, assessing it, correcting it.
        deadline = Deadline.after(ticket.plan.hold_s)
        try:
            response, exchange, size = await self._read_response(ticket, exchange, head, body, deadline)
        except (TruthLensError, TimeoutError) as error:
            return self._unscored(ticket, _why_unread(error)), exchange
        return await self._checked(ticket, exchange, response, size, deadline), exchange

    async def _read_response(
        self, ticket: Ticket, exchange: Exchange, head: ResponseHead, body: bytes, deadline: Deadline
    ) -> tuple[Response | StreamedResponse, Exchange, int]:
        """The answers, the exchange with the evidence that came with them, and the bytes of the plain body."""
        limits = ticket.policy.limits
        parse = parse_stream if head.streams else parse_response

        def read(plain: bytes) -> tuple[Response | StreamedResponse, Exchange]:
            response = parse(plain, exchange, limits)
            return response, with_citations(exchange, response.citations, limits)

        read_by = Deadline.after(min(ticket.plan.timeout_s, deadline.remaining_s))
        plain = await self._decoded(ticket.policy, head, body, read_by)
        return (*await self._read(lambda: read(plain), len(plain), read_by.remaining_s), len(plain))

    async def _checked(
        self,
        ticket: Ticket,
        exchange: Exchange,
        response: Response | StreamedResponse,
        size: int,
        deadline: Deadline,
    ) -> Outcome:
        if ticket.policy.telemetry.log_text:
            log_texts(exchange, response.answers, request_id=_request_id(ticket.head))
        assessment = await self._mitigator.assess(self._case(ticket, exchange, response.answers, deadline))
        if ticket.wants_details:
            delivered = assessment.delivered(response.answers)
            verdicts = await self._engine.explain(
                exchange, delivered, assessment.verdicts, time_s=MARGIN_S / 2
            )
            assessment = replace(assessment, verdicts=verdicts)
        failed = False
        if isinstance(response, StreamedResponse):
            failed = response.failed
            reason = reason_of(response.transcript, overflowed=False)
            if reason is not None and not response.answers:
                return self._unscored(ticket, reason)
            assessment = replace(assessment, verdicts=limited(assessment.verdicts, reason))
        outcome = self._outcome(ticket, assessment, response.answers)
        if failed:
            outcome = replace(outcome, notes=(*outcome.notes, STREAM_ERROR))
        if outcome.action is Action.BLOCK:
            return outcome
        outcome = self._for_review(ticket, outcome)
        try:
            return await self._read(lambda: _rewrite(ticket, exchange, response, outcome), size, MARGIN_S / 2)
        except (OverloadedError, TimeoutError) as error:
            return self._unscored(ticket, _why_unread(error))

    def _case(
        self, ticket: Ticket, exchange: Exchange, answers: tuple[Answer, ...], deadline: Deadline
    ) -> Case:
        return Case(
            plan=ticket.plan,
            exchange=exchange,
            answers=answers,
            deadline=deadline,
            request_body=ticket.plain or None,
            model=ticket.model,
            path=ticket.head.path,
            authorization=ticket.head.headers.get("authorization"),
            models=ticket.policy.models,
        )

    def pending(self, ticket: Ticket) -> Mapping[str, str]:
        """The headers of a stream whose verdict comes at its end; final ones where it is known already."""
        reason = ticket.not_checkable
        return pending_headers(ticket.plan) if reason is None else headers(self._unscored(ticket, reason))

    def flow(self, ticket: Ticket, emit: Emit) -> StreamDriver:
        """What an answer goes through that is observed or gated while it streams.

        Args:
            ticket: of the exchange.
            emit: sends the acknowledgement of one message; they come in order.
        """
        exchange, plan = ticket.exchange, ticket.plan
        assert exchange is not None
        gauge = self._signals.streams.labels(plan.streaming.value)

        def conclude(outcome: Outcome) -> None:
            outcome = replace(outcome, latency_s=ticket.request_s + outcome.latency_s)
            with self._tracer.exchange(ticket.head.headers) as span:
                describe(span, outcome)
            if ticket.policy.telemetry.log_text:
                log_texts(flow.exchange, flow.answers(), request_id=_request_id(ticket.head))
            self._conclude(ticket, outcome, flow.exchange)

        def hold(size: int) -> bool:
            self._hold(size)
            return self._held_bytes <= ticket.policy.limits.max_held_bytes

        flow = StreamDriver(
            plan,
            exchange,
            self._engine,
            details=ticket.wants_details,
            max_bytes=ticket.policy.limits.max_body_bytes,
            emit=emit,
            conclude=conclude,
            hold=hold,
            closed=gauge.dec,
            examine=partial(self._examine_stream, ticket),
            choose=partial(self._for_review, ticket),
        )
        gauge.inc()
        return flow

    async def _examine_stream(
        self,
        ticket: Ticket,
        exchange: Exchange,
        answers: Sequence[Answer],
        verdicts: Sequence[Verdict],
        time_s: float,
    ) -> tuple[tuple[Verdict, ...], tuple[CallRecord, ...]]:
        """The verdicts on a streamed answer with what models say of it, within ``time_s``."""
        case = self._case(ticket, exchange, tuple(answers), Deadline.after(time_s))
        return await self._mitigator.examine(case, verdicts)

    def abandon(self, ticket: Ticket) -> None:
        """Note that the stream ended before its answer was assessed (client gone, backend gone)."""
        ticket.held.release()
        self._give_back.after(ticket.size)
        self._signals.abandoned.inc()
        log_abandoned(decision=ticket.plan.decision, request_id=_request_id(ticket.head))

    async def score(self, plan: Plan, exchange: Exchange, answer: Answer) -> Verdict:
        """The verdict on one answer outside of any HTTP exchange (the console's ``/v1/detect``)."""
        limits = self._policy.current.limits
        try:
            check_answers((answer,), limits)
            check_evidence(exchange.passages, limits)
            with self._signals.inflight.track_inprogress():
                verdicts = await self._engine.detect(plan, exchange, (answer,))
                case = Case(
                    plan,
                    exchange,
                    (answer,),
                    Deadline.after(plan.cascade.timeout_s),
                    models=self._policy.current.models,
                )
                verdicts, _ = await self._mitigator.examine(case, verdicts)
                (verdict,) = await self._engine.explain(exchange, (answer,), verdicts, time_s=MARGIN_S / 2)
        except BodyTooLargeError:
            verdict = unchecked(Reason.TOO_LARGE, threshold=plan.threshold)
        finally:
            self._give_back.after(len(answer.text) + sum(len(each.text) for each in exchange.passages))
        return verdict

    # --- helpers ------------------------------------------------------------------------------------------

    def _unscored(self, ticket: Ticket, reason: Reason) -> Outcome:
        verdict = unchecked(reason, threshold=ticket.plan.threshold)
        mode = ticket.plan.mode_to_run
        assessment = Assessment((verdict,), (verdict,), Mode.LIGHTWEIGHT if mode is Mode.AUTO else mode)
        return replace(self._outcome(ticket, assessment, ()), verdicts=())

    def _outcome(self, ticket: Ticket, assessment: Assessment, answers: Sequence[Answer]) -> Outcome:
        model = self._engine.model_name(ticket.plan)
        return replace(outcome_of(ticket.plan, assessment, answers, model=model), latency_s=ticket.request_s)

    def _for_review(self, ticket: Ticket, outcome: Outcome) -> Outcome:
        """The outcome with the id under which it is queued for review, where it is."""
        return outcome if self._reviews is None else self._reviews.chosen(outcome, ticket.policy.review)

    def _conclude(self, ticket: Ticket, outcome: Outcome, exchange: Exchange | None) -> Conclusion:
        ticket.held.release()
        request_s = ticket.request_s
        response_s = max(0.0, outcome.latency_s - request_s)
        self._signals.observe(outcome, request_s=request_s, response_s=response_s)
        if exchange is not None:
            self._signals.observe_evidence(exchange)
        self._recent.add(
            outcome,
            time=datetime.now(UTC),
            request_id=_request_id(ticket.head),
            exchange=exchange,
            keep_text=ticket.policy.telemetry.log_text,
        )
        if self._reviews is not None and outcome.review_id is not None and exchange is not None:
            self._reviews.queue(
                outcome,
                exchange,
                ticket.policy.review,
                query_id=_request_id(ticket.head),
                headers=ticket.head.headers,
            )
        log_exchange(
            outcome,
            endpoint=ticket.endpoint,
            request_id=_request_id(ticket.head),
            passages=len(exchange.passages) if exchange else 0,
            stream=exchange.stream if exchange else False,
            request_s=request_s,
            response_s=response_s,
        )
        return Conclusion(outcome, headers(outcome))

    def _warn_of_unknown(self, policy: Policy, head: RequestHead) -> None:
        """Say once of each name on an Envoy route that the policy does not know: it would be ignored in silence."""
        if not head.route:
            return
        for value in policy.unknown_route_values(head):
            if (
                value not in self._unknown_route_values
                and len(self._unknown_route_values) < _MOST_ROUTE_WARNINGS
            ):
                self._unknown_route_values.add(value)
                log.warning("the Envoy route names something that the policy does not know", metadata=value)

    def _keeping(self, ticket: Ticket) -> Ticket:
        """The ticket with its kept request counted; without it where it would go beyond the bound."""
        size = len(ticket.plain)
        try:
            self._check_room(ticket.policy, size)
        except OverloadedError:
            return replace(ticket, plain=b"")
        return replace(ticket, held=HeldBytes(size, self._hold))

    def _warn_of_mark(self) -> None:
        """Say once that a mark was not known: a client made it up, or another process of this fleet did."""
        if not self._warned_of_mark:
            self._warned_of_mark = True
            log.warning(
                "a call carries a mark that this process does not know and is assessed like any other",
                remedy="if models are reached through the gateway, give processes on all machines one --secret-file",
            )

    def _hold(self, size: int) -> None:
        self._held_bytes += size
        self._signals.held_bytes.set(self._held_bytes)

    def _check_room(self, policy: Policy, size: int) -> None:
        if self._held_bytes + size > policy.limits.max_held_bytes:
            raise OverloadedError("limits.max_held_bytes is reached")


def _why_unread(error: Exception) -> Reason:
    reason = _UNREAD.get(type(error))
    if reason is None:
        # The type alone: a message or a traceback may quote the text that was being read.
        log.error("reading a body failed", error=type(error).__name__)
        return Reason.DETECTOR_ERROR
    return reason


def _rewrite(
    ticket: Ticket, exchange: Exchange, response: Response | StreamedResponse, outcome: Outcome
) -> Outcome:
    """The outcome with its new body, where the plan or the client wants one."""
    warned = warn(outcome, exchange, response.answers)
    silent = outcome.verdict.score is None and ticket.plan.on_unchecked is OnUnchecked.PASS
    details = truthlens_object(warned, exchange) if ticket.wants_details and not silent else None
    if not warned.texts and details is None and not response.forged:
        return warned.outcome
    usage = usage_object(outcome)
    if warned.texts and details is None and usage is not None:
        # The body's own usage stays the first call's; whoever pays must see the rest.
        details = {"calls": len(outcome.calls_made), "usage": usage}
    if isinstance(response, StreamedResponse):
        return replace(warned.outcome, body=rewrite_stream(response, warned.texts, details))
    return replace(warned.outcome, body=rewrite_response(response, warned.texts, details))


def _request_id(head: RequestHead) -> str:
    """Envoy's request id, if it looks like one: a client may have chosen it."""
    given = head.headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else ""
