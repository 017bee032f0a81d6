"""Values through a real Envoy: an answer that gives another figure than the evidence is flagged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.support.one_detector import gated_reply_to, one_detector_stack, reply_to
from tests.integration.support.stack import Stack

pytestmark = pytest.mark.envoy

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
    yield from one_detector_stack("numbers", tmp_path_factory.mktemp("numbers"))


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
    response = reply_to(stack, REQUEST, text)
    assert (response.headers["x-truthlens-status"], response.headers["x-truthlens-detected"]) == (
        "checked",
        detected,
    )


def test_item_32_the_fields_reach_the_client(stack: Stack) -> None:
    """The flagged claim with its text, and the counts."""
    verdict = reply_to(stack, REQUEST, "The NOI was $1.5M for the property.").json()["truthlens"]
    (detector,) = verdict["choices"][0]["detectors"]
    assert [each["original_text"] for each in detector["flagged_claims"]] == ["$1.5M"]
    assert detector["details"]["unverified_claims"] == 1
    (difference,) = verdict["choices"][0]["spans"][0]["differences"]
    assert (difference["answer"], difference["evidence"]) == ("$1.5M", "$1,200,000")


def test_an_answer_without_values_is_unchecked(stack: Stack) -> None:
    """No other detector is listed."""
    response = reply_to(stack, REQUEST, "The property did well.")
    assert response.headers["x-truthlens-reason"] == "no-context"


def test_item_35_claims_are_counted(stack: Stack) -> None:
    """By kind and outcome."""
    reply_to(stack, REQUEST, "The NOI was $1.2M for the property.")
    assert (
        'truthlens_numeric_claims_total{outcome="verified",type="currency"}'
        in httpx.get(f"{stack.console_url}/metrics").text
    )


def test_a_gate_withholds_the_sentence(stack: Stack) -> None:
    """The sentence with the wrong figure alone; the one before it passes."""
    text = gated_reply_to(
        stack, REQUEST, "Occupancy of the property was 85%. The NOI was $1.5M for the property."
    )
    assert "85%" in text
    assert "$1.5M" not in text
