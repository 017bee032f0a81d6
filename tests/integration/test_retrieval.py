"""Evidence on demand through a real Envoy: a folder of pages, requests that bring no evidence or the wrong one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.support.backend import completion, http, json_reply
from tests.integration.support.stack import Stack, wait_for

POLICY = """\
trusted_headers: [x-tenant, x-domain]
sources:
  - {name: handbook, type: folder, path: ../pages}
  - {name: tenants, type: folder, path: ../pages, filter: {folder: x-tenant}}
  - {name: down, type: vector_store, base_url: "http://127.0.0.1:9/v1", store_id: vs_1, timeout_s: 1}
hallucination:
  details: true
  retrieval: {sources: [handbook], when: [no-context, unsupported]}
signals:
  domains:
    - {name: tenants, headers: {x-domain: [tenants]}}
    - {name: down, headers: {x-domain: [down]}}
    - {name: strict, headers: {x-domain: [strict]}}
    - {name: observed, headers: {x-domain: [observed]}}
    - {name: gated, headers: {x-domain: [gated]}}
decisions:
  - name: tenants
    rules: {type: domain, name: tenants}
    plugins: [{type: hallucination, configuration: {retrieval: {sources: [tenants]}}}]
  - name: down
    rules: {type: domain, name: down}
    plugins: [{type: hallucination, configuration: {retrieval: {sources: [down]}}}]
  - name: strict
    rules: {type: domain, name: strict}
    plugins: [{type: hallucination, configuration: {retrieval: {sources: [down], on_failure: block}}}]
  - name: observed
    rules: {type: domain, name: observed}
    plugins: [{type: hallucination, configuration: {streaming: observe}}]
  - name: gated
    rules: {type: domain, name: gated}
    plugins: [{type: hallucination, configuration: {streaming: gate, on_flagged: withhold}}]
"""
PAGES = {
    "acme/parking.md": "# Parking\n\nThe car park on Mill Street closes at 22:00. A day ticket costs 14 euros.\n",
    "acme/library.md": "# Library\n\nBooks are lent for 28 days. Films are lent for 7 days.\n",
    "beta/pool.md": "# Pool\n\nThe swimming pool opens at 6:30 on weekdays. Entry costs 5 euros.\n",
}
QUESTION = "What does a day ticket for the car park cost?"
RIGHT = "A day ticket for the car park costs 14 euros."
WRONG = "A day ticket for the car park costs 31 euros."
ELSEWHERE = "Context:\nThe town hall was built in 1911 and has 40 rooms.\n\nQuestion: "


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("retrieval")
    for name, text in PAGES.items():
        page = folder / "pages" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)
    deployment = Stack(folder, POLICY, patient=True)
    deployment.start()
    # The index is made beside the first exchanges; until it is there, a search says that it failed.
    wait_for(lambda: ask(deployment, RIGHT).headers["x-truthlens-status"] == "checked", "the index")
    yield deployment
    deployment.stop()


def ask(
    stack: Stack, answer: str, question: str = QUESTION, *, stream: bool = False, **headers: str
) -> httpx.Response:
    """The response of the gateway to a question whose answer the backend is told."""
    chunks = [{"choices": [{"index": 0, "delta": {"content": f"{word} "}}]} for word in answer.split()]
    events = "".join(f"data: {json.dumps({'id': 'x', 'model': 'm', **each})}\n\n" for each in chunks)
    streamed = http(f"{events}data: [DONE]\n\n", content_type="text/event-stream")
    stack.backend.reply = lambda _request: streamed if stream else json_reply(completion(answer))
    body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": question}]}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(f"{stack.url}/v1/chat/completions", json=body, headers=named, timeout=60)


def told(response: httpx.Response) -> dict[str, Any]:
    """The details of a response: of a stream those of its last chunk."""
    if response.headers["content-type"].startswith("text/event-stream"):
        frames = [
            line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")
        ]
        found: dict[str, Any] = json.loads(frames[-1])["truthlens"]
    else:
        found = response.json()["truthlens"]
    return found


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_without_evidence_is_checked_by_what_is_found(stack: Stack, stream: bool) -> None:
    """Right and wrong are told apart although the request brought nothing; the passage says where it is from."""
    headers = {"x_domain": "observed"} if stream else {}
    right, wrong = (told(ask(stack, text, stream=stream, **headers)) for text in (RIGHT, WRONG))
    assert (right["status"], wrong["status"]) == ("checked", "checked")
    assert (right["action"], wrong["action"]) == ("pass", "warn")
    passage = right["passages"][0]
    assert (passage["provenance"], passage["source"]) == ("retrieved", "handbook")
    assert passage["id"].startswith("acme/parking.md")


def test_an_answer_that_its_evidence_does_not_support_is_searched_for(stack: Stack) -> None:
    """What the handbook says clears it, and confirms the flag of a wrong one; the request's passages come first."""
    right, wrong = (told(ask(stack, text, ELSEWHERE + QUESTION)) for text in (RIGHT, WRONG))
    assert (right["action"], wrong["action"]) == ("pass", "warn")
    assert [each["provenance"] for each in right["passages"]][:2] == ["user", "retrieved"]


