"""Go on from an exported model: the weights come back within the rounding, and further features start as nothing."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from rich.console import Console

from tests.fakes.tiny_base import write_base, write_data
from truthlens.core.errors import ModelError
from truthlens.detection.models.inputs.lexical import FEATURE_COUNT
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.lab.build import build
from truthlens.lab.data.dataset import read_folder
from truthlens.lab.export.export import load_run
from truthlens.lab.train.model import TokenClassifier, build_model
from truthlens.lab.train.predict import predict
from truthlens.lab.train.recipe import INPUT
from truthlens.lab.train.trainer import TrainSettings, train
from truthlens.lab.train.warm_start import load_exported


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> TrainSettings:
    """A training of seconds."""
    folder = tmp_path_factory.mktemp("warm")
    return TrainSettings(
        data=write_data(folder / "data"), run=folder / "run", base=str(write_base(folder / "base")), epochs=2,
        batch_tokens=300, learning_rate=5e-3, head_learning_rate=1e-2, generated=False, threads=1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def exported(settings: TrainSettings) -> Path:
    """The model folder that it makes."""
    return build(settings, settings.run.parent / "tiny-en", console=Console(file=io.StringIO()))


def _margins(model: TokenClassifier, settings: TrainSettings) -> NDArray[np.float64]:
    rows = read_folder(settings.data)[:20]
    return np.concatenate(predict(model, load_tokenizer(settings.run), rows, fmt=INPUT))


def test_the_weights_come_back(settings: TrainSettings, exported: Path) -> None:
    """Scores of the classifier that was read back are those of the trained one, but for the rounding to int8."""
    model = build_model(Path(settings.base), features=FEATURE_COUNT)
    before = _margins(model, settings)
    load_exported(model, exported)
    trained, back = _margins(load_run(settings.run), settings), _margins(model, settings)
    assert np.corrcoef(trained, before)[0, 1] < 0.9
    assert np.corrcoef(trained, back)[0, 1] > 0.99


def test_a_training_goes_on_with_the_features_it_began_with(settings: TrainSettings, exported: Path) -> None:
    """A run folder whose training saw other features is refused, with what to do."""
    with pytest.raises(
        ModelError, match=r"features lexical-v2, and this one has lexical-v1; give another --run"
    ):
        train(replace(settings, features="lexical-v1", epochs=3), console=Console(file=io.StringIO()))


def test_further_features_start_as_nothing(settings: TrainSettings, exported: Path) -> None:
    """A classifier of more features reads the same columns as before, and the further ones with weight zero."""
    model = build_model(Path(settings.base), features=FEATURE_COUNT + 3)
    load_exported(model, exported)
    first = model.feature_mlp[0]
    assert isinstance(first, torch.nn.Linear)
    weight = first.weight
    assert not weight[:, FEATURE_COUNT:].any()
    assert weight[:, :FEATURE_COUNT].any()


def test_fewer_features_are_refused(settings: TrainSettings, exported: Path) -> None:
    """What the head learnt of a column is not dropped silently."""
    model = build_model(Path(settings.base), features=FEATURE_COUNT - 3)
    with pytest.raises(ModelError, match="architecture"):
        load_exported(model, exported)
