"""Tests of ``truthlens.lab.calibrate.refit`` on a tiny model and answers made for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.errors import ModelError
from truthlens.core.records.enums import Aggregation
from truthlens.detection.models.inputs.manifest import load_manifest
from truthlens.lab.calibrate.refit import main, refit
from truthlens.lab.data.dataset import DataError, read_examples

WORDS = {f"word{number}": number / 4 - 3 for number in range(24)}
EARLIER = {
    "format": 1,
    "response": {"noisy_or": {"slope": 1.0, "worst": 0.5, "length": 0.0, "intercept": -1.0, "plain": 2.0}},
    "tau_token": 0.05,
    "figures": {"test": {"kept": True}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder that an earlier version calibrated."""
    return write_encoder(tmp_path / "mine", odds=WORDS, manifest=EARLIER)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Answers in which the more suspicious of two words is the wrong one."""
    rows = [
        {
            "source": "own",
            "context": [f"Room {n} opens at nine."],
            "response": f"Tea is {word}.",
            "label": int(odds > 0),
        }
        for n, (word, odds) in enumerate(WORDS.items())
    ]
    path = tmp_path / "data" / "own.jsonl"
    path.parent.mkdir()
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_a_folder_of_the_earlier_scale_is_served_again(folder: Path, data: Path) -> None:
    """It is refused before; afterwards its scores are at even odds, and weights, limits and figures are as they were."""
    with pytest.raises(ModelError, match="refit"):
        load_manifest(folder)
    written = refit(folder, read_examples(data))
    manifest = load_manifest(folder)
    assert manifest == written
    assert (manifest.format, manifest.tau_span, manifest.figures["test"]) == (
        2,
        written.tau_span,
        {"kept": True},
    )
    assert Aggregation.NOISY_OR in manifest.response
    assert manifest.tau_token in (0.0, 0.01)
    assert manifest.figures["calibration"]["base_rate"] == 0.5
    assert manifest.figures["calibration"]["kinds"]["other"]["rows"] == len(WORDS)


def test_the_deciles_are_those_of_the_new_calibration(folder: Path, data: Path) -> None:
    """Live scores are compared with what the folder gives now, not with what it gave before."""
    fitted = refit(folder, read_examples(data)).score_deciles
    assert fitted is not None
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"score_deciles": [0.5] * 9}))
    assert refit(folder, read_examples(data)).score_deciles == fitted


def test_the_command_refits(folder: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says what was fitted; what cannot be used is an error with status 1."""
    assert main([str(folder), "--data", str(data.parent)]) == 0
    assert "24 answers" in capsys.readouterr().out
    assert main([str(folder), "--data", str(folder)]) == 1
    assert "no *.jsonl" in capsys.readouterr().err


def test_what_cannot_be_fitted_is_refused(folder: Path, data: Path, tmp_path: Path) -> None:
    """Answers of one label, and a folder without a manifest; the manifest is left alone."""
    before = (folder / "manifest.json").read_bytes()
    clean = [row for row in read_examples(data) if not row.label]
    with pytest.raises(DataError, match="not of both labels"):
        refit(folder, clean)
    with pytest.raises(ModelError, match=r"no manifest\.json"):
        refit(tmp_path, clean)
    assert (folder / "manifest.json").read_bytes() == before
