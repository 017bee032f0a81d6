"""The client of OpenAI-compatible backends: one per process, a connection a call, one gate per model.

It knows nothing of exchanges, budgets or accounts; those are its caller's. It asks for whole answers, never
streams.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import MappingProxyType

import httpx

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest, ModelSpec
from truthlens.llm.context_windows import ContextWindows
from truthlens.llm.errors import AttemptError
from truthlens.llm.http.attempt import post
from truthlens.llm.http.request_builder import Outgoing, has_key, outgoing
from truthlens.llm.http.response_parser import read_answer
from truthlens.llm.loop_guard import MARK_HEADER, Marks
from truthlens.llm.retries import Limiter, ModelGate, Sleep, with_retries
from truthlens.llm.token_estimate import most_usage, prompt_tokens

# The deadline of the exchange bounds an attempt; these end what hangs where the deadline is far.
_TIMEOUTS = httpx.Timeout(connect=5.0, read=120.0, write=30.0, pool=5.0)
# How many connections there are is bounded by the calls in flight, model by model.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=0)

_MARK_VALID_S = 60.0
# Larger answers are read on a thread, so that one does not hold up the others.
_INLINE_BYTES = 64 << 10
_REFUSALS = frozenset({CallFailure.BUSY, CallFailure.CIRCUIT_OPEN})
# There is no end of names that clients make up: they share their slots, and the oldest ones' circuits are
# forgotten.
_MOST_UNLISTED = 256
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class LlmClient:
    """Asks models.

    Args:
        upstream: the exchange's backend, such as ``http://10.0.0.5:8000``, without ``/v1``; ``None`` where
            every model has a base URL of its own.
        environ: where keys come from.
        transport: how requests travel; left out, over the network.
        clock: seconds, monotonic.
        wall_clock: seconds since the epoch.
        sleep: waits between attempts.
        rng: draws the jitter.
        marks: marks every attempt, so that one that comes back through the gateway is known.
        longest_queue_s: how long an attempt waits for a slot of its model at most.
    """

    def __init__(
        self,
        *,
        upstream: str | None,
        environ: Mapping[str, str],
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        sleep: Sleep = asyncio.sleep,
        rng: random.Random | None = None,
        marks: Marks | None = None,
        longest_queue_s: float = 5.0,
    ) -> None:
        self._upstream = upstream
        self._environ = environ
        self._clock = clock
        self._wall_clock = wall_clock
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._marks = marks
        self._longest_queue_s = longest_queue_s
        self._models: Mapping[str, ModelSpec] = {}
        self._gates: dict[tuple[str, str | None], ModelGate] = {}
        self._unlisted: OrderedDict[str, ModelGate] = OrderedDict()
        self._unlisted_slots = Limiter(ModelSpec("").max_concurrency)
        self._http = open_pool(upstream, transport)
        self._windows = ContextWindows(self._http, clock)

    def use(self, models: Mapping[str, ModelSpec]) -> None:
        """Use these models from now on. What is known of the health of a model that stays is kept."""
        self._models = dict(models)
        kept = {_gate_key(spec): spec for spec in models.values()}
        self._gates = {key: gate for key, gate in self._gates.items() if key in kept}
        for key, gate in self._gates.items():
            gate.resize(kept[key].max_concurrency)

    def reachable(self, name: str) -> bool:
        """Return whether model ``name`` has an address and, if needed, a key. No server is asked."""
        spec = self._models.get(name)
        if spec is None:
            return self._upstream is not None
        return has_key(spec, self._environ) and (spec.base_url or self._upstream) is not None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def complete(
        self,
        request: ModelRequest,
        *,
        deadline: Deadline,
        authorization: str | None = None,
        path: str | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
        spec: ModelSpec | None = None,
        on_attempt: Callable[[], None] | None = None,
    ) -> Completion:
        """Return the model's answer.

        Args:
            request: what is asked.
            deadline: ends the call.
            authorization: the client's own; sent only where ``request.own``, and the model has no key of its
                own.
            path: ``:path`` of the exchange, for ``request.own``.
            headers: to be sent along, such as ``traceparent``; lower-case names.
            spec: the model as the exchange's plan knows it; left out, as the client does.
            on_attempt: called as each attempt begins.

        Raises:
            CallError: there is no usable text; an ``AttemptError`` where the last attempt says why.
        """
        spec = spec or self._models.get(request.model)
        call = self._outgoing(request, spec, authorization=authorization, path=path, headers=headers)
        gate = self._gate(spec) if spec is not None else self._unlisted_gate(request.model)
        last: AttemptError | None = None

        async def send() -> Completion:
            if on_attempt is not None:
                on_attempt()
            return await self._send(request, call)

        async def attempt() -> Completion:
            nonlocal last
            try:
                return await gate.attempt(send, deadline=deadline)
            except AttemptError as error:
                last = error
                raise

        try:
            return await with_retries(attempt, deadline=deadline, sleep=self._sleep, rng=self._rng)
        except CallError as error:
            # That a retry was refused tells less than the failure before it.
            raise (last if last is not None and error.failure in _REFUSALS else error) from None

    async def window(
        self,
        request: ModelRequest,
        spec: ModelSpec | None,
        *,
        authorization: str | None,
        path: str | None,
        time_s: float,
    ) -> int | None:
        """Return the tokens that the model of ``request`` takes, as its server says.

        It is ``None`` where that is not known.
        """
        try:
            call = self._outgoing(replace(request, body={}), spec, authorization=authorization, path=path)
        except CallError:
            return None
        return await self._windows.of(request.model, call.url, call.headers, time_s=time_s)

    def learn_window(
        self, request: ModelRequest, spec: ModelSpec | None, *, path: str | None, window: int
    ) -> None:
        """Keep what the server said, refusing ``request``, of how much the model takes."""
        call = self._outgoing(replace(request, body={}), spec, authorization=None, path=path)
        self._windows.learn(request.model, call.url, window)

    def _outgoing(
        self,
        request: ModelRequest,
        spec: ModelSpec | None,
        *,
        authorization: str | None,
        path: str | None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> Outgoing:
        return outgoing(
            request,
            spec or self._models.get(request.model),
            upstream=self._upstream,
            environ=self._environ,
            authorization=authorization,
            path=path,
            headers=headers,
        )

    async def _send(self, request: ModelRequest, call: Outgoing) -> Completion:
        headers = dict(call.headers)
        if self._marks is not None:
            # A model's base URL may be the gateway's own, so every attempt is marked, wherever it goes.
            headers[MARK_HEADER] = self._marks.issue(call.content, _MARK_VALID_S).encode("ascii")
        body = await post(self._http, call.url, call.content, headers, wall_clock=self._wall_clock)
        read = partial(
            read_answer,
            body,
            model=request.model,
            endpoint=request.endpoint,
            prompt_estimate=prompt_tokens(request.body),
            most=most_usage(request.body, sent=len(call.content), received=len(body)),
        )
        return read() if len(body) <= _INLINE_BYTES else await asyncio.to_thread(read)

    def _gate(self, spec: ModelSpec) -> ModelGate:
        key = _gate_key(spec)
        gate = self._gates.get(key)
        if gate is None:
            gate = ModelGate(spec.max_concurrency, self._clock, longest_queue_s=self._longest_queue_s)
            self._gates[key] = gate
        return gate

    def _unlisted_gate(self, name: str) -> ModelGate:
        """Return the gate of an unconfigured name: its own circuit, so that no name can close another's."""
        gate = self._unlisted.pop(name, None)
        if gate is None:
            slots = self._unlisted_slots
            gate = ModelGate(slots.limit, self._clock, longest_queue_s=self._longest_queue_s, limiter=slots)
        self._unlisted[name] = gate
        if len(self._unlisted) > _MOST_UNLISTED:
            self._unlisted.popitem(last=False)
        return gate


