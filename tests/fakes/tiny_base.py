"""A pretrained-looking encoder of a few thousand weights, and labelled answers that it can learn."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import torch
import transformers

from tests.fakes.tiny_encoder import word_tokenizer

NAMES = ("alder", "birch", "cedar", "maple", "rowan", "willow", "hazel", "linden")
_FRAME = ("The", "the", "keeper", "of", "gate", "says", "that", "tree", "is", ".")
VOCABULARY = dict.fromkeys((*NAMES, *_FRAME), 0.0)


def write_base(folder: Path, *, layers: int = 1) -> Path:
    """A Hugging Face folder of BERT layout with random weights and a word tokenizer."""
    torch.manual_seed(5)
    tokenizer = word_tokenizer(VOCABULARY)
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=2,
        max_position_embeddings=512,
        pad_token_id=0,
    )
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def labelled_rows(count: int, *, seed: int = 0, source: str = "ragtruth") -> list[dict[str, Any]]:
    """Rows in which the answer names a tree of the evidence, or (label 1, marked) another one."""
    dice = random.Random(seed)
    rows = []
    for number in range(count):
        held, other = dice.sample(NAMES, 2)
        wrong = number % 2
        answer = f"The tree is {other if wrong else held}."
        rows.append(
            {
                "id": f"{source}-{number}",
                "source": source,
                "task": "qa",
                "query": "tree",
                "context": [f"The keeper of the gate says that the tree is {held}."],
                "response": answer,
                "label": wrong,
                "spans": [{"start": 12, "end": len(answer) - 1}] if wrong else [],
                "group": str(number // 2),
            }
        )
    return rows


def write_data(folder: Path, *, rows: int = 240) -> Path:
    """A folder with one data file of ``labelled_rows``."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(json.dumps(row) for row in labelled_rows(rows))
    (folder / "trees.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    return folder
