"""Hugging Face token-classification folders with random weights and a byte-level BPE tokenizer of ModernBERT's shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from truthlens.lab.export.parity_inputs import samples

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_SIZES: dict[str, Any] = {
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 3,
    "max_position_embeddings": 2048,
    "pad_token_id": 0,
    "initializer_range": 0.3,
}
_IDS = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}


def bpe_tokenizer(*, vocabulary: int = 600) -> Tokenizer:
    """A byte-level BPE trained on the workshop's own fixture, with ``[CLS] A [SEP] B [SEP]``."""
    tokenizer = Tokenizer(BPE(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [text for sample in samples() for text in (sample.query, *sample.passages, sample.answer)]
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def write_checkpoint(folder: Path, layout: str = "modernbert", *, seed: int = 3, **changes: Any) -> Path:
    """A folder as ``save_pretrained`` leaves it: configuration, safetensors, fast tokenizer.

    Args:
        folder: where to write; made if it is not there.
        layout: ``modernbert``, ``bert``, ``roberta`` or ``eurobert``.
        seed: of the weights.
        changes: values of the configuration to set or replace.
    """
    tokenizer = bpe_tokenizer()
    sizes = {**_SIZES, "vocab_size": tokenizer.get_vocab_size(), **changes}
    torch.manual_seed(seed)
    model: Any
    match layout:
        case "modernbert":
            config = transformers.ModernBertConfig(**{**_IDS, "local_attention": 32, **sizes})
            model = transformers.ModernBertForTokenClassification(config)
        case "eurobert":
            tokens = {**_IDS, "mask_token_id": 4, "num_key_value_heads": 1}
            model = transformers.EuroBertForTokenClassification(
                transformers.EuroBertConfig(**{**tokens, **sizes})
            )
        case "roberta":
            model = transformers.RobertaForTokenClassification(
                transformers.RobertaConfig(**{**_IDS, **sizes})
            )
        case "bert":
            model = transformers.BertForTokenClassification(transformers.BertConfig(**sizes))
        case _:
            raise ValueError(f"there is no layout {layout}")
    model.eval().save_pretrained(folder)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=sizes["max_position_embeddings"],
        model_input_names=["input_ids", "attention_mask"],
    )
    fast.save_pretrained(folder)
    return folder
