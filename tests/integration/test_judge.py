"""The judge through a real Envoy: bodies, streams, and what becomes of a judge that is slow, dead or talks nonsense."""

from __future__ import annotations

import json
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
models: [{name: strong, price: {input: 1.0, output: 2.0}}, {name: small}]
hallucination:
  details: true
  detectors: [encoder, {name: judge, model: strong, formatting_model: small}]
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
        configuration: {streaming: observe, detectors: [{name: judge, model: strong, formatting_model: small}]}
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
            "content": "<context>\nThe library opens at nine and lends three books.\n</context>\nWhen does it open?",
        }
    ],
}
ANSWER = "The library opens at nine."


def judgement(risk: float, *quotes: str) -> dict[str, Any]:
    """A whole reply of the second stage."""
    lists = {"invalid_citations": [], "contradictory_info": [], "over_extrapolation": []}
    notes = ("completeness", "relevance", "citation", "consistency")
    scores = ("completeness", "relevance", "citation_quality", "consistency")
    return {
        "score": 1 - risk,
        "reasoning": "compared",
        "confidence": 0.9,
        "decision": "synthesize",
        "hallucination": {
            "has_risk": risk > 0.3,
            "risk_score": risk,
            "unsupported_claims": list(quotes),
            "notes": "the evidence says otherwise",
            **lists,
        },
        **{f"{name}_score": 0.5 for name in scores},
        **{f"{name}_notes": "" for name in notes},
    }


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment that asks the judge about every answer."""
    stack = Stack(tmp_path_factory.mktemp("judge"), POLICY)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def play(stack: Stack, judge: Callable[[], Raw], text: str = ANSWER) -> list[dict[str, Any]]:
    """Let the backend answer with ``text`` and judge as given; the result fills with the judge's requests."""
    asked: list[dict[str, Any]] = []

    def reply(received: Received) -> Raw:
        body = json.loads(received.body)
        if body["model"] == "main":
            return sse(answer(text)) if body.get("stream") else json_reply(completion(text))
        asked.append(body)
        return judge() if body["model"] == "small" else json_reply(completion("It opens at nine, I think."))

    stack.backend.reply = reply
    return asked


def says(value: object) -> Callable[[], Raw]:
    """A judge that answers with ``value`` as JSON."""
    return lambda: json_reply(completion(json.dumps(value)))


def test_a_rejected_answer_is_flagged_and_says_why(stack: Stack) -> None:
    """Two stages are asked, by their names; quotes are spans, and the judge's object is in the details."""
    asked = play(stack, says(judgement(0.9, ANSWER)))
    response = stack.post(REQUEST)
    assert [body["model"] for body in asked] == ["strong", "small"]
    assert [body["max_tokens"] for body in asked] == [2000, 1000]
    assert asked[1]["response_format"]["type"] == "json_schema"
    assert (response.headers["x-truthlens-status"], response.headers["x-truthlens-detected"]) == (
        "checked",
        "true",
    )
    shown = response.json()["truthlens"]
    span = next(each for each in shown["choices"][0]["spans"] if each["detector"] == "judge")
    assert "the evidence says otherwise" in span["note"]
    assert {each["role"] for each in shown["usage"]["by_model"]} == {"judge-detector"}
    metrics = httpx.get(f"{stack.console_url}/metrics").text
    assert 'truthlens_cascade_total{decision="default",stage="always"}' in metrics
    assert 'truthlens_model_calls_total{model="strong",result="ok",role="judge-detector"}' in metrics


def test_an_accepted_answer_passes_untouched(stack: Stack) -> None:
    """The judge's low risk raises nothing."""
    play(stack, says(judgement(0.02)))
    response = stack.post(REQUEST)
    assert (response.headers["x-truthlens-detected"], response.headers["x-truthlens-status"]) == (
        "false",
        "checked",
    )
    assert response.json()["choices"][0]["message"]["content"] == ANSWER


