"""The coefficients of the shipped fusion, fitted on claims that no model was trained on; part of the scoring rules.

A policy can name others for its detectors: ``truthlens calibrate --fusion`` fits them.
"""

from __future__ import annotations

from truthlens.core.records.coefficients import Coefficients

COEFFICIENTS = Coefficients(
    intercept=0.0,
    opinions={"encoder": 0.9, "reader": 0.46},
    accusations={"numbers": 0.97, "contradictions": 1.37},
    vouchers=0.12,
)
"""Fitted on 7,062 claims: held-out real answers (RAGTruth and 33 other sources) and twins that no model had seen, at even odds of answers;
the reader on 3,004 claims of the same two kinds, which weigh alike."""
