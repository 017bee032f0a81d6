"""Encoders are loaded once, and leave memory with what used them."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.errors import ModelError
from truthlens.core.net import Address
from truthlens.detection.detectors.reader import BUNDLED_READER
from truthlens.detection.detectors.reader.model import Reader
from truthlens.detection.interfaces import Detector
from truthlens.policy import Policy, compile_policy
from truthlens.process.model_store import ModelShelf, find_model
from truthlens.process.settings import Settings
from truthlens.telemetry.drift import LEAST_ANSWERS, ModelKey
from truthlens.telemetry.metrics import Metrics

SETTINGS = Settings(extproc=Address("127.0.0.1", 0), console=Address("127.0.0.1", 0))


def policy_of(folder: Path, *, max_windows: int) -> Policy:
    text = f"hallucination: {{model_id: {folder}, use_cpu: true, detectors: [encoder]}}\nlimits: {{max_windows: {max_windows}}}\n"
    return compile_policy(text, file="p.yaml")


def only_detector(shelf: ModelShelf, policy: Policy) -> Detector:
    ((_, detector),) = shelf.detectors_for(policy).of(policy.default)
    assert detector is not None
    return detector


def test_a_model_is_loaded_once_and_leaves_with_what_used_it(tmp_path: Path) -> None:
    """Reloads that name other models, or another limit, must not add up in memory."""
    shelf, folder = ModelShelf(SETTINGS, Metrics()), write_encoder(tmp_path / "tiny")
    first = only_detector(shelf, policy_of(folder, max_windows=8))
    assert only_detector(shelf, policy_of(folder, max_windows=8)) is first
    second = only_detector(shelf, policy_of(folder, max_windows=9))
    assert second is not first
    left = weakref.ref(first)
    del first
    gc.collect()
    assert left() is None
    assert only_detector(shelf, policy_of(folder, max_windows=9)) is second


def test_scores_are_compared_with_the_deciles_of_loaded_models(tmp_path: Path) -> None:
    """Of a model whose manifest has them; one without says nothing of drift."""
    signals = Metrics()
    shelf = ModelShelf(SETTINGS, signals)
    manifest = {"score_deciles": [0.1] * 8 + [0.2], "revision": "r1"}
    folder = write_encoder(tmp_path / "tiny", manifest=manifest)
    kept = only_detector(shelf, policy_of(folder, max_windows=8))
    for _ in range(LEAST_ANSWERS):
        signals.detectors.drift.observe(ModelKey("tiny", "r1"), None, 0.9)
    assert [each.model for each in signals.detectors.drift.figures()] == [ModelKey("tiny", "r1")]
    other = write_encoder(tmp_path / "other", manifest={"name": "other"})
    assert only_detector(shelf, policy_of(other, max_windows=8)) is not kept
    assert signals.detectors.drift.figures() == []


def test_a_reader_is_loaded_once_and_has_read_before_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    warmed: list[Reader] = []

    def warm_up(reader: Reader) -> None:
        warmed.append(reader)

    monkeypatch.setattr(Reader, "warm_up", warm_up)
    shelf = ModelShelf(SETTINGS, Metrics())
    reader = shelf.reader_of(BUNDLED_READER)
    assert shelf.reader_of(BUNDLED_READER) is reader
    assert warmed == [reader]


def test_models_of_another_kind_are_not_offered_as_token_classifiers() -> None:
    with pytest.raises(ModelError, match="holds truthlens-minilm-en-v2, and no folder"):
        find_model("nothing", SETTINGS)
