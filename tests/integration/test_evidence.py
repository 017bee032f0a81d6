"""What of a request is evidence, through a real Envoy: answers that are none for a user, unsure evidence, citations."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from tests.integration.support.backend import completion, http, json_reply
from tests.integration.support.stack import Stack
from tests.integration.support.streams.gateway import NO_EVIDENCE, Gateway
from tests.integration.support.streams.stage import metric, read_back
from tests.integration.support.streams.streams import answer, chunk, sse
from tests.integration.test_bodies import CONTEXT, GROUNDED, REQUEST, script

pytestmark = pytest.mark.envoy

REWRITING = {
    "model": "scripted-model",
    "messages": [
        {
            "role": "user",
            "content": "Given the following conversation and a follow up question, rephrase the follow up question to be a "
            "standalone question.\n\nChat History:\nHuman: Is there a library?\nAI: Yes, in Elm Street.\n"
            "Follow Up Input: When does it open?\nStandalone question:",
        }
    ],
}
UNSURE = {
    "model": "scripted-model",
    "messages": [
        {
            "role": "system",
            "content": "Background: Brightwater Bank was founded in 1952 in Geneva and has 40 branches in three countries. It "
            "employs two thousand people and is owned by its members, who meet each year in June.",
        },
        {"role": "user", "content": "How do I bake bread?"},
    ],
}
CITED = {
    **NO_EVIDENCE,
    "messages": [{"role": "user", "content": "When does the library open?"}],
    "data_sources": [{"type": "azure_search", "parameters": {"index_name": "library"}}],
}
CITATIONS = {
    "citations": [
        {
            "title": "Library",
            "url": "https://library",
            "filepath": "a.md",
            "chunk_id": "0",
            "content": CONTEXT,
        }
    ],
    "intent": '["library opening hours"]',
}
QUESTION = "When does the library in Elm Street open?"


def reason_of(response: httpx.Response) -> tuple[str, str]:
    return response.headers["x-truthlens-status"], response.headers.get("x-truthlens-reason", "")


def test_an_answer_for_a_program_is_the_backends_own_bytes(stack: Stack) -> None:
    """Whatever the details say: the headers alone tell that it was not checked, and it is counted."""
    body = json.dumps(completion(QUESTION), indent=3)
    script(stack, http(body))
    before = metric(stack, "truthlens_evidence_total", source="not-an-answer")
    found = stack.post(REWRITING, headers={"x-domain": "detailed"})
    named = stack.post(REQUEST, headers={"x-domain": "program"})
    for response in (found, named):
        assert (response.status_code, response.content) == (200, body.encode())
        assert reason_of(response) == ("unchecked", "not-an-answer")
        assert response.headers["x-truthlens-action"] == "pass"
    assert metric(stack, "truthlens_evidence_total", source="not-an-answer") == before + 2


@pytest.mark.parametrize(
    ("request_body", "reason"), [(REWRITING, "not-an-answer"), (UNSURE, "unsure-context")]
)
def test_no_wording_of_a_request_unlocks_a_plan_that_blocks(
    stack: Stack, request_body: dict[str, Any], reason: str
) -> None:
    """What cannot be checked is refused; only the operator exempts a decision."""
    script(stack, json_reply(completion(GROUNDED)))
    refused = stack.post(request_body, headers={"x-domain": "strict"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (424, reason)
    passed = stack.post(request_body, headers={"x-domain": "support"})
    assert (passed.status_code, reason_of(passed)) == (200, ("unchecked", reason))


@pytest.mark.parametrize("plan", ["observe", "mark", "withhold", "buffer"])
def test_a_stream_for_a_program_passes_as_it_is(gateway: Gateway, plan: str) -> None:
    """Also where somebody asks for a verdict chunk, which a program may not know how to read."""
    frames = answer(QUESTION)
    client = gateway.read(plan, sse(frames), body=REWRITING, details=True)
    assert client.body == b"".join(frames)
    assert client.says("status") == "unchecked"
    assert client.says("reason") == "not-an-answer"


def test_citations_of_a_json_answer_are_evidence(stack: Stack) -> None:
    """The request has data_sources, and the documents come beside the answer."""
    value = completion(f"{GROUNDED} [doc1]")
    value["choices"][0]["message"]["context"] = CITATIONS
    script(stack, json_reply(value))
    response = stack.post(CITED, headers={"x-domain": "detailed"})
    assert reason_of(response) == ("checked", "")
    (passage,) = response.json()["truthlens"]["passages"]
    assert (passage["provenance"], passage["id"], passage["rule"]) == ("answer", "doc1", "answer-citations")
    assert response.json()["choices"][0]["message"]["context"] == CITATIONS
    unasked = stack.post(NO_EVIDENCE, headers={"x-domain": "support"})
    assert reason_of(unasked) == ("unchecked", "no-context")


@pytest.mark.parametrize("plan", ["observe", "mark", "buffer"])
def test_citations_of_a_stream_are_evidence(gateway: Gateway, plan: str) -> None:
    """They stand in its first chunk, before the text."""
    role, *rest = answer(f"{GROUNDED} [doc1]")
    cited = chunk([{"index": 0, "delta": {"role": "assistant", "context": CITATIONS}, "finish_reason": None}])
    client = gateway.read(plan, sse([cited, role, *rest]), body=CITED, details=True)
    verdict = read_back(client.body).verdict
    assert verdict["status"] == "checked"
    assert [each["provenance"] for each in verdict["passages"]] == ["answer"]


def test_the_console_tells_the_evidence_of_a_request(stack: Stack) -> None:
    """As JSON and on its page, by the rules of the decision."""
    told = httpx.post(f"{stack.console_url}/v1/evidence", json=REQUEST).json()
    assert (told["status"], told["reason"]) == ("checked", None)
    assert [each["text"] for each in told["passages"]] == [CONTEXT]
    named = httpx.post(
        f"{stack.console_url}/v1/evidence", params={"decision": "program"}, json=REQUEST
    ).json()
    assert named["reason"] == "not-an-answer"
    form = {"content-type": "application/x-www-form-urlencoded", "origin": stack.console_url}
    page = httpx.post(
        f"{stack.console_url}/evidence", content=urlencode({"body": json.dumps(UNSURE)}), headers=form
    )
    assert page.status_code == 200
    assert "unsure-context" in page.text
