"""Verification models are asked the client's own request, side by side."""

import asyncio

import pytest

from tests.fakes.premium_panel import HEIGHT, Script, forever, task_of
from truthlens.core.deadline import Deadline
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest, ModelSpec, Role
from truthlens.core.records.enums import Endpoint
from truthlens.mitigation.interfaces import Task
from truthlens.mitigation.premium.opinions import Opinion, opinions


async def ask_all(task: Task, ask: Script, *, seconds: float = 60.0) -> tuple[Opinion, ...]:
    return await opinions(
        plan=task.plan,
        exchange=task.exchange,
        request=task.request,
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


async def test_a_text_that_was_cut_off_is_not_used() -> None:
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
