"""Calls on behalf of one exchange: its deadline, its budget, its accounts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.fakes.llm_backends import Backend, Clock, asking, chat, ok
from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import (
    Ask,
    CallFailure,
    CallRecord,
    ModelRequest,
    ModelSpec,
    Price,
    Role,
    Usage,
)
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


async def test_as_much_is_reserved_as_the_answer_is_expected_to_take() -> None:
    """A correction is about as long as the answer; one that cannot be paid for is not begun."""
    bench = Bench(ok(), max_tokens=800)
    assert await bench.failure(replace(asking(), answer_tokens=900)) is CallFailure.BUDGET
    await bench.caller(replace(asking(max_tokens=50), answer_tokens=900))


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

    bench = Bench(ok(), httpx.Response(400), trace=trace)
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
    assert bench.backend.requests[0].headers["traceparent"] == "00-span"


async def test_the_path_and_the_authorization_of_the_exchange_go_with_its_own_model() -> None:
    bench = Bench(ok(), ok(), path="/team/v1/chat/completions", authorization="Bearer of-the-client")
    await bench.caller(asking("unlisted", own=True))
    await bench.caller(asking("m"))
    first, second = bench.backend.requests
    assert str(first.url) == "http://upstream/team/v1/chat/completions"
    assert first.headers["authorization"] == "Bearer of-the-client"
    assert str(second.url) == "http://models/v1/chat/completions"
    assert "authorization" not in second.headers


# --- what a model takes -----------------------------------------------------------------------------------

EVIDENCE = "word " * 4000  # about 5,000 tokens


def cutting(model: str = "m", **body: Any) -> ModelRequest:
    """A request whose evidence can be cut."""

    def cut(most_chars: int) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": f"Mend: {EVIDENCE[:most_chars]}"}], **body}

    return replace(
        asking(model), body=cut(len(EVIDENCE)), cut=cut, evidence_chars=len(EVIDENCE), answer_tokens=100
    )


def told(*entries: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, json={"data": list(entries)})


def refused(message: str = "", **error: Any) -> httpx.Response:
    return httpx.Response(400, json={"error": {"message": message, **error}})


async def test_a_prompt_that_does_not_fit_the_models_window_gets_less_evidence() -> None:
    bench = Bench(told({"id": "m", "max_model_len": 2000}), ok())
    await bench.caller(cutting(max_tokens=1500))
    listed, asked = bench.backend.requests
    assert (listed.method, str(listed.url)) == ("GET", "http://models/v1/models")
    body = json.loads(asked.content)
    tokens = len(body["messages"][0]["content"]) / 4
    assert 500 < tokens < 2000 - 512
    # The limit on the answer leaves room for the prompt.
    assert 512 <= body["max_tokens"] <= 2000 - tokens
    assert bench.caller.calls[0].selected


async def test_a_prompt_that_fits_is_sent_as_it_is() -> None:
    request = cutting()
    bench = Bench(told({"id": "m", "max_model_len": 8192}), ok())
    await bench.caller(request)
    assert json.loads(bench.backend.requests[1].content)["messages"] == request.body["messages"]
    assert not bench.caller.calls[0].selected


async def test_a_configured_window_is_not_asked_for() -> None:
    bench = Bench(ok())
    bench.caller._models = {"m": replace(PRICED, max_model_len=2000)}
    await bench.caller(cutting())
    (asked,) = bench.backend.requests
    assert len(asked.content) < 2000 * 4
    assert bench.caller.calls[0].selected


async def test_evidence_is_selected_where_the_budget_is_smaller() -> None:
    bench = Bench(told(), ok(), max_tokens=2000)
    await bench.caller(cutting())
    assert bench.caller.calls[0].selected
    assert len(bench.backend.requests[1].content) < 2000 * 4


@pytest.mark.parametrize(
    ("error", "most"),
    [
        ({"message": "This model's maximum context length is 3000 tokens."}, 3000 * 4),
        ({"code": "context_length_exceeded"}, len(EVIDENCE) * 0.6),
        ({"message": "maximum context length is 10000000 tokens"}, len(EVIDENCE) * 0.6),
    ],
)
async def test_a_request_that_the_server_finds_too_long_is_shortened_once(
    error: dict[str, Any], most: float
) -> None:
    """By what the server says, else by half; the second call stands in the accounts for itself."""
    bench = Bench(told(), refused(**error), ok("Yes."))
    assert (await bench.caller(cutting())).text == "Yes."
    first, second = bench.caller.calls
    assert (first.failure, first.code, first.selected) == (
        CallFailure.CLIENT_ERROR,
        "http-400:context-length",
        False,
    )
    assert (second.failure, second.code, second.selected) == (None, "", True)
    assert len(bench.backend.requests[2].content) < most


async def test_a_second_refusal_is_the_last() -> None:
    bench = Bench(told(), *[refused(code="context_length_exceeded")] * 2)
    with pytest.raises(CallError) as caught:
        await bench.caller(cutting())
    assert caught.value.code == "http-400:context-length"
    assert len(bench.caller.calls) == 2


async def test_a_window_that_an_error_told_is_known_to_the_next_call() -> None:
    bench = Bench(told(), refused("maximum context length is 3000 tokens"), ok(), ok())
    await bench.caller(cutting())
    await bench.caller(cutting())
    assert len(bench.backend.requests) == 4
    assert len(bench.backend.requests[3].content) < 3000 * 4


@pytest.mark.parametrize("error", [{"code": "unsupported_parameter"}, {"message": "No."}])
async def test_another_refusal_is_not_tried_again(error: dict[str, Any]) -> None:
    bench = Bench(told(), refused(**error))
    assert await bench.failure(cutting()) is CallFailure.CLIENT_ERROR
    assert len(bench.caller.calls) == 1


async def test_without_evidence_to_cut_nothing_is_shortened() -> None:
    bench = Bench(refused(code="context_length_exceeded"))
    assert await bench.failure() is CallFailure.CLIENT_ERROR
    assert bench.caller.calls[0].code == "http-400:context-length"


# --- what a backend says of its usage -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 10**30, "completion_tokens": 7},
        {"prompt_tokens": 11, "completion_tokens": 10**400},
        {"prompt_tokens": 11, "completion_tokens": 10**7},
    ],
)
async def test_usage_that_no_such_call_can_have_is_not_believed(usage: dict[str, int]) -> None:
    bench = Bench(httpx.Response(200, json={**chat("Yes."), "usage": usage}))
    await bench.caller(asking())
    record = bench.caller.calls[0]
    assert record.usage == Usage(3, 1, estimated=True, doubted=True)
    assert record.cost_usd == pytest.approx((3 * 10 + 1 * 30) / 1e6)
    assert bench.budget.tokens_left == 50_000 - 4


@pytest.mark.parametrize("hidden", [0, 30_000])
async def test_reasoning_that_is_charged_and_not_shown_is_believed(hidden: int) -> None:
    usage = {"prompt_tokens": 300, "completion_tokens": 7 + hidden}
    bench = Bench(httpx.Response(200, json={**chat("Yes."), "usage": usage}))
    await bench.caller(asking())
    assert bench.caller.calls[0].usage == Usage(300, 7 + hidden)


async def test_a_limit_on_the_answer_bounds_what_is_believed() -> None:
    usage = {"prompt_tokens": 300, "completion_tokens": 30_000}
    bench = Bench(httpx.Response(200, json={**chat("Yes."), "usage": usage}))
    await bench.caller(asking(max_tokens=100))
    assert bench.caller.calls[0].usage.doubted
