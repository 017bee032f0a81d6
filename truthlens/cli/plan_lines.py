"""Describe a plan in one line, as commands print it."""

from __future__ import annotations

from truthlens.core.records.coefficients import Coefficients
from truthlens.core.records.plan import Plan
from truthlens.core.thresholds import EVEN_ODDS, at_rate


def described(plan: Plan, threshold: float | None) -> str:
    """Return name, detectors and threshold of a plan in one line, and the weights of its verdict where it has its own."""
    if not plan.enabled:
        return f"{plan.decision}: detection is off"
    names = (
        spec.name if spec.weight == 1 else f"{spec.name} (weight {spec.weight:g})" for spec in plan.detectors
    )
    value = "unknown" if threshold is None else f"{threshold:.4g}"
    if threshold is not None and plan.expected_rate != EVEN_ODDS:
        even = at_rate(threshold, EVEN_ODDS, given=plan.expected_rate)
        value += f" at expected_rate {plan.expected_rate:g}, which is {even:.4f} at even odds"
    fitted = "" if plan.coefficients is None else f"; fusion {weights_in_words(plan.coefficients)}"
    return f"{plan.decision}: {', '.join(names)}; threshold {value}{fitted}"


def weights_in_words(coefficients: Coefficients) -> str:
    """Return the weights of a verdict in one line."""
    whole = {f"{name} of evidence read whole": weight for name, weight in coefficients.whole.items()}
    found = {
        **coefficients.opinions,
        **whole,
        **coefficients.accusations,
        "verified values": coefficients.vouchers,
    }
    told = ", ".join(f"{name} {weight:.2f}" for name, weight in found.items())
    return f"{told}, intercept {coefficients.intercept:+.2f}"
