"""Tests of ``truthlens.detection.models.inputs.manifest``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.errors import ModelError
from truthlens.core.records.enums import Aggregation
from truthlens.detection.models.inputs.manifest import (
    InputFormat,
    Manifest,
    derive_manifest,
    load_manifest,
    without_calibration,
)


def _write(folder: Path, name: str, content: Any) -> None:
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def test_a_written_manifest_is_read_back_the_same(tmp_path: Path) -> None:
    """What was dumped loads to an equal manifest."""
    manifest = Manifest(
        name="m", base="b", input=InputFormat(features="lexical-v1"), figures={"test": {"auroc": 0.8}},
        files={"model.onnx": "0" * 64}, aggregation=Aggregation.NOISY_OR, noisy_or_exponent=0.05,
    )  # fmt: skip
    _write(tmp_path, "manifest.json", manifest.model_dump_json())
    assert load_manifest(tmp_path) == manifest


def test_a_manifest_wins_over_config(tmp_path: Path) -> None:
    """Where both files are, the manifest counts."""
    _write(tmp_path, "config.json", {"model_type": "bert", "max_position_embeddings": 64})
    _write(tmp_path, "manifest.json", {"name": "own", "base": "b", "input": {"max_tokens": 128, "answer_tokens": 32, "answer_overlap": 8}})  # fmt: skip
    assert load_manifest(tmp_path).name == "own"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"name": "m"}, "base"),
        ({"name": "m", "base": "b", "input": {}, "tau_token": 2}, "tau_token"),
        ({"name": "m", "base": "b", "input": {}, "noisy_or_exponent": 0}, "noisy_or_exponent"),
        ({"name": "m", "base": "b", "input": {}, "colour": "red"}, "colour"),
        ({"name": "m", "base": "b", "input": {}, "files": {"model.onnx": "abc"}}, "files.model.onnx"),
        ({"name": "m", "base": "b", "input": {"template": "unheard-of"}}, "input.template"),
        ("{", "Invalid JSON"),
    ],
)
def test_a_wrong_manifest_names_the_key(tmp_path: Path, content: Any, says: str) -> None:
    """The error names the file and the key that is wrong."""
    _write(tmp_path, "manifest.json", content)
    with pytest.raises(ModelError, match=r"manifest\.json") as caught:
        load_manifest(tmp_path)
    assert says in str(caught.value)


def test_a_folder_without_either_file_is_refused(tmp_path: Path) -> None:
    """A folder that is no model folder is an error that says what was expected."""
    with pytest.raises(ModelError, match=r"expected manifest\.json"):
        load_manifest(tmp_path)


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_a_damaged_config_is_refused(tmp_path: Path, content: str) -> None:
    """A config that is no JSON object is an error."""
    _write(tmp_path, "config.json", content)
    with pytest.raises(ModelError, match=r"config\.json"):
        load_manifest(tmp_path)


def test_modernbert_gets_the_training_template_and_no_segments(tmp_path: Path) -> None:
    """A ModernBERT layout is read as LettuceDetect trained it, at most 4,096 tokens long."""
    _write(tmp_path, "config.json", {"model_type": "modernbert", "max_position_embeddings": 8192, "id2label": {"0": "LABEL_0", "1": "LABEL_1"}})  # fmt: skip
    manifest = load_manifest(tmp_path)
    assert manifest.input.template == "lettucedetect-v1"
    assert not manifest.input.segment_ids
    assert manifest.input.max_tokens == 4096
    assert (manifest.temperature, manifest.tau_token, manifest.aggregation) == (
        1.0,
        0.5,
        Aggregation.SPAN_NOISY_OR,
    )


def test_bert_gets_segment_ids_and_no_template() -> None:
    """A BERT layout has two segments and plain input."""
    manifest = derive_manifest("m", {"model_type": "bert", "max_position_embeddings": 512})
    assert manifest.input.segment_ids
    assert manifest.input.template is None
    assert manifest.input.max_tokens == 512


def test_label_one_is_hallucinated_whatever_the_names_say() -> None:
    """Names of labels are never trusted: published checkpoints never set them."""
    names = {"0": "hallucinated", "1": "supported"}
    assert derive_manifest("m", {"model_type": "modernbert", "id2label": names}).hallucinated_label == 1


def test_offset_position_tables_lose_two_positions() -> None:
    """RoBERTa layouts cannot use the first two positions of their table."""
    manifest = derive_manifest("m", {"model_type": "xlm-roberta", "max_position_embeddings": 514})
    assert manifest.input.max_tokens == 512


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "bert", "id2label": {"0": "a", "1": "b", "2": "c"}},
        {"model_type": "bert", "num_labels": 9},
        {"model_type": "bert", "max_position_embeddings": "many"},
        {"model_type": "bert", "max_position_embeddings": 8},
    ],
)
def test_other_kinds_of_models_are_refused(config: dict[str, Any]) -> None:
    """A model without two labels, or without room, is no detector."""
    with pytest.raises(ModelError, match="m: "):
        derive_manifest("m", config)


@pytest.mark.parametrize(
    "sizes",
    [
        {"answer_tokens": 64, "answer_overlap": 64},
        {"max_tokens": 64, "answer_tokens": 60, "answer_overlap": 4},
    ],
)
def test_sizes_that_cannot_work_are_refused(sizes: dict[str, int]) -> None:
    """Chunks must move on, and evidence must have room."""
    with pytest.raises(ValidationError, match="must"):
        InputFormat(**sizes)


def _manifest_of(folder: Path, **changes: object) -> Path:
    folder.mkdir(exist_ok=True)
    fitted = {"slope": 1.0, "worst": 0.5, "length": 0.0, "intercept": -1.0}
    data = {
        "name": "m",
        "base": "b",
        "input": {},
        "response": {"noisy_or": fitted | {"plain": 2.0}},
    } | changes
    (folder / "manifest.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


@pytest.mark.parametrize("changes", [{"format": 1}, {}], ids=["format 1", "no format"])
def test_calibrations_of_the_earlier_scale_are_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    """They were fitted to another base rate, and the message has the command that fits them again."""
    folder = _manifest_of(tmp_path / "m", **changes)
    with pytest.raises(ModelError, match=r"base rate of 0\.18.*truthlens\.lab\.calibrate\.refit"):
        load_manifest(folder)
    assert without_calibration(folder).response == {}


def test_a_model_without_calibrations_has_no_scale_to_renew(tmp_path: Path) -> None:
    """Manifests of pulled models, of either format, load as before."""
    for number in (1, 2):
        folder = _manifest_of(tmp_path / "m", format=number, response={})
        assert load_manifest(folder).response == {}


@pytest.mark.parametrize("sure", [0, 51, None])
def test_every_calibration_says_how_much_a_sure_token_counts(tmp_path: Path, sure: float | None) -> None:
    """It is above 0 and at most 50, beyond which one would not flag an answer; it has no default."""
    fitted = {"slope": 1.0, "worst": 0.5, "length": 0.0, "intercept": -1.0}
    own = fitted if sure is None else fitted | {"sure": sure}
    folder = _manifest_of(tmp_path / "m", format=2, response={"noisy_or": own})
    with pytest.raises(ModelError, match="sure"):
        load_manifest(folder)


@pytest.mark.parametrize(
    "deciles",
    [[0.1] * 8, [0.1] * 10, [0.2, *[0.1] * 8], [0.1] * 8 + [1.5]],
    ids=["8", "10", "falls", "above"],
)
def test_deciles_are_nine_ascending_scores(tmp_path: Path, deciles: list[float]) -> None:
    """Anything else is a damaged manifest; they may be left out."""
    folder = write_encoder(tmp_path / "tiny", manifest={"score_deciles": deciles})
    with pytest.raises(ModelError, match="score_deciles"):
        load_manifest(folder)
    assert load_manifest(write_encoder(tmp_path / "plain")).score_deciles is None
