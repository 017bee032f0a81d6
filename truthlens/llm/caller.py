"""Asks models on behalf of one exchange: within its deadline and its budget, and on its account.

It decides nothing about what is asked or what an answer is worth.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Protocol

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import (
    CallFailure,
    CallRecord,
    Completion,
    ModelRequest,
    ModelSpec,
    Price,
    Usage,
)
from truthlens.core.records.enums import Endpoint
from truthlens.llm.budget import Budget, Reservation
from truthlens.llm.client import LlmClient
from truthlens.llm.errors import AttemptError
from truthlens.llm.token_estimate import lengths, prompt_tokens

# What a chat template and an estimate by characters may be short of.
_SLACK = 1.2
# Less evidence than this says too little to correct anything by.
_LEAST_CHARS = 400
# A limit on the answer is not lowered further: what is cut off is of no use.
_LEAST_ANSWER_TOKENS = 64

# What is reserved for a completion. A request's own limit is often far above what is written; reserving all
# of it would let the first of several models that are asked side by side starve the others.
_EXPECTED_COMPLETION_TOKENS = 512
# Whoever serves models serves them with more than this: no server is asked about a shorter prompt.
_SHORT_PROMPT_TOKENS = 1024
# Of the time that is left, for asking what a model takes.
_WINDOW_SHARE = 0.1
# A model may have worked on the prompt before such a call ended.
_CUT = frozenset({CallFailure.DEADLINE, CallFailure.TIMEOUT})


class TraceSpan(Protocol):
    """A span of a trace, for one call."""

    def set(self, name: str, value: str | float | bool) -> None:
        """Set an attribute of the span."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers that carry the span to the backend (``traceparent``); names in lower case."""


