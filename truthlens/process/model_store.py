"""The model folders of a process: found by name or path, loaded once.

Not here: what a model does (``detection``), and who decides which ones are needed (``app``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from truthlens.core.errors import ModelError
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import ModelIdentity
from truthlens.detection.building import DetectorSet
from truthlens.detection.detectors.encoder.detector import EncoderDetector
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.interfaces import ResultCache
from truthlens.detection.models.fingerprint import model_identity
from truthlens.policy import Policy
from truthlens.process.settings import Settings, models_folder
from truthlens.telemetry.detector_metrics import QueryWatch
from truthlens.telemetry.drift import ModelKey, Reference
from truthlens.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from truthlens.detection.detectors.reader.model import Reader
    from truthlens.detection.similarity import Similarity

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


@dataclass(frozen=True, slots=True)
class Placement:
    """The folder of the model that scores for a plan, and whether it runs on the CPU (else on a GPU, which must be there)."""

    folder: Path
    use_cpu: bool


def placement_of(policy: Policy, plan: Plan, settings: Settings) -> Placement:
    """Return where the model runs that scores for ``plan``.

    A model runs in one place, as the first plan of ``policy`` with its ``model_id`` says; the bundled one, which also scores
    for a folder that does not exist, runs on the CPU.

    Raises:
        ModelError: the bundled model is missing.
    """
    if plan.model_id is None or not has_model(plan.model_id, settings):
        return Placement(find_model(None, settings), use_cpu=True)
    plans = (each for each in policy.all_plans if each.enabled or each is policy.default)
    first = next((each for each in plans if each.model_id == plan.model_id), plan)
    return Placement(find_model(plan.model_id, settings), first.use_cpu)


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
        from truthlens.detection.similarity import Similarity

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
        self.settings = settings
        self._cache = cache
        self._signals = signals
        self._queries = QueryWatch(signals.detectors)
        # Weak, so that a model which no policy names any more leaves memory with its last exchange.
        self._loaded: WeakValueDictionary[tuple[Path, bool, int], EncoderDetector] = WeakValueDictionary()
        self._readers: WeakValueDictionary[Path, Reader] = WeakValueDictionary()

    def detectors_for(self, policy: Policy) -> DetectorSet:
        """Return the detectors of every plan of ``policy``, loaded and warm.

        Raises:
            ModelError: a folder exists but cannot be used.
            DetectorError: a detector cannot be built with its options.
        """
        plans = [plan for plan in policy.all_plans if plan.enabled]
        found = DetectorSet(
            plans,
            _Encoders(self, policy),
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

    def encoder_of(self, policy: Policy, plan: Plan) -> EncoderDetector:
        """Return the encoder of one plan of ``policy``, loaded and warm.

        A named folder that does not exist is replaced by the bundled model; the policy's own warning says so
        wherever an operator looks (log, ``/readyz``, console, ``truthlens check``).

        Raises:
            ModelError: its folder, or that of the bundled model, cannot be used.
        """
        return self._load(placement_of(policy, plan, self.settings), policy.limits.max_windows)

    def reader_of(self, name: str) -> Reader:
        """Return the reader of that name or folder, loaded and warm; the models folder need not hold the bundled one.

        Raises:
            ModelError: there is none, or it cannot be used.
        """
        from truthlens.detection.detectors.reader.model import Reader, find_reader

        folder = find_reader(name, models_folder(self.settings.models), models_folder()).resolve()
        reader = self._readers.get(folder)
        if reader is None:
            reader = Reader.load(folder, threads=self.settings.threads)
            reader.warm_up()
            self._readers[folder] = reader
        return reader

    def identity(self, model_id: str | None) -> ModelIdentity:
        """Return which model scores for ``model_id``."""
        return model_identity(scoring_folder(model_id, self.settings))

    def has(self, model_id: str) -> bool:
        """Return whether there is a folder for ``model_id``."""
        return has_model(model_id, self.settings)

    def _load(self, placement: Placement, max_windows: int) -> EncoderDetector:
        folder, use_cpu = placement.folder, placement.use_cpu
        key = (folder.resolve(), use_cpu, max_windows)
        encoder = self._loaded.get(key)
        if encoder is None:
            encoder = load_encoder(
                folder, use_cpu=use_cpu, threads=self.settings.threads, max_windows=max_windows
            )
            encoder.warm_up()
            self._loaded[key] = encoder
        return encoder


@dataclass(frozen=True, slots=True)
class _Encoders:
    """The encoders of one policy's plans."""

    shelf: ModelShelf
    policy: Policy

    def encoder(self, plan: Plan) -> EncoderDetector:
        return self.shelf.encoder_of(self.policy, plan)

    def reader(self, name: str) -> Reader:
        return self.shelf.reader_of(name)


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
    """Yield the names of the folders that may hold a token classifier."""
    from truthlens.detection.detectors.reader.model import is_reader

    if shelf.is_dir():
        folders = (each for each in shelf.iterdir() if each.is_dir() and each.name != SIMILARITY_MODEL)
        yield from (each.name for each in folders if not is_reader(each))
