"""``detect``, ``eval`` and ``calibrate`` with a detector that asks a model, live and out of a file of replies."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_evaluation import run
from tests.fakes.tiny_encoder import write_encoder

JUDGED = {
    "score": 0.5,
    "reasoning": "r",
    "confidence": 0.9,
    "decision": "continue",
    "hallucination_notes": "",
}
POLICY = """
models: [{name: strong, price: {input: 1.0, output: 2.0}}]
hallucination:
  threshold: 0.6
  detectors: [{name: judge, model: strong, two_stage: false}]
"""


class Server:
    """A judge that dislikes one word, on a port of its own."""

    def __init__(self) -> None:
        self.asked = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.asked += 1
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                prompt = body["messages"][-1]["content"]
                risk = 0.9 if "Zorblax" in prompt else 0.1
                word = "NO" if risk > 0.5 else "YES"
                asks_word = "<truthlens:claim>" in prompt
                content = word if asks_word else json.dumps({**JUDGED, "hallucination_risk": risk})
                message = {"role": "assistant", "content": content}
                usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
                choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "stop"}
                if asks_word:
                    token = {"token": word, "logprob": -0.05}
                    choice["logprobs"] = {"content": [{**token, "top_logprobs": [token]}]}
                data = json.dumps({"choices": [choice], "usage": usage}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    """The judge's server."""
    made = Server()
    yield made
    made.stop()


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """Arguments: labelled answers, the policy, and a tiny model that nothing runs."""
    rows = [
        {
            "query": "Where?", "context": ["The lamp stands in the hall."], "label": number % 2, "group": str(number),
            "response": f"Lamp {number} stands in the {'Zorblax' if number % 2 else 'hall'}.",
        }
        for number in range(20)
    ]  # fmt: skip
    data, policy = tmp_path / "rows.jsonl", tmp_path / "policy.yaml"
    data.write_text("\n".join(map(json.dumps, rows)))
    policy.write_text(POLICY)
    return str(data), "--config", str(policy), "--model", str(write_encoder(tmp_path / "tiny"))


@pytest.mark.parametrize(
    "detector", ["{name: judge, model: strong, two_stage: false}", "{name: verify, model: strong}"]
)
def test_eval_asks_once_and_then_reads_its_record(
    server: Server, files: tuple[str, ...], tmp_path: Path, detector: str
) -> None:
    """The second run asks nobody, and gives the same figures and cost."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(re.sub(r"\{name: judge.*?\}", detector, POLICY))
    replies = str(tmp_path / "replies.jsonl")
    flags = ("--json", "--resamples", "0", "--replies", replies)
    status, first, error = run("eval", *files, *flags, "--upstream", server.url)
    assert (status, server.asked) == (0, 20), error
    server.stop()
    status, second, error = run("eval", *files, *flags, "--upstream", server.url, "--recorded")
    assert (status, server.asked) == (0, 20), error
    for text in (first, second):
        found = json.loads(text)
        assert found["pooled"]["example"]["f1"] == 1.0
        assert found["models"] == {
            "calls": 20,
            "failed": 0,
            "prompt_tokens": 2000,
            "completion_tokens": 1000,
            "calls_per_1000_answers": 1000.0,
            "cost_usd": pytest.approx(0.004),
            "cost_usd_per_1000_answers": 0.2,
        }


def test_a_judge_that_cannot_be_asked_ends_the_evaluation(files: tuple[str, ...], tmp_path: Path) -> None:
    """Figures of the other detectors would not be the plan's."""
    replies = str(tmp_path / "none.jsonl")
    status, _, error = run(
        "eval", *files, "--replies", replies, "--recorded", "--upstream", "http://127.0.0.1:9"
    )
    assert status != 0
    assert "judge" in error


@pytest.mark.parametrize("content", ["not json", '{"key": 1}', '{"key": "a", "body": "?"}'])
def test_a_file_that_holds_no_replies_is_refused(
    files: tuple[str, ...], tmp_path: Path, content: str
) -> None:
    """With its name and line."""
    bad = tmp_path / "bad.jsonl"
    bad.write_text(content)
    status, _, error = run("eval", *files, "--replies", str(bad), "--upstream", "http://127.0.0.1:9")
    assert status != 0
    assert "line 1" in error


def test_recorded_needs_a_file(files: tuple[str, ...]) -> None:
    """There is nothing to read from without it."""
    status, _, error = run("eval", *files, "--recorded")
    assert status != 0
    assert "--replies" in error


def test_detect_and_calibrate_ask_as_well(server: Server, files: tuple[str, ...], tmp_path: Path) -> None:
    """The verdict of both stages, and a threshold between the judge's figures."""
    context, answer = tmp_path / "c.txt", tmp_path / "a.txt"
    context.write_text("The lamp stands in the hall.")
    answer.write_text("The lamp stands in the Zorblax.")
    status, out, error = run(
        "detect", "--context", str(context), "--response", str(answer), "--json", *files[1:],
        "--upstream", server.url,
    )  # fmt: skip
    assert status == 0, error
    assert (json.loads(out)["detected"], json.loads(out)["stage"]) == (True, "unscored")
    status, out, error = run("calibrate", *files, "--cost-ratio", "1", "--json", "--upstream", server.url)
    assert status == 0, error
    assert 0.1 < json.loads(out)["threshold"] <= 0.9
