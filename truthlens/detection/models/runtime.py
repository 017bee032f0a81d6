"""Run token models: windows in, log-odds of "hallucinated" per answer token out.

A model returns log-odds and not probabilities, because the temperature divides logits: in float32 a
probability near 1 has already lost what the temperature needs. The encoder applies temperature and sigmoid.

Deliberately not here: windowing, calibration, merging of windows. The two kinds of model are in
``onnx_runtime`` and ``torch_runtime``; ``loading`` picks one for a folder.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from truthlens.core.cancellation import StopCheck, never
from truthlens.core.errors import DetectorError
from truthlens.detection.models.inputs.windows import Window

# On a CPU a batch gains nothing over its windows one by one, and padding costs. And an int8 graph takes one
# scale for all of a batch, so that a window's scores would depend on its companions: on a CPU windows go one
# by one.
BUDGET_TOKENS_CPU = 1
BUDGET_TOKENS_GPU = 32_768

State = tuple[NDArray[np.generic], ...]
"""What the costly part of a model makes of one window."""


class TokenModel(Protocol):
    """A token classifier with loaded weights; safe to call from several threads at once."""

    @property
    def name(self) -> str:
        """Kind of runtime and weights file, fit for a log line."""

    def log_odds(self, windows: Sequence[Window], *, stop: StopCheck = never) -> list[NDArray[np.float32]]:
        """Return ``log p - log (1 - p)`` of "hallucinated" for the answer tokens of each window.

        Returns:
            One array per window, in order, shape (answer tokens of the window,), without temperature.

        Raises:
            DetectorError: the model failed, its output is not finite, or ``stop`` said true.
        """


@runtime_checkable
class PartedModel(Protocol):
    """A token model that may have two parts, of which the expensive one does not read the windows' features.

    Both in turn give what ``log_odds`` gives, to the bit.
    """

    @property
    def parted(self) -> bool:
        """Whether it has two parts; without, the methods below must not be called."""

    def states(self, window: Window) -> State:
        """Return the expensive part's output for the window, whatever its features.

        Raises:
            DetectorError: the model failed.
        """

    def odds_of(self, window: Window, state: State) -> NDArray[np.float32]:
        """Return the log-odds of the window's answer tokens from its ``states``; see ``TokenModel.log_odds``.

        Raises:
            DetectorError: the model failed, or its output is not finite.
        """


def run_batched(
    windows: Sequence[Window],
    forward: Callable[[Mapping[str, NDArray[np.generic]]], NDArray[np.float32]],
    *,
    label: int,
    budget_tokens: int,
    stop: StopCheck,
) -> list[NDArray[np.float32]]:
    """Run ``forward`` over length-sorted batches and give the log-odds back in the order of the windows.

    Args:
        windows: inputs of any lengths.
        forward: padded inputs, each (batch, tokens), to logits (batch, tokens, labels).
        label: index of the label "hallucinated". Labels' names are never consulted: checkpoints leave them
            unset.
        budget_tokens: most padded tokens in a batch; a longer window is a batch of its own.
        stop: asked before each batch.

    Raises:
        DetectorError: see ``TokenModel.log_odds``.
    """
    found: list[NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * len(windows)
    for batch in batches([len(window.input_ids) for window in windows], budget_tokens=budget_tokens):
        if stop():
            raise DetectorError("scoring was given up after its deadline")
        logits = forward(collate([windows[index] for index in batch]))
        for row, index in enumerate(batch):
            found[index] = odds_from(logits[row, windows[index].answer], label)
    return found


def batches(lengths: Sequence[int], *, budget_tokens: int) -> Iterator[list[int]]:
    """Yield the indices of ``lengths`` in batches, shortest first, at most ``budget_tokens`` after padding.

    A length above the budget is a batch of its own.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and lengths[index] * (len(batch) + 1) > budget_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def collate(windows: Sequence[Window]) -> dict[str, NDArray[np.generic]]:
    """Return the windows padded on the right to the longest.

    Returns:
        ``input_ids``, ``attention_mask`` and ``token_type_ids`` of shape (batch, tokens), int64; and where
        the windows carry them ``features`` of shape (batch, tokens, features), float32.
    """
    shape = (len(windows), max(len(window.input_ids) for window in windows))
    ids = np.zeros(shape, dtype=np.int64)
    mask = np.zeros(shape, dtype=np.int64)
    types = np.zeros(shape, dtype=np.int64)
    for row, window in enumerate(windows):
        length = len(window.input_ids)
        ids[row, :length] = window.input_ids
        mask[row, :length] = 1
        types[row, :length] = window.type_ids
    inputs: dict[str, NDArray[np.generic]] = {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": types,
    }
    present = [window.features for window in windows if window.features is not None]
    if len(present) == len(windows):
        features = np.zeros((*shape, present[0].shape[1]), dtype=np.float32)
        for row, values in enumerate(present):
            features[row, : len(values)] = values
        inputs["features"] = features
    return inputs


def cpu_quota() -> int:
    """Return how many cores this process may use: its affinity, cut to the control group's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = Path("/sys/fs/cgroup/cpu.max")
    if limit.is_file():
        quota, _, period = limit.read_text(encoding="ascii").strip().partition(" ")
        if quota != "max" and period:
            cores = min(cores, math.ceil(int(quota) / int(period)))
    return max(1, cores)


def odds_from(logits: NDArray[np.float32], label: int) -> NDArray[np.float32]:
    """Return the log-odds of ``label``, shape (tokens,), from logits of shape (tokens, labels).

    Raises:
        DetectorError: there are fewer labels than that, or a logit is not finite.
    """
    if logits.shape[-1] <= max(label, 1):
        raise DetectorError(
            f"the model gives {logits.shape[-1]} label(s); expected at least {max(label, 1) + 1}"
        )
    others = np.delete(logits, label, axis=-1)
    odds = logits[:, label] - np.logaddexp.reduce(others, axis=-1)
    if not bool(np.isfinite(odds).all()):
        raise DetectorError("the model gave a logit that is not finite")
    return np.asarray(odds, dtype=np.float32)
