"""The shape of the policy YAML, as pydantic models; the JSON Schema in ``config/`` is generated from it.

Only shapes and ranges are checked here. What keys mean together is for ``compile`` and ``lint``.
A key that is ``None`` was not written and is inherited.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Strict, Tag

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

Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}$")]
Text = Annotated[str, Field(min_length=1)]
Role = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.\-]{0,63}$")]
MarkName = Annotated[str, Field(pattern=r"^[^\s<>:/\[\]{}][^<>:\n\[\]{}]{0,63}$")]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~\-]+$")]
# An enum member never stands in YAML, so these fields take its text although the models are strict.
_Lax = Strict(strict=False)


class Section(BaseModel):
    """Base of all sections: unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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
    consensus: Annotated[Consensus, _Lax] | None = Field(
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

    modes: list[Annotated[Mode, _Lax]] | None = Field(
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

    when: Annotated[AskWhen, _Lax] | None = Field(
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
    in_loop: Annotated[Rescoring, _Lax] | None = Field(
        default=None,
        description="end: of the corrections of an answer only the last is judged by models. every: each one. Default end.",
    )
    timeout_s: float | None = Field(
        default=None, gt=0, le=600, description="Seconds that asking about an answer may take. Default 20."
    )


class EvidenceSection(Section):
    """How passages are taken out of a request, and which requests have no answer for a user."""

    system: Annotated[SystemEvidence, _Lax] | None = Field(
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
    intermediate_calls: Annotated[IntermediateCalls, _Lax] | None = Field(
        default=None,
        description="Exchanges that are steps of an application and no answers to users: detect finds them by the request, "
        "none treats all as answers, all says it of every exchange of the decision. They are not checked. Default detect.",
    )


class Behaviour(Section):
    """What may stand in `hallucination` and in every plugin configuration."""

    enabled: bool | None = Field(default=None, description="false switches detection off. Default true.")
    default_mode: Annotated[Mode, _Lax] | None = Field(default=None, description="Default lightweight.")
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
    aggregation: Annotated[Aggregation, _Lax] | None = Field(
        default=None, description="How token scores become one score. Default: the model's own."
    )
    streaming: Annotated[Streaming, _Lax] | None = Field(
        default=None, description="What is done with a streamed answer. Default buffer."
    )
    on_flagged: Annotated[OnFlagged, _Lax] | None = Field(
        default=None,
        description="What is done with a flagged sentence of a stream under streaming gate. Default mark.",
    )
    on_unchecked: Annotated[OnUnchecked, _Lax] | None = Field(
        default=None, description="What is done with an answer not fully checked. Default annotate."
    )
    reasoning: Annotated[Reasoning, _Lax] | None = Field(
        default=None,
        description="What is done about reasoning beside the answer: pass (unscored, and the verdict says so) or score. "
        "Default pass.",
    )
    details: bool | None = Field(default=None, description="Put span detail into the body. Default false.")
    detectors: list[Detector] | None = Field(default=None, min_length=1, description="Default [encoder].")
    warning_template: Text | None = Field(
        default=None, description="Default: built in, by the answer's script."
    )
    warning_position: Annotated[WarningPosition, _Lax] | None = Field(
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

    mode: Annotated[Mode, _Lax] | None = Field(default=None, description="Same as default_mode.")
    max_iterations: int | None = Field(
        default=None, ge=1, le=20, description="Short for standard.max_iterations and premium.max_iterations."
    )


class HallucinationPlugin(Section):
    """The plugin that TruthLens reads."""

    type: Literal["hallucination"]
    configuration: PluginConfiguration = PluginConfiguration()


class OtherPlugin(BaseModel):
    """A plugin of another type (of an upstream router); it is ignored, with a warning."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    # Editors choose between the plugin kinds by the JSON Schema alone.
    type: Text = Field(json_schema_extra={"not": {"const": "hallucination"}})


def _plugin_tag(value: object) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    return "OtherPlugin" if isinstance(kind, str) and kind != "hallucination" else "HallucinationPlugin"


Plugin = Annotated[
    Annotated[HallucinationPlugin, Tag("HallucinationPlugin")] | Annotated[OtherPlugin, Tag("OtherPlugin")],
    Discriminator(_plugin_tag),
]


class Condition(Section):
    """One condition: a signal by type and name."""

    type: Literal["domain", "keyword", "header", "model", "language", "tenant"]
    name: Text


class Group(Section):
    """Conditions joined by an operator; NOT takes exactly one."""

    operator: Literal["AND", "OR", "NOT"]
    conditions: list[Rule] = Field(min_length=1)


def _rule_tag(value: object) -> str:
    return "Group" if isinstance(value, dict) and value.keys() & {"operator", "conditions"} else "Condition"


Rule = Annotated[
    Annotated[Group, Tag("Group")] | Annotated[Condition, Tag("Condition")], Discriminator(_rule_tag)
]


class ModelRef(Section):
    """The model that answers when the request's model is `auto`."""

    model: Text


class DecisionSection(Section):
    """A named policy and when it applies."""

    name: Label
    description: str | None = None
    priority: int = Field(default=0, description="The highest wins; equal ones in file order.")
    rules: Rule
    model_refs: list[ModelRef] = Field(default_factory=list, alias="modelRefs")
    plugins: list[Plugin] = Field(default_factory=list)


HeaderValues = dict[HeaderName, list[Text]]


class DomainSignalSection(Section):
    """What a `domain` condition means; keys left out of a built-in domain keep their built-in value."""

    name: Label
    headers: HeaderValues | None = Field(default=None, description="Header name to the values that mean it.")
    keywords: list[Text] | None = None
    examples: list[Text] | None = Field(
        default=None, description="Questions of this domain; compared by their words, not by meaning."
    )
    min_similarity: float = Field(default=0.5, gt=0, le=1, description="How near an example counts, 0..1.")


class KeywordSignal(Section):
    """What a `keyword` condition means: any of the terms stands in the user's text."""

    name: Label
    terms: list[Text] = Field(min_length=1, description="Words or phrases; a final * matches any ending.")


class HeaderSignal(Section):
    """What a `header` condition means: the header has one of the values, or any where none are given."""

    name: Label
    header: HeaderName
    values: list[Text] = Field(default_factory=list)


class ModelSignal(Section):
    """What a `model` condition means; a condition may also name a model itself."""

    name: Label
    models: list[Text] = Field(min_length=1, description="Model names; * and ? stand for any characters.")


class LanguageSignal(Section):
    """What a `language` condition means; a condition may also name a language code itself."""

    name: Label
    languages: list[Text] = Field(min_length=1)


class TenantSignal(Section):
    """What a `tenant` condition means besides the route's own metadata."""

    name: Label
    headers: HeaderValues = Field(default_factory=dict)


class SignalsSection(Section):
    """What the conditions mean; common domains and keyword sets are built in."""

    domains: list[DomainSignalSection] = Field(default_factory=list)
    keywords: list[KeywordSignal] = Field(default_factory=list)
    headers: list[HeaderSignal] = Field(default_factory=list)
    models: list[ModelSignal] = Field(default_factory=list)
    languages: list[LanguageSignal] = Field(default_factory=list)
    tenants: list[TenantSignal] = Field(default_factory=list)


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
    review: Any = Field(default=None, description="Not read by this version.")
    cache: CacheSection = CacheSection()


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a policy file, for editors."""
    schema = PolicyFile.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
