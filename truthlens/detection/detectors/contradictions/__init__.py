"""The detector ``contradictions``: whether a claim says the contrary of the evidence in nearly its words."""

from __future__ import annotations

from truthlens.core.records.enums import DetectorName
from truthlens.core.registry import Context, DetectorType
from truthlens.detection.interfaces import Detector


def build(context: Context) -> Detector:
    """Return the detector; it has no options."""
    from truthlens.detection.detectors.contradictions.detector import ContradictionDetector

    return ContradictionDetector()


DETECTOR = DetectorType(DetectorName.CONTRADICTIONS, build, follows=True)
"""The detector of negations, quantifiers, comparisons and roles that are turned round. English, no model."""
