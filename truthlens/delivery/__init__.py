"""Build what leaves TruthLens: headers, the warning, the ``truthlens`` object, and error bodies.

Pure functions of records. Deliberately not here: JSON bodies of the API (``api``), header mutation
(``gateway``), the choice of the action and the order of the stages (``pipeline``).
"""

from truthlens.delivery.bodies import (
    blocked_body,
    scored_object,
    truthlens_object,
    usage_object,
    verdict_object,
)
from truthlens.delivery.evidence import evidence_object, left_text
from truthlens.delivery.headers import HEADER_NAMES, format_score, headers, pending_headers, worst
from truthlens.delivery.outcome import outcome_of, unscored_outcome
from truthlens.delivery.warning import (
    Delivery,
    Warned,
    apply_warning,
    disclaimer_for,
    takes_warning,
    warn,
    warning_for,
)

__all__ = [
    "HEADER_NAMES",
    "Delivery",
    "Warned",
    "apply_warning",
    "blocked_body",
    "disclaimer_for",
    "evidence_object",
    "format_score",
    "headers",
    "left_text",
    "outcome_of",
    "pending_headers",
    "scored_object",
    "takes_warning",
    "truthlens_object",
    "unscored_outcome",
    "usage_object",
    "verdict_object",
    "warn",
    "warning_for",
    "worst",
]
