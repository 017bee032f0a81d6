"""Build the detectors that plans list, each once, and the engine that runs them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truthlens.core.errors import DetectorError, ModelError
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.queries import QueryRecord
from truthlens.core.registry import Context, DetectorType, Models, detector_types
from truthlens.detection.engine import Engine
from truthlens.detection.interfaces import AskingDetector, Detector, ResultCache

if TYPE_CHECKING:
    from truthlens.detection.detectors.reader.model import Reader


class DetectorSet:
    """The detectors of some plans.

    Args:
        plans: what has to be scored for; one that is switched off needs no detectors.
        models: loads what detectors run.
        types: the detectors that there are, all registered ones by default.
        observe_query: told of every look-up in a database, from any thread.
        cache: keeps what models said.

    Raises:
        ModelError: a model cannot be used.
        DetectorError: a detector cannot be built with its options; it names the decision.
    """

    def __init__(
        self,
        plans: Iterable[Plan],
        models: Models,
        *,
        types: Mapping[str, DetectorType] | None = None,
        observe_query: Callable[[QueryRecord], None] | None = None,
        cache: ResultCache | None = None,
    ) -> None:
        self._types = detector_types() if types is None else types
        self._built: dict[Hashable, Any] = {}
        for plan in plans:
            for spec in plan.detectors if plan.enabled else ():
                declared = self._types.get(spec.name)
                if declared is not None and (key := declared.key(plan, spec.options)) not in self._built:
                    try:
                        self._built[key] = declared.build(
                            Context(
                                plan,
                                declared.options() if spec.options is None else spec.options,
                                models,
                                observe_query,
                                cache,
                            )
                        )
                    except DetectorError as error:
                        raise DetectorError(str(error), decision=plan.decision) from error

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that are run, sorted."""
        names = {getattr(detector, "model", "") for detector in self._built.values()}
        return tuple(sorted(names - {""}))

    def of(self, plan: Plan) -> list[tuple[DetectorSpec, Detector | None]]:
        """Return what ``plan`` lists and asks no model, in its order; ``None`` for a detector that was not built."""
        return [(spec, self._find(plan, spec)) for spec in plan.detectors if not spec.models]

    def asking(self, plan: Plan) -> list[tuple[DetectorSpec, AskingDetector | None]]:
        """Return what ``plan`` lists and asks models, in its order; ``None`` for a detector that was not built."""
        return [(spec, self._find(plan, spec)) for spec in plan.asking]

    def _find(self, plan: Plan, spec: DetectorSpec) -> Any:
        declared = self._types.get(spec.name)
        return None if declared is None else self._built.get(declared.key(plan, spec.options))


class OneModel:
    """Gives the same encoder to every plan: for commands that score with one model."""

    def __init__(self, encoder: Detector) -> None:
        self._encoder = encoder

    def encoder(self, _plan: Plan) -> Detector:
        """Return the encoder."""
        return self._encoder

    def reader(self, name: str) -> Reader:
        """Raise ``ModelError``: there is no reader beside the one model."""
        raise ModelError(f"there is no reader {name!r} here")


class LateModel:
    """Gives the same encoder to every plan, and readers from folders; each is loaded when a detector first wants it.

    Args:
        load: loads the encoder.
        shelves: the folders of readers that are named and no path, the first that has one counts.
        threads: of one inference of a reader.
    """

    def __init__(
        self, load: Callable[[], Detector], *, shelves: Sequence[Path] = (), threads: int = 1
    ) -> None:
        self._load = load
        self._encoder: Detector | None = None
        self._shelves, self._threads = shelves, threads

    def reader(self, name: str) -> Reader:
        """Return the reader of that name or folder.

        Raises:
            ModelError: it cannot be loaded.
        """
        from truthlens.detection.detectors.reader.model import Reader, find_reader

        return Reader.load(find_reader(name, *self._shelves), threads=self._threads)

    def encoder(self, _plan: Plan) -> Detector:
        """Return the encoder.

        Raises:
            ModelError: it cannot be loaded.
        """
        if self._encoder is None:
            self._encoder = self._load()
        return self._encoder


def build_engine(
    plans: Iterable[Plan],
    models: Models,
    *,
    workers: int = 1,
    queue_limit: int = 64,
    queue_observer: Callable[[float], None] | None = None,
    cache: ResultCache | None = None,
) -> Engine:
    """Return an engine with the detectors of ``plans``; ``cache`` is theirs, the three before it the engine's own.

    Raises:
        ModelError: a model cannot be used.
    """
    return Engine(
        DetectorSet(plans, models, cache=cache),
        workers=workers,
        queue_limit=queue_limit,
        queue_observer=queue_observer,
    )
