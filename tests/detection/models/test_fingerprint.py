"""Which model a folder holds: what changes the identity, and what does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.errors import ModelError
from truthlens.core.records.enums import Aggregation
from truthlens.detection.models.fingerprint import model_identity


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "tiny")


def with_manifest(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_name_digest_and_aggregation(folder: Path) -> None:
    """The same files give the same identity, wherever they lie."""
    identity = model_identity(folder)
    assert (identity.name, identity.aggregation, len(identity.sha256)) == (
        "tiny",
        Aggregation.SPAN_NOISY_OR,
        64,
    )
    assert model_identity(folder.rename(folder.with_name("moved"))) == identity


@pytest.mark.parametrize(
    "changes",
    [
        {"temperature": 2.0},
        {"tau_span": 0.3},
        {"format": 2, "response": {"noisy_or": {"slope": 1.0, "intercept": -1.0, "sure": 8.0}}},
        {"input": {"max_tokens": 32, "answer_tokens": 16, "answer_overlap": 4}},
        {"files": {"model.onnx": "ab" * 32}},
    ],
)
def test_what_changes_scores_is_another_model(folder: Path, changes: dict[str, Any]) -> None:
    """Calibration, limits, input format and weights count."""
    before = model_identity(folder)
    with_manifest(folder, **changes)
    assert model_identity(folder).sha256 != before.sha256


@pytest.mark.parametrize(
    "changes",
    [
        {"note": "better words"},
        {"figures": {"test": {"auroc": 0.9}}},
        {"recommended_threshold": 0.4},
        {"score_deciles": [0.1] * 9},
        {"temperature": 1.0},
        {"aggregation": "noisy_or"},
    ],
)
def test_words_defaults_and_aggregation_leave_the_digest(folder: Path, changes: dict[str, Any]) -> None:
    """Descriptions change no score, a default may be written out, and the aggregation is compared by itself."""
    before = model_identity(folder)
    with_manifest(folder, **changes)
    assert model_identity(folder).sha256 == before.sha256


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "tokenizer.json").write_text('{"other": 1}'),
        lambda folder: (folder / "model.onnx").write_bytes(b"other weights"),
    ],
)
def test_files_that_the_manifest_does_not_list_are_read(
    folder: Path, change: Callable[[Path], object]
) -> None:
    """Without listed weights, and for the tokenizer, the contents count."""
    with_manifest(folder, files={})
    before = model_identity(folder)
    change(folder)
    assert model_identity(folder).sha256 != before.sha256


def test_no_model_folder(tmp_path: Path) -> None:
    """A folder without manifest and configuration has no identity."""
    with pytest.raises(ModelError, match="no model folder"):
        model_identity(tmp_path)
