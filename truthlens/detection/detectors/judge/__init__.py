"""The detector ``judge``: what strong models say of an answer, in one stage or two."""

from __future__ import annotations

from truthlens.core.records.enums import DetectorName
from truthlens.core.registry import Context, DetectorType, Need
from truthlens.detection.detectors.judge.options import Options
from truthlens.detection.interfaces import AskingDetector


def build(context: Context) -> AskingDetector:
    """Return the detector with the plan's options."""
    from truthlens.detection.detectors.judge.detector import JudgeDetector

    return JudgeDetector(context.options, context.cache)


DETECTOR = DetectorType(DetectorName.JUDGE, build, options=Options, needs=frozenset({Need.CALLS}))
