"""Round exported graphs to int8: matrix products token by token, and the tables of word embeddings row by row.

Weights get one scale an output channel, activations one a token. One scale for a whole batch, which is what the usual
dynamic rounding takes, would let a text's result depend on the other texts of the batch, and doubles the error.
``smooth_products`` halves it again where few channels of the activations reach far beyond the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import helper, numpy_helper

_STEPS = 127.0


def round_products(model: onnx.ModelProto) -> onnx.ModelProto:
    """Round products of activations and constant weights in ``model`` to int8; others stay as they are."""
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    rounded: set[str] = set()
    nodes: list[onnx.NodeProto] = []
    added = [
        _constant("round/steps", np.float32(_STEPS)),
        _constant("round/least", np.float32(1e-9)),
        _constant("round/one", np.float32(1.0)),
        _constant("round/zero", np.uint8(128)),
    ]
    for node in model.graph.node:
        name = node.input[1] if node.op_type == "MatMul" else ""
        if name not in known:
            nodes.append(node)
            continue
        if name not in rounded:  # a weight may stand in several products
            rounded.add(name)
            weight = numpy_helper.to_array(known[name]).astype(np.float32)
            scale = np.maximum(np.abs(weight).max(axis=0), 1e-9) / _STEPS
            added += [
                _constant(f"{name}/weight", np.round(weight / scale).astype(np.int8)),
                # The activations' own division by 127 is done here once and not for every token.
                _constant(f"{name}/scale", (scale / _STEPS).astype(np.float32)),
            ]
        nodes += _integer_product(node.name, node.input[0], name, node.output[0])
    return _rebuilt(model, nodes, [*known.values(), *added])


def channel_reaches(
    model: onnx.ModelProto, feeds: Iterable[Mapping[str, NDArray[Any]]], *, scratch: Path
) -> dict[str, NDArray[np.float32]]:
    """Return the highest absolute value of each channel of what products with constant weights take, over some inputs.

    Args:
        model: in single precision; the activations' channels are their last axis.
        feeds: inputs of the graph, by name.
        scratch: a file that may be written.
    """
    taken = list(dict.fromkeys(node.input[0] for node in _products(model)))
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.extend(
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in taken
    )
    onnx.save(probe, str(scratch))
    session = ort.InferenceSession(str(scratch), providers=["CPUExecutionProvider"])
    reaches: dict[str, NDArray[np.float32]] = {}
    for feed in feeds:
        for name, states in zip(taken, session.run(taken, dict(feed)), strict=True):
            highest = np.abs(states).reshape(-1, states.shape[-1]).max(axis=0)
            reaches[name] = np.maximum(reaches.get(name, highest), highest)
    return reaches


def smooth_products(
    model: onnx.ModelProto, reaches: Mapping[str, NDArray[np.float32]], *, share: float = 0.5
) -> onnx.ModelProto:
    """Scale channels of activations down and the rows of the weights that they meet up, so that both round well (SmoothQuant, Xiao et al. 2022).

    Args:
        model: in single precision; what it computes stays the same.
        reaches: of ``channel_reaches``.
        share: of a channel's reach that the weights take over, 0..1.
    """
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    rows: dict[str, NDArray[np.float32]] = {}
    for node in _products(model):
        highest = np.abs(numpy_helper.to_array(known[node.input[1]])).max(axis=1)
        rows[node.input[0]] = np.maximum(rows.get(node.input[0], highest), highest)
    scales = {
        name: (np.maximum(reaches[name], 1e-5) ** share / np.maximum(highest, 1e-5) ** (1.0 - share)).astype(
            np.float32
        )
        for name, highest in rows.items()
    }
    added: dict[str, onnx.TensorProto] = {}
    nodes: list[onnx.NodeProto] = []
    made: set[str] = set()
    products = {node.output[0] for node in _products(model)}
    for node in model.graph.node:
        if node.output[0] in products:
            states, name = node.input
            scale, smooth = scales[states], f"{states}/smooth"
            if smooth not in made:
                made.add(smooth)
                added[f"{smooth}/by"] = _constant(f"{smooth}/by", 1.0 / scale)
                nodes.append(helper.make_node("Mul", [states, f"{smooth}/by"], [smooth], name=smooth))
            weight = f"{name}/{smooth}"  # one weight may stand behind several activations
            added[weight] = _constant(weight, numpy_helper.to_array(known[name]) * scale[:, None])
            nodes.append(helper.make_node("MatMul", [smooth, weight], [node.output[0]], name=node.name))
        else:
            nodes.append(node)
    return _rebuilt(model, nodes, [*known.values(), *added.values()])


def _products(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Return the products of activations and constant weights."""
    known = {tensor.name for tensor in model.graph.initializer}
    return [node for node in model.graph.node if node.op_type == "MatMul" and node.input[1] in known]


