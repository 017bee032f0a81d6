"""A token model whose every figure depends on the whole window, so that any other window gives other figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from tests.fakes.tiny_encoder import word_tokenizer
from truthlens.core.cancellation import StopCheck, never
from truthlens.core.errors import DetectorError
from truthlens.detection.detectors.encoder.detector import EncoderDetector
from truthlens.detection.models.inputs.manifest import InputFormat, Manifest
from truthlens.detection.models.inputs.windows import Window
from truthlens.detection.models.runtime import State

WORDS = ("red", "green", "blue", "lamp", "gate", "hall", "nine", "euros", "river", "boats", "fee", "maps")
TOKENIZER: Tokenizer = word_tokenizer(dict.fromkeys((*WORDS, ".", "Thanks", "!"), 0.0))
FORMAT = InputFormat(max_tokens=64, segment_ids=True, answer_tokens=16, answer_overlap=4)


class ContextModel:
    """Log-odds -6 to 6 out of a token, its neighbours and its features; counts the windows that it runs."""

    name = "context"
    parted = False

    def __init__(self) -> None:
        self.windows: list[Window] = []

    def log_odds(self, windows: Sequence[Window], *, stop: StopCheck = never) -> list[NDArray[np.float32]]:
        found = []
        for window in windows:
            if stop():
                raise DetectorError("given up")
            found.append(self.odds_of(window, self.states(window)))
        return found

    def states(self, window: Window) -> State:
        self.windows.append(window)
        ids = window.input_ids
        return (((ids * 31 + int((ids * np.arange(len(ids))).sum())) % 13 - 6).astype(np.float32),)

    def odds_of(self, window: Window, state: State) -> NDArray[np.float32]:
        odds: NDArray[np.float32] = state[0][window.answer].astype(np.float32)
        return odds if window.features is None else odds + window.features[window.answer].mean(axis=1)


class PartedContextModel(ContextModel):
    """The same in two parts."""

    parted = True


def context_encoder(
    model: ContextModel,
    *,
    fmt: Mapping[str, Any] | None = None,
    max_windows: int = 256,
    languages: tuple[str, ...] = ("en",),
    remembered_bytes: int = 1 << 20,
) -> EncoderDetector:
    """An encoder of ``model``, with ``FORMAT`` but for the keys of ``fmt``."""
    manifest = Manifest(
        name="context",
        base="none",
        languages=languages,
        input=FORMAT.model_copy(update=dict(fmt or {})),
        tau_span=0.9,
        tau_token=0.9,
    )
    return EncoderDetector(
        model, TOKENIZER, manifest, max_windows=max_windows, remembered_bytes=remembered_bytes
    )
