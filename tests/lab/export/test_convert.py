"""Tests of ``truthlens.lab.export.convert``: checkpoints of several layouts become ONNX files that compute the same."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from tests.fakes.checkpoints import write_checkpoint
from truthlens.core.errors import ModelError
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.detection.detectors.encoder.loading import load_encoder, load_model
from truthlens.detection.models.inputs.manifest import load_manifest
from truthlens.lab.export.convert import export_folder

EXCHANGE = Exchange(
    Endpoint.CHAT, "m", "When?", (Passage("The ferry leaves at nine.", Provenance.DOCUMENTS),)
)
ANSWER = Answer(0, AnswerKind.TEXT, "The ferry leaves at ten.")


@pytest.mark.parametrize(
    ("layout", "attention", "inputs"),
    [
        ("modernbert", "block-local", {"input_ids", "attention_mask"}),
        ("bert", "stock", {"input_ids", "attention_mask", "token_type_ids"}),
        ("roberta", "stock", {"input_ids", "attention_mask"}),
        ("eurobert", "stock", {"input_ids", "attention_mask"}),
    ],
)
def test_a_checkpoint_becomes_a_folder_that_serves(
    tmp_path: Path, layout: str, attention: str, inputs: set[str]
) -> None:
    """Alone and in a padded batch of up to several windows of local attention, probabilities agree within 1e-4."""
    folder = write_checkpoint(tmp_path / "checkpoint", layout)
    report = export_folder(folder, tmp_path / "out")
    assert report.layout == attention
    assert report.largest < 1e-4
    assert report.longest > 500
    graph = onnx.load(str(tmp_path / "out" / "model.onnx"))
    assert {node.name for node in graph.graph.input} == inputs
    assert [entry.version for entry in graph.opset_import if not entry.domain] == [17]
    written = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert written["figures"]["export"]["layout"] == attention
    assert sorted(written["files"]) == ["model.onnx", "tokenizer.json"]
    before = load_encoder(folder).detect(EXCHANGE, ANSWER)
    after = load_encoder(tmp_path / "out").detect(EXCHANGE, ANSWER)
    assert after.score == pytest.approx(before.score, abs=1e-3)


def test_exported_in_place_the_folder_holds_both_forms(tmp_path: Path) -> None:
    """On the CPU the ONNX file then serves, the safetensors stay for a GPU, and the calibration is carried over."""
    folder = write_checkpoint(tmp_path / "checkpoint", num_hidden_layers=2)
    manifest = load_manifest(folder).model_copy(
        update={"temperature": 1.7, "recommended_threshold": 0.35, "figures": {"test": {"auroc": 0.8}}}
    )
    (folder / "manifest.json").write_text(manifest.model_dump_json())
    export_folder(folder, folder)
    found = load_manifest(folder)
    assert load_model(folder, manifest=found).name == "onnx:model.onnx"
    assert (folder / "model.safetensors").is_file()
    assert (found.temperature, found.recommended_threshold) == (1.7, 0.35)
    assert found.input == manifest.input
    assert found.figures["test"] == {"auroc": 0.8}


def test_weights_beyond_one_file_go_beside_it(tmp_path: Path) -> None:
    """Above the limit of protobuf the weights stand in a second file, which the manifest lists too."""
    folder = write_checkpoint(tmp_path / "checkpoint", num_hidden_layers=2)
    out = tmp_path / "out"
    assert export_folder(folder, out, largest_file=10_000).largest < 1e-4
    data = out / "model.onnx.data"
    assert data.stat().st_size > (out / "model.onnx").stat().st_size
    assert "model.onnx.data" in load_manifest(out).files
    assert load_encoder(out).detect(EXCHANGE, ANSWER).score is not None
    data.write_bytes(data.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(ModelError, match=r"model\.onnx\.data has SHA-256"):
        load_encoder(out)


def test_a_graph_that_is_not_exact_enough_is_not_written(tmp_path: Path) -> None:
    """Beyond the tolerance there is an error with the difference in it, and no folder."""
    folder = write_checkpoint(tmp_path / "checkpoint")
    with pytest.raises(ModelError, match="differs from the original by"):
        export_folder(folder, tmp_path / "out", tolerance=0.0)
    assert not (tmp_path / "out").exists()


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    """No tokenizer, no weights, or damaged ones: the error names the file."""
    folder = write_checkpoint(tmp_path / "checkpoint")
    (folder / "model.safetensors").write_bytes(b"\x08")
    with pytest.raises(ModelError, match="not a loadable token classifier"):
        export_folder(folder, tmp_path / "out")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="not a loadable token classifier"):
        export_folder(folder, tmp_path / "out")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        export_folder(folder, tmp_path / "out")


def test_an_output_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """A model folder cannot take the place of a file."""
    folder = write_checkpoint(tmp_path / "checkpoint")
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ModelError, match="is a file"):
        export_folder(folder, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"
