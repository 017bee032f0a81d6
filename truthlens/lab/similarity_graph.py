"""Define the sentence encoder as it is exported: token ids to a vector of length 1, mostly in int8.

The word and position embeddings are kept as int8 with one scale a row, and ``export.rounding`` makes the
matrix products int8. Before that the inputs of the products are scaled channel by channel and their weights
the other way (SmoothQuant; Xiao et al., 2023), which halves the error. Encoders of BERT layout alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
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
        self.words = Int8Table(embeddings.word_embeddings.weight)
        self.places = Int8Table(places)
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


class Int8Table(nn.Module):
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
        """Return the rows of ``numbers`` in float32."""
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
