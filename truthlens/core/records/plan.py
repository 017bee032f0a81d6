"""A compiled decision and the settings of what it runs, with what follows from them alone.

Records: nothing here reads YAML, does I/O or counts time.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum

from truthlens.core.records.enums import (
    Aggregation,
    AskWhen,
    DetectorName,
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
from truthlens.core.thresholds import EVEN_ODDS, at_rate

MARGIN_S = 2.0
"""Seconds between the end of a hold and the moment at which Envoy gives up: for the way of the body and of the reply."""

_STANDARD_HOLD_S = 30.0
_HOLD_S = 60.0
_CALLING = frozenset({Mode.STANDARD, Mode.PREMIUM, Mode.AUTO})


@dataclass(frozen=True, slots=True)
class DetectorSpec:
    """A detector that a plan runs, with its weight in fusion (> 0) and its options (its own type, hashable).

    ``models`` are the names of those that it asks; one that asks any runs in the second stage (``CascadeSettings``).
    """

    name: str
    weight: float = 1.0
    options: Hashable = None
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CascadeSettings:
    """When the detectors that ask models run, after those that ask nobody (hallucination-guidelines, "multi-layer detection").

    ``band`` are the lowest and the highest score of the first stage, 0..1 at the plan's rate, at which ``when: band`` asks;
    ``sample`` is the share (0..1) of the other answers that are asked about all the same. An answer that the first
    stage could not score is always asked about. All asking of one answer takes ``timeout_s`` at most.
    """

    when: AskWhen = AskWhen.BAND
    band: tuple[float, float] = (0.3, 0.6)
    sample: float = 0.0
    in_loop: Rescoring = Rescoring.END
    timeout_s: float = 20.0


class Consensus(StrEnum):
    """How premium mode makes one answer of several (white paper 3.3.3, 5.5.4).

    ``judge``: the judge arbitrates the differences. ``segment_vote``: claims are kept by majority, weighed by their
    grounding. ``weighted_fusion``: the answer nearest to all others, weighted by reliability. ``replacement``: single
    claims are replaced by a more reliable model's (Finch-Zk). ``debate``: proposer and critic argue, the judge
    writes what survives.
    """

    JUDGE = "judge"
    SEGMENT_VOTE = "segment_vote"
    WEIGHTED_FUSION = "weighted_fusion"
    REPLACEMENT = "replacement"
    DEBATE = "debate"


@dataclass(frozen=True, slots=True)
class StandardSettings:
    """Settings of the standard mode (white paper 6.1).

    ``convergence_threshold`` is the score (0..1) at which an answer counts as corrected, ``None`` the plan's threshold.
    An iteration that gains less than ``min_gain`` is the last one. ``self_check`` lets the model answer verification
    questions from the evidence before it corrects (Chain-of-Verification). ``min_retention`` is the share (0..1) of
    the answer's unflagged content that a rewrite must keep.
    """

    max_iterations: int = 3
    convergence_threshold: float | None = None
    min_gain: float = 0.01
    self_check: bool = False
    min_retention: float = 0.5


@dataclass(frozen=True, slots=True)
class PremiumSettings:
    """Settings of the premium mode (white paper 6.1).

    ``consensus`` ``None`` means ``judge`` where there is a judge, else ``replacement``. ``significance`` is the share
    (0..1) of the answer's claims that other models must dispute before anything is done about it;
    ``debate_rounds`` is 1 to 3. ``side_by_side`` false asks other models only once an answer was flagged.
    """

    verification_models: tuple[str, ...] = ()
    judge_model: str | None = None
    max_iterations: int = 5
    require_consensus: bool = False
    consensus: Consensus | None = None
    significance: float = 0.1
    debate_rounds: int = 3
    side_by_side: bool = True

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models that are called."""
        return (*self.verification_models, *((self.judge_model,) if self.judge_model else ()))