@pytest.mark.parametrize("domain", ["observed", "gated", "alone"])
@pytest.mark.parametrize(("risk", "detected"), [(0.9, True), (0.02, False)])
def test_the_end_of_a_stream_carries_the_judges_verdict(
    stack: Stack, domain: str, risk: float, detected: bool
) -> None:
    """Its text passes as before; the last chunk holds the verdict of both stages."""
    asked = play(stack, says(judgement(risk)))
    response = stack.post({**REQUEST, "stream": True}, headers={"x-domain": domain})
    seen = read_back(response.content)
    assert seen.texts[0].startswith(ANSWER)
    assert [body["model"] for body in asked] == ["strong", "small"]
    objects = [
        json.loads(line[6:])["truthlens"]
        for line in response.content.decode().splitlines()
        if line.startswith("data: {") and '"truthlens"' in line
    ]
    assert (objects[-1]["detected"], objects[-1]["stage"]) == (detected, "always")
    assert objects[-1]["status"] == "checked"


# Those that open the circuit of the model come last: behind it nobody is asked.
def test_what_was_judged_is_not_asked_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The cache is on by default; another answer is another question."""
    text = POLICY.replace("cache: {enabled: false}\n", "")
    cached = Stack(tmp_path_factory.mktemp("cached"), text)
    try:
        cached.start()
        asked = play(cached, says(judgement(0.9, ANSWER)))
        verdicts = [cached.post(REQUEST).headers["x-truthlens-score"] for _ in range(3)]
        assert (len(set(verdicts)), len(asked)) == (1, 2)
        play(cached, says(judgement(0.02)), "It lends three books.")
        assert cached.post(REQUEST).headers["x-truthlens-detected"] == "false"
        metrics = httpx.get(f"{cached.console_url}/metrics").text
        assert 'truthlens_cache_requests_total{result="hit",tier="memory"} 2.0' in metrics
    finally:
        cached.stop()


BROKEN: dict[str, Callable[[], Raw]] = {
    "not-json": lambda: json_reply(completion("All is well, I promise.")),
    "empty-object": says({}),
    "list": says([]),
    "out-of-range": says(judgement(-1.0)),
    "above-one": says(judgement(2.0)),
    "text-for-a-figure": says({**judgement(0.0), "score": "high"}),
    "no-hallucination": says({key: each for key, each in judgement(0.0).items() if key != "hallucination"}),
    "null": says(None),
    "deep": lambda: json_reply(completion("[" * 20_000)),
    "huge": lambda: json_reply(completion("x" * 2_000_000)),
    "cut-off": lambda: json_reply(completion(json.dumps(judgement(0.0))[:-5])),
    "refusal": lambda: json_reply(
        {
            "choices": [
                {"index": 0, "message": {"role": "assistant", "refusal": "no"}, "finish_reason": "stop"}
            ]
        }
    ),
    "empty": lambda: json_reply(completion("")),
    "html": lambda: http("<html>busy</html>", content_type="text/html"),
    "another-shape": lambda: json_reply({"hello": "world"}),
    "no-choices": lambda: json_reply({"choices": []}),
    "server-error": lambda: http("{}", status=500),
    "unauthorised": lambda: http("{}", status=401),
    "slow": lambda: http(json.dumps(completion("{}")), delay_s=30),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_judge_costs_its_own_result_alone(stack: Stack, name: str) -> None:
    """The answer comes whole, in time, and never as clean."""
    play(stack, BROKEN[name])
    response = stack.post(REQUEST)
    assert response.status_code == 200
    assert response.headers["x-truthlens-status"] == "partial"
    assert response.headers["x-truthlens-reason"] in ("detector-error", "timeout", "overloaded")
    assert ANSWER in response.json()["choices"][0]["message"]["content"]
    detectors = response.json()["truthlens"]["choices"][0]["detectors"]
    assert [each["name"] for each in detectors if "reason" in each] == ["judge"]
