"""The coefficients of the shipped fusion, fitted on claims that no model was trained on; part of the scoring rules.

A policy can name others for its detectors: ``truthlens calibrate --fusion`` fits them.
"""

from __future__ import annotations

from truthlens.core.records.coefficients import Coefficients

COEFFICIENTS = Coefficients(
    intercept=0.0,
    opinions={"encoder": 0.9, "reader": 0.4},
    whole={"encoder": 0.15, "reader": 0.65},
    most={"encoder": 1.5},
    accusations={"numbers": 0.97, "contradictions": 1.37},
    vouchers=0.12,
)
"""Weights of long evidence and of accusations: fitted on 7,062 claims of held-out real answers (RAGTruth and 33 other sources) and twins that
no model had seen, at even odds. Weights of evidence that the reader reads whole: fitted on 340 plain answers of one author, and on held-out
twins and real answers, which weigh alike. There the encoder's word is worth little: it doubts new words and not new meanings."""
