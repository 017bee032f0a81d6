"""Define the classifier as it is exported: the same function as the trained module, for one CPU core.

The stock export builds (tokens, tokens) masks with NaN guards in every layer and keeps the scores of all
heads in memory at once; on one core that costs as much as all products of the int8 model. Here attention goes
head by head, one product makes query, key and value, the padding mask is a column of that product, and the
last layer is computed only from the first answer token on. One outlier takes most steps of a shared int8
scale, so the few hidden channels of the feed-forward parts with outlying activations have products of their
own, which stay fp32, and the inputs of the other products are scaled channel by channel, their weights the
other way (SmoothQuant; Xiao et al., 2023). Encoders of BERT layout alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from truthlens.core.errors import ModelError
from truthlens.lab.train.model import TokenClassifier, evidence_mask, unit_words

_MASKED = -10_000.0
FULL_PRECISION = ("outlying", "/comparison/", "/head/", "/feature_mlp/")
"""Parts of the names of nodes that must not be quantised: outlying channels, and small products of mixed inputs."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """How far the activations of one layer reach.

    ``outlying`` are the feed-forward channels that stay apart, shape (channels,). The others are the highest
    absolute values by channel: ``states`` of the layer's input, ``attended`` of what attention gives,
    ``between`` of the feed-forward part's input, each of shape (width,), and ``hidden`` of its hidden
    channels.
    """

    outlying: Tensor
    states: Tensor
    attended: Tensor
    between: Tensor
    hidden: Tensor


class ExportedClassifier(nn.Module):
    """A trained classifier, for export.

    Args:
        model: the classifier; its weights are copied where they are laid out in another way.
        ranges: per layer how far its activations reach; see ``find_ranges``.

    Raises:
        ModelError: its encoder is not of BERT layout.
    """

    def __init__(self, model: TokenClassifier, *, ranges: Sequence[Ranges]) -> None:
        super().__init__()
        encoder: Any = model.encoder
        if encoder.config.model_type != "bert":
            raise ModelError(f"the base is of type {encoder.config.model_type}; only bert can be exported")
        self.embeddings = encoder.embeddings
        heads = encoder.config.num_attention_heads
        self.layers = nn.ModuleList(
            _Layer(layer, heads=heads, ranges=found)
            for layer, found in zip(encoder.encoder.layer, ranges, strict=True)
        )
        self.feature_mlp = model.feature_mlp
        self.comparison = model.comparison
        self.head = model.head

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor, features: Tensor
    ) -> Tensor:
        """Return the logits, shape (batch, tokens, 2); zero before the first answer token of the batch.

        Answer tokens are those from the first token of type 1 on; without one, all tokens count.
        """
        states = self.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
        mask = ((1.0 - attention_mask.to(features.dtype)) * _MASKED)[:, :, None]
        for layer in list(self.layers)[:-1]:
            states = layer(states, states, mask)
        first = token_type_ids.argmax(dim=1).min()
        words = unit_words(self.embeddings.word_embeddings(input_ids))
        compared = self.comparison(
            states[:, first:], states, words[:, first:], words, evidence_mask(attention_mask, token_type_ids)
        )
        states = self.layers[-1](states[:, first:], states, mask)
        logits = self.head(torch.cat([states, self.feature_mlp(features[:, first:]), compared], dim=-1))
        before = torch.zeros_like(features[:, :first, :2])
        return torch.cat([before, logits], dim=1)


class _Layer(nn.Module):
    """One BERT layer; ``heads`` attention heads, computed one after another."""

    def __init__(self, layer: Any, *, heads: int, ranges: Ranges) -> None:
        super().__init__()
        attention = layer.attention.self
        width = attention.query.out_features
        self.width = width // heads
        scale = self.width**-0.5
        self.query = _Scaled(attention.query.weight * scale, attention.query.bias * scale, ranges.states)
        self.key_value = _Scaled(
            torch.cat([attention.key.weight, attention.value.weight]),
            torch.cat([attention.key.bias, attention.value.bias]),
            ranges.states,
        )
        output = layer.attention.output
        self.attention_output = _Scaled(output.dense.weight, output.dense.bias, ranges.attended)
        self.norm = output.LayerNorm
        self.feed_forward = _FeedForward(layer, ranges)

    def forward(self, asking: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """Return the new states, shape (batch, asking tokens, width), of the tokens ``asking``.

        ``mask`` is additive, shape (batch, tokens, 1).
        """
        queries = self.query(asking).split(self.width, dim=-1)
        both = self.key_value(states).split(self.width, dim=-1)
        keys, values = both[: len(queries)], both[len(queries) :]
        # One more column: query 1 times key mask adds the mask to every score within the same product.
        ones = torch.ones_like(queries[0][..., :1])
        heads = []
        for query, key, value in zip(queries, keys, values, strict=True):
            left, right = torch.cat([query, ones], dim=-1), torch.cat([key, mask], dim=-1)
            weights = torch.softmax(torch.matmul(left, right.transpose(-1, -2)), dim=-1)
            heads.append(torch.matmul(weights, value))
        attended = self.norm(self.attention_output(torch.cat(heads, dim=-1)) + asking)
        result: Tensor = self.feed_forward(attended)
        return result


class _FeedForward(nn.Module):
    """A layer's feed-forward part; the channels ``outlying`` are computed separately."""

    def __init__(self, layer: Any, ranges: Ranges) -> None:
        super().__init__()
        into, out = layer.intermediate.dense, layer.output.dense
        apart = torch.zeros(into.out_features, dtype=torch.bool)
        apart[ranges.outlying] = True
        self.into = _Scaled(into.weight[~apart], into.bias[~apart], ranges.between)
        self.out = _Scaled(out.weight[:, ~apart], out.bias, ranges.hidden[~apart])
        self.outlying_into = _copy(into.weight[apart], into.bias[apart])
        self.outlying_out = _copy(out.weight[:, apart], None)
        self.activation = layer.intermediate.intermediate_act_fn
        self.norm = layer.output.LayerNorm

    def forward(self, states: Tensor) -> Tensor:
        change = self.out(self.activation(self.into(states)))
        change = change + self.outlying_out(self.activation(self.outlying_into(states)))
        result: Tensor = self.norm(change + states)
        return result


