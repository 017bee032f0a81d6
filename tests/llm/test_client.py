"""The client as its caller sees it."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.fakes.llm_backends import Backend, Clock, asking, chat, head, ok, tcp_server
from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest, ModelSpec, TokenLogprob, Usage
from truthlens.core.records.enums import Endpoint
from truthlens.llm.client import LlmClient
from truthlens.llm.loop_guard import MARK_HEADER, Marks

BASE = "https://models.example/v1"
ENVIRON = {"KEY": "k-123\n", "BLANK": " ", "ODD": "k\u00e9y"}


class Bench:
    """A client before a scripted backend, with a clock that the retries move."""

    def __init__(
        self,
        *answers: httpx.Response | Exception,
        models: tuple[ModelSpec, ...] = (),
        upstream: str | None = "http://backend:8000",
        marks: Marks | None = None,
    ) -> None:
        self.clock = Clock()
        self.backend = Backend(*answers)
        self.client = LlmClient(
            upstream=upstream,
            environ=ENVIRON,
            transport=self.backend.transport,
            clock=self.clock,
            sleep=self.clock.sleep,
            rng=random.Random(1),
            marks=marks,
            longest_queue_s=0.0,
        )
        self.client.use({spec.name: spec for spec in models})

    async def ask(
        self, request: ModelRequest | None = None, *, seconds: float = 60.0, **options: Any
    ) -> Completion:
        self.attempts = 0
        return await self.client.complete(
            request or asking(),
            deadline=Deadline.after(seconds, clock=self.clock),
            on_attempt=self._count,
            **options,
        )

    def _count(self) -> None:
        self.attempts += 1

    async def failure(self, request: ModelRequest | None = None, **options: Any) -> CallError:
        with pytest.raises(CallError) as caught:
            await self.ask(request, **options)
        return caught.value

    @property
    def headers(self) -> list[httpx.Headers]:
        return [request.headers for request in self.backend.requests]


async def test_a_chat_is_asked_for_whole_and_once() -> None:
    bench = Bench(ok("Yes."))
    request = asking(
        "m", temperature=0.3, stream=True, stream_options={"include_usage": True}, n=4, best_of=4
    )
    reply = await bench.ask(request)
    assert (reply.text, reply.model, bench.attempts) == ("Yes.", "m", 1)
    assert bench.backend.bodies == [
        {
            "messages": [{"role": "user", "content": "hi there"}],
            "temperature": 0.3,
            "stream": False,
            "n": 1,
            "model": "m",
        }
    ]
    assert request.body["stream"] is True


async def test_the_completions_api_is_asked_at_its_own_path_and_its_logprobs_read() -> None:
    choice = {"text": "A", "logprobs": {"tokens": ["A"], "token_logprobs": [-0.1]}}
    bench = Bench(httpx.Response(200, json={"choices": [choice]}))
    reply = await bench.ask(asking(endpoint=Endpoint.COMPLETIONS, logprobs=1))
    assert reply.logprobs == (TokenLogprob("A", -0.1),)
    assert bench.backend.requests[0].url == "http://backend:8000/v1/completions"


async def test_json_that_utf8_cannot_hold_is_sent_as_the_client_wrote_it() -> None:
    bench = Bench(ok())
    await bench.ask(asking(stop="\ud800"))
    assert bench.backend.bodies[0]["stop"] == "\ud800"


async def test_a_key_of_the_environment_goes_to_its_model_and_no_other() -> None:
    keyed, plain = ModelSpec("keyed", BASE, api_key_env="KEY"), ModelSpec("plain", "http://plain/v1")
    bench = Bench(ok(), ok(), models=(keyed, plain))
    await bench.ask(asking("keyed", own=True), authorization="Bearer of-the-client")
    await bench.ask(asking("plain"), authorization="Bearer of-the-client")
    assert bench.headers[0]["authorization"] == "Bearer k-123"
    assert "authorization" not in bench.headers[1]


async def test_the_clients_authorization_goes_to_the_model_that_answered_alone() -> None:
    bench = Bench(ok(), ok())
    await bench.ask(asking(own=True), authorization="Bearer of-the-client", path="/v1/chat/completions")
    await bench.ask(asking(own=False), authorization="Bearer of-the-client", path="/v1/chat/completions")
    assert bench.headers[0]["authorization"] == "Bearer of-the-client"
    assert "authorization" not in bench.headers[1]


@pytest.mark.parametrize("variable", ["MISSING", "BLANK", "ODD"])
async def test_without_its_key_a_model_is_not_called(variable: str) -> None:
    bench = Bench(models=(ModelSpec("m", BASE, api_key_env=variable),))
    error = await bench.failure()
    assert (error.failure, bench.attempts) == (CallFailure.NO_KEY, 0)
    assert variable in str(error)
    assert not bench.client.reachable("m")


async def test_an_authorization_that_would_break_the_request_is_not_sent() -> None:
    bench = Bench()
    error = await bench.failure(asking(own=True), authorization="Bearer x\r\nhost: evil")
    assert (error.failure, bench.attempts) == (CallFailure.NO_KEY, 0)


async def test_a_redirect_is_not_followed() -> None:
    bench = Bench(
        httpx.Response(307, headers={"location": "http://evil/v1"}), models=(ModelSpec("m", BASE, "KEY"),)
    )
    assert (await bench.failure()).failure is CallFailure.CLIENT_ERROR
    assert len(bench.backend.requests) == 1


async def test_without_an_address_no_call_is_made() -> None:
    bench = Bench(upstream=None, models=(ModelSpec("there", BASE),))
    error = await bench.failure(asking("elsewhere"))
    assert (error.failure, bench.attempts) == (CallFailure.NO_BACKEND, 0)
    assert [bench.client.reachable(name) for name in ("there", "elsewhere")] == [True, False]


@pytest.mark.parametrize("value", [math.inf, math.nan, object()])
async def test_a_request_that_is_no_json_is_not_sent(value: object) -> None:
    bench = Bench()
    error = await bench.failure(asking(temperature=value))
    assert (error.failure, bench.attempts) == (CallFailure.CLIENT_ERROR, 0)


async def test_retries_honour_retry_after_and_count_their_attempts() -> None:
    bench = Bench(httpx.Response(429, headers={"retry-after": "5"}), httpx.ConnectError(""), ok("At last."))
    reply = await bench.ask()
    assert (reply.text, bench.attempts) == ("At last.", 3)
    assert 5.0 <= bench.clock.slept[0] <= 5.25
    assert bench.clock.slept[1] <= 0.5


async def test_a_retry_after_beyond_the_deadline_ends_the_call_at_once() -> None:
    bench = Bench(httpx.Response(429, headers={"retry-after": "61"}))
    error = await bench.failure()
    assert (error.failure, bench.attempts, bench.clock.slept) == (CallFailure.RATE_LIMITED, 1, [])


async def test_after_three_attempts_the_failure_is_told_with_their_number() -> None:
    bench = Bench(*[httpx.Response(503)] * 3)
    error = await bench.failure()
    assert (error.failure, bench.attempts, str(error)) == (CallFailure.SERVER_ERROR, 3, "status 503")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            httpx.Response(200, content=b"{", headers={"content-type": "application/json"}),
            CallFailure.BAD_RESPONSE,
        ),
        (
            httpx.Response(200, content=b"data: {}", headers={"content-type": "text/event-stream"}),
            CallFailure.BAD_RESPONSE,
        ),
        (httpx.Response(204), CallFailure.BAD_RESPONSE),
        (httpx.Response(200, json=chat(None, tool_calls=[{}])), CallFailure.TOOL_CALL),
        (httpx.Response(200, json=chat(None, refusal="no")), CallFailure.REFUSAL),
        (httpx.Response(200, json=chat("")), CallFailure.EMPTY),
        (httpx.ReadTimeout(""), CallFailure.TIMEOUT),
        (httpx.Response(422), CallFailure.CLIENT_ERROR),
    ],
)
async def test_what_another_attempt_cannot_help_is_tried_once(
    answer: httpx.Response | Exception, expected: CallFailure
) -> None:
    bench = Bench(answer)
    error = await bench.failure()
    assert (error.failure, bench.attempts) == (expected, 1)


async def test_an_answer_that_cannot_be_used_is_accounted_with_its_tokens() -> None:
    assert (await Bench(httpx.Response(200, json=chat(""))).failure()).usage == Usage(11, 7)


async def test_a_retry_that_the_open_circuit_refuses_tells_the_failure_that_opened_it() -> None:
    bench = Bench(*[httpx.Response(500)] * 5)
    await bench.failure()
    assert bench.attempts == 3
    error = await bench.failure()
    assert (error.failure, bench.attempts) == (CallFailure.SERVER_ERROR, 2)
    error = await bench.failure()
    assert (error.failure, bench.attempts) == (CallFailure.CIRCUIT_OPEN, 0)


async def trip(bench: Bench, model: str) -> None:
    for _ in range(2):
        await bench.failure(asking(model))


async def is_tripped(bench: Bench, model: str) -> bool:
    try:
        await bench.ask(asking(model))
    except CallError as error:
        return error.failure is CallFailure.CIRCUIT_OPEN
    return False


async def test_a_circuit_is_one_models_alone_and_outlives_a_reload_that_keeps_it() -> None:
    first, second = ModelSpec("first", BASE), ModelSpec("second", BASE)
    bench = Bench(*[httpx.Response(500)] * 5, ok(), ok(), models=(first, second))
    await trip(bench, "first")
    bench.client.use(
        {"first": ModelSpec("first", BASE, reliability=0.9, max_concurrency=2), "second": second}
    )
    assert await is_tripped(bench, "first")
    assert not await is_tripped(bench, "second")
    bench.client.use({"first": ModelSpec("first", "http://moved/v1")})
    assert not await is_tripped(bench, "first")


async def test_names_that_clients_make_up_share_their_slots_and_trip_no_others_circuit() -> None:
    bench = Bench(*[ok()] * 300, *[httpx.Response(500)] * 5, *[ok()] * 5)
    for number in range(300):
        await bench.ask(asking(f"made-up-{number}"))
    assert len(bench.client._unlisted) == 256
    assert len({id(gate.limiter) for gate in bench.client._unlisted.values()}) == 1
    await trip(bench, "made-up")
    assert await is_tripped(bench, "made-up")
    assert not await is_tripped(bench, "another")


async def test_an_exchange_keeps_the_model_that_its_plan_knew() -> None:
    bench = Bench(ok(), models=(ModelSpec("m", "http://new/v1"),))
    await bench.ask(asking("m"), spec=ModelSpec("m", "http://old/v1"))
    assert bench.backend.requests[0].url.host == "old"


async def test_calls_beyond_a_models_bound_are_busy_until_one_ends() -> None:
    hold, entered = asyncio.Event(), asyncio.Event()

    asked = 0

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        entered.set()
        await hold.wait()
        return ok()

    client = LlmClient(upstream=None, environ={}, transport=httpx.MockTransport(answer), longest_queue_s=0.0)
    client.use({"m": ModelSpec("m", BASE, max_concurrency=1)})
    first = asyncio.create_task(client.complete(asking(), deadline=Deadline.after(60.0)))
    await entered.wait()
    with pytest.raises(CallError) as caught:
        await client.complete(asking(), deadline=Deadline.after(60.0))
    assert (caught.value.failure, asked) == (CallFailure.BUSY, 1)
    hold.set()
    await first
    await client.complete(asking(), deadline=Deadline.after(60.0))
    assert asked == 2
    await client.aclose()


async def test_every_attempt_carries_a_fresh_mark_wherever_it_goes() -> None:
    marks = Marks()
    bench = Bench(httpx.Response(500), ok(), ok(), models=(ModelSpec("far", BASE),), marks=marks)
    await bench.ask(asking("near"), headers={MARK_HEADER: "forged", "traceparent": "00-ab"})
    await bench.ask(asking("far"))
    values = [headers[MARK_HEADER] for headers in bench.headers]
    assert len(set(values)) == 3
    sent = [request.content for request in bench.backend.requests]
    assert all(marks.accepts(value, body) for value, body in zip(values, sent, strict=True))
    assert [headers.get("traceparent") for headers in bench.headers] == ["00-ab", "00-ab", None]


async def test_headers_of_the_caller_replace_none_of_the_clients_own() -> None:
    bench = Bench(ok())
    await bench.ask(
        headers={"authorization": "Bearer smuggled", "accept": "text/event-stream", "x-request-id": "7"}
    )
    headers: Mapping[str, str] = bench.headers[0]
    assert "authorization" not in headers
    assert (headers["accept"], headers["accept-encoding"], headers["x-request-id"]) == (
        "application/json",
        "identity",
        "7",
    )


async def test_after_the_deadline_no_call_is_made() -> None:
    bench = Bench()
    error = await bench.failure(seconds=0.0)
    assert (error.failure, bench.attempts) == (CallFailure.DEADLINE, 0)


async def test_a_backend_that_hangs_or_trickles_is_left_at_the_deadline() -> None:
    asked = 0

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        writer.write(head("content-type: application/json", "connection: close") + b'{"choices": [')
        while not reader.at_eof():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.005)

    async with tcp_server(trickle) as base, asyncio.timeout(20):
        client = LlmClient(upstream=base, environ={})
        with pytest.raises(CallError) as caught:
            await client.complete(asking(), deadline=Deadline.after(0.1))
        await client.aclose()
    assert (caught.value.failure, asked) == (CallFailure.DEADLINE, 1)


async def test_a_connection_dropped_once_is_made_good_by_a_retry() -> None:
    served = 0

    async def flaky(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        served += 1
        if served == 1:
            writer.transport.abort()
            return
        body = json.dumps(chat("Here.")).encode()
        writer.write(head("content-type: application/json", f"content-length: {len(body)}") + body)

    async with tcp_server(flaky) as base, asyncio.timeout(20):
        client = LlmClient(upstream=base, environ={}, sleep=Clock().sleep)
        reply = await client.complete(asking(), deadline=Deadline.after(15.0))
        await client.aclose()
    assert (reply.text, served) == ("Here.", 2)


async def test_a_cancelled_call_closes_its_connection_and_frees_its_slot() -> None:
    asked, closed = asyncio.Event(), asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        closed.set()

    async with tcp_server(hang) as base, asyncio.timeout(20):
        client = LlmClient(upstream=base, environ={}, longest_queue_s=0.0)
        spec = ModelSpec("m", max_concurrency=1)
        for _ in range(3):
            asked.clear()
            closed.clear()
            task = asyncio.create_task(client.complete(asking(), deadline=Deadline.after(60.0), spec=spec))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await closed.wait()
        await client.aclose()
