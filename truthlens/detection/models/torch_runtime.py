"""Run Hugging Face token-classification folders on PyTorch, for GPUs and for checkpoints without ONNX.

``torch`` and ``transformers`` are imported when a model is loaded, so that serving an ONNX model needs
neither.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truthlens.core.cancellation import StopCheck, never
from truthlens.core.errors import DetectorError, ModelError
from truthlens.detection.encoder.inputs.windows import Window
from truthlens.detection.models.runtime import BUDGET_TOKENS_CPU, BUDGET_TOKENS_GPU, Device, run_batched

Precision = Literal["auto", "float32", "bfloat16"]


def torch_sees_gpu() -> bool:
    """Return whether PyTorch is installed and finds a GPU."""
    try:
        return bool(importlib.import_module("torch").cuda.is_available())
    except ImportError:
        return False


class TorchModel:
    """A token classifier from a folder with ``config.json`` and safetensors weights.

    Any layout that ``transformers`` knows will do (BERT, ModernBERT, EuroBERT, ...). Pickled weights and code
    that a checkpoint brings along are never loaded. Attention is PyTorch's ``scaled_dot_product_attention``,
    which takes its flash kernel where it can: on CUDA in bfloat16, in batches without padding.

    Args:
        folder: the model's folder.
        label: index of the label "hallucinated".
        device: ``cpu``, ``cuda``, or ``auto``: CUDA where PyTorch sees a GPU.
        precision: of weights and activations; ``auto`` is bfloat16 on CUDA and float32 on the CPU. Logits are
            float32.
        budget_tokens: most padded tokens in a batch; left out, it follows the device.
        threads: threads inside one inference on the CPU. PyTorch has one such setting a process.

    Raises:
        ModelError: PyTorch is not installed, the folder cannot be loaded, or CUDA is not to be had.
    """

    def __init__(
        self,
        folder: Path,
        *,
        label: int = 1,
        device: Device = "cpu",
        precision: Precision = "auto",
        budget_tokens: int | None = None,
        threads: int = 1,
    ) -> None:
        self._torch: Any = _libraries(folder)[0]
        has_gpu = bool(self._torch.cuda.is_available())
        if device == "cuda" and not has_gpu:
            raise ModelError(f"{folder}: PyTorch sees no GPU here; set use_cpu: true")
        on_gpu = has_gpu and device != "cpu"
        self._device = "cuda" if on_gpu else "cpu"
        if precision == "auto":
            precision = "bfloat16" if on_gpu else "float32"
        model = load_classifier(folder, precision=precision)
        if not on_gpu:
            self._torch.set_num_threads(threads)
        self._model: Any = model.to(self._device)
        self._accepted = frozenset(inspect.signature(self._model.forward).parameters)
        self._label = label
        self._budget_tokens = budget_tokens or (BUDGET_TOKENS_GPU if on_gpu else BUDGET_TOKENS_CPU)
        self._name = f"torch-{self._device}:{self._model.config.model_type}"

    @property
    def name(self) -> str:
        """``torch-cpu:`` or ``torch-cuda:`` and the model's layout."""
        return self._name

    @property
    def precision(self) -> str:
        """What the weights are kept in: ``float32`` or ``bfloat16``."""
        return str(self._model.dtype).removeprefix("torch.")

    def log_odds(self, windows: Sequence[Window], *, stop: StopCheck = never) -> list[NDArray[np.float32]]:
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
        except self._torch.OutOfMemoryError as error:
            tokens = inputs["input_ids"].size
            raise DetectorError(
                f"{self._name} ran out of GPU memory on a batch of {tokens} tokens; lower max_tokens in the "
                "manifest, or leave it more of the GPU"
            ) from error
        except (RuntimeError, IndexError, ValueError) as error:
            raise DetectorError(f"{self._name} failed on a batch ({type(error).__name__})") from error
        return np.asarray(logits, dtype=np.float32)


def load_classifier(folder: Path, *, precision: str, attention: str = "sdpa") -> Any:
    """Load the token classifier of a folder, as ``transformers`` builds it, in evaluation mode on the CPU.

    Args:
        folder: ``config.json`` and safetensors weights.
        precision: ``float32`` or ``bfloat16``.
        attention: implementation by its name in ``transformers``; layouts without it take ``eager``.

    Raises:
        ModelError: PyTorch is not installed, or the folder holds no complete token classifier.
    """
    torch, transformers = _libraries(folder)
    transformers.logging.disable_progress_bar()

    def load(attention: str) -> Any:
        return transformers.AutoModelForTokenClassification.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=getattr(torch, precision),
            attn_implementation=attention,
            output_loading_info=True,
        )

    try:
        try:
            model, loading = load(attention)
        except ValueError:
            model, loading = load("eager")
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
    return model.eval()


def _libraries(folder: Path) -> tuple[Any, Any]:
    try:
        return importlib.import_module("torch"), importlib.import_module("transformers")
    except ImportError as error:
        raise ModelError(
            f"{folder}: this folder has no ONNX file and PyTorch is not installed; "
            "run pip install 'truthlens[torch]', or export the model to ONNX"
        ) from error
