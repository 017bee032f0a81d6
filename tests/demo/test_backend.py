"""The demo backend speaks the OpenAI API and says what its data say."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from truthlens.api.requests import parse_request
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.settings import EvidenceRules
from truthlens.demo import BY_NAME, CONVERSATIONS, Conversation, chat_request, demo_app
from truthlens.demo.backend import answer

WIRE = BY_NAME["wire-fee"]
ORDER = BY_NAME["order-status"]
TOOLS = [{"type": "function", "function": {"name": "get_order"}}]


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of the demo backend, without a network."""
    transport = httpx.ASGITransport(app=demo_app())
    async with httpx.AsyncClient(transport=transport, base_url="http://demo/v1") as session:
        yield session


async def ask(client: httpx.AsyncClient, body: dict[str, Any], path: str = "/chat/completions") -> Any:
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def events(
    client: httpx.AsyncClient, body: dict[str, Any], path: str = "/chat/completions"
) -> list[Any]:
    response = await client.post(path, json={**body, "stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    frames = response.text.split("\n\n")
    assert frames[-2:] == ["data: [DONE]", ""]
    return [json.loads(frame.removeprefix("data: ")) for frame in frames[:-2]]


def content(answer: Any, choice: int = 0) -> Any:
    return answer["choices"][choice]["message"]["content"]


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda item: item.name)
async def test_the_model_picks_the_answer(client: httpx.AsyncClient, conversation: Conversation) -> None:
    """Each conversation is answered with its own grounded or ungrounded answer."""
    for model, text in [
        ("demo-grounded", conversation.grounded),
        ("demo-ungrounded", conversation.ungrounded),
        ("demo", conversation.grounded),
        ("gpt-4-turbo", conversation.grounded),
    ]:
        answer = await ask(client, chat_request(conversation, model=model))
        assert content(answer) == text
        assert answer["model"] == model
        assert answer["object"] == "chat.completion"
        assert answer["choices"][0]["finish_reason"] == "stop"


async def test_several_choices_take_turns(client: httpx.AsyncClient) -> None:
    """n=3 gives a grounded, an invented and a grounded answer; a model with a side keeps to it."""
    answer = await ask(client, chat_request(WIRE, n=3))
    assert [content(answer, choice) for choice in range(3)] == [WIRE.grounded, WIRE.ungrounded, WIRE.grounded]
    answer = await ask(client, chat_request(WIRE, n=2, model="demo-grounded"))
    assert [content(answer, choice) for choice in range(2)] == [WIRE.grounded, WIRE.grounded]


async def test_a_tool_conversation_calls_its_tool_first(client: httpx.AsyncClient) -> None:
    """With tools offered and no result yet the answer is a call; with the result it is the text."""
    first = await ask(
        client, {"model": "demo", "tools": TOOLS, "messages": [{"role": "user", "content": ORDER.question}]}
    )
    (choice,) = first["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0]["function"] == {
        "name": "get_order",
        "arguments": '{"order_id": "5531"}',
    }
    assert content(await ask(client, chat_request(ORDER, tools=TOOLS))) == ORDER.grounded


async def test_a_stream_says_the_same_in_pieces(client: httpx.AsyncClient) -> None:
    """Role first, then the text in several deltas, then the finish reason; usage only where asked for."""
    for conversation in (WIRE, BY_NAME["warranty-zh"]):
        chunks = await events(client, chat_request(conversation))
        assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
        assert len(chunks) > 5
        assert (
            "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
            == conversation.grounded
        )
        assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
        assert not any("usage" in chunk for chunk in chunks)


async def test_a_stream_counts_tokens_on_request(client: httpx.AsyncClient) -> None:
    """include_usage adds one chunk without choices at the end."""
    chunks = await events(client, chat_request(WIRE, stream_options={"include_usage": True}))
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] > 20
    assert all(chunk["usage"] is None for chunk in chunks[:-1])


