"""Convert any token classifier of ``transformers`` to ONNX, and compare it with the original.

ModernBERT layouts (LettuceDetect, TinyLettuce, mmBERT) get block-local attention; all others are traced
unchanged. Rounding to int8 is ``quantize``; calibration is not done here.
"""

from __future__ import annotations

import inspect
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from truthlens.core.errors import ModelError
from truthlens.detection.detectors.encoder.token_scores import sigmoid
from truthlens.detection.models.inputs.lexical import FEATURE_COUNT
from truthlens.detection.models.inputs.manifest import Manifest, load_manifest
from truthlens.detection.models.inputs.windows import Window, load_tokenizer
from truthlens.detection.models.onnx_runtime import OnnxModel
from truthlens.detection.models.runtime import TokenModel
from truthlens.detection.models.torch_runtime import TorchModel, load_classifier
from truthlens.lab.export.model_folder import write_folder
from truthlens.lab.export.modernbert import MODEL_TYPE, BlockLocalClassifier
from truthlens.lab.export.parity_inputs import fixture_windows

ONNX_NAME = "model.onnx"
OPSET = 17
"""Newer opsets write operators that onnxruntime cannot round to int8, or cannot run in batches."""
LARGEST_FILE = 1_900_000_000
"""Bytes of weights in one ONNX file (protobuf ends at 2 GiB); more go into a file beside it."""
_TOLERANCE = 1e-4
_EVERYTHING = 10_000_000


@dataclass(frozen=True, slots=True)
class ParityReport:
    """How far the exported file is from the original, in token probabilities over the fixture (float32).

    ``alone`` is the largest difference of windows run one by one, ``padded`` that of the shorter ones in one
    padded batch; ``longest`` the tokens of the longest window; ``layout`` says ``block-local`` or ``stock``.
    """

    alone: float
    padded: float
    windows: int
    tokens: int
    longest: int
    layout: str

    @property
    def largest(self) -> float:
        """The larger of the two differences."""
        return max(self.alone, self.padded)


def export_folder(
    folder: Path,
    output: Path,
    *,
    tolerance: float = _TOLERANCE,
    largest_file: int = LARGEST_FILE,
    threads: int = 1,
) -> ParityReport:
    """Write the token classifier of ``folder`` as ``model.onnx`` with tokenizer and manifest into ``output``.

    Args:
        folder: a Hugging Face folder with safetensors weights and ``tokenizer.json``, pulled or one's own.
        output: model folder; made if it is not there, and may be ``folder`` itself, which then holds both
            forms.
        tolerance: largest difference of token probabilities that is accepted.
        largest_file: bytes of weights from which they go into a file of their own.
        threads: threads of the comparison.

    Raises:
        ModelError: the folder holds no token classifier, or the graph does not compute what the original
            does. Then nothing was written.
    """
    manifest = load_manifest(folder)
    tokenizer = load_tokenizer(folder)
    windows = fixture_windows(tokenizer, manifest.input)
    original = TorchModel(folder, label=manifest.hallucinated_label, budget_tokens=1, threads=threads)
    expected = _probabilities(original, windows)
    del original
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        layout = _write(folder, place / ONNX_NAME, manifest=manifest, largest_file=largest_file)
        report = _compare(place / ONNX_NAME, manifest, windows, expected, layout=layout, threads=threads)
        if not report.largest <= tolerance:
            raise ModelError(
                f"{folder}: the exported graph differs from the original by {report.largest:.2g} in token "
                f"probability, expected at most {tolerance}; nothing was written. Run the model through PyTorch, or "
                "export it with the versions of torch and transformers that the project names"
            )
        shutil.copyfile(folder / "tokenizer.json", place / "tokenizer.json")
        figures = {**manifest.figures, "export": {"opset": OPSET, **asdict(report)}}
        write_folder(output, manifest.model_copy(update={"figures": figures}), place)
    return report


def _write(folder: Path, file: Path, *, manifest: Manifest, largest_file: int) -> str:
    """Write the graph to ``file``, and return how its attention is laid out."""
    model = load_classifier(folder, precision="float32", attention="eager")
    graph: nn.Module
    if model.config.model_type == MODEL_TYPE:
        layout, graph = "block-local", BlockLocalClassifier(model)
    else:
        layout, graph = "stock", StockClassifier(model, segments=manifest.input.segment_ids)
    names = ["input_ids", "attention_mask"]
    if isinstance(graph, StockClassifier) and graph.segments:
        names.append("token_type_ids")
    trace(graph.eval(), file, names=names)
    pack(file, largest_file=largest_file)
    return layout


