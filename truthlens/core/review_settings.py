"""What is queued for review and what is kept of it; a policy's ``review`` sets it, ``review`` keeps to it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from truthlens.core.records.enums import Risk
from truthlens.core.records.settings import HeaderName, Label, Lax, Section, Text, Unit


class Redaction(StrEnum):
    """A kind of personal data that is taken out of kept texts."""

    EMAIL = "email"
    PHONE = "phone"
    CARD = "card"
    IBAN = "iban"
    IP = "ip"


class ReviewRule(Section):
    """Which answers are queued for review; a key that is left out stands for any."""

    name: Label = Field(description="By which an entry says why it was queued.")
    flagged: bool | None = Field(
        default=True, description="true: answers that were flagged; false: those that were not; null: both."
    )
    decisions: Annotated[tuple[Text, ...], Lax] = Field(default=(), description="Names of decisions.")
    levels: Annotated[tuple[Annotated[Risk, Lax], ...], Lax] = Field(
        default=(), description="Risk levels: low, moderate, high."
    )
    detectors: Annotated[tuple[Text, ...], Lax] = Field(
        default=(),
        description="Detectors, one of which has found something (a score of 0.5 or more).",
    )
    sample: Unit = Field(default=1.0, description="Share of these answers that is queued.")


FLAGGED = ReviewRule(name="flagged")
"""The rule of a policy that names none: every flagged answer."""


class ReviewSettings(Section):
    """What is queued for people to review, and what of it is kept for how long."""

    enabled: bool = Field(
        default=True,
        description="false: nothing is queued. Default: true, or what the environment variable HALLUCINATION_REVIEW_QUEUE says.",
    )
    rules: Annotated[tuple[ReviewRule, ...], Lax] = Field(
        default=(FLAGGED,),
        description="The first that applies to an answer decides. Default: every flagged answer, or none where the environment "
        "variable HALLUCINATION_AUTO_FLAG is false.",
    )
    keep_text: bool = Field(
        default=False,
        description="true: question, passages and answer are kept; else their lengths, hashes and the positions of marks.",
    )
    redact: Annotated[tuple[Annotated[Redaction, Lax], ...], Lax] = Field(
        default=(),
        description="Personal data that is taken out of kept texts: email, phone, card, iban, ip.",
    )
    redact_patterns: Annotated[tuple[Text, ...], Lax] = Field(
        default=(), max_length=50, description="Regular expressions of further texts to take out."
    )
    retention_days: float = Field(
        default=90.0,
        gt=0,
        le=36_500,
        allow_inf_nan=False,
        description="Days after which an entry is deleted.",
    )
    text_retention_days: float = Field(
        default=30.0, gt=0, le=36_500, allow_inf_nan=False, description="Days after which its texts are."
    )
    max_entries: int = Field(
        default=100_000,
        ge=1,
        le=100_000_000,
        description="Entries at most; settled ones go first, then the oldest.",
    )
    user_header: HeaderName = Field(
        default="", description="The header that names the user; it must be one of trusted_headers."
    )
