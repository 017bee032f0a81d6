"""What is queued for review and what is kept of it; a policy's ``review`` sets it, ``review`` keeps to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from truthlens.core.records.enums import Risk


class Redaction(StrEnum):
    """A kind of personal data that is taken out of kept texts."""

    EMAIL = "email"
    PHONE = "phone"
    CARD = "card"
    IBAN = "iban"
    IP = "ip"


@dataclass(frozen=True, slots=True)
class ReviewRule:
    """Which answers are queued; ``()`` stands for any.

    Args:
        name: by which an entry says why it was queued.
        flagged: whether it is for answers that were flagged, or for those that were not; ``None`` for both.
        decisions: names of decisions.
        levels: risk levels.
        detectors: names of detectors, one of which has found something.
        sample: share of the answers it applies to that are queued, 0..1.
    """

    name: str
    flagged: bool | None = True
    decisions: tuple[str, ...] = ()
    levels: tuple[Risk, ...] = ()
    detectors: tuple[str, ...] = ()
    sample: float = 1.0


FLAGGED = ReviewRule("flagged")
"""The rule of a policy that names none: every flagged answer."""


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """What is queued for review, and what of it is kept for how long.

    Args:
        enabled: false queues nothing.
        rules: the first that applies to an answer decides about it.
        keep_text: whether question, passages and answer are kept; else their hashes and positions.
        redact: what is taken out of kept texts.
        redact_patterns: regular expressions of further texts to take out.
        retention_days: after which an entry is deleted, with its audit trail.
        text_retention_days: after which its texts are.
        max_entries: the oldest settled entries, then the oldest of all, go when there are more.
        user_header: the trusted header (lower-case) that names the user; ``""`` for none.
    """

    enabled: bool = True
    rules: tuple[ReviewRule, ...] = (FLAGGED,)
    keep_text: bool = False
    redact: tuple[Redaction, ...] = ()
    redact_patterns: tuple[str, ...] = ()
    retention_days: float = 90.0
    text_retention_days: float = 30.0
    max_entries: int = 100_000
    user_header: str = ""
