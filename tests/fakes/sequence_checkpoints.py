"""Hugging Face sequence-classification folders of each layout that can be a reader: random weights, real tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, Unigram, WordPiece
from tokenizers.trainers import BpeTrainer, UnigramTrainer, WordPieceTrainer

from truthlens.lab.export.parity_inputs import samples

LAYOUTS = ("bert", "deberta-v2", "modernbert", "mpnet", "roberta", "xlm-roberta")
NLI = ("entailment", "neutral", "contradiction")
_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 258,
    "initializer_range": 0.2,
}
_DOUBLE = ("mpnet", "roberta", "xlm-roberta")
"""Layouts that put two separators between the texts of a pair."""
_NAMES = {
    "bert": "Bert",
    "deberta-v2": "DebertaV2",
    "modernbert": "ModernBert",
    "mpnet": "MPNet",
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
}
_OWN: dict[str, dict[str, Any]] = {
    "bert": {"type_vocab_size": 2},
    "deberta-v2": {
        "relative_attention": True,
        "position_buckets": 32,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
    },
    "modernbert": {"local_attention": 32, "classifier_pooling": "mean"},
    "roberta": {"type_vocab_size": 1},
    "xlm-roberta": {"type_vocab_size": 1},
}


def pair_tokenizer(layout: str) -> Tokenizer:
    """A tokenizer of the layout's own kind, trained on the workshop's fixture: pieces of words, bytes or sentences."""
    begin, end, pad, unknown = special = _special(layout)
    tokenizer: Tokenizer
    trainer: Any
    settings = {"vocab_size": 500, "special_tokens": [*special, "<mask>"], "show_progress": False}
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    match layout:
        case "bert" | "mpnet":
            tokenizer = Tokenizer(WordPiece(unk_token=unknown))
            tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
            tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            trainer = WordPieceTrainer(**settings)
        case "deberta-v2" | "xlm-roberta":
            tokenizer = Tokenizer(Unigram())
            tokenizer.normalizer = normalizers.NFKC()
            tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
            trainer = UnigramTrainer(**settings, unk_token=unknown)
        case _:
            tokenizer = Tokenizer(BPE(unk_token=unknown))
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            tokenizer.decoder = decoders.ByteLevel()
            trainer = BpeTrainer(**settings, initial_alphabet=alphabet)
    texts = [text for sample in samples() for text in (sample.query, *sample.passages, sample.answer)]
    tokenizer.train_from_iterator(texts, trainer)
    between = f"{end} {end}" if layout in _DOUBLE else end
    segment = 1 if layout in ("bert", "deberta-v2") else 0
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}",
        pair=f"{begin} $A {between} $B:{segment} {end}:{segment}",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (begin, end)],
    )
    # As checkpoints have it: a file that cuts and pads by itself.
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding(pad_id=tokenizer.token_to_id(pad), pad_token=pad, length=128)
    return tokenizer


def _special(layout: str) -> tuple[str, str, str, str]:
    if layout in _DOUBLE:
        return "<s>", "</s>", "<pad>", "<unk>"
    return "[CLS]", "[SEP]", "[PAD]", "[UNK]"


def write_sequence_checkpoint(
    folder: Path, layout: str = "bert", *, labels: Sequence[str] = NLI, seed: int = 3, **changes: Any
) -> Path:
    """A folder as ``save_pretrained`` leaves it, of a classifier whose classes are ``labels``; ``changes`` are of its configuration."""
    tokenizer = pair_tokenizer(layout)
    settings = {
        **_SIZES,
        "vocab_size": tokenizer.get_vocab_size(),
        "pad_token_id": tokenizer.token_to_id(_special(layout)[2]),
        "bos_token_id": 0,
        "eos_token_id": 1,
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
        **_OWN.get(layout, {}),
        **changes,
    }
    if layout == "modernbert":
        settings |= {"cls_token_id": 0, "sep_token_id": 1}
    torch.manual_seed(seed)
    name = _NAMES[layout]
    config = getattr(transformers, f"{name}Config")(**settings)
    model = getattr(transformers, f"{name}ForSequenceClassification")(config)
    model.eval().save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "README.md").write_text("---\nlicense: mit\nlanguage:\n- en\n- de\n---\n# A classifier\n")
    return folder
