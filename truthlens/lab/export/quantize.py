"""A model folder's ONNX file rounded to int8, kept only where that costs next to nothing.

Rounded are the weights of matrix products and the embedding table, one scale a column; activations are
rounded as they come. Training with rounding in the loop, and calibration, are not done here.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.core.errors import ModelError
from truthlens.core.records.exchange import plain_exchange
from truthlens.detection.detectors.encoder.detector import EncoderDetector
from truthlens.detection.detectors.encoder.loading import BODY_NAME, head_of, verify_files
from truthlens.detection.detectors.encoder.token_scores import sigmoid
from truthlens.detection.models.inputs.manifest import Manifest, load_manifest
from truthlens.detection.models.inputs.windows import Window, load_tokenizer
from truthlens.detection.models.onnx_runtime import OnnxModel
from truthlens.detection.models.runtime import TokenModel
from truthlens.lab.data.dataset import Example
from truthlens.lab.evaluate.metrics import auroc, prf_of_flags
from truthlens.lab.export.convert import ONNX_NAME
from truthlens.lab.export.export import ExportLimits
from truthlens.lab.export.export import quantize as round_weights
from truthlens.lab.export.model_folder import write_folder
from truthlens.lab.export.parity_inputs import fixture_windows

DEFAULT_GATE = ExportLimits()
_ROUNDED = frozenset({"MatMulInteger", "DynamicQuantizeLinear", "QLinearMatMul", "DequantizeLinear"})


@dataclass(frozen=True, slots=True)
class QuantisationQuality:
    """Figures on labelled answers, before and after; ``auroc_*`` is ``None`` where one class is missing.

    ``f1_*`` is the example F1 at the manifest's recommended threshold.
    """

    rows: int
    auroc_before: float | None
    auroc_after: float | None
    f1_before: float
    f1_after: float

    @property
    def loss(self) -> float:
        """The larger loss of the two figures, 0..1; negative where both gained."""
        ranked = 0.0
        if self.auroc_before is not None and self.auroc_after is not None:
            ranked = self.auroc_before - self.auroc_after
        return max(ranked, self.f1_before - self.f1_after)


@dataclass(frozen=True, slots=True)
class QuantizeReport:
    """What int8 costs.

    Changes are of calibrated token probabilities over the fixture.

    ``agreement`` is the share of tokens on the same side of the manifest's ``tau_span``. ``quality`` is there
    where labelled answers were given. ``refused`` says what is beyond the gate, or ``""``.
    """

    bytes_before: int
    bytes_after: int
    change_max: float
    change_p99: float
    agreement: float
    tokens: int
    quality: QuantisationQuality | None
    refused: str


def quantize_folder(
    folder: Path,
    output: Path,
    *,
    rows: Iterable[Example] = (),
    gate: ExportLimits = DEFAULT_GATE,
    force: bool = False,
    threads: int = 1,
) -> QuantizeReport:
    """Round the ONNX file (or body) of ``folder`` to int8; write it to ``output`` if it passes ``gate``.

    Args:
        folder: model folder with an fp32 ONNX file; ``export_folder`` makes one.
        output: model folder; may be ``folder`` itself, whose file is then replaced.
        rows: labelled answers that both files score; without any, accuracy is not measured.
        gate: what int8 may cost; ``accuracy_loss`` bounds the loss of AUROC and of F1.
        force: write the file even if the gate refuses it.
        threads: threads of the comparison.

    Raises:
        ModelError: the folder has no such file, or it is rounded already.
    """
    manifest = load_manifest(folder)
    verify_files(folder, manifest.files)
    full = next((folder / name for name in (ONNX_NAME, BODY_NAME) if (folder / name).is_file()), None)
    if full is None:
        raise ModelError(f"{folder} has no {ONNX_NAME}; make one with: truthlens models export {folder}")
    if any(node.op_type in _ROUNDED for node in onnx.load(str(full), load_external_data=False).graph.node):
        raise ModelError(f"{full} is int8 already; export the model again to start from float32")
    tokenizer = load_tokenizer(folder)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        small, head = place / full.name, head_of(full)
        with _no_advice():
            round_weights(full, small)
        before = OnnxModel(full, head=head, label=manifest.hallucinated_label, threads=threads)
        after = OnnxModel(small, head=head, label=manifest.hallucinated_label, threads=threads)
        report = _report(
            before, after, tokenizer, manifest, rows=rows, gate=gate, sizes=(_size(full), _size(small))
        )
        if not report.refused or force:
            shutil.copyfile(folder / "tokenizer.json", place / "tokenizer.json")
            if head is not None:
                shutil.copyfile(head, place / head.name)
            figures = {**manifest.figures, "int8": asdict(report)}
            changed = manifest.model_copy(update={"figures": figures})
            write_folder(output, changed, place, replaced=(f"{full.name}.data",))
    return report


def _report(
    before: TokenModel,
    after: TokenModel,
    tokenizer: Tokenizer,
    manifest: Manifest,
    *,
    rows: Iterable[Example],
    gate: ExportLimits,
    sizes: tuple[int, int],
) -> QuantizeReport:
    windows = fixture_windows(tokenizer, manifest.input)
    exact, rounded = (_probabilities(model, windows, manifest) for model in (before, after))
    change = np.abs(exact - rounded)
    p99 = float(np.percentile(change, 99))
    quality = _quality(before, after, tokenizer, manifest, rows)
    refused = []
    if not p99 <= gate.change_p99:
        refused.append(f"99th percentile of change {p99:.4f}, allowed {gate.change_p99}")
    if quality is not None and not quality.loss <= gate.accuracy_loss:
        refused.append(f"loss of {100 * quality.loss:.2f} points, allowed {100 * gate.accuracy_loss:g}")
    return QuantizeReport(
        bytes_before=sizes[0],
        bytes_after=sizes[1],
        change_max=float(change.max()),
        change_p99=p99,
        agreement=float(((exact >= manifest.tau_span) == (rounded >= manifest.tau_span)).mean()),
        tokens=len(change),
        quality=quality,
        refused="; ".join(refused),
    )


def _probabilities(model: TokenModel, windows: Sequence[Window], manifest: Manifest) -> NDArray[np.float64]:
    odds = np.concatenate(model.log_odds(windows)).astype(np.float64)
    return sigmoid(odds / manifest.temperature)


def _quality(
    before: TokenModel, after: TokenModel, tokenizer: Tokenizer, manifest: Manifest, rows: Iterable[Example]
) -> QuantisationQuality | None:
    detectors = [EncoderDetector(model, tokenizer, manifest) for model in (before, after)]
    labels: list[int] = []
    scores: tuple[list[float], list[float]] = ([], [])
    for row in rows:
        labels.append(row.label)
        for detector, found in zip(detectors, scores, strict=True):
            found.append(_score(detector, row))
    if not labels:
        return None
    threshold = manifest.recommended_threshold
    return QuantisationQuality(
        rows=len(labels),
        auroc_before=auroc(labels, scores[0]),
        auroc_after=auroc(labels, scores[1]),
        f1_before=prf_of_flags(labels, np.array(scores[0]) >= threshold).f1,
        f1_after=prf_of_flags(labels, np.array(scores[1]) >= threshold).f1,
    )


def _score(detector: EncoderDetector, row: Example) -> float:
    exchange, answer = plain_exchange(row.query, row.context, row.response)
    # What cannot be scored (empty, no evidence) counts as not flagged in both.
    return detector.detect(exchange, answer).score or 0.0


@contextmanager
def _no_advice() -> Iterator[None]:
    """Suppress onnxruntime's advice to preprocess the graph, which changes nothing here."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _size(file: Path) -> int:
    beside = file.with_name(f"{file.name}.data")
    return file.stat().st_size + (beside.stat().st_size if beside.is_file() else 0)