@dataclass(frozen=True, slots=True)
class AutoSettings:
    """Settings of mode auto.

    ``modes`` are the arms. The reward (0..1) of an exchange is what ``mitigation.auto.reward`` says; the two weights
    price its latency (per 10 s) and its extra tokens (per 10,000). Evidence loses half of its weight every
    ``half_life_s``.
    """

    modes: tuple[Mode, ...] = (Mode.LIGHTWEIGHT, Mode.STANDARD, Mode.PREMIUM)
    latency_weight: float = 0.2
    token_weight: float = 0.2
    half_life_s: float = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class MitigationSettings:
    """Bounds of every mode that calls models, for one exchange.

    ``deadline_s`` bounds all that is done about an answer, detection included; ``None`` means 30 s in standard and
    60 s in the modes above it. ``max_tokens`` counts prompts and completions of all extra calls. ``max_cost_usd``
    counts models that have a price. ``forward_authorization`` lets the client's own Authorization header go to the
    model that gave the answer, and to no other.
    """

    deadline_s: float | None = None
    max_tokens: int = 50_000
    max_cost_usd: float | None = None
    forward_authorization: bool = False


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How streamed answers are treated under ``observe`` and ``gate``.

    ``warning`` lets a flagged answer end with the warning as its last content. The rest is ``gate``'s: ``on_flagged``
    says what becomes of a flagged sentence; ``mark_template`` is put behind it, ``notice_template`` in its place
    (``None``: built in, by the script of the answer). Text is held at most ``max_hold_s`` seconds before it is scored
    as far as it has come, and at most ``max_hold_bytes`` of the stream are held before no more is read.
    """

    warning: bool = True
    on_flagged: OnFlagged = OnFlagged.MARK
    mark_template: str | None = None
    notice_template: str | None = None
    max_hold_s: float = 3.0
    max_hold_bytes: int = 65_536


@dataclass(frozen=True, slots=True)
class EvidenceRules:
    """How passages are taken out of a request (``docs/evidence.md``).

    ``system`` says what of system messages may be evidence; text without a mark needs ``system_min_chars`` characters. ``roles`` are
    roles besides ``tool`` and its like whose messages are evidence as a whole, ``marks`` names of tags and labels besides the
    built-in ones behind which evidence stands. ``user_patterns`` are regular expressions; each has one group that captures
    a passage. ``intermediate_calls`` says which exchanges are no answers to users.
    """

    system: SystemEvidence = SystemEvidence.AUTO
    system_min_chars: int = 120
    roles: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    user_patterns: tuple[str, ...] = ()
    intermediate_calls: IntermediateCalls = IntermediateCalls.DETECT


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled decision: all that the stages need to know of the policy for one exchange.

    ``threshold`` is resolved to a number in 0..1, for scores that are probabilities where ``expected_rate`` (0..1,
    both excluded) of the answers are unsupported. ``aggregation`` ``None`` means the model's own default,
    ``model_id`` ``None`` the bundled model, ``warning_template`` ``None`` the built-in one for the answer's
    script. ``policy_version`` names the file contents that it came from.
    """

    decision: str
    enabled: bool = True
    mode: Mode = Mode.LIGHTWEIGHT
    threshold: float = 0.6
    expected_rate: float = EVEN_ODDS
    aggregation: Aggregation | None = None
    streaming: Streaming = Streaming.BUFFER
    on_unchecked: OnUnchecked = OnUnchecked.ANNOTATE
    reasoning: Reasoning = Reasoning.PASS
    details: bool = False
    detectors: tuple[DetectorSpec, ...] = (DetectorSpec(DetectorName.ENCODER),)
    model_id: str | None = None
    use_cpu: bool = True
    warning_template: str | None = None
    warning_position: WarningPosition = WarningPosition.BEFORE
    require_disclaimer: bool = True
    disclaimer_template: str | None = None
    timeout_s: float = 4.0
    standard: StandardSettings = StandardSettings()
    premium: PremiumSettings = PremiumSettings()
    auto: AutoSettings = AutoSettings()
    mitigation: MitigationSettings = MitigationSettings()
    stream: StreamSettings = StreamSettings()
    evidence: EvidenceRules = EvidenceRules()
    cascade: CascadeSettings = CascadeSettings()
    model_refs: tuple[str, ...] = ()
    policy_version: str = ""

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
        return _STANDARD_HOLD_S if self.mode is Mode.STANDARD else _HOLD_S

    @property
    def override_s(self) -> float | None:
        """Return the seconds to ask Envoy for when the answer arrives; ``None`` where its ``message_timeout`` will do.

        Source: ``ProcessingResponse.override_message_timeout``. Envoy takes one for each message, and ignores one that is
        longer than the filter's ``max_message_timeout`` (left out: every one).
        """
        return self.hold_s + MARGIN_S if self.mode is not Mode.LIGHTWEIGHT or self.asking else None

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
        """Return the most seconds that one detection takes, of both stages."""
        return self.timeout_s + (self.cascade.timeout_s if self.asking else 0.0)

    @property
    def corrects(self) -> bool:
        """Whether the mode asks models for other answers, so that the request has to be kept."""
        return self.enabled and self.mode in _CALLING

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
        return (*self.model_refs, *self.premium.models, *asked)
