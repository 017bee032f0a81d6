"""Define the sections about the whole process: models, limits, telemetry, the cache and the review queue."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from truthlens.core.records.enums import Risk
from truthlens.core.review_settings import Redaction
from truthlens.policy.schema.types import HeaderName, Label, Lax, Section, Text, Unit


class PriceSection(Section):
    """USD per million tokens."""

    input: float = Field(ge=0, le=100_000, allow_inf_nan=False)
    output: float = Field(ge=0, le=100_000, allow_inf_nan=False)


class ModelEntry(Section):
    """A model that can be called."""

    name: Text
    base_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s]+$",
        description="Ends before /chat/completions. Default: the gateway's own backend (--upstream).",
    )
    api_key_env: str | None = Field(
        default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Environment variable with the key."
    )
    price: PriceSection | None = None
    reliability: Unit | None = Field(
        default=None, description="Weight of its word among other models. Default 0.5."
    )
    max_concurrency: int | None = Field(
        default=None, ge=1, le=10000, description="Calls in flight of one process. Default 32."
    )
    max_model_len: int | None = Field(
        default=None,
        ge=256,
        le=100_000_000,
        description="Tokens of prompt and answer that it takes together. Default: as its server's /v1/models says.",
    )


class LimitsSection(Section):
    """Bounds on memory and work."""

    max_body_bytes: int = Field(
        default=16 * 1024 * 1024, ge=1024, description="Larger bodies are not checked."
    )
    max_held_bytes: int = Field(
        default=512 * 1024 * 1024, ge=1024, description="All answers being checked at one time."
    )
    max_json_values: int = Field(
        default=500_000,
        ge=1000,
        description="JSON values of one body (of one frame, in a stream); bodies with more are not checked. With "
        "logprobs a token of the answer is some ten values, and eight more for each of its top_logprobs.",
    )
    max_frames: int = Field(
        default=200_000,
        ge=100,
        description="Frames of a stream under `streaming: buffer`; streams with more are not checked.",
    )
    max_choices: int = Field(
        default=128, ge=1, description="Choices of a response; responses with more are not checked."
    )
    max_answer_chars: int = Field(
        default=500_000,
        ge=1000,
        description="Characters of the answers of a response, all choices together; longer ones are not checked.",
    )
    max_prompt_chars: int = Field(
        default=5_000_000,
        ge=1000,
        description="Characters of all messages of a request, and of all passages in it; answers to requests with more "
        "are not checked.",
    )
    max_passages: int = Field(
        default=10_000,
        ge=1,
        description="Passages of a request; answers to requests with more are not checked.",
    )
    queue_limit: int = Field(
        default=64, ge=1, description="Checks waiting; one more is refused (overloaded)."
    )
    max_windows: int = Field(default=256, ge=1, description="Model windows for one answer.")


class TelemetrySection(Section):
    """What is logged."""

    log_text: bool = Field(
        default=False, description="true: texts of users and models are logged and shown on the console."
    )


class CacheSection(Section):
    """How the results of detectors that ask models are kept, so that what was asked before is not asked again."""

    enabled: bool = Field(default=True, description="false: nothing is kept, every result is asked for.")
    max_entries: int = Field(
        default=10_000, ge=1, le=1_000_000, description="Results in the memory of one process."
    )
    max_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=64 * 1024,
        le=16 * 1024 * 1024 * 1024,
        description="Memory that they may take together; the least recently used go first.",
    )
    ttl_s: float = Field(
        default=3600.0,
        ge=1,
        le=30 * 86_400,
        allow_inf_nan=False,
        description="Seconds that a result is good for.",
    )
    redis: bool = Field(
        default=True,
        description="false: the server's Redis (--redis), where it has one, keeps no results; they may quote texts of users "
        "and models.",
    )


class ReviewRuleSection(Section):
    """Which answers are queued for review; a key that is left out stands for any."""

    name: Label = Field(description="By which an entry says why it was queued.")
    flagged: bool | None = Field(
        default=True, description="true: answers that were flagged; false: those that were not; null: both."
    )
    decisions: list[Text] = Field(default_factory=list, description="Names of decisions.")
    levels: list[Annotated[Risk, Lax]] = Field(
        default_factory=list, description="Risk levels: low, moderate, high."
    )
    detectors: list[Text] = Field(
        default_factory=list,
        description="Detectors, one of which has found something (a score of 0.5 or more).",
    )
    sample: Unit = Field(default=1.0, description="Share of these answers that is queued.")


class ReviewSection(Section):
    """What is queued for people to review, and what of it is kept for how long."""

    enabled: bool | None = Field(
        default=None,
        description="false: nothing is queued. Default: true, or what the environment variable HALLUCINATION_REVIEW_QUEUE says.",
    )
    rules: list[ReviewRuleSection] | None = Field(
        default=None,
        description="The first that applies to an answer decides. Default: every flagged answer, or none where the environment "
        "variable HALLUCINATION_AUTO_FLAG is false.",
    )
    keep_text: bool = Field(
        default=False,
        description="true: question, passages and answer are kept; else their lengths, hashes and the positions of marks.",
    )
    redact: list[Annotated[Redaction, Lax]] = Field(
        default_factory=list,
        description="Personal data that is taken out of kept texts: email, phone, card, iban, ip.",
    )
    redact_patterns: list[Text] = Field(
        default_factory=list, max_length=50, description="Regular expressions of further texts to take out."
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
    user_header: HeaderName | None = Field(
        default=None, description="The header that names the user; it must be one of trusted_headers."
    )
