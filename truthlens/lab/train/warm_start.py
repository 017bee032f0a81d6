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
from truthlens.detection.detectors.encoder.loading import BODY_NAME, HEAD_NAME
from truthlens.lab.train.model import TokenClassifier

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
    """The tensors of an ONNX file by name, and the weights of its matrix products by the module that they are of."""

    def __init__(self, loaded: ModelProto) -> None:
        self.held: _Weights = {each.name: numpy_helper.to_array(each) for each in loaded.graph.initializer}
        self.products: dict[str, torch.Tensor] = {}
        for node in loaded.graph.node:
            # "/layers.0/query/linear/MatMul_quant"; products of two activations have no weight.
            module, _, kind = node.name.strip("/").rpartition("/")
            weight = self._weight(node.input[1]) if kind in {"MatMul", "MatMul_quant"} else None
            if weight is not None:
                self.products[module.replace("/", ".")] = weight

    def bias(self, name: str) -> torch.Tensor:
        return torch.from_numpy(self.held[name].astype(np.float32))

    def weight(self, name: str) -> torch.Tensor:
        """Return a tensor in float32, shape as it is stored."""
        found = self._weight(name)
        if found is None:
            raise KeyError(name)
        return found

    def _weight(self, name: str) -> torch.Tensor | None:
        name = name.removesuffix("_quantized")
        if name in self.held:
            return self.bias(name)
        if f"{name}_quantized" not in self.held:
            return None
        values = self.held[f"{name}_quantized"].astype(np.float32)
        zero = self.held[f"{name}_zero_point"].astype(np.float32)
        return torch.from_numpy((values - zero) * self.held[f"{name}_scale"].astype(np.float32))


def _fill(model: TokenClassifier, body: _Reader, head: _Reader) -> None:
    encoder: Any = model.encoder
    for name in ("word_embeddings", "token_type_embeddings", "position_embeddings"):
        getattr(encoder.embeddings, name).weight.copy_(body.weight(f"embeddings.{name}.weight"))
    _norm(encoder.embeddings.LayerNorm, body, "embeddings.LayerNorm")
    for number, layer in enumerate(encoder.encoder.layer):
        _layer(layer, body, f"layers.{number}", encoder.config)
    for name in ("match", "difference", "product"):
        getattr(model.comparison, name).weight.copy_(body.products[f"comparison.{name}"].T)
    model.comparison.difference.bias.copy_(body.bias("comparison.difference.bias"))
    linears: dict[str, Any] = {
        "feature_mlp.0": model.feature_mlp[0], "head.1": model.head[1], "head.3": model.head[3],
    }  # fmt: skip
    for name, linear in linears.items():
        # The exporter names a part of a sequence by the sequence and by its own full name.
        weight = head.products[f"{name.rpartition('.')[0]}.{name}"].T
        if name == "feature_mlp.0":
            # A model of fewer features goes on as if the further ones had told it nothing.
            weight = torch.nn.functional.pad(weight, (0, max(0, linear.in_features - weight.shape[1])))
        _linear(linear, weight, head.bias(f"{name}.bias"))


def _layer(layer: Any, body: _Reader, name: str, config: Any) -> None:
    width = config.hidden_size
    scale = (width // config.num_attention_heads) ** 0.5

    def full(part: str) -> tuple[torch.Tensor, torch.Tensor]:
        shrink = body.bias(f"{name}.{part}.shrink")
        weight = body.products[f"{name}.{part}.linear"]
        return (weight * shrink[:, None]).T, body.bias(f"{name}.{part}.linear.bias")

    attention = layer.attention.self
    query, query_bias = full("query")
    _linear(attention.query, query * scale, query_bias * scale)
    key_value, bias = full("key_value")
    for part, own in ((attention.key, slice(0, width)), (attention.value, slice(width, None))):
        _linear(part, key_value[own], bias[own])
    _linear(layer.attention.output.dense, *full("attention_output"))
    _norm(layer.attention.output.LayerNorm, body, f"{name}.norm")
    # The order of the hidden channels means nothing, so the outlying ones come last.
    into, into_bias = full("feed_forward.into")
    apart_into, apart_out = (
        body.products[f"{name}.feed_forward.outlying_{way}"].T for way in ("into", "out")
    )
    apart_bias = body.bias(f"{name}.feed_forward.outlying_into.bias")
    _linear(layer.intermediate.dense, torch.cat([into, apart_into]), torch.cat([into_bias, apart_bias]))
    out, out_bias = full("feed_forward.out")
    _linear(layer.output.dense, torch.cat([out, apart_out], dim=1), out_bias)
    _norm(layer.output.LayerNorm, body, f"{name}.feed_forward.norm")


def _linear(linear: Any, weight: torch.Tensor, bias: torch.Tensor) -> None:
    linear.weight.copy_(weight)
    linear.bias.copy_(bias)


def _norm(norm: Any, body: _Reader, name: str) -> None:
    norm.weight.copy_(body.bias(f"{name}.weight"))
    norm.bias.copy_(body.bias(f"{name}.bias"))
