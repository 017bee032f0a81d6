"""``detect`` with a policy: the plan's whole list, with the plan's own model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_evaluation import run
from tests.fakes.tiny_encoder import write_encoder

POLICY = """\
hallucination: {{threshold: 0.5, detectors: [citations]}}
decisions:
  - name: strict
    rules: {{type: domain, name: healthcare}}
    plugins:
      - type: hallucination
        configuration:
          model_id: {model}
          detectors: [encoder, {{name: citations, require_citations: true}}]
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of the command, with a policy whose decision ``strict`` names a model of its own."""
    monkeypatch.delenv("TRUTHLENS_MODEL", raising=False)
    model = write_encoder(tmp_path / "own", odds={"Zorblax": 3.0})
    write_encoder(tmp_path / "truthlens-minilm-en-v2", odds={"hall": 3.0, "lamp": 3.0})
    for name, text in {
        "policy.yaml": POLICY.format(model=model),
        "evidence.txt": "The lamp stands in the hall.",
        "answer.txt": "The lamp stands in the Zorblax.",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return [
        "detect", "--json", "--config", str(tmp_path / "policy.yaml"), "--models", str(tmp_path),
        "--context", str(tmp_path / "evidence.txt"), "--response", str(tmp_path / "answer.txt"),
    ]  # fmt: skip


def test_the_whole_list_runs_with_the_plans_model(asked: list[str]) -> None:
    """Both detectors find something in it, and the default plan runs another list."""
    status, out, err = run(*asked, "--decision", "strict")
    assert status == 0, err
    found = json.loads(out)
    assert found["score"] > 0.95
    assert [one["name"] for one in found["detectors"]] == ["encoder", "citations"]
    assert all(one["score"] > 0.2 for one in found["detectors"])
    _, default, _ = run(*asked)
    assert [one["name"] for one in json.loads(default)["detectors"]] == ["citations"]


def test_a_decision_that_is_not_there_is_one_message(asked: list[str]) -> None:
    """It names those that are; without a policy those of the shipped one."""
    status, _, err = run(*asked, "--decision", "nope")
    assert (status, "known: strict, default" in err.replace("\n", " ")) == (1, True)
    without = [word for word in asked if "policy" not in word and word != "--config"]
    status, _, err = run(*without, "--decision", "strict")
    assert (status, "known: medical_assistant," in err.replace("\n", " ")) == (1, True)