def _gate_key(spec: ModelSpec) -> tuple[str, str | None]:
    return spec.name, spec.base_url


def open_pool(upstream: str | None, transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """Return a client that follows no redirect (a key must not travel) and keeps no cookie (users share it).

    A connection is not used again. A backend that writes more than one response to a request would otherwise
    answer the next call, another exchange's, with what it wrote for this one: httpcore keeps what follows a
    response and takes it for the next. A handshake per call is little compared with the seconds of a generation.

    HTTP/1.1 alone, on purpose: over HTTP/2, httpcore does not reset the stream of a cancelled request, so the
    backend would go on generating for nobody and fill the window that other calls share. Here cancelling closes
    the connection.

    Args:
        upstream: the gateway's backend. The gateway reaches it directly, so it is reached directly here, too;
            a proxy that the environment names is for the models outside.
        transport: how requests travel; left out, over the network.
    """
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    if transport is not None:
        return httpx.AsyncClient(
            transport=transport, cookies=cookies, timeout=_TIMEOUTS, follow_redirects=False
        )
    tls = httpx.create_ssl_context()
    mounts: dict[str, httpx.AsyncBaseTransport] = {}
    if upstream is not None:
        url = httpx.URL(upstream)
        port = f":{url.port}" if url.port is not None else ""
        host = f"[{url.host}]" if ":" in url.host else url.host
        mounts[f"{url.scheme}://{host}{port}"] = httpx.AsyncHTTPTransport(verify=tls, limits=_LIMITS)
    return httpx.AsyncClient(
        verify=tls,
        limits=_LIMITS,
        mounts=mounts,
        cookies=cookies,
        timeout=_TIMEOUTS,
        follow_redirects=False,
    )
