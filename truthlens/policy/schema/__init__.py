"""The shape of the policy YAML, as pydantic models; the JSON Schema in ``config/`` is generated from it.

Only shapes and ranges are checked here. What keys mean together is for ``compile`` and ``lint``.
A key that is ``None`` was not written and is inherited.
"""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from truthlens.core.cache_settings import CacheSettings
from truthlens.core.limits import Limits
from truthlens.core.records.settings import HeaderName, Label, Section, Text, Unit
from truthlens.core.review_settings import ReviewSettings
from truthlens.policy.schema.behaviour import (
    Behaviour,
    CostThreshold,
    Detector,
    MissRateThreshold,
    PluginConfiguration,
    WeightedDetector,
)
from truthlens.policy.schema.decisions import (
    Condition,
    DecisionSection,
    DomainSignalSection,
    Group,
    HallucinationPlugin,
    SignalsSection,
)

__all__ = [
    "Behaviour",
    "Condition",
    "CostThreshold",
    "DecisionSection",
    "DomainSignalSection",
    "Group",
    "HallucinationPlugin",
    "MissRateThreshold",
    "ModelEntry",
    "PluginConfiguration",
    "PolicyFile",
    "Section",
    "SignalsSection",
    "SourceEntry",
    "Telemetry",
    "WeightedDetector",
    "json_schema",
]


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


class SourceEntry(Section):
    """A source of evidence; the options of its type are further keys."""

    model_config = ConfigDict(extra="allow")

    name: Label
    type: Text = Field(
        description="folder, vector_store, pgvector, qdrant, opensearch, searxng, mcp, ddgs, or one that is installed."
    )


class Telemetry(Section):
    """What is logged."""

    log_text: bool = Field(
        default=False, description="true: texts of users and models are logged and shown on the console."
    )
    log_sample: Unit = Field(
        default=1.0,
        description="Share of the lines of unremarkable exchanges that is logged; others always are.",
    )
    log_slow_s: float = Field(
        default=5.0,
        gt=0,
        description="Seconds from which on an exchange is remarkable, by the time that TruthLens added.",
    )


class PolicyFile(Section):
    """A TruthLens policy."""

    hallucination: Behaviour = Behaviour()
    decisions: list[DecisionSection] = Field(default_factory=list)
    signals: SignalsSection = SignalsSection()
    trusted_headers: list[HeaderName] = Field(
        default_factory=list,
        description="Request headers that only an upstream router can set, never a client.",
    )
    models: list[ModelEntry] | None = None
    sources: list[SourceEntry] = Field(
        default_factory=list,
        max_length=64,
        description="Where evidence can be retrieved from (docs/retrieval.md).",
    )
    limits: Limits = Limits()
    telemetry: Telemetry = Telemetry()
    detectors: list[Detector] | None = Field(
        default=None, min_length=1, description="The same as hallucination.detectors, which goes before it."
    )
    review: ReviewSettings = ReviewSettings()
    cache: CacheSettings = CacheSettings()


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a policy file, for editors."""
    schema = PolicyFile.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
