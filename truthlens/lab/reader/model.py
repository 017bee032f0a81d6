"""The trainable reader: a pretrained encoder, and three outcomes from its first state and the claim's mean state."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import AutoModel

from truthlens.core.errors import ModelError
from truthlens.lab.train.precision import ScaledWeights, int8_product, scaled

AVERAGE = "average.safetensors"
"""The file of a run folder that is measured and exported: a running average of the trained parameters."""
OUTCOMES = ("supported", "contradicted", "not_stated")
_WIDTH = 256


class ReaderModel(nn.Module):
    """Three logits a claim: supported, contradicted, not stated."""

    def __init__(self, encoder: nn.Module, *, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(2 * width, _WIDTH), nn.GELU(), nn.Linear(_WIDTH, len(OUTCOMES))
        )

    def forward(self, input_ids: Tensor, attention_mask: Tensor, claim_mask: Tensor) -> Tensor:
        """Return the logits, shape (batch, 3).

        Args:
            input_ids: shape (batch, tokens).
            attention_mask: shape (batch, tokens), 1 for tokens and 0 for padding.
            claim_mask: shape (batch, tokens), 1 for the claim's tokens.
        """
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = claim_mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)
        logits: Tensor = self.head(torch.cat([states[:, 0], mean], dim=-1))
        return logits


class LowRankLinear(nn.Module):
    """A frozen linear layer plus a trained product of two narrow matrices (LoRA, Hu et al. 2021).

    No gradient of the wide weights is computed, which saves a third of a training step, and a checkpoint holds a few megabytes.
    """

    def __init__(self, linear: nn.Linear, *, rank: int) -> None:
        super().__init__()
        self.linear = linear
        self.down = nn.Parameter(torch.empty(rank, linear.in_features))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, states: Tensor) -> Tensor:
        """Return the layer's output, shape (..., out_features)."""
        wide, narrow = self.linear(states), nn.functional.linear(states, self.down)
        return torch.addmm(wide.flatten(0, -2), narrow.flatten(0, -2), self.up.t()).reshape(wide.shape)

    def merged(self) -> nn.Linear:
        """Return one plain linear layer that computes the same."""
        with torch.no_grad():
            self.linear.weight += self.up @ self.down
        return self.linear


class Int8Linear(nn.Linear):
    """A frozen linear layer whose products are of 8-bit whole numbers, forward and back.

    Where a processor has them (VNNI, AMX) a step takes little more than half the time; a product is off by about a hundredth of its
    size. The layer computes with the weights that it was made from.
    """

    _whole: tuple[ScaledWeights, ScaledWeights]

    @classmethod
    def of(cls, linear: nn.Linear) -> Int8Linear:
        """Return a layer that shares the parameters of ``linear``."""
        layer = cls(linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta")
        layer.weight, layer.bias = linear.weight, linear.bias
        layer._whole = scaled(linear.weight.detach().t()), scaled(linear.weight.detach())
        return layer

    def forward(self, states: Tensor) -> Tensor:
        """Return the layer's output, shape (..., out_features); a model that is measured and not trained computes as it was."""
        if not self.training:
            return super().forward(states)
        out: Tensor = _Int8Product.apply(states, *self._whole)  # type: ignore[no-untyped-call]
        return out if self.bias is None else out + self.bias


class _Int8Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, forth: ScaledWeights, back: ScaledWeights) -> Tensor:
        ctx.back = back
        return int8_product(states, forth)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return int8_product(gradient, ctx.back), None, None


def freeze_in_int8(model: ReaderModel) -> None:
    """Let the frozen linear layers of ``model`` compute in whole numbers; it is trained on, not exported."""
    _replace_linear(
        model.encoder,
        lambda each: (
            Int8Linear.of(each) if type(each) is nn.Linear and not each.weight.requires_grad else each
        ),
    )


