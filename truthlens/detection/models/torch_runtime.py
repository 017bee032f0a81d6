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
from truthlens.detection.models.inputs.windows import Window
from truthlens.detection.models.runtime import BUDGET_TOKENS_CPU, BUDGET_TOKENS_GPU, run_batched

Precision = Literal["auto", "float32", "bfloat16"]


class TorchModel:
    """A token classifier from a folder with ``config.json`` and safetensors weights.

    Any layout that ``transformers`` knows will do (BERT, ModernBERT, EuroBERT, ...). Pickled weights and code
    that a checkpoint brings along are never loaded. Attention is PyTorch's ``scaled_dot_product_attention``,
    which takes its flash kernel where it can: on CUDA in bfloat16, in batches without padding.

    Args:
        folder: the model's folder.
        label: index of the label "hallucinated".
        use_cpu: otherwise it runs on CUDA.
        precision: of weights and activations; ``auto`` is bfloat16 on CUDA and float32 on the CPU. Logits are
            float32.
        budget_tokens: most padded tokens in a batch; left out, it follows ``use_cpu``.
        threads: threads inside one inference on the CPU. PyTorch has one such setting a process.

    Raises:
        ModelError: PyTorch is not installed, the folder cannot be loaded, or CUDA is not to be had.
    """

    def __init__(
        self,
        folder: Path,
        *,
        label: int = 1,
        use_cpu: bool = True,
        precision: Precision = "auto",
        budget_tokens: int | None = None,
        threads: int = 1,
    ) -> None:
        self._torch: Any = _libraries(folder)[0]
        if not use_cpu and not self._torch.cuda.is_available():
            raise ModelError(f"{folder}: PyTorch sees no GPU here; set use_cpu: true")
        self._device = "cpu" if use_cpu else "cuda"
        if precision == "auto":
            precision = "float32" if use_cpu else "bfloat16"
        model = load_classifier(folder, precision=precision)
        if use_cpu:
            self._torch.set_num_threads(threads)
        self._model: Any = model.to(self._device)
        self._accepted = frozenset(inspect.signature(self._model.forward).parameters)
        self._label = label
        self._budget_tokens = budget_tokens or (BUDGET_TOKENS_CPU if use_cpu else BUDGET_TOKENS_GPU)
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


def load_classifier(
    folder: Path,
    *,
    precision: str,
    attention: str = "sdpa",
    kind: Literal["Token", "Sequence"] = "Token",
) -> Any:
    """Load the token or sequence classifier of a folder, as ``transformers`` builds it, in evaluation mode on the CPU.

    Args:
        folder: ``config.json`` and safetensors weights.
        precision: ``float32`` or ``bfloat16``.
        attention: implementation by its name in ``transformers``; layouts without it take ``eager``.
        kind: of classifier.

    Raises:
        ModelError: PyTorch is not installed, or the folder holds no complete classifier of that kind.
    """
    torch, transformers = _libraries(folder)
    transformers.logging.disable_progress_bar()
    loader = getattr(transformers, f"AutoModelFor{kind}Classification")
    what = f"{kind.lower()} classifier"

    def load(attention: str) -> Any:
        return loader.from_pretrained(
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
    except Exception as error:  # settings and weights of strangers: the libraries raise of many kinds
        raise ModelError(
            f"{folder}: not a loadable {what} ({type(error).__name__}); expected config.json and "
            f"safetensors weights of a {kind.lower()}-classification model"
        ) from error
    if loading["missing_keys"]:
        # transformers fills them with random numbers, and scores made of those would look like any others
        raise ModelError(
            f"{folder}: {len(loading['missing_keys'])} weights are missing, such as "
            f"{min(loading['missing_keys'])}; expected a trained {what}, not a bare encoder"
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
