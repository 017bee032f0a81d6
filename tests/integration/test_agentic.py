"""Mode agentic through a real Envoy: the backend answers, decides, writes and evaluates, as its script says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.fakes.agentic_parts import act, judged, search
from tests.integration.support.backend import Raw, completion, json_reply
from tests.integration.support.stack import Stack

POLICY = """\
sources: [{name: handbook, type: folder, path: ../pages}]
hallucination: {default_mode: agentic, details: true, retrieval: {sources: [handbook]}}
"""
PAGE = "# Pump\n\nThe pump runs at 600 rpm. It stands in the cellar.\n"
QUESTION = "How fast does the pump run?"
FIRST = "The pump runs at 900 rpm."
CITED = "The pump runs at 600 rpm [pump.md#1]."


class Script:
    """Gives its replies in order, then 404s."""

    def __init__(self, *replies: Any) -> None:
        self.left = list(replies)

    def __call__(self, _request: object) -> Raw:
        reply = self.left.pop(0) if self.left else None
        return (
            json_reply(completion(reply))
            if isinstance(reply, str)
            else json_reply({}, status="404 Not Found")
        )


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("agentic")
    (folder / "pages").mkdir()
    (folder / "pages" / "pump.md").write_text(PAGE)
    deployment = Stack(folder, POLICY, patient=True)
    deployment.start()
    yield deployment
    deployment.stop()


def asked(stack: Stack, *replies: Any) -> tuple[httpx.Response, dict[str, Any]]:
    """The gateway's response and its details, where the backend gives these replies."""
    stack.backend.reply = Script(*replies)
    body = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    response = httpx.post(f"{stack.url}/v1/chat/completions", json=body, timeout=90)
    told: dict[str, Any] = response.json().get("truthlens", {})
    return response, told


def text_of(response: httpx.Response) -> str:
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def test_an_answer_is_written_from_what_was_found(stack: Stack) -> None:
    """The request brought no evidence, and the first answer was wrong: the client gets one that cites its source."""
    response, told = asked(stack, FIRST, search(), act("synthesize"), CITED, *judged(), *judged(0.9))
    assert text_of(response) == CITED
    assert response.headers["x-truthlens-mode"] == "agentic"
    assert (told["status"], told["detected"]) == ("checked", False)
    assert [(each["id"], each["cited"]) for each in told["sources"]] == [("pump.md#1", True)]
    assert told["choices"][0]["mitigation"]["cause"] == "accepted"


def test_a_run_that_breaks_leaves_the_first_answer(stack: Stack) -> None:
    """The cause is named; nothing is invented, and the wrong answer is not called checked and clean."""
    response, told = asked(stack, FIRST, "no decision", "still none")
    assert FIRST in text_of(response)
    assert told["choices"][0]["mitigation"]["cause"] == "bad-decision"
    assert told["status"] == "unchecked"


def test_stops_are_counted(stack: Stack) -> None:
    """By their cause, with the searches that were made and the time of the tools."""
    asked(stack, FIRST, search(), act("synthesize"), CITED, *judged())
    metrics = httpx.get(f"{stack.console_url}/metrics").text
    assert 'truthlens_agent_stops_total{cause="accepted"}' in metrics
    assert 'truthlens_retrievals_total{result="' in metrics
    assert 'truthlens_tool_seconds_count{tool="text_search"}' in metrics


def test_a_question_is_answered_without_an_exchange(stack: Stack) -> None:
    """The same sources and backend, asked at the console; the detectors of the process check the answer."""
    stack.backend.reply = Script(search(), act("synthesize"), CITED, *judged())
    reply = httpx.post(f"{stack.console_url}/v1/ask", json={"question": QUESTION, "model": "m"}, timeout=90)
    shown = reply.json()
    assert (reply.status_code, shown["answer"], shown["accepted"]) == (200, CITED, True)
    assert (shown["verdict"]["status"], shown["verdict"]["detected"]) == ("checked", False)
    stack.backend.reply = Script("no decision", "still none")
    failed = httpx.post(f"{stack.console_url}/v1/ask", json={"question": QUESTION, "model": "m"}, timeout=90)
    assert (failed.status_code, failed.json()["error"]["code"]) == (502, "bad-decision")
