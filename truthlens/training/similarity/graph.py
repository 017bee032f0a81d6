"""Define the sentence encoder as it is exported: token ids to a vector of length 1, mostly in int8.

The word and position embeddings are kept as int8 with one scale a row. ``round_products`` then makes the
matrix products int8: weights with one scale an output channel, activations with one a text token. One scale
for a whole batch, which is what the usual dynamic rounding takes, would let a text's vector depend on the
other texts of the batch, and doubles the error. Before that the inputs of the products are scaled channel by
channel and their weights the other way (SmoothQuant; Xiao et al., 2023), which halves it. Encoders of BERT
layout alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from torch import Tensor, nn

_MASKED = -10_000.0
_STEPS = 127.0
_PRODUCTS = ("joint", "attended", "into", "out")

Reach = Mapping[str, Tensor]
"""Per input of a layer's products (``joint``, ``attended``, ``into``, ``out``) its channels' highest absolute values."""


class SentenceGraph(nn.Module):
    """Token ids in, unit vectors out.

    Args:
        encoder: a ``transformers`` encoder of BERT layout; its weights are copied.
        max_tokens: longest text, in tokens.
        reach: per layer how far the inputs of its products reach; left out, nothing is rescaled.
    """

    def __init__(self, encoder: Any, *, max_tokens: int, reach: Sequence[Reach] | None = None) -> None:
        super().__init__()
        embeddings = encoder.embeddings
        heads = encoder.config.num_attention_heads
        places = (
            embeddings.position_embeddings.weight[:max_tokens] + embeddings.token_type_embeddings.weight[0]
        )
        self.words = _Table(embeddings.word_embeddings.weight)
        self.places = _Table(places)
        self.norm = embeddings.LayerNorm
        self.layers = nn.ModuleList(_Layer(layer, heads=heads) for layer in encoder.encoder.layer)
        for layer, found in zip(self.layers, reach or (), strict=bool(reach)):
            assert isinstance(layer, _Layer)
            layer.rescale(found)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the vectors, shape (batch, width), each of length 1.

        Args:
            input_ids: shape (batch, tokens).
            attention_mask: shape (batch, tokens), 1 for tokens and 0 for padding; a 1 in every row.
        """
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        states = self.norm(self.words(input_ids) + self.places(places))
        present = attention_mask.to(states.dtype)
        mask = ((1.0 - present) * _MASKED)[:, None, None, :]
        for layer in self.layers:
            states = layer(states, mask)
        return pool(states, present)


def pool(states: Tensor, present: Tensor) -> Tensor:
    """Return the mean of the present tokens' states, shape (batch, width), scaled to length 1."""
    weights = present[:, :, None]
    mean = (states * weights).sum(dim=1) / weights.sum(dim=1)
    result: Tensor = mean / mean.pow(2).sum(dim=-1, keepdim=True).clamp(min=1e-12).sqrt()
    return result


def find_reach(graph: SentenceGraph, inputs: Sequence[Tensor]) -> list[Reach]:
    """Return the reach of each layer's activations in an unscaled ``graph`` over ``inputs``."""
    highest: list[dict[str, Tensor]] = [{} for _ in graph.layers]

    def watch(number: int, name: str) -> Any:
        def hook(_module: nn.Module, given: tuple[Tensor, ...], _result: Tensor) -> None:
            found = given[0].detach().abs().amax(dim=(0, 1))
            known = highest[number].get(name)
            highest[number][name] = found if known is None else torch.maximum(known, found)

        return hook

    handles = [
        getattr(layer, name).register_forward_hook(watch(number, name))
        for number, layer in enumerate(graph.layers)
        for name in _PRODUCTS
    ]
    try:
        with torch.no_grad():
            for ids in inputs:
                graph(ids, torch.ones_like(ids))
    finally:
        for handle in handles:
            handle.remove()
    return list(highest)