class _Scaled(nn.Module):
    """A linear layer whose input is scaled by channel, and its weights inversely: the same function.

    ``reach`` is the highest absolute value of each input channel. Input and weights share the spread between
    channels evenly, so that neither needs most of its int8 steps for a few of them.
    """

    def __init__(self, weight: Tensor, bias: Tensor, reach: Tensor) -> None:
        super().__init__()
        own = weight.detach().abs().amax(dim=0)
        scale = (reach.clamp(min=1e-3) / own.clamp(min=1e-3)).sqrt()
        self.linear = _copy(weight * scale, bias)
        self.shrink: Tensor
        self.register_buffer("shrink", 1.0 / scale)

    def forward(self, states: Tensor) -> Tensor:
        result: Tensor = self.linear(states * self.shrink)
        return result


def _copy(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    with torch.no_grad():
        linear.weight.copy_(weight)
        if bias is not None:
            linear.bias.copy_(bias)
    return linear


def find_ranges(
    model: TokenClassifier, inputs: Sequence[tuple[Tensor, Tensor, Tensor, Tensor]], *, channels: int
) -> list[Ranges]:
    """Return the range of each layer's activations.

    Args:
        model: the classifier.
        inputs: arguments of its ``forward``; some dozens of windows.
        channels: feed-forward channels of a layer that stay apart: those with the highest activations.
    """
    encoder: Any = model.encoder
    highest: dict[tuple[int, str], Tensor] = {}

    def watch(number: int, name: str, *, output: bool = False) -> Any:
        def hook(_module: nn.Module, inputs: tuple[Tensor, ...], result: Tensor) -> None:
            found = (result if output else inputs[0]).detach().abs().amax(dim=(0, 1))
            key = (number, name)
            highest[key] = torch.maximum(highest[key], found) if key in highest else found

        return hook

    handles = []
    for number, layer in enumerate(encoder.encoder.layer):
        handles += [
            layer.attention.self.query.register_forward_hook(watch(number, "states")),
            layer.attention.output.dense.register_forward_hook(watch(number, "attended")),
            layer.intermediate.dense.register_forward_hook(watch(number, "between")),
            layer.intermediate.register_forward_hook(watch(number, "hidden", output=True)),
        ]
    try:
        with torch.inference_mode():
            for arguments in inputs:
                model(*arguments)
    finally:
        for handle in handles:
            handle.remove()
    # Copies, because tensors of inference mode take no part in what is exported.
    found = {key: value.clone() for key, value in highest.items()}
    return [
        Ranges(
            found[number, "hidden"].topk(channels).indices,
            *(found[number, name] for name in ("states", "attended", "between", "hidden")),
        )
        for number in range(len(encoder.encoder.layer))
    ]
