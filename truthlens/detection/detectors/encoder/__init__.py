"""The detector ``encoder``: a token classifier over evidence, query and answer."""

from __future__ import annotations

from truthlens.core.records.enums import DetectorName
from truthlens.core.registry import Context, DetectorType, Need
from truthlens.detection.interfaces import Detector


def build(context: Context) -> Detector:
    """Return the encoder of the plan's model."""
    encoder: Detector = context.models.encoder(context.plan)
    return encoder


DETECTOR = DetectorType(DetectorName.ENCODER, build, needs=frozenset({Need.MODEL}), follows=True)
