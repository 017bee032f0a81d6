"""Hugging Face token-classification folders on PyTorch, for GPUs and for checkpoints without an ONNX file.

``torch`` and ``transformers`` are imported when a model is loaded, so that serving an ONNX model needs neither.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthlens.core.errors import DetectorError, ModelError
from truthlens.detection.runtime import Stop, never, run_batched
from truthlens.detection.windows import Window

_BUDGET_TOKENS_CPU = 1024
_BUDGET_TOKENS_GPU = 32_768


class TorchModel:
    """A token classifier from a folder with ``config.json`` and safetensors weights.

    Any layout that ``transformers`` knows will do (BERT, ModernBERT, ...). Pickled weights and code that a
    checkpoint brings along are never loaded.

    Args:
        folder: the model's folder.
        label: index of the label "hallucinated".
        use_cpu: run on the CPU in float32; otherwise on CUDA in bfloat16.
        threads: threads inside one inference. PyTorch has one such setting a process.

    Raises:
        ModelError: PyTorch is not installed, the folder cannot be loaded, or CUDA is not to be had.
    """

    def __init__(self, folder: Path, *, label: int = 1, use_cpu: bool = True, threads: int = 1) -> None:
        try:
            self._torch: Any = importlib.import_module("torch")
            transformers: Any = importlib.import_module("transformers")
        except ImportError as error:
            raise ModelError(
                f"{folder}: this folder has no ONNX file and PyTorch is not installed; "
                "run pip install 'truthlens[torch]', or export the model to ONNX"
            ) from error
        if not use_cpu and not self._torch.cuda.is_available():
            raise ModelError(f"{folder}: PyTorch sees no GPU here; set use_cpu: true")
        self._device = "cpu" if use_cpu else "cuda"
        try:
            model, loading = transformers.AutoModelForTokenClassification.from_pretrained(
                folder,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=self._torch.float32 if use_cpu else self._torch.bfloat16,
                output_loading_info=True,
            )
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            raise ModelError(
                f"{folder}: not a loadable token classifier ({type(error).__name__}); expected config.json and "
                "safetensors weights of a token-classification model"
            ) from error
        if loading["missing_keys"]:
            # transformers fills them with random numbers, and scores made of those would look like any others
            raise ModelError(
                f"{folder}: {len(loading['missing_keys'])} weights are missing, such as "
                f"{min(loading['missing_keys'])}; expected a trained token classifier, not a bare encoder"
            )
        if use_cpu:
            self._torch.set_num_threads(threads)
        self._model: Any = model.eval().to(self._device)
        self._accepted = frozenset(inspect.signature(self._model.forward).parameters)
        self._label = label
        self._budget_tokens = _BUDGET_TOKENS_CPU if use_cpu else _BUDGET_TOKENS_GPU
        self._name = f"torch-{self._device}:{self._model.config.model_type}"

    @property
    def name(self) -> str:
        """``torch-cpu:`` or ``torch-cuda:`` and the model's layout."""
        return self._name

    def log_odds(self, windows: Sequence[Window], *, stop: Stop = never) -> list[NDArray[np.float32]]:
        """See ``TokenModel.log_odds``."""
        return run_batched(
            windows, self._forward, label=self._label, budget_tokens=self._budget_tokens, stop=stop
        )

    def _forward(self, inputs: Mapping[str, NDArray[np.generic]]) -> NDArray[np.float32]:
        tensors = {
            name: self._torch.from_numpy(values).to(self._device)
            for name, values in inputs.items()
            if name in self._accepted
        }
        try:
            with self._torch.inference_mode():
                logits = self._model(**tensors).logits.float().cpu().numpy()
        except (RuntimeError, IndexError, ValueError) as error:
            raise DetectorError(f"{self._name} failed on a batch ({type(error).__name__})") from error
        return np.asarray(logits, dtype=np.float32)
