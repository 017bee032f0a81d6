"""Tests of ``truthlens.cli.models``: list, pull, export and quantize as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from tests.fakes.checkpoints import write_checkpoint
from tests.fakes.hub_server import COMMIT, FakeHub, serving
from tests.fakes.sequence_checkpoints import write_sequence_checkpoint
from tests.fakes.tiny_encoder import write_encoder
from truthlens.cli.model_list import list_models
from truthlens.cli.models import export_model, pull_model, quantize_model
from truthlens.core.errors import ModelError
from truthlens.detection.detectors.reader.model import find_reader

APP = typer.Typer()
APP.command("list")(list_models)
APP.command("pull")(pull_model)
APP.command("export")(export_model)
APP.command("quantize")(quantize_model)


def run(*arguments: str | Path) -> Result:
    """One command; an expected error is left in ``exception``."""
    return CliRunner().invoke(
        APP, [str(word) for word in arguments], env={"COLUMNS": "200", "HF_ENDPOINT": ""}
    )


def test_list_shows_every_folder(tmp_path: Path) -> None:
    """Usable models with their template and size, unusable ones with the reason, folders in the making not at all."""
    write_encoder(tmp_path / "tiny")
    write_checkpoint(tmp_path / "lettuce", num_hidden_layers=1)
    (tmp_path / "broken").mkdir()
    (tmp_path / ".pull-abc").mkdir()
    rows = {
        Path(row["folder"]).name: row
        for row in json.loads(run("list", "--models", tmp_path, "--json").stdout)
    }
    assert set(rows) == {"tiny", "lettuce", "broken"}
    assert rows["tiny"]["weights"] == ["model.onnx"]
    assert rows["lettuce"]["template"] == "lettucedetect-v1"
    assert rows["lettuce"]["megabytes"] > 0
    assert "no model folder" in rows["broken"]["error"]
    shown = run("list", "--models", tmp_path).stdout
    assert "lettucedetect-v1" in shown
    assert "cannot be used" in shown
    (tmp_path / "empty").mkdir()
    assert "no models in" in run("list", "--models", tmp_path / "empty").stdout
    assert isinstance(run("list", "--models", tmp_path / "nowhere").exception, ModelError)


def test_from_the_hub_to_int8(tmp_path: Path) -> None:
    """Pull, export, quantize and list in a row: what a user of a LettuceDetect model does."""
    checkpoint = write_checkpoint(tmp_path / "checkpoint", num_hidden_layers=2, initializer_range=0.05)
    files = {file.name: file.read_bytes() for file in checkpoint.iterdir()}
    name = "tinylettuce-ettin-17m-en"
    shelf = tmp_path / "models"
    with serving(FakeHub(f"KRLabsOrg/{name}", files, large={"model.safetensors"})) as hub:
        pulled = run("pull", name, "--models", shelf, "--endpoint", hub.endpoint)
        again = run("pull", name, "--models", shelf, "--endpoint", hub.endpoint, "--revision", COMMIT)
    assert pulled.exit_code == 0, pulled.output
    assert f"{COMMIT[:12]} is in {shelf / name}" in pulled.stdout
    assert "already" in again.stdout
    exported = run("export", shelf / name)
    assert exported.exit_code == 0, exported.output
    assert "block-local attention" in exported.stdout
    report = json.loads(run("quantize", shelf / name, "--json").stdout)
    assert report["refused"] == ""
    assert report["bytes_after"] < report["bytes_before"]
    (row,) = json.loads(run("list", "--models", shelf, "--json").stdout)
    assert (row["revision"], row["weights"]) == (COMMIT, ["model.onnx", "model.safetensors"])


def test_a_folder_becomes_a_reader(tmp_path: Path) -> None:
    """Pull, list, and the policy's detector finds it; a mistake is told with the option to change."""
    labels = ("LABEL_0", "LABEL_1")
    checkpoint = write_sequence_checkpoint(tmp_path / "nli", "roberta", labels=labels)
    shelf = tmp_path / "models"
    pull = ("pull", checkpoint, "--as", "reader", "--models", shelf)
    untold = run(*pull)
    assert isinstance(untold.exception, ModelError)
    assert "--labels" in str(untold.exception)
    named = ("--labels", "not_entailment,entailment", "--folder", "mine")
    made = run(*pull, *named, "--evidence-tokens", "64", "--template", "{claim}{pair}{evidence}")
    assert made.exit_code == 0, made.output
    assert "classes: not stated, supported" in made.stdout
    assert "never says that a claim is contradicted" in made.stdout
    assert "model: mine" in made.stdout
    assert find_reader("mine", shelf) == shelf / "mine"
    (row,) = json.loads(run("list", "--models", shelf, "--json").stdout)
    assert (row["kind"], row["labels"], row["template"]) == (
        "reader",
        ["not_stated", "supported"],
        "{claim}{pair}{evidence}",
    )
    shown = run("list", "--models", shelf).stdout
    assert "reader" in shown
    assert "{claim}" not in shown
    (shelf / "mine" / "manifest.json").write_text('{"kind": "reader"}')
    (row,) = json.loads(run("list", "--models", shelf, "--json").stdout)
    assert "export the reader again" in row["error"]
    assert run(*pull, "--as", "pinned").exit_code == 2
    assert run("pull", "x/y", "--labels", "a,b").exit_code == 2


