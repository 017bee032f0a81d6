"""A trained run as an ONNX file: exported, quantised to int8, and compared with what it came from.

Neither calibrates nor writes a manifest; see ``build``.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from rich.console import Console
from torch import Tensor

from truthlens.core.errors import ModelError
from truthlens.detection.detectors.encoder.token_scores import sigmoid
from truthlens.detection.models.inputs.lexical import FEATURE_COUNT
from truthlens.detection.models.inputs.manifest import InputFormat
from truthlens.detection.models.inputs.windows import Window, build_windows, load_tokenizer
from truthlens.detection.models.onnx_runtime import OnnxModel
from truthlens.detection.models.runtime import TokenModel
from truthlens.lab.calibrate.logistic import fit_logistic
from truthlens.lab.data.dataset import Example
from truthlens.lab.export.convert import ONNX_NAME, sum_residuals, trace
from truthlens.lab.export.graph import FULL_PRECISION, ExportedClassifier, find_ranges
from truthlens.lab.train.batches import IGNORED, token_labels
from truthlens.lab.train.model import TokenClassifier, empty_model

WEIGHTS = "model.pt"
_MOST_EXPORT_DIFFERENCE = 1e-2
_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "features")
_LAST_BIAS = "head.3.bias"
_OUTLYING_CHANNELS = 32
_PROBES = 400  # windows that outlying channels are looked for in


@dataclass(frozen=True, slots=True)
class ExportLimits:
    """What int8 may cost: 99th percentile of the change of token probabilities, loss of token accuracy."""

    # A model that is surer of its tokens moves by more for the same rounding, so that this bounds gross faults alone; what
    # rounding costs is the loss of accuracy.
    change_p99: float = 0.04
    accuracy_loss: float = 0.005


@dataclass(frozen=True, slots=True)
class ExportReport:
    """How faithful the exported file is.

    ``quantized`` is false where the gate refused int8. ``change_p99`` is the 99th percentile of the change of
    calibrated token probabilities by int8, ``accuracy_loss`` the loss of token accuracy (0..1; negative: a
    gain), ``export_difference`` the largest difference of log-odds between PyTorch and the fp32 file.
    """

    file: Path
    quantized: bool
    change_p99: float
    accuracy_loss: float
    export_difference: float
    tokens: int


def export(
    run: Path,
    out: Path,
    *,
    fixture: Sequence[Example],
    fmt: InputFormat,
    gate: ExportLimits = ExportLimits(),
    console: Console | None = None,
) -> ExportReport:
    """Write ``model.onnx`` and ``tokenizer.json`` into ``out`` from a training run.

    The file is int8 if that passes ``gate`` on ``fixture``; else it is fp32, and the console says so.

    Args:
        run: folder of ``train``.
        out: model folder; made if it is not there.
        fixture: labelled answers that the files are compared on; at least one.
        fmt: the model's input format.
        gate: what int8 may cost.
        console: where the report goes.

    Raises:
        ModelError: the exported graph does not compute what the run does.
    """
    console = console or Console(stderr=True)
    model = load_run(run)
    tokenizer = load_tokenizer(run)
    windows, labels = _fixture_windows(run, fixture, fmt)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        full, small = Path(scratch) / "fp32.onnx", Path(scratch) / "int8.onnx"
        ranges = find_ranges(model, _torch_inputs(windows[:_PROBES]), channels=_OUTLYING_CHANNELS)
        to_onnx(ExportedClassifier(model, ranges=ranges), full)
        expected = _torch_odds(model, windows)
        exact = _odds(OnnxModel(full, threads=torch.get_num_threads()), windows)
        difference = float(np.abs(exact - expected).max(initial=0.0))
        if not difference <= _MOST_EXPORT_DIFFERENCE:
            raise ModelError(
                f"{run}: the exported graph differs from the trained model by {difference:.4f} in log-odds, "
                f"expected at most {_MOST_EXPORT_DIFFERENCE}; use the PyTorch version that the project names"
            )
        quantize(full, small)
        rounded = _odds(OnnxModel(small, threads=torch.get_num_threads()), windows)
        slope, intercept = _served_as(exact, labels)
        change = float(
            np.percentile(
                np.abs(sigmoid(slope * rounded + intercept) - sigmoid(slope * exact + intercept)), 99
            )
        )
        loss = _accuracy(exact, labels) - _accuracy(rounded, labels)
        quantized = change <= gate.change_p99 and loss <= gate.accuracy_loss
        shutil.copyfile(small if quantized else full, out / ONNX_NAME)
    tokenizer.save(str(out / "tokenizer.json"))
    figures = (
        f"99th percentile of change {change:.4f}, loss of token accuracy {loss:+.4f} on {len(exact)} tokens"
    )
    if quantized:
        console.print(f"exported int8: {figures}")
    else:
        console.print(
            f"[bold red]int8 refused[/]: {figures}; allowed are {gate.change_p99} and {gate.accuracy_loss}. "
            "The exported file is fp32: four times the size, twice the time."
        )
    return ExportReport(out / ONNX_NAME, quantized, change, loss, difference, len(exact))


def load_run(run: Path) -> TokenClassifier:
    """Load the trained classifier of a run folder, in evaluation mode.

    Raises:
        ModelError: the run has no weights yet.
    """
    path = run / WEIGHTS
    if not path.is_file():
        raise ModelError(f"{path} is missing; finish the training first")
    model = empty_model(run, features=FEATURE_COUNT)
    try:
        model.load_state_dict(torch.load(path, weights_only=True))
    except RuntimeError as error:
        raise ModelError(
            f"{path} is of another architecture, or was trained with other features: {error}"
        ) from error
    return model.eval()


def to_onnx(model: ExportedClassifier, file: Path) -> None:
    """Write ``model`` as fp32 ONNX with inputs ``_INPUTS`` and output ``logits`` (batch, tokens, 2).

    Logits are those of the model from the first token of type 1 on, and zero before.
    """
    trace(model.eval(), file, names=_INPUTS)
    exported = onnx.load(str(file))
    sum_residuals(exported)
    onnx.save(exported, str(file))


def quantize(full: Path, small: Path) -> None:
    """Round the matrix products and the embedding table to dynamic int8, one scale a column."""
    nodes = onnx.load(str(full)).graph.node
    exact = [node.name for node in nodes if any(part in node.name for part in FULL_PRECISION)]
    quantize_dynamic(
        str(full),
        str(small),
        nodes_to_exclude=exact,
        op_types_to_quantize=["MatMul", "Gather"],
        weight_type=QuantType.QInt8,
        per_channel=True,
    )


def shift_bias(file: Path, shift: float) -> None:
    """Add ``shift`` to the log-odds that an exported file gives, in its last bias.

    Raises:
        ModelError: the file has no such bias.
    """
    model = onnx.load(str(file))
    for initializer in model.graph.initializer:
        if initializer.name.endswith(_LAST_BIAS):
            bias = numpy_helper.to_array(initializer).copy()
            bias[1] += shift
            initializer.CopyFrom(numpy_helper.from_array(bias, initializer.name))
            onnx.save(model, str(file))
            return
    raise ModelError(f"{file} has no initializer {_LAST_BIAS}; export the model with this version")


def _fixture_windows(
    run: Path, fixture: Sequence[Example], fmt: InputFormat
) -> tuple[list[Window], NDArray[np.int64]]:
    tokenizer = load_tokenizer(run)
    windows: list[Window] = []
    labels: list[NDArray[np.int16]] = []
    for example in fixture:
        built = build_windows(
            tokenizer, fmt, query=example.query, passages=example.context, answer=example.response
        )
        own = token_labels(built.offsets, example)
        windows.extend(built.windows)
        labels.extend(own[w.first : w.first + w.answer.stop - w.answer.start] for w in built.windows)
    if not windows:
        raise ModelError("the fixture of the export has no tokens; give labelled answers to compare on")
    return windows, np.concatenate(labels).astype(np.int64)


def _odds(model: TokenModel, windows: Sequence[Window]) -> NDArray[np.float64]:
    return np.concatenate(model.log_odds(windows)).astype(np.float64)


def _torch_inputs(windows: Sequence[Window]) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    inputs = []
    for window in windows:
        features = window.features
        if features is None:
            features = np.zeros((len(window.input_ids), FEATURE_COUNT), dtype=np.float32)
        ids = torch.from_numpy(window.input_ids)[None]
        types = torch.from_numpy(window.type_ids)[None]
        inputs.append((ids, torch.ones_like(ids), types, torch.from_numpy(features)[None]))
    return inputs


def _torch_odds(model: TokenClassifier, windows: Sequence[Window]) -> NDArray[np.float64]:
    found: list[NDArray[np.float64]] = []
    with torch.inference_mode():
        for window, inputs in zip(windows, _torch_inputs(windows), strict=True):
            logits = model(*inputs)[0]
            found.append((logits[window.answer, 1] - logits[window.answer, 0]).double().numpy())
    return np.concatenate(found)


def _served_as(odds: NDArray[np.float64], labels: NDArray[np.int64]) -> tuple[float, float]:
    """Return the slope and intercept that turn the fixture's log-odds into probabilities, about as served."""
    known = labels != IGNORED
    gold = (labels[known] == 1).astype(np.float64)
    if not len(gold) or gold.min() == gold.max():
        return 1.0, 0.0
    slope, intercept = fit_logistic(odds[known][:, None], gold, np.ones_like(gold), ridge=0.0)
    return max(float(slope), 1e-2), float(intercept)


def _accuracy(odds: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    known = labels != IGNORED
    return float(((odds[known] > 0) == (labels[known] == 1)).mean()) if known.any() else 1.0
