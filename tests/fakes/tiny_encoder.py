"""A token classifier with fixed weights in a real ONNX file: the words that it is told to suspect, it flags.

The graph looks up one log-odds per token id: high for suspicious words, low for all others. It reads nothing of the
evidence, which is what tests of everything around the model need.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

SUSPICIOUS = {"Zorblax": 6.0, "Quibble": 6.0, "perhaps": 0.5}
"""Words and the log-odds that the fake gives them; every other token has ``CALM``."""
CALM = -6.0
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def write_encoder(
    folder: Path,
    *,
    odds: Mapping[str, float] = SUSPICIOUS,
    inputs: Iterable[str] = ("input_ids", "attention_mask", "token_type_ids"),
    manifest: Mapping[str, Any] | None = None,
) -> Path:
    """A model folder with ``model.onnx``, ``tokenizer.json`` and ``manifest.json``.

    Args:
        folder: where to write; made if it is not there.
        odds: log-odds of "hallucinated" by word.
        inputs: names of the graph's inputs. ``features`` adds the first feature to the log-odds.
        manifest: keys of the manifest to set or replace.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = word_tokenizer(odds)
    tokenizer.save(str(folder / "tokenizer.json"))
    write_graph(folder / "model.onnx", tokenizer, odds=odds, inputs=tuple(inputs))
    content: dict[str, Any] = {
        "name": "tiny",
        "base": "none",
        "languages": ["en"],
        "input": {"max_tokens": 64, "answer_tokens": 16, "answer_overlap": 4, "segment_ids": True},
        "aggregation": "span_noisy_or",
        "files": {"model.onnx": hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()},
        **(manifest or {}),
    }
    (folder / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def word_tokenizer(odds: Mapping[str, float] = SUSPICIOUS) -> Tokenizer:
    """One token a word or punctuation mark; words outside of ``odds`` are all ``[UNK]``."""
    vocabulary = {token: index for index, token in enumerate((*_SPECIAL, *odds))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return tokenizer


def write_graph(
    file: Path, tokenizer: Tokenizer, *, odds: Mapping[str, float], inputs: tuple[str, ...]
) -> None:
    """An ONNX graph ``logits[..., 1] = table[input_ids]``, ``logits[..., 0] = 0``; other inputs are read and unused."""
    table = np.full((tokenizer.get_vocab_size(), 2), (0.0, CALM), dtype=np.float32)
    for word, value in odds.items():
        table[tokenizer.token_to_id(word)] = (0.0, value)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["looked_up"], axis=0)]
    last = "looked_up"
    constants = [numpy_helper.from_array(table, "table")]
    for name in inputs:
        if name == "input_ids":
            continue
        # Touched and multiplied by zero, so that onnxruntime keeps the input; features count in full.
        weight = np.zeros((1,), dtype=np.float32)
        constants.append(numpy_helper.from_array(weight, f"{name}_weight"))
        if name == "features":
            pick = np.zeros((3, 2), dtype=np.float32)
            pick[0, 1] = 1.0
            constants.append(numpy_helper.from_array(pick, "pick"))
            nodes.append(helper.make_node("MatMul", ["features", "pick"], ["features_added"]))
        else:
            constants.append(numpy_helper.from_array(np.array([-1], dtype=np.int64), f"{name}_axis"))
            nodes += [
                helper.make_node("Cast", [name], [f"{name}_float"], to=TensorProto.FLOAT),
                helper.make_node("Unsqueeze", [f"{name}_float", f"{name}_axis"], [f"{name}_wide"]),
                helper.make_node("Mul", [f"{name}_wide", f"{name}_weight"], [f"{name}_added"]),
            ]
        nodes.append(helper.make_node("Add", [last, f"{name}_added"], [f"after_{name}"]))
        last = f"after_{name}"
    nodes.append(helper.make_node("Identity", [last], ["logits"]))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [_input(name) for name in inputs],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "tokens", 2])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(file))


def _input(name: str) -> onnx.ValueInfoProto:
    if name == "features":
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "tokens", 3])
    return helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
