"""Engines over detectors that a test has at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from truthlens.core.records.plan import DEFAULT_DETECTORS, DetectorSpec, Plan
from truthlens.detection.engine import Engine
from truthlens.detection.interfaces import AskingDetector, Detector


class GivenDetectors:
    """Detectors by name; the one named ``encoder`` by the plan's ``model_id``."""

    def __init__(
        self,
        encoders: Mapping[str | None, Detector],
        detectors: Mapping[str, Detector] | None = None,
        asking: Mapping[str, AskingDetector] | None = None,
    ) -> None:
        self._asking = dict(asking or {})
        self._encoders, self._detectors = dict(encoders), dict(detectors or {})

    def of(self, plan: Plan) -> list[tuple[DetectorSpec, Detector | None]]:
        """Return what the plan lists; of the default list what there is here."""
        given = {"encoder": self._encoders.get(plan.model_id), **self._detectors}
        listed = [spec for spec in plan.detectors if not spec.models]
        if plan.detectors == DEFAULT_DETECTORS:
            listed = [spec for spec in listed if spec.name in given]
        return [(spec, given.get(spec.name)) for spec in listed]

    def asking(self, plan: Plan) -> list[tuple[DetectorSpec, AskingDetector | None]]:
        """Return what the plan lists and asks models."""
        return [(spec, self._asking.get(spec.name)) for spec in plan.asking]


def engine_of(
    encoders: Mapping[str | None, Detector],
    *,
    detectors: Mapping[str, Detector] | None = None,
    asking: Mapping[str, AskingDetector] | None = None,
    workers: int = 1,
    queue_limit: int = 64,
    queue_observer: Callable[[float], None] | None = None,
    unexplained: Callable[[Exception], None] | None = None,
) -> Engine:
    """Return an engine that runs them."""
    return Engine(
        GivenDetectors(encoders, detectors, asking),
        workers=workers,
        queue_limit=queue_limit,
        queue_observer=queue_observer,
        unexplained=unexplained,
    )
