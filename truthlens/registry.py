"""Registry of detectors: what each one declares about itself, found without a list to keep.

A detector is one module in ``truthlens/detection/detectors`` with a ``DETECTOR``, or an entry point of the
group ``truthlens.detectors`` in another distribution that names one. The policy takes names and options from
here, the engine builds from here. Declarations are read when they are first asked for, so a module that
declares a detector imports models and libraries only in ``build``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import pydantic

from truthlens.core.errors import DetectorError
from truthlens.core.records.plan import Plan
from truthlens.core.records.queries import QueryRecord

ENTRY_POINTS = "truthlens.detectors"
_BUILT_IN = "truthlens.detection.detectors"


class Need(StrEnum):
    """What a detector needs to run, beyond the exchange."""

    MODEL = "model"
    CALLS = "calls"
    SQL = "sql"


class NoOptions(pydantic.BaseModel):
    """Options of a detector that has none."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class CallingOptions(pydantic.BaseModel):
    """Options of a detector that asks models; what it declares under ``models`` is checked as the policy is read."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that are asked."""
        return ()


class Models(Protocol):
    """Loads the models that detectors run."""

    def encoder(self, plan: Plan) -> Any:
        """Return the token classifier that scores for ``plan``, loaded and warm.

        Raises:
            ModelError: its folder exists but cannot be used.
        """


@dataclass(frozen=True, slots=True)
class Context:
    """What a detector is built from: the plan that lists it, its options there, and the loader of models.

    ``observe_query`` is told of every look-up in a database, from any thread. ``cache`` keeps results of models
    (``detection.interfaces.ResultCache``), ``None`` where nothing is kept.
    """

    plan: Plan
    options: Any
    models: Models
    observe_query: Callable[[QueryRecord], None] | None = None
    cache: Any = None


@dataclass(frozen=True, slots=True)
class DetectorType:
    """The declaration of a detector.

    Attributes:
        name: What a policy lists.
        build: Builds it for one plan; what it returns is a ``detection.interfaces.Detector``, or an ``AskingDetector``
            where it needs ``Need.CALLS``.
        options: The pydantic model (frozen, ``extra="forbid"``) of the keys that a policy may give it.
        needs: What it needs to run; one that needs no model is built once for all plans with the same
            options.
        follows: Whether it can score an answer that is still being written.
    """

    name: str
    build: Callable[[Context], Any]
    options: type[pydantic.BaseModel] = NoOptions
    needs: frozenset[Need] = frozenset()
    follows: bool = False

    def key(self, plan: Plan, options: Hashable) -> Hashable:
        """Return what two plans must share to share one built detector."""
        own = plan.model_id if Need.MODEL in self.needs else None
        return (self.name, options, own)


def detector_types() -> Mapping[str, DetectorType]:
    """Return all declared detectors by name, those of this package first.

    Raises:
        DetectorError: Two declare one name, or an entry point gives something else than a ``DetectorType``.
    """
    package = importlib.import_module(_BUILT_IN)
    found: dict[str, DetectorType] = {}
    for module in pkgutil.iter_modules(package.__path__):
        declared = getattr(importlib.import_module(f"{_BUILT_IN}.{module.name}"), "DETECTOR", None)
        if declared is not None:
            _add(found, declared, source=module.name)
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        _add(found, point.load(), source=point.value)
    return found


def _add(found: dict[str, DetectorType], declared: object, *, source: str) -> None:
    if not isinstance(declared, DetectorType):
        raise DetectorError(
            f"{source} declares a {type(declared).__name__} as a detector; expected a DetectorType"
        )
    if declared.name in found:
        raise DetectorError(f"two detectors are named {declared.name!r} (the second in {source}); rename one")
    found[declared.name] = declared