class Caller:
    """An ``Ask`` for one exchange.

    Args:
        client: sends the calls.
        deadline: of the exchange.
        budget: of the exchange; one that several callers share, where they act for one exchange.
        models: the models of the exchange's plan, by name; for their addresses and prices.
        path: ``:path`` of the exchange.
        authorization: the client's own, where the plan passes it on.
        label: what a model is called in a trace; the name of one that is not configured is a client's text.
        observe: called after every call.
        trace: opens a span around each call.
    """

    def __init__(
        self,
        client: LlmClient,
        *,
        deadline: Deadline,
        budget: Budget,
        models: Mapping[str, ModelSpec],
        path: str | None = None,
        authorization: str | None = None,
        label: Callable[[str], str] = str,
        observe: Callable[[CallRecord], None] | None = None,
        trace: Callable[[ModelRequest], AbstractContextManager[TraceSpan]] | None = None,
    ) -> None:
        self._client = client
        self._deadline = deadline
        self._budget = budget
        self._models = models
        self._path = path
        self._authorization = authorization
        self._label = label
        self._observe = observe
        self._trace = trace
        self._calls: list[CallRecord] = []

    @property
    def calls(self) -> tuple[CallRecord, ...]:
        """Every call that has ended, refused ones too, in the order in which they ended."""
        return tuple(self._calls)

    async def __call__(self, request: ModelRequest) -> Completion:
        """Return the model's answer.

        Where the request is too long for the model's window or for what is left of the budget, it is asked
        with a selection of its evidence; where the server finds it too long all the same, once more with less
        of it, as a second call.

        A call that was cancelled (the client went away, or the exchange had no use for it any more) is
        recorded as ``deadline``: its time was over before it answered, whoever ended it. Where an attempt of
        it was under way, it is charged with its prompt, estimated, and so is one that ran into a timeout.

        Raises:
            CallError: there is no usable text; ``failure`` says why.
        """
        sized, window = await self._fitted(request)
        try:
            return await self._called(sized, window)
        except AttemptError as error:
            cause = error.cause
            if cause is None or not cause.is_length or request.cut is None or self._deadline.passed:
                raise
            half = sized.request.evidence_chars // 2
            window = cause.window
            if window is not None:
                self._client.learn_window(request, self._spec(request), path=self._path, window=window)
        again = await asyncio.to_thread(_less, sized, window, half)
        return await self._called(again, window)

    async def _called(self, sized: _Sized, window: int | None) -> Completion:
        with self._trace(sized.request) if self._trace else nullcontext(_UNTRACED) as span:
            call = _Call(sized.request, span, self._deadline.clock(), sized.tokens)
            try:
                completion = await self._ask(call, window)
            except AttemptError as error:
                self._close(call, error.usage, failure=error)
                raise
            except CallError as error:
                self._close(call, Usage(), failure=error)
                raise
            except asyncio.CancelledError:
                self._close(call, Usage(), failure=CallError(CallFailure.DEADLINE))
                raise
            self._close(call, completion.usage)
            return completion

    async def _fitted(self, request: ModelRequest) -> tuple[_Sized, int | None]:
        """Return the request fitted to the model's window and the budget, and the window if it is known."""
        if self._deadline.passed:
            return _Sized(request, 0), None
        sized = _sized(request)
        if request.cut is None:
            return sized, None
        window = None
        spec = self._spec(request)
        if spec is not None and spec.max_model_len is not None:
            window = spec.max_model_len
        elif needed(sized.tokens) >= _SHORT_PROMPT_TOKENS:
            window = await self._client.window(
                request,
                spec,
                authorization=self._authorization,
                path=self._path,
                time_s=self._deadline.remaining_s * _WINDOW_SHARE,
            )
        answer = expected_tokens(request, _EXPECTED_COMPLETION_TOKENS)
        room = self._budget.tokens_left if window is None else min(window, self._budget.tokens_left)
        if needed(sized.tokens) + answer > room:
            sized = await asyncio.to_thread(_fitting, sized, room, answer)
        return sized, window

    async def _ask(self, call: _Call, window: int | None) -> Completion:
        if self._deadline.passed:
            raise CallError(CallFailure.DEADLINE)
        request, price = call.request, self._price(call.request)
        expected = expected_tokens(request, _EXPECTED_COMPLETION_TOKENS)
        longest = self._budget.max_completion_tokens_left(call.prompt_tokens, price)
        call.reservation = self._budget.reserve(Usage(call.prompt_tokens, expected, estimated=True), price)
        if window is not None:
            longest = min(longest, window - needed(call.prompt_tokens))
        return await self._client.complete(
            limited(request, longest),
            deadline=self._deadline,
            authorization=self._authorization,
            path=self._path,
            headers=call.span.headers(),
            spec=self._spec(request),
            on_attempt=call.begin_attempt,
        )

    def _close(self, call: _Call, usage: Usage, *, failure: CallError | None = None) -> None:
        if failure is not None and failure.failure in _CUT and call.attempts and not usage.total_tokens:
            usage = Usage(call.prompt_tokens, estimated=True)
        if call.reservation is not None:
            call.reservation.settle(usage)
        price = self._price(call.request)
        record = CallRecord(
            model=call.request.model,
            role=call.request.role,
            usage=usage,
            cost_usd=None if price is None else usage.cost_usd(price),
            duration_s=self._deadline.clock() - call.began,
            attempts=call.attempts,
            failure=failure.failure if failure else None,
            code=failure.code if failure and failure.code != failure.failure.value else "",
            selected=call.request.selected,
        )
        self._calls.append(record)
        _describe(record, call, label=self._label(record.model))
        if self._observe is not None:
            self._observe(record)

    def _spec(self, request: ModelRequest) -> ModelSpec | None:
        return self._models.get(request.model)

    def _price(self, request: ModelRequest) -> Price | None:
        spec = self._spec(request)
        return spec.price if spec is not None else None


@dataclass(frozen=True, slots=True)
class _Sized:
    """A request, and about how many tokens its prompt has: counted once, for it may be long."""

    request: ModelRequest
    tokens: int


