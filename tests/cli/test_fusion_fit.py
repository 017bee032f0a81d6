"""``calibrate --fusion``: from labelled answers to weights, a record and a policy that names it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_calibration import BUNDLED, calibrate, run
from tests.fakes.tiny_encoder import write_encoder
from truthlens.cli import fusion_fit
from truthlens.cli.policy import check
from truthlens.core.scoring_version import SCORING_VERSION
from truthlens.lab.calibrate.fusion import FittingClaim, FusionFit, fit_fusion
from truthlens.policy.plans.fusion_record import FusionRecord

# The encoder suspects half of the wrong words, and one word that is right.
WORDS = {f"wrong{n}": 3.0 if n % 2 else -3.0 for n in range(60)} | {"free": -2.0}
POLICY = """\
# The house policy.
hallucination:
  threshold: 0.6   # for everyone
"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_encoder(folder / BUNDLED, odds=WORDS, manifest={"aggregation": "noisy_or", "tau_token": 0.0})
    return folder


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """120 answers of one claim from 60 texts, half of them wrong; of every second wrong one the encoder knows nothing."""
    rows: list[dict[str, Any]] = []
    for number in range(60):
        context = [f"Room {number} opens at nine."]
        for word, label in ((f"wrong{number}", 1), ("free", 0)):
            rows.append({"context": context, "query": "", "response": f"Tea is {word}.", "label": label})
    path = tmp_path / "labelled.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


def test_weights_are_fitted_and_the_policy_names_them(labelled: Path, shelf: Path, policy: Path) -> None:
    """One line more in the policy, beside it the record; `check` shows the weights and who made them is compared."""
    done = calibrate(labelled, "--fusion", "--config", policy, "--write", "--models", shelf)
    assert (done.status, done.error.count("Traceback")) == (0, 0), done
    record = FusionRecord.read((policy.parent / "default.fusion.json").read_bytes())
    assert policy.read_text() == POLICY + "  fusion: default.fusion.json\n"
    assert (record.claims, record.unsupported, record.answers) == (120, 60, 120)
    assert record.scored_with.scoring_version == SCORING_VERSION
    assert record.after.log_loss < record.before.log_loss
    assert "found at 5 % false alarms" in done.stdout
    shown = run(check, policy, "--models", shelf)
    assert f"fusion encoder {record.weights.opinions['encoder']:.2f}" in shown.stdout
    again = json.loads(
        calibrate(labelled, "--fusion", "--config", policy, "--models", shelf, "--json").stdout
    )
    assert again["weights"] == record.model_dump()["weights"]
    assert (again["record"], again["policy"]) == (None, None)


def test_weights_of_other_rules_are_refused_and_fitted_anew(
    labelled: Path, shelf: Path, policy: Path
) -> None:
    """A policy that cannot be served for its weights can still be fitted: the message has the command."""
    arguments = (labelled, "--fusion", "--config", policy, "--write", "--models", shelf)
    calibrate(*arguments)
    path = policy.parent / "default.fusion.json"
    record = json.loads(path.read_text())
    record["scored_with"]["scoring_version"] = SCORING_VERSION - 1
    path.write_text(json.dumps(record))
    refused = run(check, policy, "--models", shelf)
    assert refused.status == 1
    assert f"under the scoring rules {SCORING_VERSION - 1}" in refused.stdout
    assert "truthlens calibrate --fusion" in refused.stdout
    assert calibrate(*arguments).status == 0
    assert run(check, policy, "--models", shelf).status == 0


def test_a_threshold_of_other_weights_no_longer_fits(labelled: Path, shelf: Path, policy: Path) -> None:
    """It is said at once, `check` says why, and the threshold's own command mends it: it scores with the weights."""
    threshold = (
        labelled,
        "--max-miss-rate",
        "0.6",
        "--config",
        policy,
        "--write",
        "--models",
        shelf,
    )
    assert calibrate(*threshold).status == 0
    done = calibrate(labelled, "--fusion", "--config", policy, "--write", "--models", shelf)
    assert (done.status, "it now has 1 error" in done.stdout) == (0, True)
    assert "other weights of the verdict (`fusion`)" in run(check, policy, "--models", shelf).stdout
    assert calibrate(*threshold).status == 0
    assert run(check, policy, "--models", shelf).status == 0


def test_weights_that_are_no_better_are_not_written(
    labelled: Path, shelf: Path, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is changed, the figures are shown, and the status says so; an --output without --write is still written."""

    def no_better(claims: Sequence[FittingClaim]) -> FusionFit:
        fit = fit_fusion(claims)
        return replace(fit, after=fit.before)

    monkeypatch.setattr(fusion_fit, "fit_fusion", no_better)
    arguments = (labelled, "--fusion", "--config", policy, "--models", shelf)
    done = calibrate(*arguments, "--write")
    assert (done.status, "nothing was written" in done.stdout) == (1, True)
    assert (policy.read_text(), list(policy.parent.glob("*.json"))) == (POLICY, [])
    assert calibrate(*arguments, "--output", policy.parent / "kept.json").status == 0
    assert (policy.parent / "kept.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--write",), "--write needs --config"),
        (("--max-miss-rate", "0.1"), "leave the other goals out"),
        (("--from-review",), "leave the other goals out"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: tuple[str, ...], said: str, labelled: Path, shelf: Path
) -> None:
    done = calibrate(labelled, "--fusion", "--models", shelf, *arguments)
    assert done.status == 2
    assert said in " ".join(done.error.replace("│", "").split())


def test_too_few_answers_and_no_twins_are_said(
    labelled: Path, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = calibrate(labelled, "--fusion", "--models", shelf, "--limit", "20")
    assert "take at least 50 of each" in few.error
    monkeypatch.chdir(tmp_path)
    none = calibrate("--fusion", "--models", shelf)
    assert "there is no folder data/twins/train here" in none.error
