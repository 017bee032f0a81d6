"""Define the keys that a decision may have, and the defaults for all of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Discriminator, Field, Tag

from truthlens.core.records.enums import (
    Aggregation,
    AskWhen,
    IntermediateCalls,
    Mode,
    OnFlagged,
    OnUnchecked,
    Reasoning,
    Rescoring,
    Streaming,
    SystemEvidence,
    WarningPosition,
)
from truthlens.core.records.plan import Consensus
from truthlens.policy.schema.types import Lax, MarkName, Role, Section, Text, Unit


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


class StandardSection(Section):
    """Settings of the standard mode."""

    max_iterations: int | None = Field(
        default=None, ge=1, le=20, description="Corrections that are asked for at most. Default 3."
    )
    convergence_threshold: Unit | None = Field(
        default=None,
        description="The score below which an answer counts as corrected. Default, and never above: the threshold.",
    )
    min_gain: Unit | None = Field(
        default=None, description="A correction that lowers the score by less is the last one. Default 0.01."
    )
    self_check: bool | None = Field(
        default=None,
        description="true: before it corrects, the model answers verification questions from the evidence alone. "
        "Two more calls. Default false.",
    )
    min_retention: Unit | None = Field(
        default=None,
        description="Share of the supported content of an answer that a rewrite must keep. Default 0.5.",
    )


class PremiumSection(Section):
    """Settings of the premium mode."""

    verification_models: list[Text] | None = Field(
        default=None, max_length=8, description="Models that answer the same request."
    )
    judge_model: Text | None = Field(
        default=None, description="Model that arbitrates significant differences."
    )
    max_iterations: int | None = Field(
        default=None, ge=1, le=20, description="Corrections after the consensus at most. Default 5."
    )
    require_consensus: bool | None = Field(
        default=None,
        description="true: an answer on which the models did not agree carries the disclaimer. Default false.",
    )
    consensus: Annotated[Consensus, Lax] | None = Field(
        default=None, description="Default judge where there is a judge_model, else replacement."
    )
    significance: Unit | None = Field(
        default=None,
        description="Share of the claims that must be disputed before differences count. Default 0.1.",
    )
    debate_rounds: int | None = Field(default=None, ge=1, le=3, description="Default 3.")
    side_by_side: bool | None = Field(
        default=None,
        description="false: other models are asked only once an answer was flagged, for fewer calls and a longer wait. "
        "Default true.",
    )


class AutoSection(Section):
    """Settings of mode auto."""

    modes: list[Annotated[Mode, Lax]] | None = Field(
        default=None,
        min_length=1,
        description="Modes to choose from. Default [lightweight, standard, premium].",
    )
    latency_weight: float | None = Field(
        default=None, ge=0, le=10, description="What 10 s cost, in units of a corrected answer. Default 0.2."
    )
    token_weight: float | None = Field(
        default=None, ge=0, le=10, description="What 10,000 extra tokens cost, likewise. Default 0.2."
    )
    half_life_s: float | None = Field(
        default=None,
        ge=60,
        allow_inf_nan=False,
        description="Seconds in which experience halves. Default 7 days.",
    )


class MitigationSection(Section):
    """Bounds of the modes that call models, for one exchange."""

    deadline_s: float | None = Field(
        default=None,
        gt=0,
        le=600,
        description="Seconds that an answer may be held, detection included. Default 30 in standard, 60 above.",
    )
    max_tokens: int | None = Field(
        default=None, ge=1, description="Tokens of all extra calls, prompts included. Default 50000."
    )
    max_cost_usd: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Cost of the extra calls to models that have a price.",
    )
    forward_authorization: bool | None = Field(
        default=None,
        description="true: the client's Authorization header goes to the model that gave the answer (to no other). "
        "Default false.",
    )


class StreamSection(Section):
    """How streamed answers are treated under `streaming: observe` and `streaming: gate`."""

    warning: bool | None = Field(
        default=None, description="false: a flagged answer does not end with the warning. Default true."
    )
    mark_template: Text | None = Field(
        default=None, description="gate, mark: stands behind a flagged sentence. Default built in."
    )
    notice_template: Text | None = Field(
        default=None,
        description="gate, withhold and stop: stands in the place of the text. Default built in.",
    )
    max_hold_s: float | None = Field(
        default=None,
        gt=0,
        le=60,
        description="gate: seconds after which text is scored although its sentence is not complete. Default 3.",
    )
    max_hold_bytes: int | None = Field(
        default=None,
        ge=4096,
        le=524_288,
        description="gate: bytes of a stream that are held before no more is read. Default 65536.",
    )


class CascadeSection(Section):
    """When the detectors that ask models run; those that ask nobody always run first."""

    when: Annotated[AskWhen, Lax] | None = Field(
        default=None,
        description="band: models are asked about answers whose first score lies in the band, or that got none. "
        "always: about every answer. Default band.",
    )
    band: Annotated[list[Unit], Field(min_length=2, max_length=2)] | None = Field(
        default=None,
        description="Lowest and highest first score at which models are asked. Default [0.3, 0.6].",
    )
    sample: Unit | None = Field(
        default=None,
        description="Share of the other answers that models are asked about all the same, to measure how often they agree. "
        "Default 0.",
    )
    in_loop: Annotated[Rescoring, Lax] | None = Field(
        default=None,
        description="end: of the corrections of an answer only the last is judged by models. every: each one. Default end.",
    )
    timeout_s: float | None = Field(
        default=None, gt=0, le=600, description="Seconds that asking about an answer may take. Default 20."
    )


class EvidenceSection(Section):
    """How passages are taken out of a request, and which requests have no answer for a user."""

    system: Annotated[SystemEvidence, Lax] | None = Field(
        default=None,
        description="What of system messages may be evidence: never, what is marked, or (auto) also text without a mark "
        "that reads as reference text. Default auto.",
    )
    system_min_chars: int | None = Field(
        default=None,
        ge=0,
        description="Under system auto, shorter text without a mark is no evidence. Default 120.",
    )
    roles: list[Role] | None = Field(
        default=None,
        max_length=64,
        description="Message roles besides `tool` and its like whose messages are evidence as a whole.",
    )
    marks: list[MarkName] | None = Field(
        default=None,
        max_length=64,
        description="Names of tags and labels besides the built-in ones behind which evidence stands.",
    )
    user_patterns: list[Text] | None = Field(
        default=None, description="Regular expressions with one group each, which captures a passage."
    )
    intermediate_calls: Annotated[IntermediateCalls, Lax] | None = Field(
        default=None,
        description="Exchanges that are steps of an application and no answers to users: detect finds them by the request, "
        "none treats all as answers, all says it of every exchange of the decision. They are not checked. Default detect.",
    )


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
        gt=0,
        lt=1,
        description="Share of answers that you expect to be unsupported: scores are probabilities at it. Default 0.5.",
    )
    model_id: Text | None = Field(default=None, description="Model folder. Default: the bundled model.")
    use_cpu: bool | None = Field(default=None, description="false: run the model on a GPU. Default true.")
    aggregation: Annotated[Aggregation, Lax] | None = Field(
        default=None, description="How token scores become one score. Default: the model's own."
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
    reasoning: Annotated[Reasoning, Lax] | None = Field(
        default=None,
        description="What is done about reasoning beside the answer: pass (unscored, and the verdict says so) or score. "
        "Default pass.",
    )
    details: bool | None = Field(default=None, description="Put span detail into the body. Default false.")
    detectors: list[Detector] | None = Field(default=None, min_length=1, description="Default [encoder].")
    warning_template: Text | None = Field(
        default=None, description="Default: built in, by the answer's script."
    )
    warning_position: Annotated[WarningPosition, Lax] | None = Field(
        default=None, description="Where the warning stands. Default before."
    )
    require_disclaimer: bool | None = Field(
        default=None,
        description="false: an answer that could not be corrected carries no disclaimer, only headers. Default true.",
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
    standard: StandardSection | None = None
    premium: PremiumSection | None = None
    auto: AutoSection | None = None
    mitigation: MitigationSection | None = None
    stream: StreamSection | None = None
    evidence: EvidenceSection | None = None
    cascade: CascadeSection | None = None


class PluginConfiguration(Behaviour):
    """`configuration` of a plugin of type hallucination: every key of `hallucination`, and two more."""

    mode: Annotated[Mode, Lax] | None = Field(default=None, description="Same as default_mode.")
    max_iterations: int | None = Field(
        default=None, ge=1, le=20, description="Short for standard.max_iterations and premium.max_iterations."
    )
