"""A compiled decision, with what follows from it alone.

Records: nothing here reads YAML, does I/O or counts time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from truthlens.core.records.agentic_settings import AgenticSettings
from truthlens.core.records.coefficients import Coefficients
from truthlens.core.records.enums import (
    Aggregation,
    DetectorName,
    IntermediateCalls,
    Mode,
    OnFailure,
    OnFlagged,
    OnUnchecked,
    Reason,
    Reasoning,
    Streaming,
    Trigger,
    WarningPosition,
)
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.settings import (
    AutoSettings,
    CascadeSettings,
    EvidenceRules,
    MitigationSettings,
    PremiumSettings,
    RetrievalSettings,
    StandardSettings,
    StreamSettings,
)
from truthlens.core.thresholds import EVEN_ODDS, at_rate

MARGIN_S = 2.0
"""Seconds between the end of a hold and the moment at which Envoy gives up: for the way of the body and of the reply."""

_STANDARD_HOLD_S = 30.0
_HOLD_S = 60.0
_AGENTIC_HOLD_S = 300.0
_LACKING = frozenset(
    {Reason.NO_CONTEXT, Reason.UNSURE_CONTEXT, Reason.RETRIEVAL_FAILED, Reason.RETRIEVAL_EMPTY}
)
_CALLING = frozenset({Mode.STANDARD, Mode.PREMIUM, Mode.AGENTIC, Mode.AUTO})


@dataclass(frozen=True, slots=True)
class DetectorSpec:
    """A detector that a plan runs, with its weight in fusion (> 0) and its options (its own type, hashable).

    ``models`` are the names of those that it asks; one that asks any runs in the second stage (``CascadeSettings``).
    """

    name: str
    weight: float = 1.0
    options: Hashable = None
    models: tuple[str, ...] = ()

    def looks_up(self, scope: Mapping[str, str]) -> bool:
        """Return whether databases of the detector may know values of what an exchange is about (``Exchange.scope``)."""
        scopes: tuple[frozenset[str], ...] = getattr(self.options, "scopes", ())
        return any(scope.keys() >= names for names in scopes)


DEFAULT_DETECTORS = tuple(
    DetectorSpec(name)
    for name in (
        DetectorName.ENCODER,
        DetectorName.NUMBERS,
        DetectorName.CONTRADICTIONS,
        DetectorName.READER,
    )
)
"""What scores where a policy does not say it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled decision: all that the stages need to know of the policy for one exchange.

    ``threshold`` is resolved to a number in 0..1, for scores that are probabilities where ``expected_rate`` (0..1,
    both excluded) of the answers are unsupported. ``aggregation`` ``None`` means the model's own default, ``coefficients`` ``None`` the shipped fusion,
    ``model_id`` ``None`` the bundled model, ``warning_template`` ``None`` the built-in one for the answer's
    script. ``require_disclaimer`` ``False`` puts no disclaimer on a flagged answer of the modes that correct, ``True`` one
    on every answer that was not found clean, those not fully checked among them, in all modes. ``policy_version`` names
    the file contents that it came from. ``max_unscored`` (0..1) is the share of an answer that may claim nothing before
    its verdict is ``partial``. A plan that is ``in_shadow`` decides what ``intended`` would do, and does nothing of it.

    The defaults are those of every policy and command: what ``config/truthlens.yaml`` says of detectors and threshold.
    """

    decision: str
    enabled: bool = True
    mode: Mode = Mode.LIGHTWEIGHT
    threshold: float = 0.6
    expected_rate: float = EVEN_ODDS
    aggregation: Aggregation | None = None
    streaming: Streaming = Streaming.BUFFER
    on_flagged: OnFlagged = OnFlagged.MARK
    on_unchecked: OnUnchecked = OnUnchecked.ANNOTATE
    max_unscored: float = 1.0
    reasoning: Reasoning = Reasoning.PASS
    details: bool = False
    detectors: tuple[DetectorSpec, ...] = DEFAULT_DETECTORS
    coefficients: Coefficients | None = None
    model_id: str | None = None
    use_cpu: bool = True
    warning_template: str | None = None
    warning_position: WarningPosition = WarningPosition.BEFORE
    require_disclaimer: bool | None = None
    disclaimer_template: str | None = None
    timeout_s: float = 4.0
    standard: StandardSettings = StandardSettings()
    premium: PremiumSettings = PremiumSettings()
    auto: AutoSettings = AutoSettings()
    mitigation: MitigationSettings = MitigationSettings()
    stream: StreamSettings = StreamSettings()
    evidence: EvidenceRules = EvidenceRules()
    cascade: CascadeSettings = CascadeSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    # Its defaults are read from the environment, which may change.
    agentic: AgenticSettings = field(default_factory=AgenticSettings)
    model_refs: tuple[str, ...] = ()
    policy_version: str = ""
    shadow: bool = False
    intended: Plan | None = None

    def in_shadow(self) -> Plan:
        """Return the plan that checks as this one does and leaves every answer as it came, where ``shadow`` says so.

        No other answer is asked for, no stream is held, nothing is added, withheld or blocked.
        """
        if not self.shadow:
            return self
        return replace(
            self,
            mode=Mode.LIGHTWEIGHT,
            streaming=Streaming.OBSERVE,
            on_unchecked=OnUnchecked.PASS,
            require_disclaimer=False,
            retrieval=self.retrieval.model_copy(update={"on_failure": OnFailure.UNCHECKED}),
            intended=self,
        )

    def not_checkable(self, exchange: Exchange) -> Reason | None:
        """Return why no answer can be checked, ``None`` where there is text to check it against, or a database that may know of it."""
        reason = exchange.not_checkable
        if reason in _LACKING and any(spec.looks_up(exchange.scope) for spec in self.detectors):
            return None
        return reason

    def lacks_evidence(self, reason: Reason | None) -> bool:
        """Return whether mode agentic looks for evidence for an answer not checked for ``reason``."""
        return self.enabled and self.may_search and reason in _LACKING

    def retrieves(self, trigger: Trigger) -> bool:
        """Return whether evidence is retrieved when ``trigger`` holds."""
        return self.enabled and trigger in self.retrieval.when

    def on_unchecked_for(self, reason: Reason | None) -> OnUnchecked:
        """Return what happens to an answer that was not fully checked for ``reason``; a failed retrieval has a setting of its own."""
        if reason is Reason.RETRIEVAL_FAILED and self.retrieval.on_failure is OnFailure.BLOCK:
            return OnUnchecked.BLOCK
        return self.on_unchecked

    @property
    def even_threshold(self) -> float:
        """Return the score at even odds from which an answer is flagged, to compare plans of other ``expected_rate``."""
        return at_rate(self.threshold, EVEN_ODDS, given=self.expected_rate)

    @property
    def hold_s(self) -> float:
        """Return the most seconds that an answer is held, counted from its last byte, detection included.

        In mode lightweight that is the time of one detection, of both stages; in the modes that call models it is the
        plan's deadline, or the mode's default.
        """
        if self.mode is Mode.LIGHTWEIGHT:
            return self.detection_s
        if self.mitigation.deadline_s is not None:
            return self.mitigation.deadline_s
        if self.may_search:
            return _AGENTIC_HOLD_S
        return _STANDARD_HOLD_S if self.mode is Mode.STANDARD else _HOLD_S

    @property
    def override_s(self) -> float | None:
        """Return the seconds to ask Envoy for when the answer arrives; ``None`` where its ``message_timeout`` will do.

        Source: ``ProcessingResponse.override_message_timeout``. Envoy takes one for each message, and ignores one that is
        longer than the filter's ``max_message_timeout`` (left out: every one).
        """
        longer = self.mode is not Mode.LIGHTWEIGHT or self.asking or self.retrieves(Trigger.UNSUPPORTED)
        return self.hold_s + MARGIN_S if longer else None

    @property
    def streamed_hold_s(self) -> float | None:
        """Return the most seconds that a message of a streamed answer is held, ``None`` where streams are held whole.

        Under ``observe`` only the end of the stream is held, for one detection; under ``gate`` text waits until its
        sentence is complete or ``max_hold_s`` is over, and then for its detection by those that ask nobody. Envoy's own ``message_timeout`` must
        exceed it: what it is asked for in ``override_s`` does not outlast one message of a stream.
        """
        match self.streaming:
            case Streaming.OBSERVE:
                return self.detection_s
            case Streaming.GATE:
                return max(self.stream.max_hold_s + self.timeout_s, self.detection_s)
        return None

    @property
    def exempts_calls(self) -> bool:
        """Whether the operator says that no answer is for a user: a program reads all of them, and none is checked."""
        return self.evidence.intermediate_calls is IntermediateCalls.ALL

    @property
    def asking(self) -> tuple[DetectorSpec, ...]:
        """The detectors that ask models, in the plan's order."""
        return tuple(spec for spec in self.detectors if spec.models) if self.enabled else ()

    @property
    def detection_s(self) -> float:
        """Return the most seconds that one detection takes, of both stages, with what is retrieved for flagged answers."""
        again = self.retrieval.timeout_s + self.timeout_s if self.retrieves(Trigger.UNSUPPORTED) else 0.0
        return self.timeout_s + again + (self.cascade.timeout_s if self.asking else 0.0)

    @property
    def corrects(self) -> bool:
        """Whether the mode asks models for other answers, so that the request has to be kept."""
        return self.enabled and self.mode in _CALLING

    @property
    def keeps_request(self) -> bool:
        """Whether the client's JSON is needed when the answer comes; mode agentic makes its requests anew."""
        return self.corrects and self.mode is not Mode.AGENTIC

    @property
    def may_search(self) -> bool:
        """Whether mode agentic may run: it is the plan's, or one that ``auto`` may choose."""
        return self.mode is Mode.AGENTIC or (self.mode is Mode.AUTO and Mode.AGENTIC in self.auto.modes)

    @property
    def calls_models(self) -> bool:
        """Whether anything may ask a model, so that more time has to be asked for."""
        return self.corrects or bool(self.asking)

    @property
    def premium_alone(self) -> bool:
        """Whether the mode is premium without another model: the standard loop, which then says so."""
        return self.mode is Mode.PREMIUM and not self.premium.verification_models

    @property
    def asks_first(self) -> bool:
        """Whether other models are asked side by side with detection, before it is known whether the answer is flagged."""
        return self.mode is Mode.PREMIUM and self.premium.side_by_side and not self.premium_alone

    @property
    def mode_to_run(self) -> Mode:
        """Return the mode that carries the plan out; ``auto`` is resolved by the bandit before."""
        if self.premium_alone:
            return Mode.STANDARD
        return self.mode if self.mode in _CALLING else Mode.LIGHTWEIGHT

    @property
    def named_models(self) -> tuple[str, ...]:
        """Return the models that the configuration names."""
        asked = (name for spec in self.detectors for name in spec.models)
        return (*self.model_refs, *self.premium.models, *self.agentic.models, *asked)