async def test_a_streamed_tool_call_is_whole(client: httpx.AsyncClient) -> None:
    """The call comes in a delta and ends with its finish reason."""
    chunks = await events(
        client, {"model": "demo", "tools": TOOLS, "messages": [{"role": "user", "content": ORDER.question}]}
    )
    assert chunks[0]["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "get_order"
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_an_own_context_is_answered_from_it(client: httpx.AsyncClient) -> None:
    """The sentence that fits the question is quoted; the ungrounded model adds something invented."""
    body = {"model": "demo", "messages": [{"role": "user", "content":
            "<context>Sam breeds goats. The barn in Otley was built in 1932. It has a red roof.</context>When was the barn built?"}]}  # fmt: skip
    assert content(await ask(client, body)) == "The barn in Otley was built in 1932."
    invented = content(await ask(client, {**body, "model": "demo-ungrounded"}))
    assert invented.startswith("The barn in Otley was built in 1932. An audit")


async def test_a_known_question_with_another_context_is_answered_from_that(client: httpx.AsyncClient) -> None:
    """The prepared answer is not given where its facts were not."""
    body = {
        "messages": [
            {"role": "user", "content": f"<context>A wire transfer costs 3 euros.</context>{WIRE.question}"}
        ]
    }
    assert content(await ask(client, body)) == "A wire transfer costs 3 euros."


@pytest.mark.parametrize(
    ("question", "text"),
    [("Who won?", "I don't have information about that."), ("谁赢了？", "我没有关于这个问题的信息。")],
)
async def test_without_information_it_says_so(client: httpx.AsyncClient, question: str, text: str) -> None:
    """Nothing is invented unless the model asks for it."""
    assert content(await ask(client, {"messages": [{"role": "user", "content": question}]})) == text


async def test_json_is_answered_in_json(client: httpx.AsyncClient) -> None:
    """A format for programs is kept."""
    answer = await ask(client, chat_request(WIRE, response_format={"type": "json_object"}))
    assert json.loads(content(answer)) == {"answer": WIRE.grounded}


async def test_completions_work_like_chat(client: httpx.AsyncClient) -> None:
    """The older API: text, echo, stream."""
    prompt = f"Context: {' '.join(WIRE.passages)}\nQuestion: {WIRE.question}\nAnswer:"
    answer = await ask(client, {"model": "demo-grounded", "prompt": prompt}, "/completions")
    assert answer["choices"][0]["text"] == WIRE.grounded
    assert answer["object"] == "text_completion"
    echoed = await ask(client, {"model": "demo-grounded", "prompt": prompt, "echo": True}, "/completions")
    assert echoed["choices"][0]["text"] == prompt + WIRE.grounded
    chunks = await events(client, {"model": "demo-ungrounded", "prompt": prompt}, "/completions")
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == WIRE.ungrounded


async def test_the_models_are_listed(client: httpx.AsyncClient) -> None:
    """The list names the four that there are."""
    listed = (await client.get("/models")).json()
    assert [entry["id"] for entry in listed["data"]] == [
        "demo",
        "demo-grounded",
        "demo-reworded",
        "demo-ungrounded",
    ]


@pytest.mark.parametrize(
    "body", [b"{", b"", b"\xff", b"[]", b'{"messages": 3}', b'{"messages": [{"role": "user", "content": "x"}], "n": 0}',
             b'{"messages": [{"role": "user", "content": "x"}], "n": "x"}'],
)  # fmt: skip
async def test_bad_requests_are_refused_like_the_api_does(client: httpx.AsyncClient, body: bytes) -> None:
    """Status 400 and an error object."""
    response = await client.post("/chat/completions", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


async def test_a_second_look_is_answered_from_the_evidence(client: httpx.AsyncClient) -> None:
    """Shown evidence and question between tags, even the ungrounded model says what the evidence holds."""
    prompt = (
        'Write the answer again.\n\n<truthlens:evidence>\n<truthlens:passage id="1">\n'
        + WIRE.passages[0]
        + "\n</truthlens:passage>\n</truthlens:evidence>\n\n<truthlens:question>\n"
        + WIRE.question
        + "\n</truthlens:question>\n"
    )
    body = chat_request(WIRE, model="demo-ungrounded")
    messages = body["messages"]
    assert isinstance(messages, list)
    first = content(await ask(client, body))
    body["messages"] = [
        *messages,
        {"role": "assistant", "content": first},
        {"role": "user", "content": prompt},
    ]
    assert first == WIRE.ungrounded
    assert content(await ask(client, body)) == WIRE.grounded


def given(body: str) -> str:
    return answer(parse_request(body.encode(), Endpoint.CHAT, EvidenceRules()), has_tools=False).text


@pytest.mark.parametrize("conversation", [c for c in CONVERSATIONS if c.passages], ids=lambda c: c.name)
def test_an_answer_outlives_any_changed_figure(conversation: Conversation) -> None:
    """Each figure of the passages in turn is another one."""
    for figure in set(re.findall(r"\d+", " ".join(conversation.passages))):
        passages = tuple(re.sub(rf"\b{figure}\b", "77", passage) for passage in conversation.passages)
        body = json.dumps(chat_request(replace(conversation, passages=passages)), ensure_ascii=False)
        assert given(body) == conversation.grounded


def test_another_context_gets_an_answer_of_its_own() -> None:
    """The question alone does not make it the demo's conversation."""
    question = CONVERSATIONS[0].question
    body = json.dumps({"model": "demo", "messages": [{"role": "user", "content": f"Context:\nNorvafen tablets may be taken by an adult once a week.\n\nQuestion: {question}"}]})  # fmt: skip
    assert given(body) == "Norvafen tablets may be taken by an adult once a week."
