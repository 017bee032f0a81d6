"""Questions about doubtful claims through a real Envoy: bodies, streams, poor servers and broken ones."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.integration.support.backend import Raw, Received, completion, http, json_reply
from tests.integration.support.stack import Stack
from tests.integration.support.streams.stage import read_back
from tests.integration.support.streams.streams import answer, sse

pytestmark = pytest.mark.envoy

POLICY = """\
trusted_headers: [x-domain]
cache: {enabled: false}
models: [{name: verifier, price: {input: 0.1, output: 0.1}}]
hallucination:
  details: true
  detectors: [encoder, {name: verify, model: verifier, doubtful: [0.02, 0.98]}]
  cascade: {when: always, timeout_s: 2}
signals:
  domains:
    - {name: observed, headers: {x-domain: [observed]}}
    - {name: gated, headers: {x-domain: [gated]}}
    - {name: alone, headers: {x-domain: [alone]}}
decisions:
  - name: alone
    priority: 90
    rules: {type: domain, name: alone}
    plugins:
      - type: hallucination
        configuration: {streaming: observe, detectors: [{name: verify, model: verifier}]}
  - name: observed
    priority: 90
    rules: {type: domain, name: observed}
    plugins: [{type: hallucination, configuration: {streaming: observe}}]
  - name: gated
    priority: 90
    rules: {type: domain, name: gated}
    plugins: [{type: hallucination, configuration: {streaming: gate}}]
"""
REQUEST: dict[str, Any] = {
    "model": "main",
    "messages": [
        {
            "role": "user",
            "content": "<context>\nThe ferry leaves at seven and carries forty cars.\n</context>\nWhat of the ferry?",
        }
    ],
}
RIGHT = "There is room for forty cars on it."
WRONG = "It carries ninety cars."


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment that asks the verifier about every doubtful claim."""
    stack = Stack(tmp_path_factory.mktemp("verify"), POLICY)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def claim_of(body: dict[str, Any]) -> str:
    """The claim of a request."""
    return str(
        body["messages"][-1]["content"].split("<truthlens:claim>\n")[1].split("\n</truthlens:claim>")[0]
    )


