"""ONNX models on onnxruntime: fp32 or int8, on the CPU or on a GPU provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from truthlens.core.cancellation import StopCheck, never
from truthlens.core.errors import DetectorError, ModelError
from truthlens.detection.encoder.inputs.windows import Window
from truthlens.detection.models.onnx_split import part_graph
from truthlens.detection.models.runtime import (
    BUDGET_TOKENS_CPU,
    BUDGET_TOKENS_GPU,
    Device,
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
    """A token classifier in one ONNX file; the graph is fed only the inputs that it has.

    On a CPU, a graph that takes features is cut in two where it can be (``PartedModel``); its log-odds stay the same to
    the bit.

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
        self._label = label
        self._budget_tokens = budget_tokens or (BUDGET_TOKENS_GPU if on_gpu else BUDGET_TOKENS_CPU)
        self._name = f"onnx:{file.name}"
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        load = partial(
            ort.InferenceSession,
            sess_options=options,
            providers=[_CUDA if on_gpu else "CPUExecutionProvider"],
        )
        # The windows of a batch share the arrays between the parts, so only windows that go one by one can use them.
        parts = None if on_gpu or budget_tokens is not None else _parts(file, load)
        self._first = parts[0] if parts else _whole(file, load)
        self._late = parts[1] if parts else None
        self.inputs = self._first.inputs | (
            self._late.inputs - {*self._first.outputs} if self._late else frozenset()
        )
        if self.inputs - _KNOWN_INPUTS or "input_ids" not in self.inputs:
            raise ModelError(
                f"{file}: the graph's inputs are {', '.join(sorted(self.inputs))}; expected input_ids and, "
                "of the others, only attention_mask, token_type_ids and features"
            )

    @property
    def name(self) -> str:
        """``onnx:`` and the file's name."""
        return self._name

    @property
    def parted(self) -> bool:
        """See ``PartedModel.parted``: a graph with features, on a CPU, that could be cut."""
        return self._late is not None

    def log_odds(self, windows: Sequence[Window], *, stop: StopCheck = never) -> list[NDArray[np.float32]]:
        """See ``TokenModel.log_odds``."""
        return run_batched(
            windows, self._forward, label=self._label, budget_tokens=self._budget_tokens, stop=stop
        )

    def states(self, window: Window) -> State:
        """See ``PartedModel.states``."""
        return tuple(self._run(self._first, collate([window])))

    def odds_of(self, window: Window, state: State) -> NDArray[np.float32]:
        """See ``PartedModel.odds_of``."""
        (row,) = self._finish(state, collate([window]))
        return odds_from(row[window.answer], self._label)

    def _forward(self, inputs: _Inputs) -> NDArray[np.float32]:
        found = self._run(self._first, inputs)
        if self._late is not None:
            return self._finish(found, inputs)
        return np.asarray(found[0], dtype=np.float32)

    def _finish(self, state: Sequence[NDArray[np.generic]], inputs: _Inputs) -> NDArray[np.float32]:
        assert self._late is not None, "only a parted model is finished"
        border = dict(zip(self._first.outputs, state, strict=True))
        (logits,) = self._run(self._late, {**inputs, **border})
        return np.asarray(logits, dtype=np.float32)

    def _run(self, graph: _Graph, inputs: _Inputs) -> Sequence[NDArray[np.generic]]:
        missing = graph.inputs - inputs.keys()
        if missing:
            raise DetectorError(
                f"the model wants {', '.join(sorted(missing))}, which the windows do not carry; "
                "set input.features in its manifest.json"
            )
        try:
            found: Sequence[NDArray[np.generic]] = graph.session.run(
                list(graph.outputs), {name: inputs[name] for name in graph.inputs}
            )
        except Exception as error:  # onnxruntime raises its own kinds, none of them in one public tree
            raise DetectorError(f"{self._name} failed on a batch ({type(error).__name__})") from error
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Graph:
    """A loaded graph, or a part of one."""

    session: Any
    outputs: tuple[str, ...]

    @property
    def inputs(self) -> frozenset[str]:
        return frozenset(node.name for node in self.session.get_inputs())


def _whole(file: Path, load: Callable[[str | bytes], Any]) -> _Graph:
    try:
        session = load(str(file))
    except Exception as error:  # onnxruntime raises its own kinds, none of them in one public tree
        raise ModelError(
            f"{file}: not a loadable ONNX model ({type(error).__name__}); export it again"
        ) from error
    outputs = [node.name for node in session.get_outputs()]
    return _Graph(session, ("logits" if "logits" in outputs else outputs[0],))


def _parts(file: Path, load: Callable[[str | bytes], Any]) -> tuple[_Graph, _Graph] | None:
    """The part of the graph without features and the part with them; ``None`` where it cannot be cut."""
    parts = part_graph(file.read_bytes(), late_input="features", output="logits") if file.is_file() else None
    if parts is None:
        return None
    early = load(parts.early)
    late = load(parts.late({node.name: node.type for node in early.get_outputs()}))
    return _Graph(early, parts.border), _Graph(late, ("logits",))
