"""Tests of ``truthlens.detection.detectors.encoder.loading``."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fakes.tiny_encoder import word_tokenizer, write_encoder
from truthlens.core.errors import ModelError
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.process.model_store import BUNDLED_MODEL
from truthlens.process.settings import models_folder


def test_a_folder_of_our_own_is_loaded(tmp_path: Path) -> None:
    """Manifest, tokenizer and weights make a detector that scores."""
    encoder = load_encoder(write_encoder(tmp_path / "tiny"))
    encoder.warm_up()
    exchange = Exchange(Endpoint.CHAT, "m", "", (Passage("The sky is blue.", Provenance.TOOL),))
    result = encoder.detect(exchange, Answer(0, AnswerKind.TEXT, "The sky is Zorblax."))
    assert encoder.model == "tiny"
    assert result.score is not None
    assert result.score > 0.9


def test_an_onnx_export_in_a_subfolder_is_found(tmp_path: Path) -> None:
    """Without a listed file, onnx/model.onnx is taken."""
    folder = write_encoder(tmp_path / "tiny", manifest={"files": {}})
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model_quantized.onnx")
    load_encoder(folder).warm_up()


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    """A file whose digest differs from the manifest's is not run."""
    folder = write_encoder(tmp_path / "tiny")
    with (folder / "model.onnx").open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(ModelError, match=r"model\.onnx has SHA-256"):
        load_encoder(folder)


def test_a_listed_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    """A file that the manifest lists has to be there."""
    folder = write_encoder(tmp_path / "tiny")
    (folder / "model.onnx").unlink()
    with pytest.raises(ModelError, match="is missing, but the manifest lists it"):
        load_encoder(folder)


def test_a_file_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A manifest cannot point out of its folder."""
    folder = write_encoder(tmp_path / "tiny", manifest={"files": {"../other.onnx": "0" * 64}})
    with pytest.raises(ModelError, match="outside the folder"):
        load_encoder(folder)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    """The error names the files that would do."""
    folder = write_encoder(tmp_path / "tiny", manifest={"files": {}})
    (folder / "model.onnx").unlink()
    with pytest.raises(ModelError, match=r"expected model\.onnx, onnx/model\.onnx or \*\.safetensors"):
        load_encoder(folder)


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    """The tokenizer has to be in the folder, in the fast format."""
    folder = write_encoder(tmp_path / "tiny")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        load_encoder(folder)


@pytest.mark.parametrize(
    ("inputs", "features"),
    [(("input_ids", "features"), None), (("input_ids",), "lexical-v1")],
    ids=["graph only", "manifest only"],
)
def test_features_have_to_be_agreed_on(tmp_path: Path, inputs: tuple[str, ...], features: str | None) -> None:
    """Graph and manifest must both have features, or neither."""
    form = {"max_tokens": 64, "answer_tokens": 16, "answer_overlap": 4, "features": features}
    folder = write_encoder(tmp_path / "tiny", inputs=inputs, manifest={"input": form})
    with pytest.raises(ModelError, match="features"):
        load_encoder(folder)


def test_the_columns_of_features_have_to_be_those_of_the_graph(tmp_path: Path) -> None:
    """A manifest that names another feature set than the model was trained with is refused when it is loaded."""
    folder = tmp_path / "bundled"
    shutil.copytree(models_folder() / BUNDLED_MODEL, folder)
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace("lexical-v2", "lexical-v1"))
    with pytest.raises(
        ModelError, match=r"takes 41 columns of features, but lexical-v1.* has 27; set input\.features"
    ):
        load_encoder(folder)


def test_a_gpu_that_onnxruntime_has_not_is_an_error(tmp_path: Path) -> None:
    """Asked for a GPU, a CPU build of onnxruntime fails and falls back on nothing."""
    with pytest.raises(ModelError, match="set use_cpu: true"):
        load_encoder(write_encoder(tmp_path / "tiny"), use_cpu=False)


def test_weights_and_tokenizer_that_do_not_fit_fail_when_warmed_up(tmp_path: Path) -> None:
    """A tokenizer with more words than the weights know is found out before the first exchange."""
    folder = write_encoder(tmp_path / "tiny", odds={})
    word_tokenizer({"room": 1.0}).save(str(folder / "tokenizer.json"))
    with pytest.raises(ModelError, match="fails on a test text"):
        load_encoder(folder).warm_up()
