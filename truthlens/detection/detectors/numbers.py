"""The detector ``numbers``: whether the values of an answer are those that the evidence gives for the same (``detection/numbers``)."""

from __future__ import annotations

from truthlens.core.records.enums import DetectorName
from truthlens.detection.interfaces import Detector
from truthlens.detection.numbers.options import Options
from truthlens.registry import Context, DetectorType


def build(context: Context) -> Detector:
    """Return the detector with the plan's options."""
    from truthlens.detection.numbers.detector import NumberDetector

    return NumberDetector(context.options or Options())


DETECTOR = DetectorType(DetectorName.NUMBERS, build, options=Options, follows=True)
"""The detector of values: money, percentages, dates, times, ratios, measures and counts. No model."""
