"""The model folders of a process: found by name or path, loaded once.

Not here: what a model does (``detection``), and who decides which ones are needed (``app``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from truthlens.core.errors import ModelError
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import ModelIdentity
from truthlens.detection.building import DetectorSet
from truthlens.detection.encoder.detector import EncoderDetector
from truthlens.detection.interfaces import ResultCache
from truthlens.detection.models.fingerprint import model_identity
from truthlens.detection.models.loading import load_encoder
from truthlens.detection.similarity.model import Similarity
from truthlens.policy import Policy
from truthlens.settings import Settings, models_folder
from truthlens.telemetry.drift import ModelKey, Reference
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.queries import QueryWatch

BUNDLED_MODEL = "truthlens-minilm-en-v2"
SIMILARITY_MODEL = "truthlens-similarity-en-v1"


def has_model(model_id: str, settings: Settings) -> bool:
    """Return whether there is a folder for ``model_id``."""
    try:
        find_model(model_id, settings)
    except ModelError:
        return False
    return True


def scoring_folder(model_id: str | None, settings: Settings) -> Path:
    """Return the folder of the model that scores for ``model_id``.

    The bundled one if there is no such folder.
    """
    return find_model(model_id if model_id is not None and has_model(model_id, settings) else None, settings)


class SimilarityShelf:
    """The similarity model, loaded when it is first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = asyncio.Lock()
        self._loaded: Similarity | None = None

    async def __call__(self) -> Similarity:
        """Return the model, loaded and warm.

        Raises:
            ModelError: its folder is missing or damaged.
        """
        async with self._lock:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(self._load)
            return self._loaded

    def _load(self) -> Similarity:
        model = Similarity.load(
            models_folder(self._settings.models) / SIMILARITY_MODEL, threads=self._settings.threads
        )
        model.warm_up()
        return model


class ModelShelf:
    """The encoders that plans score with; each folder is loaded once, as long as anything uses it.

    Args:
        settings: where model folders are.
        signals: told which models are loaded.
        cache: keeps what models say that detectors ask.
    """

    def __init__(self, settings: Settings, signals: Metrics, *, cache: ResultCache | None = None) -> None:
        self._cache = cache
        self._settings = settings
        self._signals = signals
        self._queries = QueryWatch(signals.detectors)
        # Weak, so that a model which no policy names any more leaves memory with its last exchange.
        self._loaded: WeakValueDictionary[tuple[Path, bool, int], EncoderDetector] = WeakValueDictionary()

    def detectors_for(self, policy: Policy) -> DetectorSet:
        """Return the detectors of every plan of ``policy``, loaded and warm.

        Raises:
            ModelError: a folder exists but cannot be used.
            DetectorError: a detector cannot be built with its options.
        """
        plans = [plan for plan in (policy.default, *policy.plans) if plan.enabled]
        found = DetectorSet(
            plans,
            _Encoders(self, policy.limits.max_windows),
            observe_query=self._queries,
            cache=self._cache,
        )
        self._signals.model_info.clear()
        references: dict[ModelKey, Reference] = {}
        for plan in plans:
            for _, detector in found.of(plan):  # those that ask models have none of their own
                if detector is not None and detector.model:
                    self._signals.model_info.labels(detector.model, plan.model_id or "").set(1)
                if isinstance(detector, EncoderDetector) and (deciles := detector.manifest.score_deciles):
                    model = ModelKey(detector.model, detector.manifest.revision)
                    references[model] = Reference(deciles, detector.manifest.aggregation)
        self._signals.detectors.drift.use(references)
        return found

    def encoder_of(self, plan: Plan, max_windows: int) -> EncoderDetector:
        """Return the encoder of one plan, loaded and warm.

        A named folder that does not exist is replaced by the bundled model; the policy's own warning says so
        wherever an operator looks (log, ``/readyz``, console, ``truthlens check``).

        Raises:
            ModelError: its folder, or that of the bundled model, cannot be used.
        """
        named = plan.model_id if self.is_named(plan.model_id) else None
        return self._load(find_model(named, self._settings), plan.use_cpu or named is None, max_windows)

    def is_named(self, model_id: str | None) -> bool:
        """Return whether ``model_id`` names a model of its own; otherwise the bundled one scores."""
        return model_id is not None and self.has(model_id)

    def identity(self, model_id: str | None) -> ModelIdentity:
        """Return which model scores for ``model_id``."""
        return model_identity(scoring_folder(model_id, self._settings))

    def has(self, model_id: str) -> bool:
        """Return whether there is a folder for ``model_id``."""
        return has_model(model_id, self._settings)

    def _load(self, folder: Path, use_cpu: bool, max_windows: int) -> EncoderDetector:
        key = (folder.resolve(), use_cpu, max_windows)
        encoder = self._loaded.get(key)
        if encoder is None:
            encoder = load_encoder(
                folder, use_cpu=use_cpu, threads=self._settings.threads, max_windows=max_windows
            )
            encoder.warm_up()
            self._loaded[key] = encoder
        return encoder


@dataclass(frozen=True, slots=True)
class _Encoders:
    """The encoders of one policy's plans."""

    shelf: ModelShelf
    max_windows: int

    def encoder(self, plan: Plan) -> EncoderDetector:
        return self.shelf.encoder_of(plan, self.max_windows)


def find_model(model_id: str | None, settings: Settings) -> Path:
    """Return the folder of a model: a path unchanged, or a name below the models folder.

    Raises:
        ModelError: there is none.
    """
    shelf = models_folder(settings.models)
    if model_id is None:
        candidates = [shelf / BUNDLED_MODEL]
    else:
        candidates = [Path(model_id), shelf / model_id, shelf / Path(model_id).name]
    for candidate in candidates:
        # Path.is_dir raises where a name is longer than names may be.
        if os.path.isdir(candidate):  # noqa: PTH112
            return candidate
    there = ", ".join(sorted(_names(shelf)))
    raise ModelError(
        f"there is no model {model_id or BUNDLED_MODEL!r}: {shelf} holds {there or 'none'}, and no folder of that path"
        " exists; name one of these, or put its folder there"
    )


def _names(shelf: Path) -> Iterator[str]:
    if shelf.is_dir():
        yield from (e.name for e in shelf.iterdir() if e.is_dir() and e.name != SIMILARITY_MODEL)
