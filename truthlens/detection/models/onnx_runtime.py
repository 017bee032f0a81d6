"""ONNX models on onnxruntime: fp32 or int8, on the CPU or on a GPU provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from truthlens.core.cancellation import StopCheck, never
from truthlens.core.errors import DetectorError, ModelError
from truthlens.detection.models.inputs.windows import Window
from truthlens.detection.models.runtime import (
    BUDGET_TOKENS_CPU,
    BUDGET_TOKENS_GPU,
    State,
    collate,
    odds_from,
    run_batched,
)

_KNOWN_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids", "features"})
_CUDA = "CUDAExecutionProvider"
_ERRORS_ONLY = 3

_Inputs = Mapping[str, NDArray[np.generic]]


class OnnxModel:
    """A token classifier in one ONNX file, or in two; a graph is fed only the inputs that it has.

    Args:
        file: the ONNX file, or the body where there is a head.
        head: the ONNX file that makes logits of all that the body gives and of the features; see
            ``PartedModel``.
        label: index of the label "hallucinated".
        use_cpu: otherwise it runs on CUDA.
        budget_tokens: most padded tokens in a batch; left out, it follows ``use_cpu``.
        threads: threads inside one inference. With one per inference, concurrent answers scale best.

    Raises:
        ModelError: a file cannot be loaded, body and head do not fit, unknown inputs are asked for, or CUDA
            is not to be had.
    """

    def __init__(
        self,
        file: Path,
        *,
        head: Path | None = None,
        label: int = 1,
        use_cpu: bool = True,
        budget_tokens: int | None = None,
        threads: int = 1,
    ) -> None:
        if not use_cpu and _CUDA not in ort.get_available_providers():
            raise ModelError(
                f"{file}: this onnxruntime cannot run on a GPU (no {_CUDA}); "
                "set use_cpu: true, or install onnxruntime-gpu"
            )
        self._label = label
        self._budget_tokens = budget_tokens or (BUDGET_TOKENS_CPU if use_cpu else BUDGET_TOKENS_GPU)
        self._name = f"onnx:{file.name}"
        load = partial(load_session, threads=threads, on_gpu=not use_cpu)
        self._first = _graph_of(load(file))
        self._head = _graph_of(load(head)) if head else None
        self.inputs = self._first.inputs
        if self._head is not None:
            if not {*self._first.outputs} <= self._head.inputs or "logits" not in self._head.outputs:
                raise ModelError(f"{head} does not go with {file.name}; export the model again")
            self.inputs |= self._head.inputs - {*self._first.outputs}
        self.features = (self._head or self._first).features
        """Columns of the features that the graph declares, ``None`` where it takes none or any number."""
        # The windows of a batch share the arrays between the parts, so only windows that go one by one can
        # use them.
        self.parted = self._head is not None and self._budget_tokens == BUDGET_TOKENS_CPU
        if self.inputs - _KNOWN_INPUTS or "input_ids" not in self.inputs:
            raise ModelError(
                f"{file}: the graph's inputs are {', '.join(sorted(self.inputs))}; expected input_ids and, "
                "of the others, only attention_mask, token_type_ids and features"
            )

    @property
    def name(self) -> str:
        """``onnx:`` and the file's name."""
        return self._name

    def log_odds(self, windows: Sequence[Window], *, stop: StopCheck = never) -> list[NDArray[np.float32]]:
        """See ``TokenModel.log_odds``."""
        return run_batched(
            windows, self._forward, label=self._label, budget_tokens=self._budget_tokens, stop=stop
        )

    def states(self, window: Window) -> State:
        """See ``PartedModel.states``."""
        return tuple(self._run(self._first, self._first.outputs, collate([window])))

    def odds_of(self, window: Window, state: State) -> NDArray[np.float32]:
        """See ``PartedModel.odds_of``."""
        (row,) = self._finish(state, collate([window]))
        return odds_from(row[window.answer], self._label)

    def _forward(self, inputs: _Inputs) -> NDArray[np.float32]:
        if self._head is not None:
            return self._finish(self._run(self._first, self._first.outputs, inputs), inputs)
        return self._logits(self._first, inputs)

    def _finish(self, state: Sequence[NDArray[np.generic]], inputs: _Inputs) -> NDArray[np.float32]:
        assert self._head is not None, "only a parted model is finished"
        return self._logits(self._head, {**inputs, **dict(zip(self._first.outputs, state, strict=True))})

    def _logits(self, graph: _Graph, inputs: _Inputs) -> NDArray[np.float32]:
        name = "logits" if "logits" in graph.outputs else graph.outputs[0]
        return np.asarray(self._run(graph, (name,), inputs)[0], dtype=np.float32)

    def _run(self, graph: _Graph, outputs: Sequence[str], inputs: _Inputs) -> Sequence[NDArray[np.generic]]:
        missing = graph.inputs - inputs.keys()
        if missing:
            raise DetectorError(
                f"the model wants {', '.join(sorted(missing))}, which the windows do not carry; "
                "set input.features in its manifest.json"
            )
        try:
            found: Sequence[NDArray[np.generic]] = graph.session.run(
                list(outputs), {name: inputs[name] for name in graph.inputs}
            )
        except Exception as error:  # onnxruntime raises its own kinds, none of them in one public tree
            raise DetectorError(f"{self._name} failed on a batch ({type(error).__name__})") from error
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Graph:
    """A loaded graph."""

    session: Any
    inputs: frozenset[str]
    features: int | None
    outputs: tuple[str, ...]


def load_session(file: Path, *, threads: int = 1, on_gpu: bool = False) -> ort.InferenceSession:
    """Load one ONNX file, to be run with ``threads`` threads inside one inference.

    Raises:
        ModelError: it cannot be loaded.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    provider = _CUDA if on_gpu else "CPUExecutionProvider"
    try:
        return ort.InferenceSession(str(file), options, providers=[provider])
    except Exception as error:  # onnxruntime raises its own kinds, none of them in one public tree
        raise ModelError(
            f"{file}: not a loadable ONNX model ({type(error).__name__}); export or fetch it again"
        ) from error


def _graph_of(session: Any) -> _Graph:
    widths = {node.name: node.shape[-1] for node in session.get_inputs() if node.shape}
    features = widths.get("features")
    return _Graph(
        session,
        frozenset(node.name for node in session.get_inputs()),
        features if isinstance(features, int) else None,
        tuple(node.name for node in session.get_outputs()),
    )
