"""Parity with ``lettucedetect``: the same weights give the same token probabilities, in its package and here.

Weights are random: what is compared is the whole way from prompt and answer to probabilities, not quality.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes.checkpoints import write_checkpoint
from truthlens.detection.detectors.encoder.loading import load_model
from truthlens.detection.models.inputs.manifest import load_manifest
from truthlens.detection.models.inputs.prompts import TemplateName, build_prompt
from truthlens.detection.models.inputs.windows import build_windows, load_tokenizer
from truthlens.lab.export.convert import export_folder
from truthlens.lab.export.parity_inputs import ParityInput, samples

pytest.importorskip("lettucedetect", reason="pip install --no-deps lettucedetect (see the extra `peer`)")
CLOSE = 1e-4


@pytest.fixture(scope="module", params=["modernbert", "eurobert"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of either family, and its export, in one folder."""
    made = write_checkpoint(tmp_path_factory.mktemp("peer") / "model", request.param)
    export_folder(made, made)
    return made


@pytest.fixture(scope="module")
def peer(folder: Path) -> Any:
    """The package's own detector on that checkpoint."""
    from lettucedetect.detectors.transformer import TransformerDetector

    return TransformerDetector(model_path=str(folder), max_length=2048, device="cpu")


def ours(folder: Path, sample: ParityInput, template: TemplateName) -> list[np.ndarray]:
    """Token probabilities of the sample's answer: through PyTorch, and from the exported file."""
    manifest = load_manifest(folder)
    fmt = manifest.input.model_copy(update={"template": template, "max_tokens": 2048})
    tokenizer = load_tokenizer(folder)
    built = build_windows(tokenizer, fmt, query=sample.query, passages=sample.passages, answer=sample.answer)
    assert len(built.windows) == 1
    from truthlens.detection.models.torch_runtime import TorchModel

    models = (TorchModel(folder), load_model(folder, manifest=manifest))
    return [1 / (1 + np.exp(-model.log_odds(built.windows)[0].astype(np.float64))) for model in models]


def probabilities(tokens: list[dict[str, Any]]) -> np.ndarray:
    """The package's probability of "hallucinated" of the answer's tokens, without the closing separator."""
    return np.array([token["prob"] for token in tokens])[:-1]


@pytest.mark.parametrize("number", [0, 2, 4])
def test_training_prompts_give_the_same_probabilities(folder: Path, peer: Any, number: int) -> None:
    """The prompt as in training, through predict_prompt() there and through a manifest's template here."""
    sample = samples()[number]
    template: TemplateName = "lettucedetect-v1"
    prompt = build_prompt(template, query=sample.query, passages=sample.passages).text(sample.passages)
    expected = probabilities(peer.predict_prompt(prompt, sample.answer, output_format="tokens"))
    for found in ours(folder, sample, template):
        np.testing.assert_allclose(found, expected, atol=CLOSE, rtol=0)


def test_the_packages_own_wording_gives_the_same_probabilities(folder: Path, peer: Any) -> None:
    """Passages and question through predict() there, and through the template with its wording here."""
    sample = samples()[3]
    expected = probabilities(
        peer.predict(context=list(sample.passages), question=sample.query, answer=sample.answer)
    )
    for found in ours(folder, sample, "lettucedetect-en"):
        np.testing.assert_allclose(found, expected, atol=CLOSE, rtol=0)


def test_label_1_is_hallucinated_in_both(folder: Path, peer: Any) -> None:
    """The figure compared is the second label's probability, not its complement."""
    sample = samples()[1]
    found = ours(folder, sample, "lettucedetect-en")[0]
    expected = probabilities(
        peer.predict(context=list(sample.passages), question=sample.query, answer=sample.answer)
    )
    assert np.abs(found - (1 - expected)).max() > 0.05
