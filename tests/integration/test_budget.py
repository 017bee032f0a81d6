"""The evidence budget through a real Envoy, with a server that gives log probabilities, and one that gives none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.integration.support.backend import Raw, Received, completion, json_reply
from tests.integration.support.stack import Stack

pytestmark = pytest.mark.envoy

POLICY = """\
cache: {enabled: false}
models: [{name: verifier}]
hallucination:
  details: true
  detectors: [encoder, {name: budget, model: verifier}]
  cascade: {when: always, timeout_s: 5}
"""
REQUEST: dict[str, Any] = {
    "model": "main",
    "messages": [
        {
            "role": "user",
            "content": "<context>\nThe ferry leaves at seven and carries forty cars.\n</context>\nWhen does it leave?",
        }
    ],
}
RIGHT = "The ferry leaves at seven."
WRONG = "The ferry carries ninety cars."


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment that asks the verifier about every answer."""
    stack = Stack(tmp_path_factory.mktemp("budget"), POLICY)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def reply(word: str, *, sure: float = -0.05, figures: bool = True) -> dict[str, Any]:
    """A completion of one word with the likeliest tokens."""
    made = completion(word)
    if figures:
        other = "NO" if word == "YES" else "YES"
        top = [{"token": word, "logprob": sure}, {"token": f" {other.lower()}", "logprob": -3.2}]
        made["choices"][0]["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    return made


def play(stack: Stack, text: str, verifier: Callable[[dict[str, Any]], Any]) -> list[dict[str, Any]]:
    """Let the backend answer with ``text``; the result fills with the verifier's requests."""
    asked: list[dict[str, Any]] = []

    def answer(received: Received) -> Raw:
        body = json.loads(received.body)
        if body["model"] == "main":
            return json_reply(completion(text))
        asked.append(body)
        return json_reply(verifier(body))

    stack.backend.reply = answer
    return asked


def by_evidence(body: dict[str, Any]) -> dict[str, Any]:
    """A verifier that finds seven in the evidence and ninety nowhere."""
    prompt = json.dumps(body["messages"])
    return reply("YES" if "forty cars" in prompt and "ninety" not in prompt else "NO")


@pytest.mark.parametrize(("text", "detected"), [(RIGHT, "false"), (WRONG, "true")])
def test_a_claim_that_the_evidence_does_not_carry_is_flagged(stack: Stack, text: str, detected: str) -> None:
    """Two calls a claim, with log probabilities; the object of the source is in the details."""
    asked = play(stack, text, by_evidence)
    response = stack.post(REQUEST)
    assert (response.headers["x-truthlens-status"], response.headers["x-truthlens-detected"]) == (
        "checked",
        detected,
    )
    assert [(body["logprobs"], body["temperature"]) for body in asked] == [(True, 0)] * 2
    detectors = response.json()["truthlens"]["choices"][0]["detectors"]
    check = detectors[1]["report"]["hallucination_check"]
    assert (check["total_claims"], check["overall_grounded"]) == (1, detected == "false")


def test_a_mixed_answer_marks_the_right_claim(stack: Stack) -> None:
    """The seed's fourth test."""
    play(stack, f"{RIGHT} {WRONG}", by_evidence)
    choice = stack.post(REQUEST).json()["truthlens"]["choices"][0]
    spans = [each["text"] for each in choice["spans"] if each["detector"] == "budget"]
    assert spans == [WRONG]


def test_a_server_without_log_probabilities_has_no_effect(stack: Stack) -> None:
    """The detector abstains and says why; the other one's verdict stands whole."""
    play(stack, WRONG, lambda _body: reply("NO", figures=False))
    response = stack.post(REQUEST)
    assert response.headers["x-truthlens-status"] == "checked"
    detectors = response.json()["truthlens"]["choices"][0]["detectors"]
    assert "log probabilities" in detectors[1]["explanation"]
    assert "score" not in detectors[1]
    stack.post(REQUEST)
    told = [line for line in stack.log_lines() if "no log probabilities" in line.get("event", "")]
    assert [line["detector"] for line in told] == ["budget"]


@pytest.mark.parametrize("text", ["MAYBE", "The claim is fine.", "{}", "是否"])
def test_a_verifier_that_says_neither_is_no_clean_verdict(stack: Stack, text: str) -> None:
    """Its result is lost, and the verdict says so."""
    play(stack, RIGHT, lambda _body: {**reply(text), "id": "x"})
    response = stack.post(REQUEST)
    assert response.headers["x-truthlens-reason"] == "detector-error"
    assert response.headers["x-truthlens-status"] == "partial"
