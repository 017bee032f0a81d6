"""One verdict everywhere: commands, API, playground and gateway, under the shipped policy and under the white paper's YAML."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.cli.test_cli import run
from tests.integration.support.backend import completion, json_reply
from tests.integration.support.stack import Stack
from tests.test_source_examples import EXAMPLES, WHITE_PAPER, Example
from truthlens.process.settings import shipped_policy

pytestmark = pytest.mark.envoy

ROWS = EXAMPLES[:10]
WEDNESDAY = ROWS[1]
# The code blocks of the white paper's sections 6.1 and 6.2, byte for byte, with an empty line between them.
BLOCKS = dict(
    zip(("6.1", "6.2"), WHITE_PAPER.read_text(encoding="utf-8").split("\n\ndecisions:\n"), strict=True)
)
BLOCKS = {"6.1": f"{BLOCKS['6.1']}\n", "6.2": f"decisions:\n{BLOCKS['6.2']}"}
SHA256 = {
    "6.1": "ba5c409d087c4bcce3c6ea1e48fcb3e88872d7795f714a9ee55d99eafffc4eb7",
    "6.2": "165b155993a3ed06256df1fc1f04d46c295503dbacd93264066919b92f3cfd9a",
}
POLICIES = {
    "shipped": shipped_policy().read_text(encoding="utf-8"),
    "white paper": WHITE_PAPER.read_text(encoding="utf-8"),
    "white paper, section 6.1": BLOCKS["6.1"],
    "white paper, section 6.2": BLOCKS["6.2"],
}
PRINTED = "default: encoder, numbers, contradictions, reader; threshold 0.6"


@pytest.fixture(scope="module", params=POLICIES)
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment under one of the policies."""
    running = Stack(tmp_path_factory.mktemp("one"), POLICIES[request.param])
    try:
        running.start()
        yield running
    finally:
        running.stop()


def row_of(example: Example, label: int = 1) -> str:
    return json.dumps(
        {"context": [example.evidence], "query": example.query, "response": example.answer, "label": label}
    )


def detected(stack: Stack) -> list[dict[str, Any]]:
    """What ``truthlens detect`` says of the rows."""
    told = run("detect", "--json", "--config", str(stack.policy), stdin="\n".join(map(row_of, ROWS)))
    assert told.returncode == 0, told.stderr
    assert PRINTED in told.stderr.splitlines()[0]
    return [json.loads(line) for line in told.stdout.splitlines()]


def evaluated(stack: Stack) -> list[float]:
    """What ``truthlens eval`` scores the rows with: the best threshold of a file of one unsupported answer is its score."""
    files = []
    for number, example in enumerate(ROWS):
        files.append(stack.folder / f"row{number}.jsonl")
        files[-1].write_text(row_of(example), encoding="utf-8")
    told = run("eval", *map(str, files), "--json", "--resamples", "0", "--config", str(stack.policy))
    assert told.returncode == 0, told.stderr
    assert PRINTED in told.stderr.splitlines()[0]
    return [file["best"]["threshold"] for file in json.loads(told.stdout)["files"]]


def asked(stack: Stack, example: Example) -> dict[str, Any]:
    """What ``/v1/detect`` says."""
    body = {"context": [example.evidence], "query": example.query, "response": example.answer}
    found: dict[str, Any] = httpx.post(f"{stack.console_url}/v1/detect", json=body, timeout=60).json()
    return found


def played(stack: Stack, example: Example) -> str:
    """The score that the playground shows for the default decision."""
    form = {
        "context": example.evidence,
        "query": example.query,
        "response": example.answer,
        "decision": "default",
    }
    own = {"origin": stack.console_url}
    page = httpx.post(f"{stack.console_url}/playground", data=form, headers=own, timeout=60)
    assert page.status_code == 200
    shown = " ".join(re.sub(r"<[^>]*>", " ", page.text).split())
    (score,) = re.findall(r"Score (\d\.\d\d)", shown)
    return str(score)


