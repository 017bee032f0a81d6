"""Define ModernBERT as it is exported: the same function, with local layers computed in blocks.

Two of three ModernBERT layers see only the tokens within a window (64 on either side), but the stock graph
computes all scores of all tokens and masks most of them. Here the tokens of such a layer are cut into blocks
as long as the window, and a block's queries meet the keys of the previous, the same and the next block:
exact, and linear in length. Global layers go head by head, so that only one (tokens, tokens) matrix is in
memory at a time. Ettin and mmBERT have the same layout. Nothing here writes a file.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from truthlens.core.errors import ModelError

MODEL_TYPE = "modernbert"
# Added to the scores of what must not be seen. Finite, so that a block of padding alone gives no NaN.
_MASKED = -1e4


class BlockLocalClassifier(nn.Module):
    """A ModernBERT token classifier, for export.

    Args:
        model: ``ModernBertForTokenClassification`` of ``transformers``; its parts are used as they are,
            except that the scale of the scores is folded into a copy of the query weights.

    Raises:
        ModelError: the model is of another layout, or scales its rotary positions.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        config = model.config
        if config.model_type != MODEL_TYPE:
            raise ModelError(
                f"the model is of type {config.model_type}; only {MODEL_TYPE} has block-local layers"
            )
        self.kinds = [str(kind) for kind in config.layer_types]
        for kind in set(self.kinds):
            scheme = config.rope_parameters[kind]["rope_type"]
            if scheme != "default":
                raise ModelError(f"rotary positions of type {scheme} cannot be exported; expected default")
        self.window = int(config.sliding_window)
        self.pad_id = int(config.pad_token_id or 0)
        self.embeddings = model.model.embeddings
        heads = int(config.num_attention_heads)
        self.layers = nn.ModuleList(
            _Layer(layer, heads=heads, local=kind == "sliding_attention")
            for layer, kind in zip(model.model.layers, self.kinds, strict=True)
        )
        rotary = model.model.rotary_emb
        self.frequencies = nn.ParameterDict(
            {kind: _frozen(getattr(rotary, f"{kind}_inv_freq")) for kind in sorted(set(self.kinds))}
        )
        self.final_norm = model.model.final_norm
        self.head = model.head
        self.classifier = model.classifier

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the logits, shape (batch, tokens, labels), of ids and mask (1: token, 0: padding)."""
        length = input_ids.shape[1]
        extra = (self.window - length % self.window) % self.window
        ids = functional.pad(input_ids, (0, extra), value=self.pad_id)
        keys_hidden = (1.0 - functional.pad(attention_mask, (0, extra)).float()) * _MASKED
        positions = torch.arange(ids.shape[1], device=ids.device).float()
        turns = {kind: _turn(positions, inverse) for kind, inverse in self.frequencies.items()}
        seen = {
            "full_attention": keys_hidden[:, None, :],
            "sliding_attention": _local_mask(keys_hidden, self.window),
        }
        states = self.embeddings(input_ids=ids)
        for kind, layer in zip(self.kinds, self.layers, strict=True):
            states = layer(states, turn=turns[kind], mask=seen[kind])
        logits: Tensor = self.classifier(self.head(self.final_norm(states[:, :length])))
        return logits


class _Layer(nn.Module):
    """One layer, with local or with global attention."""

    def __init__(self, layer: Any, *, heads: int, local: bool) -> None:
        super().__init__()
        self.local = local
        self.heads = heads
        self.attention_norm = layer.attn_norm
        self.mlp_norm = layer.mlp_norm
        self.mlp = layer.mlp
        self.output = layer.attn.Wo
        width = layer.attn.head_dim * heads
        scales = torch.ones(3 * width)
        scales[:width] = float(layer.attn.head_dim) ** -0.5
        source = layer.attn.Wqkv
        self.projection = nn.Linear(source.in_features, 3 * width, bias=source.bias is not None)
        self.projection.weight = _frozen(source.weight * scales[:, None])
        if source.bias is not None:
            self.projection.bias = _frozen(source.bias * scales)

    def forward(self, states: Tensor, *, turn: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        """Return the new states, shape (batch, tokens, width)."""
        batch, tokens, _ = states.shape
        projected = self.projection(self.attention_norm(states))
        parts = projected.view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key = _rotate(parts[:2], turn).unbind(0)
        value = parts[2]
        attend = _attend_locally if self.local else _attend_globally
        found = attend(query, key, value, mask).transpose(1, 2).reshape(batch, tokens, -1)
        states = states + self.output(found)
        changed: Tensor = states + self.mlp(self.mlp_norm(states))
        return changed


def _attend_globally(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Attend globally over (batch, heads, tokens, head width); ``mask`` is additive, (batch, 1, tokens)."""
    heads = [
        torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-1, -2)) + mask, dim=-1), v)
        for q, k, v in zip(query.unbind(1), key.unbind(1), value.unbind(1), strict=True)
    ]
    return torch.stack(heads, dim=1)


def _attend_locally(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Attend locally over (batch, heads, tokens, head width).

    ``mask`` is additive, (batch, 1, blocks, block, 3 blocks).
    """
    batch, heads, _, width = query.shape
    block = mask.shape[3]

    def blocks(states: Tensor) -> Tensor:
        return states.reshape(batch, heads, -1, block, width)

    # The first block has no previous one and the last no next one: any will do there, it is masked.
    places = torch.arange(mask.shape[2])[:, None] + torch.arange(-1, 2)[None, :]
    places = places.clamp(min=0).minimum(places.max() - 1)

    def neighbourhood(states: Tensor) -> Tensor:
        return blocks(states)[:, :, places].reshape(batch, heads, -1, 3 * block, width)

    scores = torch.matmul(blocks(query), neighbourhood(key).transpose(-1, -2)) + mask
    found = torch.matmul(torch.softmax(scores, dim=-1), neighbourhood(value))
    return found.reshape(batch, heads, -1, width)


def _local_mask(keys_hidden: Tensor, window: int) -> Tensor:
    """Return the mask of a block's queries over three blocks, shape (batch, 1, blocks, block, 3 blocks).

    Args:
        keys_hidden: additive, shape (batch, tokens); tokens are a multiple of ``window``.
        window: tokens that are seen on either side, and the length of a block.
    """
    asking = torch.arange(window)[:, None] + window
    keys = torch.arange(3 * window)[None, :]
    band = torch.where((asking - keys).abs() <= window, 0.0, _MASKED)
    blocked = functional.pad(
        keys_hidden.reshape(keys_hidden.shape[0], -1, window), (0, 0, 1, 1), value=_MASKED
    )
    near = torch.cat([blocked[:, :-2], blocked[:, 1:-1], blocked[:, 2:]], dim=2)
    return near[:, None, :, None, :] + band


def _turn(positions: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cosine, and the sine signed by half, of the rotary positions, each (tokens, head width)."""
    angles = positions[:, None] * inverse[None, :]
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat([cosine, cosine], dim=-1), torch.cat([-sine, sine], dim=-1)


def _rotate(states: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    cosine, signed_sine = turn
    half = int(states.shape[-1]) // 2
    first, second = torch.split(states, half, dim=-1)
    return states * cosine + torch.cat([second, first], dim=-1) * signed_sine


def _frozen(values: Tensor) -> nn.Parameter:
    return nn.Parameter(values.detach().clone().float(), requires_grad=False)
