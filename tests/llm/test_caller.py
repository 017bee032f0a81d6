"""Calls on behalf of one exchange: its deadline, its budget, its accounts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.fakes.llm_backends import Backend, Clock, asking, chat, ok
from truthlens.core.calls import Ask, CallFailure, CallRecord, ModelRequest, ModelSpec, Price, Role, Usage
from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.llm.budget import Budget
from truthlens.llm.caller import Caller
from truthlens.llm.client import LlmClient

PRICED = ModelSpec("m", "http://models/v1", price=Price(input=10, output=30))


class Bench:
    """A caller before a scripted backend."""

    def __init__(
        self, *answers: httpx.Response | Exception, max_tokens: int = 50_000, **options: Any
    ) -> None:
        self.clock = Clock()
        self.backend = Backend(*answers)
        self.budget = Budget(max_tokens, options.pop("max_cost_usd", None))
        client = LlmClient(
            upstream="http://upstream",
            environ={},
            transport=options.pop("transport", self.backend.transport),
            clock=self.clock,
            sleep=self.clock.sleep,
        )
        self.observed: list[CallRecord] = []
        self.caller = Caller(
            client,
            deadline=Deadline.after(options.pop("seconds", 60.0), clock=self.clock),
            budget=self.budget,
            models={"m": PRICED},
            observe=self.observed.append,
            **options,
        )

    async def failure(self, request: ModelRequest | None = None) -> CallFailure:
        with pytest.raises(CallError) as caught:
            await self.caller(request or asking())
        return caught.value.failure


async def test_an_answered_call_is_accounted_with_its_tokens_and_its_cost() -> None:
    bench = Bench(ok("Yes."))
    ask: Ask = bench.caller
    assert (await ask(asking())).text == "Yes."
    record = CallRecord("m", Role.REFINER, Usage(11, 7), cost_usd=(11 * 10 + 7 * 30) / 1e6, attempts=1)
    assert bench.caller.calls == (record,)
    assert bench.observed == [record]
    assert bench.budget.tokens_left == 50_000 - 18


async def test_a_model_without_a_price_has_no_cost() -> None:
    bench = Bench(ok())
    await bench.caller(asking("unlisted"))
    assert bench.caller.calls[0].cost_usd is None


async def test_the_time_of_a_call_counts_its_retries() -> None:
    bench = Bench(httpx.Response(429, headers={"retry-after": "5"}), ok())
    await bench.caller(asking())
    record = bench.caller.calls[0]
    assert record.attempts == 2
    assert 5.0 <= record.duration_s <= 5.25


@pytest.mark.parametrize(
    ("answers", "expected", "usage", "attempts"),
    [
        ([httpx.Response(400)], CallFailure.CLIENT_ERROR, Usage(), 1),
        ([httpx.Response(500)] * 3, CallFailure.SERVER_ERROR, Usage(), 3),
        ([httpx.Response(200, json=chat(""))], CallFailure.EMPTY, Usage(11, 7), 1),
        ([httpx.Response(200, json={})], CallFailure.BAD_RESPONSE, Usage(), 1),
        # The model may have worked on the prompt ("user", "hi there"): 1 + 2 tokens, estimated.
        ([httpx.ReadTimeout("")], CallFailure.TIMEOUT, Usage(3, 0, estimated=True), 1),
    ],
)
async def test_a_failed_call_is_accounted_with_what_it_used(
    answers: list[httpx.Response | Exception], expected: CallFailure, usage: Usage, attempts: int
) -> None:
    bench = Bench(*answers)
    assert await bench.failure() is expected
    record = bench.caller.calls[0]
    assert (record.failure, record.usage, record.attempts) == (expected, usage, attempts)
    assert bench.budget.tokens_left == 50_000 - usage.total_tokens


async def test_a_call_that_the_budget_refuses_is_recorded_and_not_made() -> None:
    bench = Bench(max_tokens=400)
    assert await bench.failure() is CallFailure.BUDGET
    assert bench.caller.calls == (
        CallRecord("m", Role.REFINER, cost_usd=0.0, attempts=0, failure=CallFailure.BUDGET),
    )
    assert bench.budget.tokens_left == 400


async def test_a_call_after_the_deadline_is_recorded_and_not_made() -> None:
    bench = Bench(seconds=5.0)
    bench.clock.advance(5.0)
    assert await bench.failure() is CallFailure.DEADLINE
    assert [(record.attempts, record.failure) for record in bench.caller.calls] == [(0, CallFailure.DEADLINE)]
    assert bench.backend.requests == []


async def test_money_ends_the_calls_of_models_that_cost_it() -> None:
    bench = Bench(ok(), ok(), max_cost_usd=0.0157)
    await bench.caller(asking())
    assert await bench.failure() is CallFailure.BUDGET
    await bench.caller(asking("unlisted"))


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
async def test_a_longest_answer_beyond_the_budget_is_lowered_to_it(field: str) -> None:
    bench = Bench(ok(), ok(), max_tokens=1003)
    request = asking(**{field: 100_000})
    await bench.caller(request)
    assert bench.backend.bodies[0][field] == 1000
    assert request.body[field] == 100_000
    await bench.caller(asking(**{field: 20}))
    assert bench.backend.bodies[1][field] == 20


async def test_a_request_without_a_longest_answer_is_given_none() -> None:
    bench = Bench(ok())
    await bench.caller(asking())
    assert {"max_tokens", "max_completion_tokens"}.isdisjoint(bench.backend.bodies[0])


async def test_a_short_answer_fits_where_a_long_one_would_not() -> None:
    bench = Bench(ok(), max_tokens=100)
    await bench.caller(asking(max_tokens=50))
    assert bench.budget.tokens_left == 82


async def test_calls_side_by_side_do_not_reserve_the_same_tokens_twice() -> None:
    hold = asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        await hold.wait()
        return ok()

    bench = Bench(max_tokens=1100, transport=httpx.MockTransport(answer))
    tasks = [asyncio.create_task(bench.caller(asking())) for _ in range(3)]
    results: list[object] = []
    async with asyncio.timeout(20):
        while not bench.caller.calls:
            await asyncio.sleep(0)
        hold.set()
        results.extend(await asyncio.gather(*tasks, return_exceptions=True))
    assert [isinstance(result, CallError) for result in results] == [False, False, True]
    assert bench.budget.tokens_left == 1100 - 2 * 18
    assert {record.failure for record in bench.caller.calls} == {None, CallFailure.BUDGET}


async def test_a_cancelled_call_is_recorded_as_out_of_time_and_charged_with_its_prompt() -> None:
    entered = asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        entered.set()
        await asyncio.Event().wait()
        raise AssertionError

    bench = Bench(transport=httpx.MockTransport(answer))
    task = asyncio.create_task(bench.caller(asking()))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    usage = Usage(3, 0, estimated=True)
    assert [(r.failure, r.attempts, r.usage) for r in bench.caller.calls] == [
        (CallFailure.DEADLINE, 1, usage)
    ]
    assert bench.budget.tokens_left == 50_000 - 3


class Span:
    def __init__(self) -> None:
        self.attributes: dict[str, str | float | bool] = {}
        self.ended_by: BaseException | None = None

    def set(self, name: str, value: str | float | bool) -> None:
        self.attributes[name] = value

    def headers(self) -> Mapping[str, str]:
        return {"traceparent": "00-span"}


async def test_each_call_has_a_span_that_tells_what_it_used_and_travels_with_it() -> None:
    spans: list[Span] = []

    @contextmanager
    def trace(request: ModelRequest) -> Iterator[Span]:
        spans.append(Span())
        try:
            yield spans[-1]
        except CallError as error:
            spans[-1].ended_by = error
            raise

    bench = Bench(
        ok(), httpx.Response(400), trace=trace, headers={"x-request-id": "7", "traceparent": "00-parent"}
    )
    await bench.caller(asking())
    assert await bench.failure() is CallFailure.CLIENT_ERROR
    assert spans[0].attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "truthlens.role": "refiner",
        "truthlens.attempts": 1,
        "truthlens.cost_usd": (11 * 10 + 7 * 30) / 1e6,
    }
    assert spans[1].attributes["error.type"] == "http-400"
    assert isinstance(spans[1].ended_by, CallError)
    headers = bench.backend.requests[0].headers
    assert (headers["traceparent"], headers["x-request-id"]) == ("00-span", "7")


async def test_the_path_and_the_authorization_of_the_exchange_go_with_its_own_model() -> None:
    bench = Bench(ok(), ok(), path="/team/v1/chat/completions", authorization="Bearer of-the-client")
    await bench.caller(asking("unlisted", own=True))
    await bench.caller(asking("m"))
    first, second = bench.backend.requests
    assert str(first.url) == "http://upstream/team/v1/chat/completions"
    assert first.headers["authorization"] == "Bearer of-the-client"
    assert str(second.url) == "http://models/v1/chat/completions"
    assert "authorization" not in second.headers
