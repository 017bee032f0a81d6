"""Twenty exchanges of all kinds are captured behind a real Envoy, and replayed by the same policy and by others."""

from __future__ import annotations

import json
import re
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.integration.support.backend import Raw, completion, http
from tests.integration.support.models import BAD, GOOD, PASSAGES, Models, request
from tests.integration.support.stack import Stack, wait_for
from tests.integration.support.streams.stage import metric
from truthlens.cli import command_line

KEY = "sk-secret-of-the-client"
MODEL_KEY = "model-key-from-the-environment"
PHONE = "+41 44 668 18 00"
PASSAGE = f"Questions about a wire transfer are answered at {PHONE}."
WITH_PHONE = f"{GOOD} Questions are answered at {PHONE}."


def _policy(threshold: float = 0.6) -> str:
    plans = {
        "observed": "{streaming: observe}",
        "gated": "{streaming: gate}",
        "standard": "{mode: standard, threshold: 0.3}",
        "judged": "{detectors: [encoder, numbers, contradictions, {name: judge, model: judge}], cascade: {when: always}}",
        "shadowed": "{shadow: true, mode: standard}",
        "disabled": "{enabled: false}",
    }
    domains = "\n".join(f"    - {{name: {name}, headers: {{x-plan: [{name}]}}}}" for name in plans)
    decisions = "\n".join(
        f"  - {{name: {name}, priority: {100 - place}, rules: {{type: domain, name: {name}}}, "
        f"plugins: [{{type: hallucination, configuration: {text}}}]}}"
        for place, (name, text) in enumerate(plans.items())
    )
    return f"""\
trusted_headers: [x-plan]
hallucination:
  default_mode: lightweight
  threshold: {threshold}
  detectors: [encoder, numbers, contradictions]
review: {{redact: [phone]}}
models: [{{name: main, api_key_env: MODEL_KEY}}, {{name: judge}}]
signals:
  domains:
{domains}
decisions:
{decisions}
"""


def _streamed(text: str) -> Raw:
    pieces = [text[start : start + 5] for start in range(0, len(text), 5)]
    frames = [
        f"data: {json.dumps({'id': 'c', 'object': 'chat.completion.chunk', 'created': 1, 'model': 'main', 'choices': [{'index': 0, 'delta': {'content': piece}, 'finish_reason': None}]})}\n\n"
        for piece in pieces
    ]
    return http("".join(frames) + "data: [DONE]\n\n", content_type="text/event-stream")


_JUDGED = "The first sentence gives another price than the passage."

EXCHANGES: list[tuple[str, Any]] = [
    *[("", GOOD)] * 3,
    *[("", BAD)] * 3,
    ("", WITH_PHONE),
    *[("observed", _streamed(text)) for text in (GOOD, BAD, WITH_PHONE)],
    *[("gated", _streamed(text)) for text in (GOOD, BAD)],
    *[("standard", text) for text in (GOOD, BAD, BAD)],
    ("judged", BAD),
    ("shadowed", BAD),
    ("disabled", BAD),
    ("", http("{}", status="500 Internal Server Error")),
    ("", completion(GOOD, BAD)),
]


KEPT = [each for each in EXCHANGES if each[0] != "disabled"]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment through which all exchanges have passed."""
    folder = tmp_path_factory.mktemp("replay")
    made = Stack(
        folder,
        _policy(),
        arguments=("--capture", str(folder / "capture.jsonl"), "--review-database", "none"),
        environ={"MODEL_KEY": MODEL_KEY},
        patient=True,
    )
    models = Models({
        ("main", "answer"): [answer for _, answer in EXCHANGES],
        ("main", "correct"): [GOOD],
        ("judge", "other"): [_JUDGED],
        ("judge", "answer"): [_JUDGED],
    })  # fmt: skip
    made.backend.reply = models
    try:
        made.start()
        for plan, answer in EXCHANGES:
            streams = isinstance(answer, Raw) and b"event-stream" in answer.writes[0]
            headers = {"x-plan": plan, "authorization": f"Bearer {KEY}", "cookie": f"session={KEY}"}
            body = request(user="a person", stream=streams, passages=(*PASSAGES, PASSAGE))
            made.post(body, path=f"/v1/chat/completions?key={KEY}", headers=headers)
        wait_for(lambda: metric(made, "truthlens_captured_total") == len(EXCHANGES), "all captured")
        yield made
    finally:
        made.stop()


def _capture(stack: Stack) -> Path:
    return stack.folder / "capture.jsonl"


def _replay(*words: object) -> tuple[int, dict[str, Any], str]:
    """Exit status, the JSON, and its bytes."""
    done = CliRunner().invoke(
        command_line(["replay"]), ["replay", *map(str, words), "--json", "--fail-on-change"]
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, json.loads(done.stdout), done.stdout


def test_what_is_captured_holds_no_secret_and_is_for_its_owner_alone(stack: Stack) -> None:
    """Neither the client's key, nor the model's, nor who asks, nor a number that the policy redacts, in a stream either."""
    file = _capture(stack)
    text = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["request"]["headers"]["x-plan"] for row in rows[1:]] == [plan for plan, _ in KEPT]
    assert not [word for word in (KEY, MODEL_KEY, "a person", PHONE, "668") if word in text]
    assert sum("█" * len(PHONE) in answer for row in rows[1:] for answer in row["outcome"]["answers"]) == 2
    log = [line for line in stack.log_lines() if line["event"] == "exchanges are captured with their texts"]
    assert [line["level"] for line in log] == ["warning"]
    # Of a decision that checks nothing no body is asked for.
    assert metric(stack, "truthlens_captured_total", result="unread") == 1


def test_the_policy_that_it_was_captured_by_changes_nothing(stack: Stack) -> None:
    """Models answer from what they said then; twice the same, to the byte."""
    status, found, text = _replay(_capture(stack), "--config", stack.policy)
    assert found["rows"] == []
    assert (status, found["exchanges"], found["not_replayed"]) == (0, len(KEPT), {})
    calls = found["total"]["model_calls"]
    assert calls["then"] == calls["now"] == 4
    assert found["total"]["would_ask"] == 0
    assert _replay(_capture(stack), "--config", stack.policy, "--workers", "2")[2] == text


def test_another_policy_changes_what_it_says(stack: Stack, tmp_path: Path) -> None:
    """Supported answers are flagged at 0.1, streamed ones too; what nobody was asked then is open, and the page shows it all."""
    policy, page = tmp_path / "policy.yaml", tmp_path / "page.html"
    policy.write_text(_policy(0.1).replace("shadow: true, mode: standard", "mode: standard"))
    status, found, _ = _replay(_capture(stack), "--config", policy, "--html", page)
    assert status == 2
    told = Counter((row["then"]["decision"], change) for row in found["rows"] for change in row["changes"])
    assert told["default", "flagged no → yes"] == 4
    assert told["observed", "action pass → warn"] == 2
    assert told["gated", "flagged no → yes"] == 1
    assert told["shadowed", "models: nobody → asked"] == 1
    assert {decision for decision, _ in told} == {"default", "observed", "gated", "shadowed"}
    assert (found["total"]["open"], found["total"]["would_ask"]) == (1, 1)
    written = page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert BAD in re.sub("<[^>]+>", "", written)
    assert not [word for word in ("http://", "https://", "<script src", "<link") if word in written]
