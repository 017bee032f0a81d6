"""The detector ``citations``: whether what an answer cites is there, and whether its claims cite."""

from __future__ import annotations

from truthlens.core.records.enums import DetectorName
from truthlens.core.registry import Context, DetectorType, Need
from truthlens.detection.detectors.citations.report import Options
from truthlens.detection.interfaces import Detector


def build(context: Context) -> Detector:
    """Return the detector with the plan's options; it loads the plan's model only to check support."""
    from truthlens.detection.detectors.citations.detector import CitationDetector

    options: Options = context.options
    encoder: Detector | None = context.models.encoder(context.plan) if options.check_support else None
    return CitationDetector(options, encoder)


DETECTOR = DetectorType(
    DetectorName.CITATIONS, build, options=Options, needs=frozenset({Need.MODEL}), follows=True
)
