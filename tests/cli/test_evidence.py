"""``truthlens evidence``: what of a request is evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_cli import run

REQUEST = json.dumps(
    {
        "model": "m",
        "messages": [
            {"role": "kb", "content": "The tower has 12 bells."},
            {"role": "user", "content": "<context>Tea is free [bold]today[/bold].</context>\nIs tea free?"},
        ],
    }
)
POLICY = """\
hallucination: {threshold: 0.5}
decisions:
  - name: bells
    rules: {type: domain, name: finance}
    plugins: [{type: hallucination, configuration: {evidence: {roles: [kb]}}}]
"""


def test_the_object_is_printed_as_json() -> None:
    """Exactly the keys of ``POST /v1/evidence``."""
    result = run("evidence", "-", "--json", stdin=REQUEST)
    shown = json.loads(result.stdout)
    assert (result.returncode, list(shown)) == (0, ["status", "reason", "query", "passages", "left"])
    assert (shown["status"], shown["reason"], shown["query"]) == ("checked", None, "Is tea free?")
    (passage,) = shown["passages"]
    assert (passage["text"], passage["provenance"]) == ("Tea is free [bold]today[/bold].", "user")
    assert passage["rule"]


def test_a_person_reads_passages_rules_and_the_question(tmp_path: Path) -> None:
    """Brackets in a text are no markup."""
    file = tmp_path / "request.json"
    file.write_text(REQUEST)
    shown = run("evidence", str(file)).stdout
    for told in ("an answer can be checked", "question: Is tea free?", "Tea is free [bold]today[/bold]."):
        assert told in shown


def test_a_completions_request_is_told_by_its_body() -> None:
    """No option names the API."""
    result = run("evidence", "-", "--json", stdin='{"prompt": "Is tea free?"}')
    assert json.loads(result.stdout)["reason"] == "no-context"
    assert "unchecked: no-context" in run("evidence", "-", stdin='{"prompt": "Is tea free?"}').stdout


def test_rules_come_from_the_decision(tmp_path: Path) -> None:
    """By default from the policy's own default."""
    policy = tmp_path / "p.yaml"
    policy.write_text(POLICY)
    options = ("evidence", "-", "--json", "--policy", str(policy))
    default = json.loads(run(*options, stdin=REQUEST).stdout)
    bells = json.loads(run(*options, "--decision", "bells", stdin=REQUEST).stdout)
    texts = [each["text"] for each in bells["passages"]]
    assert "The tower has 12 bells." in texts
    assert "The tower has 12 bells." not in [each["text"] for each in default["passages"]]


@pytest.mark.parametrize(
    ("arguments", "stdin", "status", "message"),
    [
        (("-",), "{", 1, "not JSON"),
        (("-",), '{"messages": []}', 1, "at least one message"),
        (("-",), "[1]", 1, "expected a JSON object"),
        (("nowhere.json",), "", 1, "nowhere.json"),
        (("-", "--decision", "x"), "{}", 2, "--decision needs --policy"),
        (("-", "--policy", "nowhere.yaml"), "{}", 2, "nowhere.yaml"),
    ],
)
def test_what_cannot_be_read_is_one_message(
    arguments: tuple[str, ...], stdin: str, status: int, message: str
) -> None:
    """Without a traceback, and without text of the request."""
    result = run("evidence", *arguments, stdin=stdin)
    assert result.returncode == status
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_decision_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(POLICY)
    result = run("evidence", "-", "--policy", str(policy), "--decision", "bell", stdin=REQUEST)
    assert result.returncode == 1
    assert "did you mean 'bells'?" in result.stderr
