"""Tests of ``truthlens accuracy``: a confusion matrix by hand, and the claims of the detector ``numbers``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.test_evaluation import run
from truthlens.cli.accuracy import accuracy_figures

POLICY = "hallucination: {detectors: [numbers]}\n"
ROWS = [
    ("The fee is 40 dollars.", "The fee is 40 dollars.", 0),
    ("The fee is 40 dollars.", "The fee is 90 dollars.", 1),
    ("It opens on Tuesday.", "It opens on Friday.", 1),
    ("The fee is 40 dollars.", "The house is old.", 1),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with labelled answers and a policy."""
    rows = [
        {"context": [context], "query": "", "response": response, "label": label}
        for context, response, label in ROWS
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def test_the_report_counts_answers_and_claims(place: Path) -> None:
    """Two of three wrong answers are flagged; the third has no value. Three values, one of them verified."""
    status, out, err = run(
        "accuracy", str(place / "rows.jsonl"), "--config", str(place / "policy.yaml"), "--json"
    )
    assert status == 0, err
    found = json.loads(out)
    assert [found[name] for name in ("tp", "fp", "fn", "tn")] == [2, 0, 1, 1]
    assert found["recall"] == pytest.approx(2 / 3)
    assert [found[name] for name in ("total_claims", "verified_claims", "unverified_claims")] == [3, 1, 2]
    assert found["hallucination_rate"] == pytest.approx(2 / 3)
    assert found["meets_target"] is False
    _, shown, _ = run(
        "accuracy", str(place / "rows.jsonl"), "--config", str(place / "policy.yaml"), "--target", "70"
    )
    assert "True Positives (TP):  2" in shown
    assert "Hallucination Rate: 66.67%" in shown
    assert "Meets Target:       YES" in shown


@pytest.mark.parametrize(
    ("options", "variables", "met"),
    [
        ("", {}, (False, None)),
        ("target_rate: 0.7, target_time_ms: 60000", {}, (True, True)),
        ("target_time_ms: 1.0e-9", {}, (False, False)),
        (
            "",
            {"HALLUCINATION_TARGET_RATE": "0.7", "HALLUCINATION_TARGET_TIME_MS": "0.000000001"},
            (True, False),
        ),
    ],
)
def test_the_targets_are_those_of_the_policy_or_the_environment(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: str,
    variables: dict[str, str],
    met: tuple[bool, bool | None],
) -> None:
    """``target_rate`` and ``target_time_ms`` of ``numbers``, as keys and by the source's names."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    written = f"hallucination: {{detectors: [{{name: numbers{', ' if options else ''}{options}}}]}}\n"
    (place / "policy.yaml").write_text(written)
    arguments = ("accuracy", str(place / "rows.jsonl"), "--config", str(place / "policy.yaml"))
    found = json.loads(run(*arguments, "--json")[1])
    assert found["meets_target"] is met[0]
    # How fast this machine is says nothing of the code.
    assert met[1] is None or found["meets_target_time"] is met[1]
    shown = run(*arguments)[1]
    assert f"Target Time:        {found['target_time_ms']:g} ms" in shown


def test_a_plan_without_numbers_is_an_error(place: Path) -> None:
    """The message says what to add."""
    (place / "policy.yaml").write_text("hallucination: {detectors: [citations]}\n")
    status, _, err = run("accuracy", str(place / "rows.jsonl"), "--config", str(place / "policy.yaml"))
    assert status == 1
    assert "does not list the detector numbers" in err


def test_shares_of_nothing_are_no_figures() -> None:
    """Without answers or claims nothing is divided by zero, and no target is met."""
    found = accuracy_figures(Counter(), target_percent=5.0)
    assert (
        found["accuracy"]
        is found["precision"]
        is found["hallucination_rate"]
        is found["meets_target"]
        is None
    )