@dataclass(slots=True)
class _Call:
    request: ModelRequest
    span: TraceSpan
    began: float
    prompt_tokens: int
    attempts: int = 0
    reservation: Reservation | None = None

    def begin_attempt(self) -> None:
        self.attempts += 1


class _Untraced:
    def set(self, name: str, value: str | float | bool) -> None:
        pass

    def headers(self) -> Mapping[str, str]:
        return {}


_UNTRACED: TraceSpan = _Untraced()


def _sized(request: ModelRequest) -> _Sized:
    return _Sized(request, prompt_tokens(request.body))


def _fitting(sized: _Sized, room: int, answer: int) -> _Sized:
    return _sized(fitted(sized.request, room, answer=answer, prompt=needed(sized.tokens)))


def _less(sized: _Sized, window: int | None, most_chars: int) -> _Sized:
    """Return the request with less evidence: as the window demands, and at most so many characters."""
    request = sized.request
    if window is not None:
        answer = expected_tokens(request, _EXPECTED_COMPLETION_TOKENS)
        fits = fitted(request, window, answer=answer, prompt=needed(sized.tokens))
        most_chars = min(fits.evidence_chars, most_chars)
    return _sized(shorter(request, most_chars))


def _describe(record: CallRecord, call: _Call, *, label: str) -> None:
    """Put the call into its span.

    Source: OpenTelemetry semantic conventions for generative AI, client spans.
    """
    span = call.span
    span.set("gen_ai.operation.name", "chat" if call.request.endpoint is Endpoint.CHAT else "text_completion")
    span.set("gen_ai.request.model", label)
    span.set("gen_ai.usage.input_tokens", record.usage.prompt_tokens)
    span.set("gen_ai.usage.output_tokens", record.usage.completion_tokens)
    span.set("truthlens.role", record.role.value)
    span.set("truthlens.attempts", record.attempts)
    if record.cost_usd is not None:
        span.set("truthlens.cost_usd", record.cost_usd)
    if record.failure is not None:
        span.set("error.type", record.code or record.failure.value)


def expected_tokens(request: ModelRequest, usual: int) -> int:
    """Return how long an answer is expected to be: as the request says or ``usual``, within its limit."""
    return min([max(usual, request.answer_tokens), *lengths(request.body).values()])


def fitted(request: ModelRequest, room: int, *, answer: int, prompt: int) -> ModelRequest:
    """Return the request with as much evidence as fits; unchanged if it fits or has none to cut.

    It may take long for much evidence: what is kept is chosen anew.

    Args:
        request: what is asked.
        room: tokens of prompt and answer together.
        answer: tokens of these that the answer is expected to take.
        prompt: tokens that the prompt takes as it is.
    """
    if request.cut is None or prompt + answer <= room or request.evidence_chars <= _LEAST_CHARS:
        return request
    bare = needed(prompt_tokens(request.cut(0)))
    share = (room - answer - bare) / max(prompt - bare, 1)
    return shorter(request, int(request.evidence_chars * min(max(share, 0.0), 1.0)))


def shorter(request: ModelRequest, most_chars: int) -> ModelRequest:
    """Return the request with at most so many characters of evidence, and never less than say something."""
    if request.cut is None:
        return request
    kept = min(max(most_chars, _LEAST_CHARS), request.evidence_chars)
    return replace(request, body=request.cut(kept), evidence_chars=kept, selected=True)


def limited(request: ModelRequest, longest: int) -> ModelRequest:
    """Return the request with its own limits on the answer lowered to ``longest``.

    None is added where it has none.
    """
    most = max(longest, _LEAST_ANSWER_TOKENS)
    lowered = {name: most for name, value in lengths(request.body).items() if value > most}
    return replace(request, body={**request.body, **lowered}) if lowered else request


def needed(tokens: int) -> int:
    """Return how many tokens of a window a prompt of about so many takes, rather too many than too few."""
    return int(tokens * _SLACK)
