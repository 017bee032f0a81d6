"""Citations through a real Envoy: an answer that cites a source which the request does not hold is flagged."""

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
        {"role": "system", "content": "Answer from the sources and cite them by their id, as in [S0]."},
        {
            "role": "user",
            "content": "<documents>\n[S0] The library in Elm Street opens at nine and closes at six.\n"
            "[S1] Membership of the library is free for everybody who lives in the town.\n</documents>\n"
            "When does the library open?",
        },
    ],
}
RIGHT = "The library in Elm Street opens at nine in the morning [S0]. Membership is free for all of the town [S1]."
WRONG = RIGHT.replace("[S1]", "[S7]")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment that checks citations and nothing else."""
    yield from one_detector_stack("citations", tmp_path_factory.mktemp("citations"))


def told(response: httpx.Response) -> tuple[str, str, str, str]:
    return (
        response.headers["x-truthlens-status"],
        response.headers["x-truthlens-detected"],
        response.headers["x-truthlens-risk"],
        response.headers["x-truthlens-score"],
    )


def test_an_invented_source_is_flagged_with_its_place(stack: Stack) -> None:
    """Score, risk and threshold agree, and the span says what is wrong."""
    response = reply_to(stack, REQUEST, WRONG)
    assert told(response) == ("checked", "true", "high", "0.61")
    verdict = response.json()["truthlens"]
    (span,) = verdict["choices"][0]["spans"]
    assert (span["detector"], span["kind"]) == ("citations", "invalid-citation")


def test_right_citations_pass(stack: Stack) -> None:
    """With a score of zero."""
    assert told(reply_to(stack, REQUEST, RIGHT)) == ("checked", "false", "low", "0.00")


def test_an_answer_that_need_not_cite_is_unchecked(stack: Stack) -> None:
    """The request gives its evidence no ids, and no other detector is listed."""
    plain = {
        **REQUEST,
        "messages": [{"role": "user", "content": "<context>The library opens at nine.</context>\nWhen?"}],
    }
    response = reply_to(stack, plain, RIGHT.replace(" [S0]", "").replace(" [S1]", ""))
    assert response.headers["x-truthlens-status"] == "unchecked"
    assert response.headers["x-truthlens-reason"] == "no-context"


def test_a_gate_withholds_the_sentence(stack: Stack) -> None:
    """The sentence with the invented source alone; the one before it passes."""
    text = gated_reply_to(stack, REQUEST, WRONG)
    assert "opens at nine in the morning [S0]." in text
    assert "[S7]" not in text
