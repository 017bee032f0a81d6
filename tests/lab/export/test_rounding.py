"""Rounding to int8: what smoothing computes is the same, and rounds better where few channels reach far."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from truthlens.lab.export.rounding import channel_reaches, round_products, smooth_products

_CHANNELS = 32


def graph(weights: list[NDArray[np.float32]]) -> onnx.ModelProto:
    """A graph of products of one input, (rows, 32), with each of the weights."""
    nodes = [
        helper.make_node("MatMul", ["x", f"w{place}"], [f"y{place}"], name=f"p{place}")
        for place in range(len(weights))
    ]
    kind = onnx.TensorProto.FLOAT
    made = helper.make_graph(
        nodes,
        "products",
        [helper.make_tensor_value_info("x", kind, ["rows", _CHANNELS])],
        [helper.make_tensor_value_info(node.output[0], kind, None) for node in nodes],
        [numpy_helper.from_array(weight, f"w{place}") for place, weight in enumerate(weights)],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(model: onnx.ModelProto, states: NDArray[np.float32]) -> list[NDArray[Any]]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[NDArray[Any]] = session.run(None, {"x": states})
    return found


def test_smoothing_computes_the_same_and_rounds_better(tmp_path: Path) -> None:
    """One channel reaches a hundred times as far as the others: without smoothing these round to next to nothing."""
    dice = np.random.default_rng(1)
    weights = [dice.normal(size=(_CHANNELS, 8)).astype(np.float32) for _ in range(2)]
    states = dice.normal(size=(64, _CHANNELS)).astype(np.float32)
    states[:, 3] *= 100
    model = graph(weights)
    expected = run(model, states)
    reaches = channel_reaches(
        model, [{"x": states[:20]}, {"x": states[20:]}], scratch=tmp_path / "probe.onnx"
    )
    assert np.array_equal(reaches["x"], np.abs(states).max(axis=0))
    smooth = smooth_products(model, reaches)
    for found, wanted in zip(run(smooth, states), expected, strict=True):
        assert np.allclose(found, wanted, rtol=1e-4, atol=1e-3)

    def error(rounded: onnx.ModelProto) -> float:
        pairs = zip(run(rounded, states), expected, strict=True)
        return float(np.mean([np.abs(found - wanted).mean() for found, wanted in pairs]))

    assert error(round_products(smooth)) < 0.5 * error(round_products(model))
