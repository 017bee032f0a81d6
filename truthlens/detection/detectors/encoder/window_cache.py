"""Cache what the model returned for windows that were run before, for answers that grow.

A window is known by its contents, so nothing that is remembered can be out of date. Holds figures and
digests, no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import DetectorError
from truthlens.detection.models.inputs.windows import Window
from truthlens.detection.models.runtime import PartedModel, State, TokenModel

Odds = NDArray[np.float32]


class WindowMemory:
    """Runs windows through a model, each one once; not for several threads at once.

    Of each answer the windows of its most recent ``log_odds`` are remembered, and those of each ``fill``
    since, so that the memory holds about as much as the answer has. Where the model's expensive part does not
    read the features, its states are kept, and a window is known although its features have changed.

    Args:
        model: the loaded weights.
        most_bytes: what may be remembered, of all answers together. What is beyond is run again each time;
            with 0 nothing is remembered, and windows run in the model's own batches.
    """

    def __init__(self, model: TokenModel, *, most_bytes: int) -> None:
        self._model = model
        self._parted = model if isinstance(model, PartedModel) and model.parted else None
        self._most_bytes = most_bytes
        self._known: dict[int, dict[bytes, State]] = {}
        # Whether something of the most recent call did not fit.
        self._full = most_bytes == 0

    def keeps(self, *, features: bool) -> bool:
        """Return whether an unchanging window is worth running ahead: it will be cached, and there is room.

        Args:
            features: whether the windows carry features; those change with further text.
        """
        return not self._full and (self._parted is not None or not features)

    def fill(self, answer: int, windows: Sequence[Window], *, stop: StopCheck) -> None:
        """Run further windows of an answer, as far as there is room, for a later ``log_odds``.

        Raises:
            DetectorError: the model failed, or ``stop`` said true; what was run by then is remembered.
        """
        known = self._known.setdefault(answer, {})
        for window in windows:
            key = self._key(window)
            if key not in known and not self._full:
                self._keep(known, key, self._run(window, stop))

    def log_odds(self, asked: Sequence[tuple[int, Sequence[Window]]], *, stop: StopCheck) -> list[list[Odds]]:
        """Return the log-odds of the windows of each answer, whose number comes first; see ``TokenModel``.

        Raises:
            DetectorError: the model failed, or ``stop`` said true; what was run by then is remembered.
        """
        if self._most_bytes:
            return [self._remembered(answer, windows, stop=stop) for answer, windows in asked]
        flat = [window for _, windows in asked for window in windows]
        odds = iter(self._model.log_odds(flat, stop=stop) if flat else ())
        return [[next(odds) for _ in windows] for _, windows in asked]

    def _remembered(self, answer: int, windows: Sequence[Window], *, stop: StopCheck) -> list[Odds]:
        known = self._prune(answer, windows)
        found: list[Odds] = []
        for window in windows:
            key = self._key(window)
            state = known.get(key)
            if state is None:
                state = self._run(window, stop)
                self._keep(known, key, state)
            found.append(self._read(window, state))
        return found

    def _prune(self, answer: int, windows: Sequence[Window]) -> dict[bytes, State]:
        """Return the cached entries for ``windows``, and keep only those for this answer."""
        before = self._known.get(answer, {})
        known = {key: before[key] for key in map(self._key, windows) if key in before}
        self._known[answer] = known
        self._full = False
        return known

    def _keep(self, known: dict[bytes, State], key: bytes, state: State) -> None:
        if self._bytes() + _size(state) <= self._most_bytes:
            known[key] = state
        else:
            self._full = True

    def _run(self, window: Window, stop: StopCheck) -> State:
        if stop():
            raise DetectorError("scoring was given up after its deadline")
        if self._parted is not None:
            return self._parted.states(window)
        return tuple(self._model.log_odds([window], stop=stop))

    def _read(self, window: Window, state: State) -> Odds:
        if self._parted is not None:
            return self._parted.odds_of(window, state)
        return np.asarray(state[0], dtype=np.float32)

    def _key(self, window: Window) -> bytes:
        sizes = np.array([len(window.input_ids), window.answer.start, window.answer.stop])
        digest = blake2b(sizes.tobytes(), digest_size=16)
        digest.update(np.ascontiguousarray(window.input_ids).data)
        digest.update(np.ascontiguousarray(window.type_ids).data)
        if window.features is not None and self._parted is None:
            digest.update(np.ascontiguousarray(window.features).data)
        return digest.digest()

    def _bytes(self) -> int:
        return sum(_size(state) for known in self._known.values() for state in known.values())


def _size(state: State) -> int:
    return sum(array.nbytes for array in state)