def test_int8_beyond_its_bounds_ends_with_status_1(tmp_path: Path) -> None:
    """Large random weights do not survive rounding: float32 stays, the cost is shown; --force overrides."""
    checkpoint = write_checkpoint(tmp_path / "checkpoint", num_hidden_layers=3, initializer_range=2.0)
    run("export", checkpoint, "--output", tmp_path / "model", "--tolerance", "1")
    before = (tmp_path / "model" / "model.onnx").read_bytes()
    refused = run("quantize", tmp_path / "model")
    assert refused.exit_code == 1
    assert "beyond the bounds" in refused.stdout
    assert "float32 is kept" in refused.stdout
    assert (tmp_path / "model" / "model.onnx").read_bytes() == before
    assert run("quantize", tmp_path / "model", "--force").exit_code == 0
    assert (tmp_path / "model" / "model.onnx").read_bytes() != before


def test_quantize_measures_on_labelled_answers(tmp_path: Path) -> None:
    """With --data the report has AUROC and F1 before and after; a bad line is an error with its number."""
    checkpoint = write_checkpoint(tmp_path / "checkpoint", num_hidden_layers=1, initializer_range=0.05)
    run("export", checkpoint, "--output", tmp_path / "model")
    row = {"context": ["The ferry leaves at nine."], "query": "When?", "response": "At nine.", "label": 0}
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join(json.dumps({**row, "label": number % 2}) for number in range(5)))
    found = run("quantize", tmp_path / "model", "--output", tmp_path / "out", "--data", data, "--limit", "3")
    assert "answers: AUROC" in found.stdout
    data.write_text("{}\n")
    broken = run("quantize", tmp_path / "model", "--data", data)
    assert "line 1" in str(broken.exception)


def test_known_names_are_listed() -> None:
    """--known asks no network and names templates and licences."""
    shown = run("pull", "--known").stdout
    assert "lettucedect-large-modernbert-en-v1" in shown
    assert "lettucedetect-v2" in shown
    assert run("pull").exit_code == 2


def test_errors_are_model_errors(tmp_path: Path) -> None:
    """What the user can mend arrives as one error for main to print."""
    for arguments in (("pull", "no-such-model"), ("export", tmp_path), ("quantize", tmp_path)):
        assert isinstance(run(*arguments).exception, ModelError)


@pytest.mark.parametrize("command", ["list", "pull", "export", "quantize"])
def test_every_command_explains_itself(command: str) -> None:
    """--help says what the command does and takes."""
    shown = run(command, "--help")
    assert shown.exit_code == 0
    assert len(shown.stdout.splitlines()) > 8


def test_the_similarity_model_is_listed_as_what_it_is() -> None:
    """The bundled folders are listed without an error; the one that is no detector says so."""
    result = run("list", "--json")
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows["truthlens-similarity-en-v1"]["template"] == "similarity"
    assert not any("error" in row for row in rows.values())
