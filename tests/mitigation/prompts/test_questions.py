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
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest, Role
from truthlens.core.records.enums import Endpoint
from truthlens.mitigation.prompts.questions import Opinion, acceptable, is_structured, prompted, said, written

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