def test_an_observed_stream_is_searched_for_at_its_end(stack: Stack) -> None:
    """With the same outcome as a body."""
    right, wrong = (
        told(ask(stack, text, ELSEWHERE + QUESTION, stream=True, x_domain="observed"))
        for text in (RIGHT, WRONG)
    )
    assert (right["action"], wrong["action"]) == ("pass", "warn")
    assert "retrieved" in [each["provenance"] for each in right["passages"]]


def test_a_gated_stream_is_searched_for_while_a_sentence_is_held(stack: Stack) -> None:
    """What the handbook supports leaves, what it does not is withheld."""
    right, wrong = (
        ask(stack, text, ELSEWHERE + QUESTION, stream=True, x_domain="gated") for text in (RIGHT, WRONG)
    )
    assert (told(right)["action"], told(wrong)["action"]) == ("pass", "replace")
    assert '"14 ' in right.text
    assert '"31 ' not in wrong.text
    assert "retrieved" in [each["provenance"] for each in told(right)["passages"]]


def test_what_the_request_contradicts_stays_flagged(stack: Stack) -> None:
    """The request's evidence wins, and the details say that the two disagree."""
    own = "Context:\nA day ticket for the car park costs 31 euros.\n\nQuestion: "
    found = told(ask(stack, RIGHT, own + QUESTION))
    assert found["action"] == "warn"
    assert "sources-disagree" in found["notes"]


def test_a_question_that_the_pages_say_nothing_of_is_not_called_checked(stack: Stack) -> None:
    """Nothing is found: that is a fact of its own."""
    response = ask(stack, "Zweiundvierzig.", "Xylophonquartett?")
    assert response.headers["x-truthlens-status"] == "unchecked"
    assert response.headers["x-truthlens-reason"] == "retrieval-empty"


def test_a_source_that_is_down_is_a_failure_and_nothing_else(stack: Stack) -> None:
    """It is never "nothing found"; where the policy says so, the answer does not leave."""
    response = ask(stack, RIGHT, x_domain="down")
    assert response.headers["x-truthlens-reason"] == "retrieval-failed"
    assert response.json()["choices"][0]["message"]["content"] == RIGHT
    blocked = ask(stack, RIGHT, x_domain="strict")
    assert RIGHT not in blocked.text
    assert blocked.status_code >= 400


def test_a_tenant_is_answered_from_its_own_pages_alone(stack: Stack) -> None:
    """Another tenant's page is not found, and without a tenant nothing is searched."""
    own = ask(stack, RIGHT, x_domain="tenants", x_tenant="acme")
    assert {each["id"].split("/")[0] for each in told(own)["passages"]} == {"acme"}
    other = ask(stack, RIGHT, x_domain="tenants", x_tenant="beta")
    assert "parking" not in json.dumps(other.json()["truthlens"].get("passages", []))
    assert ask(stack, RIGHT, x_domain="tenants").headers["x-truthlens-reason"] == "retrieval-failed"


def test_searches_are_counted(stack: Stack) -> None:
    """By source and result."""
    ask(stack, RIGHT)
    metrics = httpx.get(f"{stack.console_url}/metrics").text
    assert 'truthlens_retrievals_total{result="cached",source="handbook"}' in metrics