def delivered(stack: Stack, example: Example) -> str:
    """The score of the first answer that the gateway's headers give; models that are asked to correct it say it again."""
    stack.backend.reply = lambda _request: json_reply(completion(example.answer))
    response = stack.post(
        {
            "model": "scripted-model",
            "messages": [{"role": "user", "content": example.query}],
            "documents": [example.evidence],
        }
    )
    assert response.status_code == 200
    return response.headers.get("x-truthlens-initial-score", response.headers["x-truthlens-score"])


def test_ten_rows_have_one_score_in_detect_eval_the_api_the_playground_and_the_gateway(stack: Stack) -> None:
    """To the last digit that each of them shows."""
    commands, measured = detected(stack), evaluated(stack)
    for example, told, measure in zip(ROWS, commands, measured, strict=True):
        found = asked(stack, example)
        assert found["score"] == pytest.approx(told["score"], abs=1e-5), example.source
        assert [each["name"] for each in found["detectors"]] == [
            "encoder",
            "numbers",
            "contradictions",
            "reader",
        ]
        same = ("decision", "policy_version", "threshold", "detected", "status")
        assert [found[key] for key in same] == [told[key] for key in same]
        assert measure == pytest.approx(told["score"], abs=1e-3), example.source
        for shown in (delivered(stack, example), played(stack, example)):
            assert float(shown) == pytest.approx(told["score"], abs=0.0051), example.source


def test_wednesday_for_tuesday_is_flagged_by_each_of_them(stack: Stack) -> None:
    """One word, which the encoder alone lets pass."""
    told = json.loads(run("detect", "--json", "--config", str(stack.policy), stdin=row_of(WEDNESDAY)).stdout)
    (encoder,) = [each for each in told["detectors"] if each["name"] == "encoder"]
    assert encoder["score"] < 0.6 <= told["score"]
    assert told["detected"] is asked(stack, WEDNESDAY)["detected"] is True
    assert float(delivered(stack, WEDNESDAY)) >= 0.6


def test_every_command_takes_the_policy(stack: Stack) -> None:
    """And prints the decision, its detectors and its threshold."""
    rows = stack.folder / "rows.jsonl"
    rows.write_text("\n".join(row_of(each, int(each.flagged)) for each in ROWS), encoding="utf-8")
    checked = run("check", str(stack.policy))
    assert (checked.returncode, f"  {PRINTED}" in checked.stdout.splitlines()) == (0, True)
    config = ("--config", str(stack.policy))
    counted = run("accuracy", str(rows), *config, "--json")
    assert counted.returncode == 0, counted.stderr
    assert "default: numbers; threshold 0.6 (numbers alone)" in counted.stderr
    assert json.loads(counted.stdout)["total_cases"] == len(ROWS)
    chosen = run("calibrate", str(rows), "--cost-ratio", "2", *config, "--json")
    assert chosen.returncode == 0, chosen.stderr
    assert PRINTED in chosen.stderr
    scored_with = json.loads(chosen.stdout)["scored_with"]
    assert scored_with["detectors"] == {"encoder": 1.0, "numbers": 1.0, "contradictions": 1.0, "reader": 1.0}
    assert PRINTED in (stack.folder / "sidecar.log").read_text(encoding="utf-8")


def test_a_gpu_that_only_a_missing_model_wants_is_no_mistake_and_is_told(stack: Stack) -> None:
    """``use_cpu: false`` of the white paper, whose model nobody has here: the same words from each command."""
    note = "the bundled model scores instead, on the CPU"
    wanted = "use_cpu: false" in stack.policy.read_text(encoding="utf-8")
    told = [run("check", str(stack.policy)).stdout]
    told += [run("detect", "--config", str(stack.policy), stdin=row_of(WEDNESDAY)).stderr]
    told += [httpx.get(f"{stack.console_url}/readyz").text]
    assert [note in each for each in told] == [wanted] * len(told)


@pytest.mark.parametrize("section", BLOCKS)
def test_the_blocks_are_the_white_papers(section: str) -> None:
    """Byte for byte."""
    assert hashlib.sha256(BLOCKS[section].encode()).hexdigest() == SHA256[section]
