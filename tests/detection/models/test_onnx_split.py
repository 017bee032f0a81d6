"""Tests of ``truthlens.detection.models.onnx_split`` and of the model in two parts that is made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from tests.fakes.tiny_encoder import word_tokenizer, write_graph
from truthlens.core.errors import DetectorError
from truthlens.detection.encoder.inputs.windows import Window
from truthlens.detection.models.onnx_runtime import OnnxModel
from truthlens.detection.models.onnx_split import part_graph
from truthlens.detection.models.runtime import PartedModel

INPUTS = ("input_ids", "attention_mask", "token_type_ids", "features")


def graph(folder: Path, *, inputs: tuple[str, ...] = INPUTS) -> Path:
    """An ONNX file with these inputs."""
    file = folder / "model.onnx"
    write_graph(file, word_tokenizer(), odds={"Zorblax": 3.25}, inputs=inputs)
    return file


def window(*ids: int, feature: float | None = 0.0) -> Window:
    """A window, all of it answer; ``feature`` is the first of each token."""
    features = None
    if feature is not None:
        features = np.zeros((len(ids), 3), dtype=np.float32)
        features[:, 0] = feature
    return Window(
        np.array(ids, dtype=np.int64), np.zeros(len(ids), dtype=np.int64), slice(0, len(ids)), 0, features
    )


def test_both_parts_give_what_the_whole_gives(tmp_path: Path) -> None:
    """Run in turn, to the bit; the costly part need not know the features."""
    file = graph(tmp_path)
    parted, whole = OnnxModel(file), OnnxModel(file, budget_tokens=64)
    assert isinstance(parted, PartedModel)
    assert (parted.parted, whole.parted) == (True, False)
    assert parted.inputs == whole.inputs == set(INPUTS)
    states = parted.states(window(1, 4, 2, feature=None))
    for feature in (0.0, 0.7):
        asked = window(1, 4, 2, feature=feature)
        (expected,) = whole.log_odds([asked])
        assert parted.odds_of(asked, states).tolist() == expected.tolist()
        assert parted.log_odds([asked, asked])[1].tolist() == expected.tolist()
    with pytest.raises(DetectorError, match="wants features"):
        parted.log_odds([window(1, feature=None)])


def test_the_parts_are_whole_files_of_their_own(tmp_path: Path) -> None:
    """Each takes its own inputs and carries only the weights that it reads."""
    parts = part_graph(graph(tmp_path).read_bytes(), late_input="features", output="logits")
    assert parts is not None
    early = onnx.load_model_from_string(parts.early)
    late = onnx.load_model_from_string(parts.late(dict.fromkeys(parts.border, "tensor(float)")))
    assert [node.name for node in early.graph.input] == list(INPUTS[:-1])
    assert {node.name for node in late.graph.input} == {"features", *parts.border}
    assert {weights.name for weights in late.graph.initializer} == {"pick"}
    assert "table" in {weights.name for weights in early.graph.initializer}


def test_a_type_that_cannot_be_passed_on_is_an_error(tmp_path: Path) -> None:
    """A border of strings or sequences has no arrays to keep."""
    parts = part_graph(graph(tmp_path).read_bytes(), late_input="features", output="logits")
    assert parts is not None
    with pytest.raises(ValueError, match=r"seq\(tensor\(float\)\)"):
        parts.late(dict.fromkeys(parts.border, "seq(tensor(float))"))


def test_a_graph_without_features_stays_whole(tmp_path: Path) -> None:
    """There is nothing to cut at."""
    file = graph(tmp_path, inputs=INPUTS[:-1])
    assert part_graph(file.read_bytes(), late_input="features", output="logits") is None
    assert part_graph(file.read_bytes(), late_input="input_ids", output="odds") is None
    assert not OnnxModel(file).parted


def test_weights_outside_of_the_file_leave_it_whole(tmp_path: Path) -> None:
    """Bytes alone would not find them."""
    file = graph(tmp_path)
    model = onnx.load(str(file))
    external_data_helper.convert_model_to_external_data(model, location="weights", size_threshold=0)
    onnx.save_model(model, str(file))
    assert part_graph(file.read_bytes(), late_input="features", output="logits") is None


def test_a_graph_within_a_node_leaves_it_whole() -> None:
    """Names that an inner graph reads are not seen from outside."""
    inner = helper.make_graph(
        [helper.make_node("Identity", ["features"], ["inner"])],
        "inner",
        [],
        [helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)],
    )
    node = helper.make_node("If", ["sure"], ["chosen"], then_branch=inner, else_branch=inner)
    outer = helper.make_graph(
        [node, helper.make_node("Add", ["chosen", "features"], ["logits"])],
        "outer",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1])],
        [numpy_helper.from_array(np.array([True]), "sure")],
    )
    model = helper.make_model(outer).SerializeToString()
    assert part_graph(model, late_input="features", output="logits") is None


@given(data=st.binary(max_size=200))
def test_bytes_that_are_no_model_are_left_alone(data: bytes) -> None:
    """Whatever the bytes, they are not cut, and nothing is raised."""
    assert part_graph(data, late_input="features", output="logits") is None


@given(cut=st.integers(0, 2000))
def test_a_truncated_model_is_left_alone(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file that ends too early is not cut."""
    whole = graph(tmp_path_factory.mktemp("truncated")).read_bytes()
    assert part_graph(whole[: min(cut, len(whole) // 2)], late_input="features", output="logits") is None
