"""The detector ``encoder``: a token classifier over evidence, query and answer (``detection/encoder``)."""

from __future__ import annotations

from truthlens.core.records.enums import DetectorName
from truthlens.detection.interfaces import Detector
from truthlens.registry import Context, DetectorType, Need


def build(context: Context) -> Detector:
    """Return the encoder of the plan's model."""
    encoder: Detector = context.models.encoder(context.plan)
    return encoder


DETECTOR = DetectorType(DetectorName.ENCODER, build, needs=frozenset({Need.MODEL}), follows=True)
