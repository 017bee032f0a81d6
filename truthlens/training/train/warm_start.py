"""Read the weights of an exported model folder back into a classifier, so that a training can go on from it.

The exported file holds int8 weights with their scales, in another layout (``export/graph.py``); what comes back is
the trained module within the rounding. Only folders that this project exported can be read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper

from truthlens.core.errors import ModelError
from truthlens.detection.models.loading import BODY_NAME
from truthlens.training.train.model import TokenClassifier

HEAD_NAME = "head.onnx"
_Weights = dict[str, NDArray[Any]]


def load_exported(model: TokenClassifier, folder: Path) -> None:
    """Copy the weights of ``folder`` (``body.onnx`` and ``head.onnx``) into ``model``, in place.

    Raises:
        ModelError: the folder holds no such files, or they are not of this architecture.
    """
    paths = [folder / BODY_NAME, folder / HEAD_NAME]
    if not all(path.is_file() for path in paths):
        raise ModelError(f"{folder} needs {BODY_NAME} and {HEAD_NAME} of a model that `truthlens train` made")
    body, head = (_Reader(onnx.load(str(path))) for path in paths)
    try:
        with torch.no_grad():
            _fill(model, body, head)
    except (KeyError, RuntimeError, IndexError) as error:
        raise ModelError(f"{folder} is not of this architecture: {error}") from error


class _Reader:
    """The tensors of an ONNX file by name, and the weights of its matrix products in order."""

    def __init__(self, loaded: ModelProto) -> None:
        self.held: _Weights = {each.name: numpy_helper.to_array(each) for each in loaded.graph.initializer}
        named = {name.removesuffix("_quantized") for name, held in self.held.items() if held.ndim == 2}
        # The exporter numbers them as they were traced; the optimizer may reorder the nodes.
        self.products = sorted(
            (name for name in named if name.startswith("onnx::MatMul_")),
            key=lambda name: int(name.rpartition("_")[2]),
        )

    def bias(self, name: str) -> torch.Tensor:
        return torch.from_numpy(self.held[name].astype(np.float32))

    def weight(self, name: str) -> torch.Tensor:
        """Return a tensor in float32, shape as it is stored."""
        if name in self.held:
            return self.bias(name)
        values = self.held[f"{name}_quantized"].astype(np.float32)
        zero = self.held[f"{name}_zero_point"].astype(np.float32)
        return torch.from_numpy((values - zero) * self.held[f"{name}_scale"].astype(np.float32))


def _fill(model: TokenClassifier, body: _Reader, head: _Reader) -> None:
    encoder: Any = model.encoder
    for name in ("word_embeddings", "token_type_embeddings", "position_embeddings"):
        getattr(encoder.embeddings, name).weight.copy_(body.weight(f"embeddings.{name}.weight"))
    _norm(encoder.embeddings.LayerNorm, body, "embeddings.LayerNorm")
    # Of each layer in order: query, key and value, attention's output, into, out, and the outlying two.
    by_shape = [
        name for name in body.products if body.weight(name).shape != model.comparison.match.weight.T.shape
    ]
    compared = [name for name in body.products if name not in by_shape]
    each = len(by_shape) // len(encoder.encoder.layer)
    for number, layer in enumerate(encoder.encoder.layer):
        _layer(layer, body, f"layers.{number}", by_shape[number * each : (number + 1) * each], encoder.config)
    match, difference, product = (body.weight(name).T for name in compared)
    model.comparison.match.weight.copy_(match)
    model.comparison.difference.weight.copy_(difference)
    model.comparison.difference.bias.copy_(body.bias("comparison.difference.bias"))
    model.comparison.product.weight.copy_(product)
    linears: list[Any] = [model.feature_mlp[0], model.head[1], model.head[3]]
    biases = ("feature_mlp.0.bias", "head.1.bias", "head.3.bias")
    for linear, name, bias in zip(linears, head.products, biases, strict=True):
        weight = head.weight(name).T
        # A model of fewer features is gone on from as if the further ones had told it nothing.
        linear.weight.zero_()
        linear.weight[:, : weight.shape[1]].copy_(weight)
        linear.bias.copy_(head.bias(bias))


def _layer(layer: Any, body: _Reader, name: str, products: list[str], config: Any) -> None:
    width = config.hidden_size
    scale = (width // config.num_attention_heads) ** 0.5
    kinds = ("query", "key_value", "attention_output", "feed_forward.into", "feed_forward.out")
    full: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    for kind, product in zip(kinds, products, strict=False):
        shrink = body.bias(f"{name}.{kind}.shrink")
        full[kind] = (body.weight(product) * shrink[:, None]).T, body.bias(f"{name}.{kind}.linear.bias")
    apart_into, apart_out = (body.weight(product).T for product in products[5:])
    attention = layer.attention.self
    attention.query.weight.copy_(full["query"][0] * scale)
    attention.query.bias.copy_(full["query"][1] * scale)
    for part, own in ((attention.key, slice(0, width)), (attention.value, slice(width, None))):
        part.weight.copy_(full["key_value"][0][own])
        part.bias.copy_(full["key_value"][1][own])
    _linear(layer.attention.output.dense, *full["attention_output"])
    _norm(layer.attention.output.LayerNorm, body, f"{name}.norm")
    # The order of the hidden channels means nothing, so the outlying ones come last.
    into, into_bias = full["feed_forward.into"]
    apart_bias = body.bias(f"{name}.feed_forward.outlying_into.bias")
    _linear(layer.intermediate.dense, torch.cat([into, apart_into]), torch.cat([into_bias, apart_bias]))
    out, out_bias = full["feed_forward.out"]
    _linear(layer.output.dense, torch.cat([out, apart_out], dim=1), out_bias)
    _norm(layer.output.LayerNorm, body, f"{name}.feed_forward.norm")


def _linear(linear: Any, weight: torch.Tensor, bias: torch.Tensor) -> None:
    linear.weight.copy_(weight)
    linear.bias.copy_(bias)


def _norm(norm: Any, body: _Reader, name: str) -> None:
    norm.weight.copy_(body.bias(f"{name}.weight"))
    norm.bias.copy_(body.bias(f"{name}.bias"))
