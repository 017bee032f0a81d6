"""The detector ``budget``: how much of each claim comes from its evidence, by log probabilities."""

from __future__ import annotations

from truthlens.core.records.enums import DetectorName
from truthlens.core.registry import Context, DetectorType, Need
from truthlens.detection.detectors.budget.options import Options
from truthlens.detection.interfaces import AskingDetector


def build(context: Context) -> AskingDetector:
    """Return the detector with the plan's options."""
    from truthlens.detection.detectors.budget.detector import BudgetDetector

    return BudgetDetector(context.options, context.cache)


DETECTOR = DetectorType(DetectorName.BUDGET, build, options=Options, needs=frozenset({Need.CALLS}))
