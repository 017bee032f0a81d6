"""Tests of ``truthlens.lab.similarity``: the small graph computes what the original encoder does, or is not written."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from tests.fakes.tiny_base import write_base
from truthlens.core.errors import ModelError
from truthlens.detection.similarity import Similarity, load_similarity_manifest
from truthlens.lab.similarity import (
    EmbedderLimits,
    build_embedder,
    load_base,
    original_vectors,
    texts,
)
from truthlens.lab.similarity_graph import SentenceGraph, find_reach

TREES = ["The tree is maple.", "The keeper says that the tree is rowan.", "maple"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def built(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("shelf") / "similarity"
    build_embedder(output, base=str(base))
    return output


def ids_of(base: Path, text: str) -> torch.Tensor:
    from truthlens.detection.models.inputs.windows import load_tokenizer

    return torch.tensor([load_tokenizer(base).encode(text).ids])


def test_the_folder_gives_the_vectors_of_the_original(base: Path, built: Path) -> None:
    """Up to rounding."""
    expected = original_vectors(load_base(base), [ids_of(base, text) for text in TREES])
    found = Similarity.load(built).embed(TREES)
    assert (expected * found).sum(axis=1).min() > 0.99


def test_the_folder_is_complete_and_says_what_rounding_cost(base: Path, built: Path) -> None:
    """Four files, the card among them; digests of the two that are loaded."""
    assert sorted(file.name for file in built.iterdir()) == [
        "README.md",
        "manifest.json",
        "model.onnx",
        "tokenizer.json",
    ]
    manifest = load_similarity_manifest(built)
    assert set(manifest.files) == {"model.onnx", "tokenizer.json"}
    assert manifest.dimension == 32
    assert manifest.figures["int8"]["texts"] == len(texts())
    assert 0.0 < manifest.figures["int8"]["error_mean"] <= EmbedderLimits().error_mean
    assert manifest.name in (built / "README.md").read_text()


def test_products_and_tables_are_int8_and_standard(built: Path) -> None:
    """Four products a layer, two tables, and no operator of onnxruntime's own."""
    model = onnx.load(str(built / "model.onnx"))
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("MatMulInteger") == 4
    assert {node.domain for node in model.graph.node} == {""}
    large = [t for t in model.graph.initializer if np.prod(t.dims) > 32 * 8]
    assert large
    # The tiny base has fewer words than columns matter for, so its tables are among the large ones too.
    assert {t.data_type for t in large if len(t.dims) == 2 and t.dims[1] > 1} == {onnx.TensorProto.INT8}


def test_rescaling_changes_nothing_before_rounding(base: Path) -> None:
    """The scaled graph computes what the unscaled one does."""
    encoder = load_base(base)
    probes = [ids_of(base, text) for text in TREES]
    plain = SentenceGraph(encoder, max_tokens=256).eval()
    scaled = SentenceGraph(encoder, max_tokens=256, reach=find_reach(plain, probes)).eval()
    assert not torch.equal(plain.layers[0].joint.weight, scaled.layers[0].joint.weight)  # type: ignore[union-attr, arg-type]
    with torch.inference_mode():
        for ids in probes:
            mask = torch.ones_like(ids)
            assert torch.allclose(plain(ids, mask), scaled(ids, mask), atol=1e-5)


def test_rounding_beyond_the_gate_writes_nothing(base: Path, tmp_path: Path) -> None:
    """The message gives what it cost and what is allowed."""
    with pytest.raises(ModelError, match="nothing was written"):
        build_embedder(tmp_path / "out", base=str(base), gate=EmbedderLimits(change_max=0.0))
    assert not (tmp_path / "out").exists()


def test_a_base_of_another_layout_is_refused(base: Path, tmp_path: Path) -> None:
    """Only BERT layouts are laid out anew."""
    from transformers import DistilBertConfig, DistilBertModel

    folder = tmp_path / "distil"
    DistilBertModel(
        DistilBertConfig(vocab_size=40, dim=32, n_layers=1, n_heads=2, hidden_dim=64)
    ).save_pretrained(folder)
    shutil.copyfile(base / "tokenizer.json", folder / "tokenizer.json")
    with pytest.raises(ModelError, match="type distilbert, expected bert"):
        build_embedder(tmp_path / "out", base=str(folder))


def test_the_texts_that_it_is_rounded_with_are_many_and_differ() -> None:
    """From one word to some hundred, none twice."""
    lengths = [len(text.split()) for text in texts()]
    assert len(set(texts())) == len(lengths) >= 70
    assert min(lengths) == 1
    assert max(lengths) > 200
