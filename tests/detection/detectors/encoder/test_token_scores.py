"""Tests of ``truthlens.detection.detectors.encoder.token_scores``."""

from __future__ import annotations

import numpy as np
import pytest

from truthlens.detection.detectors.encoder.token_scores import Reading, read_answer, sigmoid
from truthlens.detection.models.inputs.manifest import InputFormat
from truthlens.detection.models.inputs.windows import Window

FMT = InputFormat()
TEXT = "I hope this helps! Paris grows."
OFFSETS = np.array([(0, 1), (2, 6), (7, 11), (12, 17), (17, 18), (19, 24), (25, 30), (30, 31)])


def _window(first: int, count: int) -> Window:
    ids = np.zeros(count + 1, dtype=np.int64)
    return Window(ids, ids, slice(1, count + 1), first)


def _read(*parts: tuple[int, list[float]], languages: tuple[str, ...] = ("*",), text: str = TEXT) -> Reading:
    windows = [_window(first, len(odds)) for first, odds in parts]
    return read_answer(
        windows, [np.array(odds) for _, odds in parts], offsets=OFFSETS, text=text, query="", fmt=FMT, languages=languages
    )  # fmt: skip


def test_a_sentence_that_claims_nothing_cannot_be_suspicious() -> None:
    """Politeness is scored, but with probability 0; the claim keeps its odds."""
    reading = _read((0, [3.0] * 8))
    assert reading.scored.all()
    assert np.isneginf(reading.odds[:5]).all()
    assert reading.odds[5:].tolist() == [3.0, 3.0, 3.0]
    p = reading.probabilities(temperature=1.5)
    assert p[:5].tolist() == [0.0] * 5
    assert p[5] == pytest.approx(1 / (1 + np.exp(-2.0)))


def test_tokens_that_no_window_held_are_not_scored() -> None:
    """What was not looked at has probability 0 and is not counted as scored."""
    reading = _read((0, [1.0] * 6))
    assert reading.scored.tolist() == [True] * 6 + [False] * 2
    assert reading.probabilities(temperature=1.0)[6:].tolist() == [0.0, 0.0]


def test_windows_of_one_chunk_are_merged_before_the_temperature() -> None:
    """Two windows with other evidence: a token is supported as soon as one supports it."""
    reading = _read((0, [2.0] * 8), (0, [-1.0] * 8))
    assert reading.odds[5:].tolist() == [-1.0] * 3


def test_scripts_that_the_model_does_not_read_are_not_scored() -> None:
    """Sentences in another script are named, and their tokens are neither scored nor suspicious."""
    text = "I hope this helps! 巴黎在增长中的。"
    offsets_end = len(text)
    reading = _read((0, [2.0] * 8), languages=("en",), text=text.ljust(31, "。"))
    assert reading.unread
    assert reading.unread[0][0] >= 18
    assert not reading.scored[5]
    assert offsets_end < 31


def test_the_shift_is_added_before_the_temperature() -> None:
    """As the calibration fits it; and no overflow far out."""
    reading = _read((0, [1.0] * 8))
    assert reading.probabilities(temperature=2.0, shift=3.0)[5] == pytest.approx(1 / (1 + np.exp(-2.0)))
    assert sigmoid(np.array([-1e4, 0.0, 1e4])).tolist() == [0.0, 0.5, 1.0]
