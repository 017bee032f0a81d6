"""ONNX models on onnxruntime: fp32 or int8, on the CPU or on a GPU provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from truthlens.core.errors import DetectorError, ModelError
from truthlens.detection.runtime import BUDGET_TOKENS_CPU, BUDGET_TOKENS_GPU, Device, Stop, never, run_batched
from truthlens.detection.windows import Window

_KNOWN_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids", "features"})
_CUDA = "CUDAExecutionProvider"
_ERRORS_ONLY = 3


class OnnxModel:
    """A token classifier in one ONNX file; the graph is fed only the inputs that it has.

    Args:
        file: the ONNX file.
        label: index of the label "hallucinated".
        device: ``cpu``, ``cuda``, or ``auto``: CUDA where this onnxruntime has it.
        budget_tokens: most padded tokens in a batch; left out, it follows the device.
        threads: threads inside one inference. With one per inference, concurrent answers scale best.

    Raises:
        ModelError: the file cannot be loaded, asks for unknown inputs, or CUDA is not to be had.
    """

    def __init__(
        self,
        file: Path,
        *,
        label: int = 1,
        device: Device = "cpu",
        budget_tokens: int | None = None,
        threads: int = 1,
    ) -> None:
        has_gpu = _CUDA in ort.get_available_providers()
        if device == "cuda" and not has_gpu:
            raise ModelError(
                f"{file}: this onnxruntime cannot run on a GPU (no {_CUDA}); "
                "set use_cpu: true, or install onnxruntime-gpu"
            )
        on_gpu = has_gpu and device != "cpu"
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = ort.InferenceSession(
                str(file), options, providers=[_CUDA if on_gpu else "CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime raises its own kinds, none of them in one public tree
            raise ModelError(
                f"{file}: not a loadable ONNX model ({type(error).__name__}); export it again"
            ) from error
        self.inputs = frozenset(node.name for node in self._session.get_inputs())
        if self.inputs - _KNOWN_INPUTS or "input_ids" not in self.inputs:
            raise ModelError(
                f"{file}: the graph's inputs are {', '.join(sorted(self.inputs))}; expected input_ids and, "
                "of the others, only attention_mask, token_type_ids and features"
            )
        outputs = [node.name for node in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]
        self._label = label
        self._budget_tokens = budget_tokens or (BUDGET_TOKENS_GPU if on_gpu else BUDGET_TOKENS_CPU)
        self._name = f"onnx:{file.name}"

    @property
    def name(self) -> str:
        """``onnx:`` and the file's name."""
        return self._name

    def log_odds(self, windows: Sequence[Window], *, stop: Stop = never) -> list[NDArray[np.float32]]:
        """See ``TokenModel.log_odds``."""
        return run_batched(
            windows, self._forward, label=self._label, budget_tokens=self._budget_tokens, stop=stop
        )

    def _forward(self, inputs: Mapping[str, NDArray[np.generic]]) -> NDArray[np.float32]:
        missing = self.inputs - inputs.keys()
        if missing:
            raise DetectorError(
                f"the model wants {', '.join(sorted(missing))}, which the windows do not carry; "
                "set input.features in its manifest.json"
            )
        try:
            (logits,) = self._session.run([self._output], {name: inputs[name] for name in self.inputs})
        except Exception as error:  # onnxruntime raises its own kinds, none of them in one public tree
            raise DetectorError(f"{self._name} failed on a batch ({type(error).__name__})") from error
        return np.asarray(logits, dtype=np.float32)
