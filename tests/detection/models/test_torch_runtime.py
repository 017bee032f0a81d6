"""Tests of ``truthlens.detection.models.torch_runtime`` on small random models of both layouts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.fakes.tiny_encoder import word_tokenizer
from truthlens.core.errors import ModelError
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.models.inputs.windows import Window
from truthlens.detection.models.torch_runtime import TorchModel, load_classifier

SIZES: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
}


@pytest.fixture(params=["bert", "modernbert"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A Hugging Face token-classification folder with random weights."""
    torch.manual_seed(7)
    if request.param == "bert":
        model = transformers.BertForTokenClassification(transformers.BertConfig(**SIZES))
    else:
        special = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
        config = transformers.ModernBertConfig(**SIZES, **special, local_attention=16)
        model = transformers.ModernBertForTokenClassification(config)
    model.eval().save_pretrained(tmp_path)
    word_tokenizer().save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def window(ids: list[int], types: list[int]) -> Window:
    """A window whose answer is the second segment."""
    return Window(np.array(ids), np.array(types), slice(types.index(1), len(ids) - 1), 0)


WINDOWS = [
    window([2, 5, 6, 7, 3, 8, 9, 3], [0, 0, 0, 0, 0, 1, 1, 1]),
    window([2, 5, 3, 8, 3], [0, 0, 0, 1, 1]),
    window([2, 9, 3, 5, 6, 3], [0, 0, 0, 1, 1, 1]),
]
EXCHANGE = Exchange(
    Endpoint.CHAT, "m", "When?", (Passage("The library opens at nine.", Provenance.DOCUMENTS),)
)
ANSWER = Answer(0, AnswerKind.TEXT, "The library opens at ten.")


def test_scores_are_those_of_transformers(folder: Path) -> None:
    """Batched, padded and sliced, the log-odds are those of the plain model: log softmax[1] - log softmax[0]."""
    found = TorchModel(folder).log_odds(WINDOWS)
    reference = transformers.AutoModelForTokenClassification.from_pretrained(folder).eval()
    for one, values in zip(WINDOWS, found, strict=True):
        inputs = {"input_ids": torch.from_numpy(one.input_ids)[None]}
        if reference.config.model_type == "bert":
            inputs["token_type_ids"] = torch.from_numpy(one.type_ids)[None]
        with torch.no_grad():
            logs = torch.log_softmax(reference(**inputs).logits[0, one.answer], dim=-1).numpy()
        np.testing.assert_allclose(values, logs[:, 1] - logs[:, 0], atol=2e-5)


def test_a_hugging_face_folder_is_an_encoder(folder: Path) -> None:
    """A folder without a manifest of ours gives a verdict through the same path."""
    encoder = load_encoder(folder)
    encoder.warm_up()
    result = encoder.detect(EXCHANGE, ANSWER)
    assert result.reason is None
    assert result.score is not None
    assert 0.0 <= result.score <= 1.0
    assert result.coverage is not None
    assert result.coverage.complete


def test_a_bare_encoder_is_refused(tmp_path: Path) -> None:
    """A folder without a classification head would score with random weights, and is refused."""
    transformers.BertModel(transformers.BertConfig(**SIZES)).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="weights are missing"):
        TorchModel(tmp_path)


def test_the_extra_is_named_where_torch_is_absent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PyTorch in the environment, the error says what to install."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match=r"pip install 'truthlens\[torch\]'"):
        load_encoder(folder)


def test_a_gpu_is_used_or_its_absence_is_an_error(folder: Path) -> None:
    """Asked for a GPU, the model runs on it; without one, loading fails, says what to set, and falls back on nothing."""
    if torch.cuda.is_available():
        model = TorchModel(folder, use_cpu=False)
        assert model.name.startswith("torch-cuda:")
        assert model.precision == "bfloat16"
        assert len(model.log_odds([window([2, 5, 3, 8, 3], [0, 0, 0, 1, 1])])[0]) == 1
    else:
        with pytest.raises(ModelError, match="use_cpu: true"):
            load_encoder(folder, use_cpu=False)
    assert TorchModel(folder).name.startswith("torch-cpu:")
    assert TorchModel(folder).precision == "float32"


def test_bfloat16_is_close_and_gives_float32(folder: Path) -> None:
    """In the precision of a GPU, on any device: log-odds within what eight bits of mantissa leave."""
    exact = TorchModel(folder).log_odds(WINDOWS)
    rounded = TorchModel(folder, precision="bfloat16")
    assert rounded.precision == "bfloat16"
    for one, other in zip(exact, rounded.log_odds(WINDOWS), strict=True):
        assert other.dtype == np.float32
        assert np.abs(one - other).max() < 0.02
        assert bool((one != other).any())


@pytest.mark.parametrize("budget", [1, 12, 10_000])
def test_the_token_budget_changes_nothing_but_the_batches(folder: Path, budget: int) -> None:
    """One window a batch, two, or all in one: the same log-odds in the same order."""
    expected = TorchModel(folder).log_odds(WINDOWS)
    found = TorchModel(folder, budget_tokens=budget).log_odds(WINDOWS)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_attention_is_pytorchs_own(folder: Path) -> None:
    """Scaled dot-product attention, which picks its kernel by device, precision and padding."""
    assert load_classifier(folder, precision="float32").config._attn_implementation == "sdpa"


def test_pickled_weights_are_not_loaded(tmp_path: Path) -> None:
    """A folder with nothing but a pickle holds no weights."""
    transformers.BertConfig(**SIZES).save_pretrained(tmp_path)
    word_tokenizer().save(str(tmp_path / "tokenizer.json"))
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match="safetensors"):
        load_encoder(tmp_path)
