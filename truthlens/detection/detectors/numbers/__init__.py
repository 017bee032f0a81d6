"""The detector ``numbers``: whether the values of an answer are those that the evidence gives for the same."""

from __future__ import annotations

from truthlens.core.records.enums import DetectorName
from truthlens.core.registry import Context, DetectorType, Need
from truthlens.detection.detectors.numbers.options import Options
from truthlens.detection.interfaces import Detector


def build(context: Context) -> Detector:
    """Return the detector with the plan's options."""
    from truthlens.detection.detectors.numbers.detector import NumberDetector

    options: Options = context.options
    if not options.databases:
        return NumberDetector(options)
    from truthlens.detection.detectors.numbers.sql.opening import open_databases

    return NumberDetector(options, [open_databases(options.databases, observe=context.observe_query)])


DETECTOR = DetectorType(
    DetectorName.NUMBERS, build, options=Options, needs=frozenset({Need.SQL}), follows=True
)
"""The detector of values: money, percentages, dates, times, ratios, measures and counts. No model."""