def round_tables(model: onnx.ModelProto) -> onnx.ModelProto:
    """Keep the tables in ``model`` whose rows token ids look up (word embeddings) as int8, with one scale a row."""
    tables = {tensor.name: tensor for tensor in model.graph.initializer if len(tensor.dims) == 2}
    nodes: list[onnx.NodeProto] = []
    added: dict[str, onnx.TensorProto] = {}
    for node in model.graph.node:
        name = node.input[0] if node.op_type == "Gather" and node.input[1] == "input_ids" else ""
        if name not in tables:
            nodes.append(node)
            continue
        rows = numpy_helper.to_array(tables[name]).astype(np.float32)
        scale = (np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-9) / _STEPS).astype(np.float32)
        for part, value in (("rows", np.round(rows / scale).astype(np.int8)), ("scale", scale)):
            added[f"{name}/{part}"] = _constant(f"{name}/{part}", value)
            found = f"{node.name}/{part}"
            nodes.append(helper.make_node("Gather", [f"{name}/{part}", node.input[1]], [found], name=found))
        at = f"{node.name}/float"
        nodes += [
            helper.make_node("Cast", [f"{node.name}/rows"], [at], name=at, to=onnx.TensorProto.FLOAT),
            helper.make_node("Mul", [at, f"{node.name}/scale"], [node.output[0]], name=f"{node.name}/scaled"),
        ]
    return _rebuilt(model, nodes, [*model.graph.initializer, *added.values()])


def _rebuilt(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], tensors: Sequence[onnx.TensorProto]
) -> onnx.ModelProto:
    """Return ``model`` with other nodes, and those of ``tensors`` that they read."""
    read = set(_read(nodes))
    graph = helper.make_graph(
        nodes,
        model.graph.name,
        model.graph.input,
        model.graph.output,
        [each for each in tensors if each.name in read],
    )
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def _read(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """Yield the names that ``nodes`` read, those of the graphs within them too."""
    for node in nodes:
        yield from node.input
        for attribute in node.attribute:
            yield from _read(attribute.g.node)


def _integer_product(name: str, states: str, weight: str, result: str) -> list[onnx.NodeProto]:
    def node(kind: str, *inputs: str, output: str, **settings: Any) -> onnx.NodeProto:
        return helper.make_node(kind, list(inputs), [output], name=f"{name}/{kind}/{len(made)}", **settings)

    made: list[onnx.NodeProto] = []
    at = f"{name}/".__add__
    made.append(node("Abs", states, output=at("absolute")))
    made.append(node("ReduceMax", at("absolute"), output=at("highest"), axes=[-1], keepdims=1))
    made.append(node("Max", at("highest"), "round/least", output=at("reach")))
    made.append(node("Div", "round/steps", at("reach"), output=at("inverse")))
    made.append(node("Mul", states, at("inverse"), output=at("stepped")))
    made.append(node("QuantizeLinear", at("stepped"), "round/one", "round/zero", output=at("rounded")))
    made.append(node("MatMulInteger", at("rounded"), f"{weight}/weight", "round/zero", output=at("whole")))
    made.append(node("Cast", at("whole"), output=at("product"), to=onnx.TensorProto.FLOAT))
    made.append(node("Mul", at("product"), f"{weight}/scale", output=at("scaled")))
    made.append(node("Mul", at("scaled"), at("reach"), output=result))
    return made


def _constant(name: str, value: NDArray[Any] | np.generic) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(value), name)
