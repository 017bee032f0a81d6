"""The detector ``judge``: what strong models say of an answer, in one stage or two (``detection/judge``)."""

from __future__ import annotations

from truthlens.core.records.enums import DetectorName
from truthlens.detection.interfaces import AskingDetector
from truthlens.detection.judge.options import Options
from truthlens.registry import Context, DetectorType, Need


def build(context: Context) -> AskingDetector:
    """Return the detector with the plan's options."""
    from truthlens.detection.judge.detector import JudgeDetector

    return JudgeDetector(context.options, context.cache)


DETECTOR = DetectorType(DetectorName.JUDGE, build, options=Options, needs=frozenset({Need.CALLS}))