def reads(body: dict[str, Any]) -> Raw:
    """A verifier that knows what the evidence says, with log probabilities."""
    word, other = ("NO", "YES") if "ninety" in claim_of(body) else ("YES", "NO")
    made = completion(word)
    top = [{"token": word, "logprob": math.log(0.95)}, {"token": other, "logprob": math.log(0.04)}]
    made["choices"][0]["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    return json_reply(made)


def play(stack: Stack, text: str, verifier: Callable[[dict[str, Any]], Raw] = reads) -> list[dict[str, Any]]:
    """Let the backend answer with ``text``; the result fills with the verifier's requests."""
    asked: list[dict[str, Any]] = []

    def reply(received: Received) -> Raw:
        body = json.loads(received.body)
        if body["model"] == "main":
            return sse(answer(text)) if body.get("stream") else json_reply(completion(text))
        asked.append(body)
        return verifier(body)

    stack.backend.reply = reply
    return asked


def test_each_claim_is_asked_about_and_judged(stack: Stack) -> None:
    """One call a claim, all behind the same evidence; object, accounts and metrics say who decided."""
    asked = play(stack, f"{RIGHT} {WRONG}")
    response = stack.post(REQUEST)
    assert sorted(map(claim_of, asked)) == sorted([RIGHT, WRONG])
    assert {(body["max_tokens"], body["logprobs"]) for body in asked} == {(5, True)}
    assert len({body["messages"][-1]["content"].partition("<truthlens:before>")[0] for body in asked}) == 1
    assert response.headers["x-truthlens-status"] == "checked"
    assert response.headers["x-truthlens-detected"] == "true"
    shown = response.json()["truthlens"]
    claims = {each["text"]: each for each in shown["choices"][0]["claims"]}
    assert (claims[RIGHT]["outcome"], claims[RIGHT]["detector"]) == ("supported", "verify")
    assert claims[WRONG]["outcome"] == "contradicted"
    spans = [each["text"] for each in shown["choices"][0]["spans"] if each["detector"] == "verify"]
    assert spans == [WRONG]
    assert {each["role"] for each in shown["usage"]["by_model"]} == {"verify-detector"}
    metrics = httpx.get(f"{stack.console_url}/metrics").text
    assert 'truthlens_model_calls_total{model="verifier",result="ok",role="verify-detector"}' in metrics


def test_support_clears_an_answer(stack: Stack) -> None:
    """Which then leaves as it came."""
    play(stack, RIGHT)
    response = stack.post(REQUEST)
    assert response.headers["x-truthlens-detected"] == "false"
    assert response.json()["choices"][0]["message"]["content"] == RIGHT


@pytest.mark.parametrize("domain", ["observed", "gated", "alone"])
@pytest.mark.parametrize(("text", "detected"), [(WRONG, True), (RIGHT, False)])
def test_the_end_of_a_stream_carries_the_verdict(
    stack: Stack, domain: str, text: str, *, detected: bool
) -> None:
    """Its claims are asked about once the answer is whole."""
    asked = play(stack, text)
    response = stack.post({**REQUEST, "stream": True}, headers={"x-domain": domain})
    assert read_back(response.content).texts[0].startswith(text)
    assert list(map(claim_of, asked)) == [text]
    objects = [
        json.loads(line[6:])["truthlens"]
        for line in response.content.decode().splitlines()
        if line.startswith("data: {") and '"truthlens"' in line
    ]
    assert (objects[-1]["detected"], objects[-1]["stage"], objects[-1]["status"]) == (
        detected,
        "always",
        "checked",
    )


def test_the_model_that_answers_is_named_where_it_judges_itself(stack: Stack) -> None:
    """In the notes of the object."""

    def reply(received: Received) -> Raw:
        body = json.loads(received.body)
        is_question = "truthlens:claim" in body["messages"][-1]["content"]
        return reads(body) if is_question else json_reply(completion(RIGHT))

    stack.backend.reply = reply
    shown = stack.post({**REQUEST, "model": "verifier"}).json()["truthlens"]
    assert "own-verifier" in shown["notes"]
    assert shown["choices"][0]["detectors"][1]["details"]["own_verifier"] == 1.0


BROKEN: dict[str, Callable[[], Raw]] = {
    "chatty": lambda: json_reply(completion("The claim is fine, I promise.")),
    "yes-without-figures": lambda: json_reply(completion("YES")),
    "empty-object": lambda: json_reply(completion("{}")),
    "two-objects": lambda: json_reply(completion('{"answer": "yes"} {"answer": "no"}')),
    "more-members": lambda: json_reply(completion('{"answer": "yes", "risk": 0}')),
    "deep": lambda: json_reply(completion("[" * 20_000)),
    "empty": lambda: json_reply(completion("")),
    "html": lambda: http("<html>busy</html>", content_type="text/html"),
    "another-shape": lambda: json_reply({"hello": "world"}),
    "server-error": lambda: http("{}", status=500),
    "slow": lambda: http(json.dumps(completion("{}")), delay_s=30),
}


# From here on the server gives no log probabilities, which is remembered.
@pytest.mark.parametrize(("said", "detected"), [("yes", "false"), ("unsure", "true"), ("no", "true")])
def test_a_server_without_log_probabilities_is_asked_for_json(stack: Stack, said: str, detected: str) -> None:
    """And its word counts."""
    asked = play(stack, RIGHT, lambda _body: json_reply(completion(json.dumps({"answer": said}))))
    response = stack.post(REQUEST)
    assert "response_format" in asked[-1]
    assert (response.headers["x-truthlens-status"], response.headers["x-truthlens-detected"]) == (
        "checked",
        detected,
    )


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_verifier_costs_its_own_result_alone(stack: Stack, name: str) -> None:
    """The answer comes whole, in time, and never as checked."""
    play(stack, RIGHT, lambda _body: BROKEN[name]())
    response = stack.post(REQUEST)
    assert response.status_code == 200
    assert response.headers["x-truthlens-status"] == "partial"
    assert response.headers["x-truthlens-reason"] in ("detector-error", "timeout", "overloaded")
    assert RIGHT in response.json()["choices"][0]["message"]["content"]
    detectors = response.json()["truthlens"]["choices"][0]["detectors"]
    assert [each["name"] for each in detectors if "reason" in each] == ["verify"]
