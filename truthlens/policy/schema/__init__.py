"""The shape of the policy YAML, as pydantic models; the JSON Schema in ``config/`` is generated from it.

Only shapes and ranges are checked here. What keys mean together is for ``compile`` and ``lint``.
A key that is ``None`` was not written and is inherited.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from truthlens.policy.schema.behaviour import (
    Behaviour,
    CostThreshold,
    MissRateThreshold,
    PluginConfiguration,
    WeightedDetector,
)
from truthlens.policy.schema.decisions import Condition, DecisionSection, Group, HallucinationPlugin
from truthlens.policy.schema.process import (
    CacheSection,
    LimitsSection,
    ModelEntry,
    ReviewSection,
    TelemetrySection,
)
from truthlens.policy.schema.signals import DomainSignalSection, SignalsSection
from truthlens.policy.schema.types import HeaderName, Section

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
    "WeightedDetector",
    "json_schema",
]


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
    limits: LimitsSection = LimitsSection()
    telemetry: TelemetrySection = TelemetrySection()
    detectors: Any = Field(default=None, description="Not read by this version.")
    review: ReviewSection = ReviewSection()
    cache: CacheSection = CacheSection()


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a policy file, for editors."""
    schema = PolicyFile.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
