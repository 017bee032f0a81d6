"""Values through a real Envoy: an answer that gives another figure than the evidence is flagged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.support.backend import completion, json_reply
from tests.integration.support.stack import Stack
from tests.integration.support.streams.stage import read_back
from tests.integration.support.streams.streams import answer, sse

pytestmark = pytest.mark.envoy

POLICY = """\
trusted_headers: [x-domain]
hallucination:
  detectors: [numbers]
  details: true
signals:
  domains:
    - {name: gated, headers: {x-domain: [gated]}}
decisions:
  - name: gated
    priority: 90
    rules: {type: domain, name: gated}
    plugins: [{type: hallucination, configuration: {streaming: gate, on_flagged: withhold}}]
"""
REQUEST: dict[str, Any] = {
    "model": "scripted-model",
    "messages": [
        {
            "role": "user",
            "content": "<context>\nThe NOI for the property was $1,200,000 in Q3 2024. Occupancy of the property was 85% in the"
            " quarter. The DSCR was 1.25.\n</context>\nHow did the property do?",
        },
    ],
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment that checks values and nothing else."""
    stack = Stack(tmp_path_factory.mktemp("numbers"), POLICY)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def reply(stack: Stack, text: str) -> httpx.Response:
    stack.backend.reply = lambda _request: json_reply(completion(text))
    return stack.post(REQUEST)


@pytest.mark.parametrize(
    ("text", "detected"),
    [
        ("The NOI was $1.2M for the property.", "false"),
        ("The NOI was $1.25M for the property.", "false"),
        ("The NOI was $1.5M for the property.", "true"),
        ("Occupancy was 95%.", "true"),
        ("The NOI for Q4 2024 was $1.2M.", "true"),
        ("The DSCR was 1.5.", "true"),
    ],
)
def test_item_34_the_sources_examples(stack: Stack, text: str, detected: str) -> None:
    """Verified, within the tolerance, flagged."""
    response = reply(stack, text)
    assert (response.headers["x-truthlens-status"], response.headers["x-truthlens-detected"]) == (
        "checked",
        detected,
    )


def test_item_32_the_fields_reach_the_client(stack: Stack) -> None:
    """The flagged claim with its text, and the counts."""
    verdict = reply(stack, "The NOI was $1.5M for the property.").json()["truthlens"]
    (detector,) = verdict["choices"][0]["detectors"]
    assert [each["original_text"] for each in detector["flagged_claims"]] == ["$1.5M"]
    assert detector["details"]["unverified_claims"] == 1
    (difference,) = verdict["choices"][0]["spans"][0]["differences"]
    assert (difference["answer"], difference["evidence"]) == ("$1.5M", "$1,200,000")


def test_an_answer_without_values_is_unchecked(stack: Stack) -> None:
    """No other detector is listed."""
    response = reply(stack, "The property did well.")
    assert response.headers["x-truthlens-reason"] == "no-context"


def test_item_35_claims_are_counted(stack: Stack) -> None:
    """By kind and outcome."""
    reply(stack, "The NOI was $1.2M for the property.")
    assert (
        'truthlens_numeric_claims_total{outcome="verified",type="currency"}'
        in httpx.get(f"{stack.console_url}/metrics").text
    )


def test_a_gate_withholds_the_sentence(stack: Stack) -> None:
    """The sentence with the wrong figure alone; the one before it passes."""
    stack.backend.reply = lambda _request: sse(
        answer("Occupancy of the property was 85%. The NOI was $1.5M for the property.")
    )
    response = stack.post({**REQUEST, "stream": True}, headers={"x-domain": "gated"})
    text = read_back(response.content).texts[0]
    assert "85%" in text
    assert "$1.5M" not in text
