"""Define the keys that a decision may have, and the defaults for all of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Discriminator, Field, Tag

from truthlens.core.records.agentic_settings import AgenticSettings
from truthlens.core.records.enums import (
    Aggregation,
    Mode,
    OnFlagged,
    OnUnchecked,
    Reasoning,
    Streaming,
    WarningPosition,
)
from truthlens.core.records.settings import (
    AutoSettings,
    CascadeSettings,
    EvidenceRules,
    Lax,
    MitigationSettings,
    PremiumSettings,
    RetrievalSettings,
    Section,
    StandardSettings,
    StreamSettings,
    Text,
    Unit,
)
from truthlens.core.thresholds import LEAST_RATE


class CostThreshold(Section):
    """A threshold from costs: 1 / (1 + cost_ratio * (1 - prior) / prior)."""

    cost_ratio: float = Field(
        gt=0, allow_inf_nan=False, description="Cost of a miss / cost of a false alarm."
    )
    prior: float = Field(gt=0, lt=1, description="Share of answers that are unsupported.")


class MissRateThreshold(Section):
    """A threshold that misses at most a share of the unsupported answers, measured by `truthlens calibrate`."""

    max_miss_rate: float = Field(
        gt=0, lt=1, description="Share of unsupported answers that may pass unflagged, on average."
    )
    calibration: Text = Field(
        description="Threshold record (JSON) written by `truthlens calibrate`; relative to this file."
    )


def _threshold_tag(value: object) -> str:
    if not isinstance(value, dict):
        return "number"
    return "MissRateThreshold" if value.keys() & MissRateThreshold.model_fields else "CostThreshold"


Threshold = Annotated[
    Annotated[Unit, Tag("number")]
    | Annotated[CostThreshold, Tag("CostThreshold")]
    | Annotated[MissRateThreshold, Tag("MissRateThreshold")],
    Discriminator(_threshold_tag),
]


class WeightedDetector(Section):
    """A detector with its weight in fusion, and its own options as further keys."""

    model_config = ConfigDict(extra="allow")

    name: Text
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)


def _detector_tag(value: object) -> str:
    return "WeightedDetector" if isinstance(value, dict) else "name"


Detector = Annotated[
    Annotated[Text, Tag("name")] | Annotated[WeightedDetector, Tag("WeightedDetector")],
    Discriminator(_detector_tag),
]


class Behaviour(Section):
    """What may stand in `hallucination` and in every plugin configuration."""

    enabled: bool | None = Field(default=None, description="false switches detection off. Default true.")
    default_mode: Annotated[Mode, Lax] | None = Field(default=None, description="Default lightweight.")
    threshold: Threshold | None = Field(
        default=None,
        description="Scores at or above it are acted on; lower is stricter. Default 0.6, the white paper's.",
    )
    expected_rate: float | None = Field(
        default=None,
        gt=LEAST_RATE,
        lt=1 - LEAST_RATE,
        description="Share of answers that you expect to be unsupported: scores are probabilities at it. Default 0.5.",
    )
    model_id: Text | None = Field(default=None, description="Model folder. Default: the bundled model.")
    use_cpu: bool | None = Field(
        default=None,
        description="false: run the model of model_id on a GPU; the bundled one runs on the CPU. Default true.",
    )
    fusion: Text | None = Field(
        default=None,
        description="Weights of the verdict (JSON) that `truthlens calibrate --fusion` wrote, relative to this file; default: those "
        "of this version.",
    )
    aggregation: Annotated[Aggregation, Lax] | None = Field(
        default=None,
        description="How token scores become the answer's score (white paper). Default: by claims (docs/verdict.md).",
    )
    streaming: Annotated[Streaming, Lax] | None = Field(
        default=None, description="What is done with a streamed answer. Default buffer."
    )
    on_flagged: Annotated[OnFlagged, Lax] | None = Field(
        default=None,
        description="What is done with a flagged sentence of a stream under streaming gate. Default mark.",
    )
    on_unchecked: Annotated[OnUnchecked, Lax] | None = Field(
        default=None, description="What is done with an answer not fully checked. Default annotate."
    )
    max_unscored: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Share of an answer that may be phrases without a claim before it is not fully checked. Default 1: all but all.",
    )
    reasoning: Annotated[Reasoning, Lax] | None = Field(
        default=None,
        description="What is done about reasoning beside the answer: pass (unscored, and the verdict says so) or score. "
        "Default pass.",
    )
    details: bool | None = Field(default=None, description="Put span detail into the body. Default false.")
    detectors: list[Detector] | None = Field(
        default=None, min_length=1, description="Default [encoder, numbers, contradictions, reader]."
    )
    warning_template: Text | None = Field(
        default=None, description="Default: built in, by the answer's script."
    )
    warning_position: Annotated[WarningPosition, Lax] | None = Field(
        default=None, description="Where the warning stands. Default before."
    )
    require_disclaimer: bool | None = Field(
        default=None,
        description="false: an answer that could not be corrected carries no disclaimer, only headers. true: in all modes, "
        "an answer that was not fully checked carries one as well. Default: one that could not be corrected.",
    )
    disclaimer_template: Text | None = Field(
        default=None, description="Default: warning_template, else built in, by the answer's script."
    )
    timeout_s: float | None = Field(
        default=None, gt=0, le=600, description="Seconds that one detection may take. Default 4."
    )
    client_may_choose: bool | None = Field(
        default=None,
        description="true: what a client sends may choose this decision although it is weaker than the one "
        "that would apply otherwise. Default false.",
    )
    shadow: bool | None = Field(
        default=None,
        description="true: decide and tell (X-TruthLens-Shadow-Action), and leave every answer as it came. Default false.",
    )
    standard: StandardSettings | None = None
    premium: PremiumSettings | None = None
    auto: AutoSettings | None = None
    mitigation: MitigationSettings | None = None
    stream: StreamSettings | None = None
    evidence: EvidenceRules | None = None
    cascade: CascadeSettings | None = None
    retrieval: RetrievalSettings | None = None
    agentic: AgenticSettings | None = None


class PluginConfiguration(Behaviour):
    """`configuration` of a plugin of type hallucination: every key of `hallucination`, and two more."""

    mode: Annotated[Mode, Lax] | None = Field(default=None, description="Same as default_mode.")
    max_iterations: int | None = Field(
        default=None, ge=1, le=20, description="Short for standard.max_iterations and premium.max_iterations."
    )
