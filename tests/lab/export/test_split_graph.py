"""Tests of ``truthlens.lab.export.split_graph``: a graph in two files gives what it gave in one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.fakes.tiny_encoder import word_tokenizer, write_encoder, write_graph
from truthlens.core.errors import ModelError
from truthlens.detection.detectors.encoder.loading import BODY_NAME, HEAD_NAME, load_model, verify_files
from truthlens.detection.models.inputs.lexical import FEATURE_COUNT
from truthlens.detection.models.inputs.manifest import load_manifest
from truthlens.detection.models.inputs.windows import Window, load_tokenizer
from truthlens.detection.models.onnx_runtime import OnnxModel
from truthlens.detection.models.runtime import PartedModel
from truthlens.lab.export.parity_inputs import fixture_windows
from truthlens.lab.export.split_graph import split_folder, split_graph
from truthlens.process.model_store import BUNDLED_MODEL
from truthlens.process.settings import models_folder

INPUTS = ("input_ids", "attention_mask", "token_type_ids", "features")


def whole_graph(folder: Path, *, inputs: tuple[str, ...] = INPUTS) -> Path:
    """An ONNX file with these inputs."""
    write_graph(folder / "model.onnx", word_tokenizer(), odds={"Zorblax": 3.25}, inputs=inputs)
    return folder / "model.onnx"


def window(*ids: int, feature: float | None = 0.0) -> Window:
    """A window, all of it answer; ``feature`` is the first of each token."""
    features = None
    if feature is not None:
        features = np.zeros((len(ids), 3), dtype=np.float32)
        features[:, 0] = feature
    return Window(
        np.array(ids, dtype=np.int64), np.zeros(len(ids), dtype=np.int64), slice(0, len(ids)), 0, features
    )


def test_body_and_head_give_what_the_whole_gives(tmp_path: Path) -> None:
    """Run in turn, to the bit, alone and in a batch; the body need not know the features."""
    file = whole_graph(tmp_path)
    split_graph(file, tmp_path)
    body, head = tmp_path / BODY_NAME, tmp_path / HEAD_NAME
    whole, parted, batched = (
        OnnxModel(file), OnnxModel(body, head=head), OnnxModel(body, head=head, budget_tokens=64)
    )  # fmt: skip
    assert isinstance(parted, PartedModel)
    assert (parted.parted, whole.parted, batched.parted) == (True, False, False)
    assert parted.inputs == whole.inputs == set(INPUTS)
    states = parted.states(window(1, 4, 2, feature=None))
    for feature in (0.0, 0.7):
        asked = window(1, 4, 2, feature=feature)
        (expected,) = whole.log_odds([asked])
        assert parted.odds_of(asked, states).tolist() == expected.tolist()
        assert parted.log_odds([asked, asked])[1].tolist() == expected.tolist()
        assert batched.log_odds([asked, window(1)])[0].tolist() == expected.tolist()


def test_each_file_carries_only_what_it_reads(tmp_path: Path) -> None:
    """The body takes everything but the features; the weights lie in one of both."""
    split_graph(whole_graph(tmp_path), tmp_path)
    body, head = (onnx.load(str(tmp_path / name)).graph for name in (BODY_NAME, HEAD_NAME))
    assert [value.name for value in body.input] == list(INPUTS[:-1])
    assert {value.name for value in head.input} == {"features", *(value.name for value in body.output)}
    assert [weights.name for weights in head.initializer] == ["pick"]
    assert "table" in {weights.name for weights in body.initializer}


def test_a_folder_is_cut_with_its_manifest(tmp_path: Path) -> None:
    """The two files take the place of the one, listed with their digests; all else in the manifest stays."""
    folder = write_encoder(tmp_path / "tiny", inputs=INPUTS)
    before = load_manifest(folder)
    split_folder(folder)
    after = load_manifest(folder)
    assert sorted(after.files) == [BODY_NAME, HEAD_NAME]
    assert not (folder / "model.onnx").exists()
    verify_files(folder, after.files)
    assert after.model_copy(update={"files": before.files}) == before
    with pytest.raises(ModelError, match=r"has no model\.onnx to cut"):
        split_folder(folder)


def test_a_graph_without_features_stays_whole(tmp_path: Path) -> None:
    """There is no head to cut off, and nothing is changed."""
    folder = write_encoder(tmp_path / "tiny")
    before = sorted((file.name, file.read_bytes()) for file in folder.iterdir())
    with pytest.raises(ModelError, match="makes no logits of features"):
        split_folder(folder)
    assert sorted((file.name, file.read_bytes()) for file in folder.iterdir()) == before


def test_a_graph_within_a_node_is_refused(tmp_path: Path) -> None:
    """What an inner graph reads is not seen from outside, so the part would not run."""
    inner = helper.make_graph(
        [helper.make_node("Identity", ["early"], ["inner"])],
        "inner",
        [],
        [helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)],
    )
    nodes = [
        helper.make_node("Identity", ["given"], ["early"]),
        helper.make_node("Cast", ["features"], ["sure"], to=TensorProto.BOOL),
        helper.make_node("If", ["sure"], ["logits"], then_branch=inner, else_branch=inner),
    ]
    outer = helper.make_graph(
        nodes,
        "outer",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("given", "features")],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1])],
    )
    file = tmp_path / "model.onnx"
    onnx.save(helper.make_model(outer, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(file))
    with pytest.raises(ModelError, match="graphs within it"):
        split_graph(file, tmp_path)


def test_the_bundled_model_is_served_in_two_parts() -> None:
    """Its windows' states are made once, and either way gives the same log-odds to the bit."""
    folder = models_folder() / BUNDLED_MODEL
    manifest = load_manifest(folder)
    model = load_model(folder, manifest=manifest)
    assert isinstance(model, OnnxModel)
    assert model.parted
    windows = fixture_windows(load_tokenizer(folder), manifest.input)
    assert windows[0].features is not None
    assert windows[0].features.shape[1] == FEATURE_COUNT
    for one, odds in zip(windows, model.log_odds(windows), strict=True):
        assert model.odds_of(one, model.states(one)).tolist() == odds.tolist()