class StockClassifier(nn.Module):
    """A classifier of any layout: ids, mask and segments in, logits out."""

    def __init__(self, model: Any, *, segments: bool) -> None:
        super().__init__()
        self.model = model
        self.segments = segments and "token_type_ids" in inspect.signature(model.forward).parameters

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Return the logits, shape (batch, tokens, labels), or (batch, labels) of a classifier of sequences."""
        segments = {"token_type_ids": token_type_ids} if self.segments else {}
        logits: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask, **segments).logits
        return logits


def trace(
    graph: nn.Module, file: Path, *, names: Sequence[str], output: str = "logits", per_token: bool = True
) -> None:
    """Write ``graph`` as ONNX, whose inputs ``names`` are (batch, tokens) and the features of each, both dimensions free.

    Its ``output`` is (batch, tokens, width), or where not ``per_token`` (batch, width).

    Raises:
        ModelError: PyTorch cannot write the graph.
    """
    ids = torch.arange(3, 43, dtype=torch.int64).reshape(2, 20) % 5
    mask = torch.ones_like(ids)
    mask[1, 13:] = 0
    segments = torch.zeros_like(ids)
    segments[:, 11:] = 1
    inputs = {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": segments,
        "claim_mask": segments * mask,
        "features": torch.rand(2, 20, FEATURE_COUNT),
    }
    free = {0: "batch", 1: "tokens"}
    with warnings.catch_warnings():
        # The exporter that follows the deprecated one cannot write this opset; and shapes that tracing froze
        # would show in the comparison with the original.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]
        try:
            torch.onnx.export(
                graph,
                tuple(inputs[name] for name in names),
                str(file),
                opset_version=OPSET,
                input_names=list(names),
                output_names=[output],
                dynamic_axes=dict.fromkeys(names, free) | {output: free if per_token else {0: "batch"}},
                dynamo=False,
            )
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            raise ModelError(
                f"PyTorch cannot write this layout as ONNX ({type(error).__name__}); run the model through PyTorch"
            ) from error


def sum_residuals(model: onnx.ModelProto) -> None:
    """Make residual additions of ``model`` ``Sum``.

    ONNX Runtime fuses ``Add`` and ``LayerNormalization`` into a kernel that is up to eight times slower on a
    CPU than the two alone.
    """
    normalised = {node.input[0] for node in model.graph.node if node.op_type == "LayerNormalization"}
    for node in model.graph.node:
        if node.op_type == "Add" and node.output[0] in normalised:
            node.op_type = "Sum"


def pack(file: Path, *, largest_file: int = LARGEST_FILE) -> None:
    """Write residual additions as ``Sum``, and weights beyond ``largest_file`` bytes into ``FILE.data``."""
    model = onnx.load(str(file))
    sum_residuals(model)
    for other in file.parent.glob("*"):
        if other != file and other.is_file():
            other.unlink()  # what the exporter wrote beside a large graph; all of it is in memory now
    weights = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if weights > largest_file:
        onnx.save(
            model, str(file), save_as_external_data=True, location=f"{file.name}.data", size_threshold=1024
        )
    else:
        onnx.save(model, str(file))


def _compare(
    file: Path,
    manifest: Manifest,
    windows: Sequence[Window],
    expected: Sequence[NDArray[np.float64]],
    *,
    layout: str,
    threads: int,
) -> ParityReport:
    def difference(chosen: Sequence[int], budget_tokens: int) -> float:
        model = OnnxModel(
            file, label=manifest.hallucinated_label, budget_tokens=budget_tokens, threads=threads
        )
        found = _probabilities(model, [windows[index] for index in chosen])
        pairs = zip(found, (expected[index] for index in chosen), strict=True)
        return max(float(np.abs(values - wanted).max(initial=0.0)) for values, wanted in pairs)

    by_length = sorted(range(len(windows)), key=lambda index: len(windows[index].input_ids))
    return ParityReport(
        alone=difference(by_length, 1),
        # All of them would cost as much as the longest times their number, and show no more.
        padded=difference(by_length[: max(2, len(windows) * 2 // 3)], _EVERYTHING),
        windows=len(windows),
        tokens=sum(len(values) for values in expected),
        longest=max(len(window.input_ids) for window in windows),
        layout=layout,
    )


def _probabilities(model: TokenModel, windows: Sequence[Window]) -> list[NDArray[np.float64]]:
    return [sigmoid(odds.astype(np.float64)) for odds in model.log_odds(windows)]
