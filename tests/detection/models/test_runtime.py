"""Tests of ``truthlens.detection.models.runtime`` and ``onnx_runtime``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.tiny_encoder import CALM, word_tokenizer, write_encoder, write_graph
from truthlens.core.errors import DetectorError, ModelError
from truthlens.detection.models.inputs.windows import Window
from truthlens.detection.models.onnx_runtime import OnnxModel
from truthlens.detection.models.runtime import batches, collate, cpu_quota, run_batched


def window(*ids: int, skip: int = 0, features: np.ndarray | None = None) -> Window:
    """A window whose answer tokens are all but the first ``skip``."""
    tokens = np.array(ids, dtype=np.int64)
    return Window(tokens, np.ones_like(tokens), slice(skip, len(ids)), 0, features)


@given(st.lists(st.integers(1, 600), max_size=40), st.integers(1, 2048))
def test_batches_hold_every_window_once_within_the_budget(lengths: list[int], budget: int) -> None:
    """Every index is in one batch; no batch of several exceeds the budget after padding."""
    found = list(batches(lengths, budget_tokens=budget))
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        longest = max(lengths[index] for index in batch)
        assert len(batch) == 1 or longest * len(batch) <= budget


def test_collate_pads_on_the_right() -> None:
    """Shorter windows are padded with masked zeros, features included."""
    features = np.ones((3, 2), dtype=np.float32)
    inputs = collate([window(7, 8, 9, features=features), window(5, features=features[:1])])
    assert inputs["input_ids"].tolist() == [[7, 8, 9], [5, 0, 0]]
    assert inputs["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert inputs["token_type_ids"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert inputs["features"][1].tolist() == [[1, 1], [0, 0], [0, 0]]


def test_log_odds_weigh_the_label_against_all_others() -> None:
    """With three labels, the log-odds are those of the one label against the sum of the others."""
    logits = np.array([[[1.0, 2.0, 0.5]]], dtype=np.float32)
    (found,) = run_batched([window(4)], lambda _: logits, label=2, budget_tokens=8, stop=lambda: False)
    p = np.exp(0.5) / np.exp(logits[0, 0]).sum()
    assert found[0] == pytest.approx(np.log(p / (1 - p)), rel=1e-5)


def test_results_come_in_the_order_of_the_windows() -> None:
    """Sorting by length does not show; only answer tokens are returned."""

    def echo(inputs: object) -> np.ndarray:
        assert isinstance(inputs, dict)
        ids = inputs["input_ids"].astype(np.float32)
        return np.stack([np.zeros_like(ids), ids], axis=-1)

    windows = [window(1, 2, 3, skip=1), window(4), window(5, 6, skip=1)]
    found = run_batched(windows, echo, label=1, budget_tokens=4, stop=lambda: False)
    assert [values.tolist() for values in found] == [[2, 3], [4], [6]]


def test_work_that_nobody_waits_for_is_given_up() -> None:
    """Once the stop is set, no further batch runs."""
    ran: list[int] = []

    def forward(_: object) -> np.ndarray:
        ran.append(1)
        return np.zeros((1, 1, 2), dtype=np.float32)

    with pytest.raises(DetectorError, match="deadline"):
        run_batched([window(1), window(2)], forward, label=1, budget_tokens=1, stop=lambda: bool(ran))
    assert ran == [1]


@pytest.mark.parametrize(
    ("logits", "label", "message"),
    [
        (np.array([[[0.0, np.nan]]]), 1, "not finite"),
        (np.array([[[0.0, np.inf]]]), 1, "not finite"),
        (np.array([[[0.0]]]), 0, "at least 2"),
        (np.array([[[0.0, 1.0]]]), 2, "at least 3"),
    ],
)
def test_a_model_that_gives_no_probability_is_an_error(logits: np.ndarray, label: int, message: str) -> None:
    """Broken output never becomes a score."""
    with pytest.raises(DetectorError, match=message):
        run_batched([window(1)], lambda _: logits, label=label, budget_tokens=1, stop=lambda: False)


def test_the_quota_is_at_least_one_core() -> None:
    """There is always a core to run on."""
    assert cpu_quota() >= 1


def test_an_onnx_model_gives_its_log_odds(tmp_path: Path) -> None:
    """The graph's logits come out as log-odds per answer token, whatever the batch."""
    folder = write_encoder(tmp_path / "tiny")
    suspicious = word_tokenizer().token_to_id("Zorblax")
    model = OnnxModel(folder / "model.onnx")
    found = model.log_odds([window(2, 1, suspicious, 3, skip=1), window(suspicious)])
    assert [values.tolist() for values in found] == [[CALM, 6.0, CALM], [6.0]]
    assert model.name == "onnx:model.onnx"


@pytest.mark.parametrize("inputs", [("input_ids",), ("input_ids", "attention_mask")])
def test_only_the_inputs_of_the_graph_are_fed(tmp_path: Path, inputs: tuple[str, ...]) -> None:
    """A graph without segment ids or mask runs as well."""
    folder = write_encoder(tmp_path / "tiny", inputs=inputs)
    (found,) = OnnxModel(folder / "model.onnx").log_odds([window(1)])
    assert found.tolist() == [CALM]


def test_features_reach_the_graph(tmp_path: Path) -> None:
    """The features of each token are added where the graph takes them."""
    folder = write_encoder(tmp_path / "tiny", inputs=("input_ids", "features"))
    features = np.array([[2.0, 0, 0], [0, 9.0, 0]], dtype=np.float32)
    (found,) = OnnxModel(folder / "model.onnx").log_odds([window(1, 1, features=features)])
    assert found.tolist() == [CALM + 2.0, CALM]


def test_missing_features_are_an_error(tmp_path: Path) -> None:
    """A graph that wants features gets no zeros in their place."""
    folder = write_encoder(tmp_path / "tiny", inputs=("input_ids", "features"))
    with pytest.raises(DetectorError, match="wants features"):
        OnnxModel(folder / "model.onnx").log_odds([window(1)])


def test_a_graph_with_unknown_inputs_is_refused(tmp_path: Path) -> None:
    """A graph that wants what no window carries is refused when it is loaded."""
    file = tmp_path / "model.onnx"
    write_graph(file, word_tokenizer(), odds={}, inputs=("input_ids", "position_ids"))
    with pytest.raises(ModelError, match="position_ids"):
        OnnxModel(file)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """What is no ONNX file is a model error that names the file."""
    file = tmp_path / "model.onnx"
    file.write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"model\.onnx: not a loadable ONNX model"):
        OnnxModel(file)


def test_a_head_of_another_body_is_refused(tmp_path: Path) -> None:
    """A head that does not take all that the body gives is a model error, and so is one that is not there."""
    folder = write_encoder(tmp_path / "tiny")
    other = write_encoder(tmp_path / "other", inputs=("input_ids", "features"))
    with pytest.raises(ModelError, match=r"model\.onnx does not go with model\.onnx; export the model again"):
        OnnxModel(folder / "model.onnx", head=other / "model.onnx")
    with pytest.raises(ModelError, match=r"head\.onnx: not a loadable ONNX model"):
        OnnxModel(folder / "model.onnx", head=folder / "head.onnx")
