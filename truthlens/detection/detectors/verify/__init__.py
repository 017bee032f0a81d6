"""The detector ``verify``: one short question to a model about each doubtful claim."""

from __future__ import annotations

from truthlens.core.records.enums import DetectorName
from truthlens.core.registry import Context, DetectorType, Need
from truthlens.detection.detectors.verify.options import Options
from truthlens.detection.interfaces import AskingDetector


def build(context: Context) -> AskingDetector:
    """Return the detector with the plan's options."""
    from truthlens.detection.detectors.verify.detector import VerifyDetector

    return VerifyDetector(context.options, context.cache, context.plan.coefficients)


DETECTOR = DetectorType(DetectorName.VERIFY, build, options=Options, needs=frozenset({Need.CALLS}))
