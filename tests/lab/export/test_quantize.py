"""Tests of ``truthlens.lab.export.quantize``: int8 is kept only where it costs next to nothing, and says what it cost."""

from __future__ import annotations

import shutil
from pathlib import Path

import onnx
import pytest

from tests.fakes.checkpoints import write_checkpoint
from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.errors import ModelError
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.models.inputs.manifest import load_manifest
from truthlens.lab.data.dataset import Example
from truthlens.lab.export.convert import export_folder
from truthlens.lab.export.export import ExportLimits
from truthlens.lab.export.quantize import QuantisationQuality, quantize_folder

OPEN = ExportLimits(change_p99=1.0, accuracy_loss=1.0)
SHUT = ExportLimits(change_p99=-1.0)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with an fp32 file of small weights, which int8 changes little."""
    folder = tmp_path_factory.mktemp("exported")
    checkpoint = write_checkpoint(folder / "checkpoint", num_hidden_layers=2, initializer_range=0.05)
    export_folder(checkpoint, folder / "model")
    return folder / "model"


def rows() -> list[Example]:
    """Four labelled answers."""
    context = ("The ferry leaves at nine and costs four euros.",)
    answers = ("It leaves at nine.", "It leaves at ten.", "It costs four euros.", "It costs a fortune.")
    return [
        Example(str(n), "own", "qa", "When?", context, answer, n % 2, None, "g")
        for n, answer in enumerate(answers)
    ]


def test_int8_that_changes_little_replaces_the_file(exported: Path, tmp_path: Path) -> None:
    """In place: smaller, with integer products and an integer embedding table, its digest and cost in the manifest."""
    folder = shutil.copytree(exported, tmp_path / "model")
    report = quantize_folder(folder, folder)
    assert report.refused == ""
    assert report.change_p99 <= 0.03
    assert report.bytes_after < report.bytes_before * 0.6
    assert report.quality is None
    graph = onnx.load(str(folder / "model.onnx")).graph
    operators = [node.op_type for node in graph.node]
    assert operators.count("MatMulInteger") >= 8
    embedding = next(node for node in graph.node if node.op_type == "Gather" and "embed" in node.input[0])
    table = next(tensor for tensor in graph.initializer if tensor.name == embedding.input[0])
    assert table.data_type in {onnx.TensorProto.INT8, onnx.TensorProto.UINT8}
    assert load_manifest(folder).figures["int8"]["change_p99"] == report.change_p99
    load_encoder(folder).warm_up()


def test_beyond_the_gate_float32_stays(exported: Path, tmp_path: Path) -> None:
    """Refused, the folder is byte for byte what it was, and the reason is said; forced, int8 is written."""
    folder = shutil.copytree(exported, tmp_path / "model")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    report = quantize_folder(folder, folder, gate=SHUT)
    assert "99th percentile" in report.refused
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    forced = quantize_folder(folder, tmp_path / "forced", gate=SHUT, force=True)
    assert forced.refused == report.refused
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    load_encoder(tmp_path / "forced").warm_up()


def test_labelled_answers_give_the_accuracy_before_and_after(exported: Path, tmp_path: Path) -> None:
    """With rows, AUROC and F1 of both files are in the report, and losing too much of either refuses int8."""
    report = quantize_folder(exported, tmp_path / "out", rows=rows(), gate=OPEN)
    assert report.quality is not None
    assert report.quality.rows == 4
    assert report.quality.auroc_before is not None
    strict = ExportLimits(change_p99=1.0, accuracy_loss=report.quality.loss - 1e-6)
    refused = quantize_folder(exported, tmp_path / "strict", rows=rows(), gate=strict)
    assert "points" in refused.refused
    assert not (tmp_path / "strict").exists()


def test_the_larger_loss_counts() -> None:
    """A gain in one figure does not pay for a loss in the other; one class alone leaves F1."""
    assert QuantisationQuality(9, 0.90, 0.88, 0.5, 0.6).loss == pytest.approx(0.02)
    assert QuantisationQuality(9, 0.90, 0.95, 0.5, 0.4).loss == pytest.approx(0.1)
    assert QuantisationQuality(9, None, None, 0.5, 0.4).loss == pytest.approx(0.1)


def test_a_file_beside_the_weights_goes_with_them(exported: Path, tmp_path: Path) -> None:
    """Weights that stood in a second file are in one again, and the old file is gone."""
    checkpoint = exported.parent / "checkpoint"
    export_folder(checkpoint, tmp_path / "model", largest_file=10_000)
    quantize_folder(tmp_path / "model", tmp_path / "model", gate=OPEN)
    assert not (tmp_path / "model" / "model.onnx.data").exists()
    assert sorted(load_manifest(tmp_path / "model").files) == ["model.onnx", "tokenizer.json"]
    load_encoder(tmp_path / "model").warm_up()


def test_what_cannot_be_rounded_is_refused(exported: Path, tmp_path: Path) -> None:
    """No ONNX file: the export is named; an int8 file: rounding twice would add up."""
    empty = write_encoder(tmp_path / "empty", manifest={"files": {}})
    (empty / "model.onnx").unlink()
    with pytest.raises(ModelError, match="truthlens models export"):
        quantize_folder(empty, empty)
    quantize_folder(exported, tmp_path / "out", gate=OPEN)
    with pytest.raises(ModelError, match="int8 already"):
        quantize_folder(tmp_path / "out", tmp_path / "out")
