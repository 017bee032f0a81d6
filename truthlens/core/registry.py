"""Registries of detectors and of sources of evidence: what each one declares about itself, found without a list to keep.

A detector is one package or file in ``truthlens/detection/detectors`` that has its name and a ``DETECTOR``,
or an entry point of the group ``truthlens.detectors`` in another distribution that names one; a source is the same with
``truthlens/retrieval/sources``, ``SOURCE`` and ``truthlens.sources``. The policy takes names and options from here, and
what runs them is built from here. A declaration is read when its name is first asked for, so that a process holds those
that its policy lists and no others; and it imports models and libraries only in ``build``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import pydantic

from truthlens.core.errors import DetectorError
from truthlens.core.records.agentic_settings import ToolName
from truthlens.core.records.plan import Plan
from truthlens.core.records.queries import QueryRecord

ENTRY_POINTS = "truthlens.detectors"
_DETECTORS = "truthlens.detection.detectors"
_SOURCES = "truthlens.retrieval.sources"


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

    def reader(self, name: str) -> Any:
        """Return the reader (``detection.reader.model.Reader``) of that name or folder, loaded and warm.

        Raises:
            ModelError: there is none, or it cannot be used.
        """


@dataclass(frozen=True, slots=True)
class Context:
    """What a detector is built from: the plan that lists it, its options there, and the loader of models.

    Where the plan lists the name alone, the options have their defaults.
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
        # What asks models may choose claims by what the first stage makes of them.
        weights = plan.coefficients if Need.CALLS in self.needs else None
        return (self.name, options, own, weights)


class SourceOptions(pydantic.BaseModel):
    """Options that every source has; a source's own come as further fields of a subclass.

    ``filter`` has, for fields of a passage, the name of what the operator says the exchange is about
    (``Exchange.scope``) that the field must equal; where the exchange lacks that, the source is not searched.
    ``cache_ttl_s`` 0 keeps nothing.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    timeout_s: float = pydantic.Field(
        default=2.0, gt=0, le=60, description="Seconds that one search may take."
    )
    max_concurrency: int = pydantic.Field(
        default=8, ge=1, le=1000, description="Searches of one process that run at once; further ones wait."
    )
    cache_ttl_s: float = pydantic.Field(
        default=60.0,
        ge=0,
        le=86_400,
        description="Seconds for which what a search gave is used again; 0: never.",
    )
    filter: dict[str, str] = pydantic.Field(
        default_factory=dict,
        description="Field of a passage: name of the trusted header or of the route's truthlens-scope-* that it must equal.",
    )
    auth: Literal["none", "passthrough"] = pydantic.Field(
        default="none", description="passthrough: the client's own Authorization header goes to this source."
    )


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a source is built from.

    ``embed`` makes vectors of texts by the bundled sentence model: unit length, shape (texts, 384), on a thread of its own.
    ``folder`` is that of the policy file, for relative paths; ``environ`` where keys come from.
    """

    name: str
    options: Any
    folder: Path
    environ: Mapping[str, str]
    embed: Callable[[Sequence[str]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class SourceType:
    """The declaration of a source of evidence.

    Attributes:
        name: What a policy writes as ``type``.
        build: Builds a ``retrieval.interfaces.EvidenceSource``.
        options: The pydantic model of the keys that a policy may give it, a subclass of ``SourceOptions``.
        filters: Whether it applies ``filter`` and refuses what lacks its values (``retrieval.filters``); else
            no policy may write one, because every tenant would search all of it.
        passes_authorization: Whether it sends on a search's ``authorization``; else no policy may write
            ``auth: passthrough``.
        tool: The tool of mode agentic that searches it.
        missing: Says of options and the policy's folder what is not there on this machine; ``""`` if nothing is missing.
    """

    name: str
    build: Callable[[SourceContext], Any]
    options: type[SourceOptions] = SourceOptions
    filters: bool = False
    passes_authorization: bool = False
    tool: ToolName = ToolName.TEXT_SEARCH
    missing: Callable[[Any, Path], str] = lambda _options, _folder: ""


_D = TypeVar("_D", bound=DetectorType | SourceType)


class Declarations(Mapping[str, _D]):
    """All declarations of one kind by name, those of this package first, each read when it is asked for.

    Raises:
        DetectorError: two declare one name, or what is read declares nothing of the kind, or one of another name.
    """

    def __init__(self, kind: type[_D], *, package: str, attribute: str, group: str, noun: str) -> None:
        self._kind: type[_D] = kind
        self._package, self._attribute, self._noun = package, attribute, noun
        names = (module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__))
        self._found: dict[str, _D | None] = {name: None for name in names if name[0] != "_"}
        for point in importlib.metadata.entry_points(group=group):
            declared = self._checked(point.load(), source=point.value)
            if declared.name in self._found:
                raise DetectorError(
                    f"two {noun}s are named {declared.name!r} (the second in {point.value}); rename one"
                )
            self._found[declared.name] = declared

    def __getitem__(self, name: str) -> _D:
        """Return the declaration of ``name``."""
        found = self._found[name]
        if found is None:
            module = importlib.import_module(f"{self._package}.{name}")
            found = self._found[name] = self._checked(getattr(module, self._attribute, None), source=name)
            if found.name != name:
                raise DetectorError(
                    f"{module.__name__} declares the {self._noun} {found.name!r}; give both one name"
                )
        return found

    def __contains__(self, name: object) -> bool:
        """Return whether there is one of that name."""
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._found)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._found)

    def _checked(self, declared: object, *, source: str) -> _D:
        if not isinstance(declared, self._kind):
            raise DetectorError(
                f"{source} declares a {type(declared).__name__} as a {self._noun}; expected a {self._kind.__name__}"
            )
        return declared


def detector_types() -> Mapping[str, DetectorType]:
    """Return all declared detectors by name; what they are and what it raises stands at ``Declarations``."""
    return Declarations(
        DetectorType, package=_DETECTORS, attribute="DETECTOR", group=ENTRY_POINTS, noun="detector"
    )


def source_types() -> Mapping[str, SourceType]:
    """Return all declared sources of evidence by name, as ``detector_types`` does."""
    return Declarations(
        SourceType, package=_SOURCES, attribute="SOURCE", group="truthlens.sources", noun="source"
    )