def build_reader(
    folder: Path, *, layers: int | None = None, frozen_layers: int = 0, rank: int | None = None
) -> ReaderModel:
    """Return a reader over the pretrained encoder in ``folder``, with a new head.

    Args:
        folder: a Hugging Face folder.
        layers: the first so many layers are kept; ``None``: all.
        frozen_layers: so many of them are not trained, and neither are the embeddings.
        rank: the other layers learn products of this rank on top of their frozen weights; ``None``: the weights themselves.
    """
    encoder = AutoModel.from_pretrained(
        folder, attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0, add_pooling_layer=False
    )
    stack = encoder.encoder
    if layers is not None:
        stack.layer = stack.layer[:layers]
        encoder.config.num_hidden_layers = layers
    for parameter in encoder.embeddings.parameters():
        parameter.requires_grad = False
    for layer in stack.layer[:frozen_layers]:
        for parameter in layer.parameters():
            parameter.requires_grad = False
    bias = getattr(stack, "relative_attention_bias", None)
    if bias is not None and frozen_layers:
        # Trained, it would pull gradients through the frozen layers.
        bias.weight.requires_grad = False
    if rank is not None:
        for parameter in encoder.parameters():
            parameter.requires_grad = False
        for layer in stack.layer[frozen_layers:]:
            _replace_linear(
                layer, lambda each: LowRankLinear(each, rank=rank) if type(each) is nn.Linear else each
            )
    return ReaderModel(encoder, width=encoder.config.hidden_size)


def trained_state(model: ReaderModel) -> dict[str, Tensor]:
    """Return the trained parameters alone, by name; the rest is that of the pretrained encoder."""
    return {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}


def load_trained(model: ReaderModel, saved: Mapping[str, Tensor]) -> None:
    """Put the parameters of ``trained_state`` into ``model``.

    Raises:
        ModelError: they are of a reader with other trained layers.
    """
    own = trained_state(model)
    if {name: p.shape for name, p in own.items()} != {name: p.shape for name, p in saved.items()}:
        raise ModelError("the saved weights are of a reader with other trained layers")
    model.load_state_dict(saved, strict=False)


def save_trained(file: Path, trained: Mapping[str, Tensor], *, pairs: int) -> None:
    """Write trained parameters in half precision, with the number of claims that they have seen: small enough to keep in a repository."""
    halves = {name: p.detach().to("cpu", torch.float16).contiguous() for name, p in trained.items()}
    partial = file.with_suffix(".partial")
    save_file(halves, partial, metadata={"pairs": str(pairs)})
    partial.replace(file)


def read_trained(file: Path) -> tuple[dict[str, Tensor], int]:
    """Return the parameters of ``save_trained`` in single precision, and how many claims they have seen.

    Raises:
        ModelError: the file holds no such parameters.
    """
    try:
        with safe_open(file, framework="pt") as opened:
            pairs = int((opened.metadata() or {})["pairs"])
            return {name: opened.get_tensor(name).float() for name in opened.keys()}, pairs  # noqa: SIM118
    except (SafetensorError, KeyError, ValueError) as error:
        raise ModelError(f"{file} holds no weights of `truthlens train-reader`") from error


def restore_reader(folder: Path, saved: Mapping[str, Tensor], *, layers: int | None = None) -> ReaderModel:
    """Return the trained reader over the pretrained encoder in ``folder``, as plain layers; the rank is read off ``saved``."""
    rank = next((p.shape[0] for name, p in saved.items() if name.endswith(".down")), None)
    first = min(
        (int(found[1]) for name in saved if (found := re.search(r"\.layer\.(\d+)\.", name))), default=0
    )
    model = build_reader(folder, layers=layers, frozen_layers=first, rank=rank)
    load_trained(model, saved)
    return merge_low_rank(model)


def merge_low_rank(model: ReaderModel) -> ReaderModel:
    """Make plain linear layers of ``model``'s low-rank ones, for export, and return it."""
    _replace_linear(model, lambda each: each.merged() if isinstance(each, LowRankLinear) else each)
    return model


def _replace_linear(module: nn.Module, replace: Callable[[nn.Module], nn.Module]) -> None:
    for name, child in list(module.named_children()):
        new = replace(child)
        if new is child:
            _replace_linear(child, replace)
        else:
            setattr(module, name, new)


def unsupported_log_odds(logits: Tensor) -> Tensor:
    """Return the log-odds that a claim is unsupported, shape (batch,), from the three logits."""
    return torch.logsumexp(logits[:, 1:], dim=-1) - logits[:, 0]
