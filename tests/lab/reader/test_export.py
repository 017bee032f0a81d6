"""Tests of the reader's export, and of the model folder that it writes, on a tiny encoder of random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.fakes.tiny_base import labelled_rows, write_base
from truthlens.core.errors import ModelError, StoppedError
from truthlens.detection.detectors.reader.inputs import ReaderEvidence
from truthlens.detection.detectors.reader.model import Reader
from truthlens.lab.data.dataset import Example
from truthlens.lab.reader.export import export_reader
from truthlens.lab.reader.model import AVERAGE, build_reader, save_trained, trained_state

_ROWS = [
    Example(
        row["id"],
        "made",
        "qa",
        row["query"],
        tuple(row["context"]),
        row["response"],
        row["label"],
        None,
        row["group"],
    )
    for row in labelled_rows(12)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's model folder, exported from a run of random weights."""
    place = tmp_path_factory.mktemp("export")
    base = write_base(place / "base")
    torch.manual_seed(3)
    save_trained(place / AVERAGE, trained_state(build_reader(base, rank=4)), pairs=0)
    parity = export_reader(place / AVERAGE, place / "reader", base=base, rows=_ROWS)
    assert parity.claims == len(_ROWS)
    assert parity.change_p99 < 0.05
    return place / "reader"


def test_the_folder_gives_three_probabilities_a_claim(folder: Path) -> None:
    """They sum to one, come in the order of the inputs, and do not depend on what else is in the batch."""
    reader = Reader.load(folder)
    evidence = ReaderEvidence(reader.tokenizer, reader.manifest.input, _ROWS[0].context)
    texts = ["The tree is hazel.", "The keeper of the gate says that the tree is rowan.", "hazel"]
    inputs = [evidence.input_for(text) for text in texts]
    together = reader.read(inputs)
    assert together.shape == (3, 3)
    assert np.allclose(together.sum(axis=1), 1.0, atol=1e-5)
    alone = np.concatenate([reader.read([each]) for each in inputs])
    assert np.allclose(together, alone, atol=1e-3)
    assert reader.read([]).shape == (0, 3)


def test_reading_stops_when_nobody_waits(folder: Path) -> None:
    """A disconnected client's claims are not read to the end."""
    reader = Reader.load(folder)
    evidence = ReaderEvidence(reader.tokenizer, reader.manifest.input, _ROWS[0].context)
    with pytest.raises(StoppedError):
        reader.read([evidence.input_for("The tree is hazel.")], stop=lambda: True)


def test_rounding_that_costs_too_much_writes_nothing(folder: Path, tmp_path: Path) -> None:
    """The gate refuses, and no half folder is left."""
    run = folder.parent
    with pytest.raises(ModelError, match="nothing was written"):
        export_reader(run / AVERAGE, tmp_path / "out", base=run / "base", rows=_ROWS, change_p99=0.0)
    assert not (tmp_path / "out").exists()


def _drop_file(folder: Path) -> None:
    (folder / "model.onnx").unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "manifest.json").unlink(), "manifest.json is missing"),
        (lambda folder: (folder / "manifest.json").write_text("{}"), "export the reader again"),
        (lambda folder: (folder / "model.onnx").write_bytes(b"x"), "model.onnx"),
        (_drop_file, "model.onnx"),
    ],
    ids=["no-manifest", "empty-manifest", "damaged", "missing"],
)  # fmt: skip
def test_a_folder_that_cannot_be_used_says_why(folder: Path, tmp_path: Path, change, said: str) -> None:  # type: ignore[no-untyped-def]
    """The message names the file and what to do."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    change(copy)
    with pytest.raises(ModelError, match=said):
        Reader.load(copy)
