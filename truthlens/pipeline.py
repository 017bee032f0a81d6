"""The stages of an exchange, in order, on one screen.

    request headers   admit   policy snapshot; bypass where the head alone says so
    request body      open    JSON -> Request -> plan; model ``auto`` resolved; the request goes on to the model
                      prepare Request -> Exchange (query, passages), while the model is at work
    response headers  skip    answers that cannot or need not be scored pass, and say why
    response body     assess  body -> answers -> verdicts, corrected by mode -> action -> new body and headers
                      flow    a stream that is observed or gated goes on piece by piece, its verdict at its end

This is the only module that knows the order. Stages return records; ``exchange.concluding`` writes metrics
and log lines. ``open``, ``prepare`` and ``assess`` catch every exception (for streams ``streaming.driver``
does): whatever fails costs a verdict, not an answer, unless the plan says ``on_unchecked: block``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import structlog

from truthlens.api.answer_citations import with_citations
from truthlens.api.paths import RequestKind, kind_of
from truthlens.api.requests import LazyRequest, read_request, set_model
from truthlens.api.responses import Response, check_answers, parse_response
from truthlens.api.sse.buffered import StreamedResponse, parse_stream
from truthlens.api.sse.completeness import STREAM_ERROR, limited, reason_of
from truthlens.core.deadline import Deadline
from truthlens.core.errors import (
    BodyEncodingError,
    BodyTooLargeError,
    DialectError,
    OverloadedError,
    TruthLensError,
)
from truthlens.core.records.calls import CallRecord
from truthlens.core.records.enums import Action, Reason, Streaming, Trigger
from truthlens.core.records.exchange import Answer, Exchange, Facts, RequestHead, ResponseHead
from truthlens.core.records.mitigation_result import Assessment
from truthlens.core.records.outcome import Outcome, ResponseRecord, StreamRecord
from truthlens.core.records.plan import MARGIN_S, Plan
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.delivery import headers, outcome_of, pending_headers, unscored_outcome
from truthlens.detection.engine import Engine
from truthlens.evidence.extract import check_evidence
from truthlens.exchange.assessor import Assessor, Case
from truthlens.exchange.bodies import INLINE_BYTES, BodyReader, counting_kept, rewritten, why_unread
from truthlens.exchange.concluding import Concluder
from truthlens.exchange.corrector import Corrector
from truthlens.exchange.memory_release import GiveBack
from truthlens.exchange.operator_warnings import OperatorWarnings
from truthlens.exchange.reading_pool import Pool
from truthlens.exchange.ticket import Conclusion, HeldBytes, HeldTotal, Ticket
from truthlens.llm.loop_guard import MARK_HEADER, Marks
from truthlens.policy import EarlyPlans, PolicyHolder
from truthlens.streaming.driver import Emit, StreamDriver
from truthlens.streaming.shares import Streams
from truthlens.telemetry.logs import log_abandoned, log_texts
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent
from truthlens.telemetry.tracing import ExchangeTrace, Tracer

if TYPE_CHECKING:
    from truthlens.exchange.retrieval_step import RetrievalStep
    from truthlens.review.intake.intake import ReviewIntake
    from truthlens.telemetry.evaluations import Evaluations

log = structlog.get_logger("truthlens.pipeline")

# The model name that asks the policy to choose.
AUTO_MODEL = "auto"
_T = TypeVar("_T")


class Pipeline:
    """The stages, wired to one policy holder, one engine and one set of metrics."""

    driver: type[StreamDriver] = StreamDriver

    def __init__(
        self,
        policy: PolicyHolder,
        engine: Engine,
        signals: Metrics,
        recent: Recent,
        *,
        assessor: Assessor,
        corrector: Corrector,
        marks: Marks,
        pool: Pool | None = None,
        give_back: GiveBack | None = None,
        tracer: Tracer | None = None,
        retrieval: Callable[[], RetrievalStep | None] = lambda: None,
        reviews: ReviewIntake | None = None,
        evaluations: Evaluations | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._policy = policy
        self._reader = BodyReader(pool or Pool())
        self._give_back = give_back or GiveBack()
        self._engine = engine
        self._assessor = assessor
        self._corrector = corrector
        self._marks = marks
        self._retrieval = retrieval
        self._tracer = tracer or Tracer()
        self._concluder = Concluder(signals, recent, reviews, evaluations)
        self._signals = signals
        self._clock = clock
        self._held = HeldTotal(signals.held_bytes.set)
        self._warnings = OperatorWarnings()
        self._early = EarlyPlans()
        self._streams = Streams(refused=lambda bound: signals.streams_refused.labels(bound.value).inc())
        signals.on_scrape(self._observe_waiting)

    @property
    def max_body_bytes(self) -> int:
        """Largest body that is scored, in bytes."""
        return self._policy.current.limits.max_body_bytes

    # --- request phase ------------------------------------------------------------------------------------

    def admit(self, head: RequestHead) -> Ticket:
        """Take the policy snapshot; find out whether the bodies are needed at all."""
        policy = self._policy.current
        kind = kind_of(head.method, head.path, head.headers)
        if kind is RequestKind.NO_ANSWER:
            return Ticket(policy, head, kind, policy.default)
        plan, strictest = self._early.of(policy, head)
        self._warnings.of_unknown_route(policy, head)
        length, reason = head.headers.get("content-length", ""), None
        if kind is RequestKind.DIALECT:
            reason = Reason.DIALECT
        elif length.isdecimal() and int(length[:20]) > policy.limits.max_body_bytes:
            # It would only be brought here to be thrown away.
            reason = Reason.TOO_LARGE
        elif plan is not None and not plan.enabled and not plan.model_refs:
            reason = Reason.DISABLED
        # Until the request has been read, and where it cannot be, the strictest plan that could apply to it does.
        trace = self._tracer.begin(head.headers, head.proxy_trace)
        return Ticket(
            policy, head, kind, plan or strictest, reason=reason, held=self.held_bytes(), trace=trace
        )

    def reads_at_once(self, ticket: Ticket, size: int) -> bool:
        """Whether a request of ``size`` bytes is read without waiting for anything."""
        waits = ticket.head.headers.get("content-encoding") or ticket.plan.retrieves(Trigger.NO_CONTEXT)
        return size <= INLINE_BYTES and not waits

    async def open(self, ticket: Ticket, body: bytes) -> Ticket:
        """Read the request, as far as it takes to send it on: which plan, which model."""
        started = self._clock()
        deadline, held, size = Deadline.after(ticket.plan.timeout_s), self._held.part(), len(body)
        misnamed = False
        try:
            if size > INLINE_BYTES:  # what is smaller waits for nothing
                self._held.check_room(ticket.policy.limits, size)
                held.add(size)
            try:
                plain = await self._reader.decoded(ticket.policy.limits, ticket.head, body, deadline)
            except BodyEncodingError:
                # Most servers do not look at the header of a request at all, and read the body as it is.
                plain, misnamed = body, True
            size = len(plain)
            opened = await self.read(lambda: self._open(ticket, body, plain), size, deadline.remaining_s)
        except Exception as error:  # noqa: BLE001 - the stage border, as in assess
            unread = misnamed and isinstance(error, DialectError)
            opened = replace(ticket, reason=Reason.ENCODING if unread else why_unread(error))
        finally:
            held.release()
            self._give_back.after(size)
        return replace(counting_kept(opened, self._held), request_s=self._clock() - started)

    async def prepare(self, ticket: Ticket) -> Ticket:
        """Extract the evidence, the most expensive step of reading a request.

        It runs while the backend generates, so that it adds no latency.
        """
        reading = ticket.reading
        if reading is None:
            return ticket
        deadline = Deadline.after(ticket.plan.timeout_s)
        try:
            with ticket.trace.within():
                with self._tracer.stage("evidence"):
                    await self.read(reading.read, reading.size, ticket.plan.timeout_s)
                ticket = await self._retrieved(ticket, deadline)
        except Exception as error:  # noqa: BLE001 - the stage border, as in assess
            reading.give_up()
            return replace(ticket, reason=why_unread(error))
        finally:
            self._give_back.after(reading.size)
        return ticket

    async def _retrieved(self, ticket: Ticket, deadline: Deadline) -> Ticket:
        """Retrieve evidence for a request that holds none, where its plan says so: meanwhile the model writes."""
        exchange, plan, step = ticket.exchange, ticket.plan, self._retrieval()
        if exchange is None or step is None or not step.applies_before(plan, exchange):
            return ticket
        passed = ticket.head.headers.get("authorization")
        with self._tracer.stage("retrieval"):
            found = await step.before(plan, exchange, authorization=passed, time_s=deadline.remaining_s)
        return replace(ticket, retrieved=found)

    async def read(self, work: Callable[[], _T], size: int, timeout_s: float) -> _T:
        """The result of ``work`` on ``size`` bytes of a client or backend, off the event loop where that takes long.

        Raises:
            OverloadedError: too many bodies wait to be read.
            TimeoutError: it takes longer than ``timeout_s``; the work ends.
        """
        with self._signals.inflight.track_inprogress():
            return await self._reader.read(work, size, timeout_s)

    def held_bytes(self) -> HeldBytes:
        """What counts bytes as held that are not of an exchange of the gateway."""
        return self._held.part()

    def check_room(self, size: int) -> None:
        """Raise ``OverloadedError`` where ``size`` more bytes may not be held."""
        self._held.check_room(self._policy.current.limits, size)

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
            self._warnings.of_unknown_mark()
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
        kept = plain if plan.keeps_request else b""
        return replace(ticket, plan=plan, reading=reading, request_body=request_body, plain=kept, model=model)

    # --- response phase -----------------------------------------------------------------------------------

    def skip(self, ticket: Ticket, reason: Reason) -> Conclusion:
        """Conclude an exchange whose answer is not scored; the backend's bytes pass."""
        return self._concluder.conclude(ticket, self._unscored(ticket, reason), ticket.exchange)

    async def assess(self, ticket: Ticket, head: ResponseHead, body: bytes) -> Conclusion:
        """Score the answer and act on the verdict."""
        started = self._clock()
        held, exchange = self._held.part(), ticket.exchange
        try:
            self._held.check_room(ticket.policy.limits, len(body))
        except OverloadedError:
            outcome = self._unscored(ticket, Reason.OVERLOADED)
        else:
            held.add(len(body))
            try:
                with self._signals.inflight.track_inprogress(), ticket.trace.within():
                    outcome, exchange = await self._assess(ticket, head, body)
            except Exception as error:  # noqa: BLE001 - the stage border: a failure of ours costs a verdict, not an answer
                # The type alone: a message or a traceback may quote the text that was being assessed.
                log.error("assessment failed", error=type(error).__name__, decision=ticket.plan.decision)
                outcome = self._unscored(ticket, Reason.DETECTOR_ERROR)
            finally:
                held.release()
                self._give_back.after(max(len(body), ticket.size))
        response_s = self._clock() - started
        outcome = replace(outcome, response=replace(outcome.response, size=len(body)))
        if head.streams:
            outcome = replace(
                outcome,
                stream=StreamRecord(
                    Streaming.BUFFER, lag_s=response_s, held_s=response_s, held_bytes=len(body)
                ),
            )
        return self._concluder.conclude(
            ticket, replace(outcome, latency_s=ticket.request_s + response_s), exchange
        )

    async def _assess(self, ticket: Ticket, head: ResponseHead, body: bytes) -> tuple[Outcome, Exchange]:
        """The outcome, and the exchange with the evidence that came with the answer."""
        exchange = ticket.exchange
        assert exchange is not None
        # One for all that is done about the answer: reading it, assessing it, correcting it.
        deadline = Deadline.after(ticket.plan.hold_s)
        try:
            response, exchange, size = await self._read_response(ticket, exchange, head, body, deadline)
        except (TruthLensError, TimeoutError) as error:
            return self._unscored(ticket, why_unread(error)), exchange
        return await self._checked(ticket, exchange, response, size, deadline)

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
        plain = await self._reader.decoded(ticket.policy.limits, head, body, read_by)
        return (*await self._reader.read(lambda: read(plain), len(plain), read_by.remaining_s), len(plain))

    async def _checked(
        self,
        ticket: Ticket,
        exchange: Exchange,
        response: Response | StreamedResponse,
        size: int,
        deadline: Deadline,
    ) -> tuple[Outcome, Exchange]:
        if ticket.policy.telemetry.log_text:
            log_texts(exchange, response.answers, request_id=ticket.request_id)
        case = self._case(ticket, exchange, response.answers, deadline)
        assessment = await self._corrector.assess(case)
        exchange = assessment.exchange or exchange
        case = replace(case, exchange=exchange)
        if ticket.wants_details:
            delivered = assessment.delivered(response.answers)
            verdicts = await self._assessor.explain(case, delivered, assessment.verdicts, time_s=MARGIN_S / 2)
            assessment = replace(assessment, verdicts=verdicts)
        failed = False
        if isinstance(response, StreamedResponse):
            failed = response.failed
            reason = reason_of(response.transcript, overflowed=False)
            if reason is not None and not response.answers:
                return self._unscored(ticket, reason), exchange
            assessment = replace(assessment, verdicts=limited(assessment.verdicts, reason))
        outcome = self._outcome(ticket, assessment, response.answers)
        outcome = replace(outcome, response=ResponseRecord(id=response.id, usage=response.usage))
        if failed:
            outcome = replace(outcome, notes=(*outcome.notes, STREAM_ERROR))
        if outcome.action is Action.BLOCK:
            return outcome, exchange
        outcome = self._concluder.chosen(ticket, outcome)
        try:
            written = await self._reader.read(
                lambda: rewritten(ticket, exchange, response, outcome), size, MARGIN_S / 2
            )
        except (OverloadedError, TimeoutError) as error:
            written = self._unscored(ticket, why_unread(error))
        return written, exchange

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

    def admits_stream(self, ticket: Ticket) -> bool:
        """Whether there is room for one more stream that is observed or gated."""
        return self._streams.admits(ticket.policy.limits, behind_s=self._engine.behind_s)

    def note_lag(self, late_s: float) -> None:
        """Note how late the event loop is: while it is, no stream is begun."""
        self._streams.note_lag(late_s)

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
            if ticket.policy.telemetry.log_text:
                log_texts(flow.exchange, flow.answers(), request_id=ticket.request_id)
            self._concluder.conclude(ticket, outcome, flow.exchange)

        def hold(size: int) -> bool:
            self._held.hold(size)
            return self._held.has_room(ticket.policy.limits)

        flow = self.driver(
            plan,
            exchange,
            self._engine,
            details=ticket.wants_details,
            max_bytes=ticket.policy.limits.max_body_bytes,
            emit=emit,
            conclude=conclude,
            hold=hold,
            share=self._streams.join(ticket.policy.limits),
            closed=gauge.dec,
            examine=partial(self._examine_stream, ticket),
            search=partial(self._search_for_flagged, ticket),
            choose=partial(self._concluder.chosen, ticket),
            detecting=partial(self._tracer.stage, "detection"),
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
    ) -> tuple[Exchange, tuple[Verdict, ...], tuple[CallRecord, ...]]:
        """The exchange with what was retrieved for a streamed answer, and the verdicts with what models say, within ``time_s``."""
        case, verdicts = self._case(ticket, exchange, tuple(answers), Deadline.after(time_s)), tuple(verdicts)
        if ticket.plan.streaming is Streaming.OBSERVE:
            case, verdicts = await self._assessor.supported(case, verdicts)
        return case.exchange, *await self._assessor.ask(case, verdicts)

    async def _search_for_flagged(
        self,
        ticket: Ticket,
        exchange: Exchange,
        answers: Sequence[Answer],
        verdicts: Sequence[Verdict],
        time_s: float,
    ) -> Exchange:
        """The exchange with what was retrieved for flagged sentences of a gated answer, within ``time_s``."""
        step = self._retrieval()
        if step is None:
            return exchange
        passed = ticket.head.headers.get("authorization")
        with self._tracer.stage("retrieval"):
            return await step.for_flagged(
                ticket.plan, exchange, answers, verdicts, authorization=passed, time_s=time_s
            )

    def abandon(self, ticket: Ticket) -> None:
        """Note that the stream ended before its answer was assessed (client gone, backend gone)."""
        ticket.held.release()
        self._give_back.after(ticket.size)
        self._signals.abandoned.inc()
        trace = ticket.trace
        trace.end()
        log_abandoned(decision=ticket.plan.decision, request_id=ticket.request_id, trace_id=trace.trace_id)

    async def score(
        self, plan: Plan, exchange: Exchange, answer: Answer, headers: Mapping[str, str] | None = None
    ) -> Verdict:
        """The verdict on one answer outside of any HTTP exchange (the console's ``/v1/detect``).

        With the ``headers`` of who asks, it is traced and told as an evaluation of their span.
        """
        trace = ExchangeTrace() if headers is None else self._tracer.begin(headers)
        try:
            with trace.within():
                verdict = await self._score(plan, exchange, answer)
            if headers is not None:
                outcome = Outcome(plan, verdict, (verdict,), answers=(answer,))
                self._concluder.tell(outcome, trace, explain=self._policy.current.telemetry.log_text)
        finally:
            trace.end()
        return verdict

    async def _score(self, plan: Plan, exchange: Exchange, answer: Answer) -> Verdict:
        limits = self._policy.current.limits
        try:
            check_answers((answer,), limits)
            check_evidence(exchange.passages, limits)
            with self._signals.inflight.track_inprogress():
                left = Deadline.after(plan.timeout_s + plan.cascade.timeout_s)
                case = Case(plan, exchange, (answer,), left, models=self._policy.current.models)
                case, first = await self._assessor.first(case)
                verdicts, _ = await self._assessor.ask(case, first)
                (verdict,) = await self._assessor.explain(case, (answer,), verdicts, time_s=MARGIN_S / 2)
        except BodyTooLargeError:
            verdict = unchecked(Reason.TOO_LARGE, threshold=plan.threshold)
        finally:
            self._give_back.after(len(answer.text) + sum(len(each.text) for each in exchange.passages))
        return verdict

    # --- helpers ------------------------------------------------------------------------------------------

    def _unscored(self, ticket: Ticket, reason: Reason) -> Outcome:
        model = self._engine.model_name(ticket.plan)
        return unscored_outcome(ticket.plan, reason, model=model, latency_s=ticket.request_s)

    def _outcome(self, ticket: Ticket, assessment: Assessment, answers: Sequence[Answer]) -> Outcome:
        model = self._engine.model_name(ticket.plan)
        return replace(outcome_of(ticket.plan, assessment, answers, model=model), latency_s=ticket.request_s)

    def _observe_waiting(self) -> None:
        self._signals.stream_waiting_bytes.set(self._streams.bytes)
        self._signals.stream_waiting_frames.set(self._streams.frames)
