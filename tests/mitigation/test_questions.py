"""Questions of our own: how they are asked, and what failed calls and unusable texts become."""

import asyncio

import pytest

from tests.fakes.premium_panel import (
    BUILDER,
    CITY,
    HEIGHT,
    WRONG_HEIGHT,
    Script,
    forever,
    prompt_of,
    task_of,
    tools_of,
)
from truthlens.core.deadline import Deadline
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest, ModelSpec, Role
from truthlens.core.records.enums import Endpoint
from truthlens.mitigation.interfaces import Task
from truthlens.mitigation.questions import (
    Opinion,
    acceptable,
    is_structured,
    opinions,
    prompted,
    said,
    written,
)

VALUES = {"claims": "", "said": ""}
FIRST = f"{BUILDER} {CITY} {WRONG_HEIGHT}"


def question(*, own: bool = False, endpoint: Endpoint = Endpoint.CHAT) -> ModelRequest:
    task = task_of(FIRST, endpoint=endpoint)
    return prompted(task, "critique", model="m", role=Role.CRITIC, values=VALUES, own=own)


def test_a_question_is_a_chat_of_two_parts() -> None:
    """Another model gets a system and a user message, whatever the API of the exchange."""
    asked = question(endpoint=Endpoint.COMPLETIONS)
    assert (asked.endpoint, asked.model, asked.role, asked.own) == (Endpoint.CHAT, "m", Role.CRITIC, False)
    messages = asked.body["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == ["system", "user"]


def test_the_model_of_a_completions_exchange_is_asked_for_a_completion() -> None:
    """The path of the exchange takes one API only."""
    asked = question(own=True, endpoint=Endpoint.COMPLETIONS)
    assert asked.endpoint is Endpoint.COMPLETIONS
    assert asked.own
    assert "Tell me about the tower." in prompt_of(asked)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_a_text_that_was_cut_off_is_not_used(reason: str) -> None:
    """A model that could not finish has said nothing."""
    assert await said(Script(m=Completion("The", "m", reason)), question()) == Opinion(
        "m", None, rejected="truncated"
    )


async def test_a_call_ends_with_its_time() -> None:
    """A model that does not answer in time failed by the deadline, and one for which no time is left is not asked."""
    ask = Script(m=forever)
    late = Opinion("m", None, failure=CallFailure.DEADLINE)
    assert await said(ask, question(), time_s=0.01) == late
    assert (len(ask.requests), ask.running) == (1, 0)
    assert await said(ask, question(), time_s=0.0) == late
    assert len(ask.requests) == 1


async def test_cancellation_goes_through() -> None:
    """Cancelling is no failure of the model."""
    ask = Script(m=forever)
    running = asyncio.create_task(said(ask, question(), time_s=60.0))
    while not ask.running:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ask.running == 0


def test_codes_may_be_let_pass() -> None:
    """A text that lost content may be no rewrite and still be an opinion."""
    opinion = Opinion("m", HEIGHT)
    assert acceptable(task_of(FIRST), opinion).rejected == "lost-content"
    assert acceptable(task_of(FIRST), opinion, passing={"lost-content"}) == opinion
    failure = Opinion("m", None, failure=CallFailure.TIMEOUT)
    assert acceptable(task_of(FIRST), failure) is failure


async def test_the_clients_format_goes_along_with_what_takes_the_answers_place() -> None:
    """A text in the place of the answer is asked for with the client's response_format, other questions are not."""
    form = {"type": "json_object"}
    task = task_of('{"a": "b"}', response_format=form)
    ask = Script(m='{"a": "c"}')
    assert (await written(task, tools_of(ask), question())).text == '{"a": "c"}'
    assert ask.requests[0].body["response_format"] == form
    assert "response_format" not in question().body


def test_json_is_structured_whether_it_was_asked_for_or_not() -> None:
    """JSON in an answer, or asked for by the request, forbids cutting."""
    assert is_structured(task_of('{"a": "b"}'))
    assert is_structured(task_of(FIRST, structured=True))
    assert not is_structured(task_of(FIRST))


def test_a_flood_of_text_is_not_even_read() -> None:
    """A text far beyond any answer is refused by its length, also where length is no hindrance."""
    opinion = Opinion("m", "<truthlens:" * 50_000)
    found = acceptable(task_of(FIRST), opinion, passing={"too-long"})
    assert (found.text, found.rejected) == (None, "too-long")


async def ask_all(task: Task, ask: Script, *, seconds: float = 60.0) -> tuple[Opinion, ...]:
    return await opinions(
        plan=task.plan,
        exchange=task.exchange,
        request=task.request,
        answering=task.model,
        models=task.models,
        ask=ask,
        deadline=Deadline.after(seconds),
    )


async def test_every_verification_model_is_asked_the_clients_request() -> None:
    """Each model gets the client's messages and sampling, whole, unstreamed and without tool calls."""
    tools = [{"type": "function", "function": {"name": "f"}}]
    task = task_of(HEIGHT, temperature=0.7, stream=True, n=3, tools=tools, verifiers=("b", "c", "b"))
    ask = Script(b="From b.", c="From c.")
    assert await ask_all(task, ask) == (Opinion("b", "From b."), Opinion("c", "From c."))
    for request in ask.requests:
        assert request.role is Role.VERIFIER
        assert not request.own
        assert request.body == {
            "messages": task.request["messages"],
            "temperature": 0.7,
            "tools": tools,
            "tool_choice": "none",
        }


async def test_all_are_asked_at_once() -> None:
    """A model that answers only when the other one was asked is not waited for in vain."""
    both = asyncio.Event()

    async def first(_: ModelRequest) -> str:
        await both.wait()
        return "First."

    def second(_: ModelRequest) -> str:
        both.set()
        return "Second."

    ask = Script(b=first, c=second)
    assert [each.text for each in await ask_all(task_of(HEIGHT), ask)] == ["First.", "Second."]
    assert ask.most_running == 2


async def test_a_slow_model_does_not_cost_what_the_others_said() -> None:
    """Half of the time is for opinions; what has come by then counts."""
    found = await ask_all(task_of(HEIGHT), Script(b=forever, c="From c."), seconds=0.2)
    assert found == (Opinion("b", None, failure=CallFailure.DEADLINE), Opinion("c", "From c."))


@pytest.mark.parametrize("failure", list(CallFailure))
async def test_a_failed_call_is_an_opinion_with_its_failure(failure: CallFailure) -> None:
    """One model that is down takes nothing away from the other one."""
    found = await ask_all(task_of(HEIGHT), Script(b=failure, c="From c."))
    assert found == (Opinion("b", None, failure=failure), Opinion("c", "From c."))
    (attempt,) = found[0].attempts(Role.VERIFIER)
    assert (attempt.model, attempt.reason) == ("b", failure.value)
    assert found[1].attempts(Role.VERIFIER) == ()


async def test_an_opinion_that_was_cut_off_is_not_used() -> None:
    """An opinion that ends at the length limit is rejected as truncated."""
    found = await ask_all(task_of(HEIGHT), Script(b=Completion("The tower is", "b", "length"), c="From c."))
    assert found[0] == Opinion("b", None, rejected="truncated")


async def test_a_model_without_a_say_is_not_asked() -> None:
    """A reliability of 0 in the configuration keeps a model from being asked; no configuration does not."""
    task = task_of(HEIGHT, models={"b": ModelSpec("b", reliability=0.0)})
    ask = Script(c="From c.")
    assert [each.model for each in await ask_all(task, ask)] == ["c"]


async def test_completions_are_asked_as_completions() -> None:
    """A completions request goes to the other models by the same API."""
    ask = Script(b="B.", c="C.")
    await ask_all(task_of(HEIGHT, endpoint=Endpoint.COMPLETIONS), ask)
    assert {request.endpoint for request in ask.requests} == {Endpoint.COMPLETIONS}
    assert ask.requests[0].body["prompt"] == "Tell me about the tower."


async def test_cancelling_cancels_every_call() -> None:
    """When detection gives up the opinions, no call of theirs goes on."""
    ask = Script(b=forever, c=forever)
    running = asyncio.create_task(ask_all(task_of(HEIGHT), ask))
    while ask.running < 2:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (ask.running, ask.cancelled) == (0, 2)


async def test_without_verification_models_nobody_is_asked() -> None:
    """A plan without verification models gives no opinions."""
    assert await ask_all(task_of(HEIGHT, verifiers=()), Script()) == ()


async def test_the_model_that_answered_is_not_asked() -> None:
    """It would only verify itself."""
    ask = Script(c="From c.")
    assert await ask_all(task_of(HEIGHT, verifiers=("a", "c")), ask) == (Opinion("c", "From c."),)
    assert [request.model for request in ask.requests] == ["c"]