class _Table(nn.Module):
    """Rows looked up by number, kept as int8 with one scale a row."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        rows = weight.detach()
        scale = rows.abs().amax(dim=1, keepdim=True).clamp(min=1e-9) / _STEPS
        self.rows: Tensor
        self.scale: Tensor
        self.register_buffer("rows", torch.round(rows / scale).to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, numbers: Tensor) -> Tensor:
        return self.rows[numbers].to(torch.float32) * self.scale[numbers]


class _Layer(nn.Module):
    """One BERT layer; one product makes query, key and value of all heads."""

    def __init__(self, layer: Any, *, heads: int) -> None:
        super().__init__()
        own, output = layer.attention.self, layer.attention.output
        width = own.query.out_features
        self.heads = heads
        self.head_width = width // heads
        scale = self.head_width**-0.5
        self.joint = _linear(
            torch.cat([own.query.weight * scale, own.key.weight, own.value.weight]),
            torch.cat([own.query.bias * scale, own.key.bias, own.value.bias]),
        )
        self.attended = _linear(output.dense.weight, output.dense.bias)
        self.attended_norm = output.LayerNorm
        self.into = _linear(layer.intermediate.dense.weight, layer.intermediate.dense.bias)
        self.activation = layer.intermediate.intermediate_act_fn
        self.out = _linear(layer.output.dense.weight, layer.output.dense.bias)
        self.norm = layer.output.LayerNorm
        self.joint_shrink, self.into_shrink, self.out_shrink = (
            nn.Parameter(torch.ones(size), requires_grad=False)
            for size in (width, width, self.into.out_features)
        )

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the new states, shape (batch, tokens, width).

        ``mask`` is additive, shape (batch, 1, 1, tokens).
        """
        batch, tokens, width = states.shape
        joint = self.joint(states * self.joint_shrink)
        split = joint.reshape(batch, tokens, 3 * self.heads, self.head_width).permute(0, 2, 1, 3)
        query, key, value = split.split(self.heads, dim=1)
        weights = torch.softmax(torch.matmul(query, key.transpose(-1, -2)) + mask, dim=-1)
        mixed = torch.matmul(weights, value).permute(0, 2, 1, 3).reshape(batch, tokens, width)
        states = self.attended_norm(self.attended(mixed) + states)
        hidden = self.activation(self.into(states * self.into_shrink))
        result: Tensor = self.norm(self.out(hidden * self.out_shrink) + states)
        return result

    def rescale(self, reach: Reach) -> None:
        """Rescale channels so that inputs and weights share the spread: same function, smaller error."""
        with torch.no_grad():
            for name, shrink in (
                ("joint", self.joint_shrink),
                ("into", self.into_shrink),
                ("out", self.out_shrink),
            ):
                shrink.copy_(1.0 / _grow(getattr(self, name), reach[name]))
            # What the heads give is a weighted mean of values, so these can take the factor themselves.
            values = 1.0 / _grow(self.attended, reach["attended"])
            width = len(values)
            self.joint.weight[-width:] *= values[:, None]
            self.joint.bias[-width:] *= values


def _grow(linear: nn.Linear, reach: Tensor) -> Tensor:
    """Multiply the weights' columns so that they and the inputs lose the same by rounding; by how much."""
    own = linear.weight.abs().amax(dim=0)
    factor = (reach.clamp(min=1e-3) / own.clamp(min=1e-3)).sqrt()
    linear.weight *= factor
    return factor


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    linear = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
    return linear


def round_products(model: onnx.ModelProto) -> onnx.ModelProto:
    """Round products of activations and constant weights in ``model`` to int8; others stay as they are."""
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes: list[onnx.NodeProto] = []
    added = [
        _constant("round/steps", np.float32(_STEPS)),
        _constant("round/least", np.float32(1e-9)),
        _constant("round/one", np.float32(1.0)),
        _constant("round/zero", np.uint8(128)),
    ]
    for node in model.graph.node:
        if node.op_type != "MatMul" or node.input[1] not in known:
            nodes.append(node)
            continue
        weight = numpy_helper.to_array(known.pop(node.input[1])).astype(np.float32)
        scale = np.maximum(np.abs(weight).max(axis=0), 1e-9) / _STEPS
        added += [
            _constant(f"{node.name}/weight", np.round(weight / scale).astype(np.int8)),
            # The activations' own division by 127 is done here once and not for every token.
            _constant(f"{node.name}/scale", (scale / _STEPS).astype(np.float32)),
        ]
        nodes += _integer_product(node.name, node.input[0], node.output[0])
    graph = helper.make_graph(
        nodes, "sentence encoder", model.graph.input, model.graph.output, [*known.values(), *added]
    )
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def _integer_product(name: str, states: str, result: str) -> list[onnx.NodeProto]:
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
    made.append(node("MatMulInteger", at("rounded"), at("weight"), "round/zero", output=at("whole")))
    made.append(node("Cast", at("whole"), output=at("product"), to=onnx.TensorProto.FLOAT))
    made.append(node("Mul", at("product"), at("scale"), output=at("scaled")))
    made.append(node("Mul", at("scaled"), at("reach"), output=result))
    return made


def _constant(name: str, value: NDArray[Any] | np.generic) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(value), name)
