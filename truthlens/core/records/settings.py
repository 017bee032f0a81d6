"""The settings of a plan, each declared once: what the policy's YAML may say, its range, its default and what it means.

A section of the YAML is read as one of these records; a key that is not written is inherited (``over``).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, Strict, model_validator

from truthlens.core.records.enums import (
    AskWhen,
    IntermediateCalls,
    Mode,
    OnFailure,
    Rescoring,
    Stricter,
    SystemEvidence,
    Trigger,
)

Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}$")]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~\-]+$")]
Role = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.\-]{0,63}$")]
MarkName = Annotated[str, Field(pattern=r"^[^\s<>:/\[\]{}][^<>:\n\[\]{}]{0,63}$")]
# Neither an enum member nor a tuple stands in YAML, so these fields take its text or list although the models are strict.
Lax = Strict(strict=False)


class Section(BaseModel):
    """Base of all sections: unknown keys and values of another type are refused; a key without a value is not written."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_empty_keys(cls, written: Any) -> Any:
        if not isinstance(written, Mapping):
            return written
        # None is a value of its own where the type has it.
        needed = {
            field.alias or name
            for name, field in cls.model_fields.items()
            if type(None) not in get_args(field.annotation)
        }
        return {key: value for key, value in written.items() if value is not None or key not in needed}

    def over(self, base: Self) -> Self:
        """Return ``base`` with what is written here over it."""
        return base.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})


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


class StandardSettings(Section):
    """Settings of the standard mode (white paper 6.1).

    ``convergence_threshold`` is the score (0..1) at which an answer counts as corrected, ``None`` the plan's threshold.
    ``self_check`` lets the model answer verification questions from the evidence before it corrects
    (Chain-of-Verification). ``min_retention`` is the share (0..1) of the answer's unflagged content that a rewrite must
    keep.
    """

    max_iterations: Annotated[int, Stricter.HIGHER] = Field(
        default=3, ge=1, le=20, description="Corrections that are asked for at most."
    )
    convergence_threshold: Annotated[Unit | None, Stricter.LOWER] = Field(
        default=None,
        description="The score below which an answer counts as corrected. Default, and never above: the threshold.",
    )
    self_check: Annotated[bool, Stricter.HIGHER] = Field(
        default=False,
        description="true: before it corrects, the model answers verification questions from the evidence alone. "
        "Two more calls.",
    )
    min_retention: Annotated[Unit, Stricter.UNKNOWN] = Field(
        default=0.5,
        description="Share of the supported content of an answer that a rewrite must keep.",
    )


class PremiumSettings(Section):
    """Settings of the premium mode (white paper 6.1).

    ``consensus`` ``None`` means ``judge`` where there is a judge, else ``replacement``. ``significance`` is the share
    (0..1) of the answer's claims that other models must dispute before anything is done about it;
    ``debate_rounds`` is 1 to 3. ``side_by_side`` false asks other models only once an answer was flagged.
    """

    verification_models: Annotated[tuple[Text, ...], Lax, Stricter.MORE] = Field(
        default=(), max_length=8, description="Models that answer the same request."
    )
    judge_model: Annotated[Text | None, Stricter.UNKNOWN] = Field(
        default=None, description="Model that arbitrates significant differences."
    )
    max_iterations: Annotated[int, Stricter.HIGHER] = Field(
        default=5, ge=1, le=20, description="Corrections after the consensus at most."
    )
    require_consensus: Annotated[bool, Stricter.HIGHER] = Field(
        default=False,
        description="true: an answer on which the models did not agree carries the disclaimer.",
    )
    consensus: Annotated[Annotated[Consensus, Lax] | None, Stricter.UNKNOWN] = Field(
        default=None, description="Default judge where there is a judge_model, else replacement."
    )
    significance: Annotated[Unit, Stricter.LOWER] = Field(
        default=0.1,
        description="Share of the claims that must be disputed before differences count.",
    )
    debate_rounds: Annotated[int, Stricter.HIGHER] = Field(
        default=3, ge=1, le=3, description="Rounds of argument."
    )
    side_by_side: Annotated[bool, Stricter.HIGHER] = Field(
        default=True,
        description="false: other models are asked only once an answer was flagged, for fewer calls and a longer wait.",
    )

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models that are called."""
        return (*self.verification_models, *((self.judge_model,) if self.judge_model else ()))


class AutoSettings(Section):
    """Settings of mode auto.

    ``modes`` are the arms. The reward (0..1) of an exchange is what ``mitigation.auto.reward`` says; the two weights
    price its latency (per 10 s) and its extra tokens (per 10,000). Evidence loses half of its weight every
    ``half_life_s``.
    """

    modes: Annotated[tuple[Annotated[Mode, Lax], ...], Lax, Stricter.MORE] = Field(
        default=(Mode.LIGHTWEIGHT, Mode.STANDARD, Mode.PREMIUM),
        min_length=1,
        description="Modes to choose from.",
    )
    latency_weight: Annotated[float, Stricter.LOWER] = Field(
        default=0.2, ge=0, le=10, description="What 10 s cost, in units of a corrected answer."
    )
    token_weight: Annotated[float, Stricter.LOWER] = Field(
        default=0.2, ge=0, le=10, description="What 10,000 extra tokens cost, likewise."
    )
    half_life_s: Annotated[float, Stricter.NO_EFFECT] = Field(
        default=7 * 86400.0,
        ge=60,
        allow_inf_nan=False,
        description="Seconds in which experience halves.",
    )


class MitigationSettings(Section):
    """Bounds of every mode that calls models, for one exchange.

    ``deadline_s`` bounds all that is done about an answer, detection included; ``None`` means 30 s in standard,
    300 s where mode agentic may run, else 60 s. ``max_tokens`` counts prompts and completions of all
    extra calls. ``max_cost_usd``
    counts models that have a price. ``forward_authorization`` lets the client's own Authorization header go to the
    model that gave the answer, and to no other.
    """

    deadline_s: Annotated[float | None, Stricter.HIGHER] = Field(
        default=None,
        gt=0,
        le=600,
        description="Seconds that an answer may be held, detection included. Default 30 in standard, "
        "60 in premium and auto, "
        "300 where agentic may run.",
    )
    max_tokens: Annotated[int, Stricter.HIGHER] = Field(
        default=50_000, ge=1, description="Tokens of all extra calls, prompts included."
    )
    max_cost_usd: Annotated[float | None, Stricter.HIGHER] = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Cost of the extra calls to models that have a price.",
    )
    forward_authorization: Annotated[bool, Stricter.HIGHER] = Field(
        default=False,
        description="true: the client's Authorization header goes to the model that gave the answer (to no other).",
    )


class RetrievalSettings(Section):
    """When evidence is retrieved, from where and how much of it (``docs/retrieval.md``). Off unless ``when`` says otherwise.

    ``sources`` are names of the policy's ``sources``; ``k`` is how many passages of one search are used. An answer that is not
    supported is searched for by the question and by its ``max_claims`` riskiest claims. All searches for one answer
    take ``timeout_s`` together.
    """

    sources: Annotated[tuple[Label, ...], Lax, Stricter.UNKNOWN] = Field(
        default=(), max_length=8, description="Names of the sources that are searched."
    )
    when: Annotated[tuple[Annotated[Trigger, Lax], ...], Lax, Stricter.UNKNOWN] = Field(
        default=(),
        description="no-context: the request holds no evidence; it is searched for while the model writes. unsupported: an "
        "answer is flagged; its question and its flagged claims are searched for, and it is scored again. Default neither.",
    )
    k: Annotated[int, Stricter.UNKNOWN] = Field(
        default=5, ge=1, le=50, description="Passages that one search gives at most."
    )
    max_claims: Annotated[int, Stricter.UNKNOWN] = Field(
        default=3,
        ge=0,
        le=20,
        description="Flagged claims of an answer that are searched for; each is one search.",
    )
    timeout_s: Annotated[float, Stricter.HIGHER] = Field(
        default=2.0, gt=0, le=60, description="Seconds that all searches for one answer take at most."
    )
    on_failure: Annotated[OnFailure, Lax, Stricter.LATER] = Field(
        default=OnFailure.UNCHECKED,
        description="What is done with an answer whose evidence could not be searched for. unchecked: what on_unchecked says. "
        "warn: it carries the disclaimer. block: it is withheld.",
    )


class StreamSettings(Section):
    """How streamed answers are treated under ``observe`` and ``gate``.

    ``warning`` lets a flagged answer end with the warning as its last content. The rest is ``gate``'s:
    ``mark_template`` is put behind a flagged sentence, ``notice_template`` in its place
    (``None``: built in, by the script of the answer). Text is held at most ``max_hold_s`` seconds before it is scored
    as far as it has come, and at most ``max_hold_bytes`` of the stream are held before no more is read.
    """

    warning: Annotated[bool, Stricter.HIGHER] = Field(
        default=True, description="false: a flagged answer does not end with the warning."
    )
    mark_template: Annotated[Text | None, Stricter.VISIBLE] = Field(
        default=None, description="gate, mark: stands behind a flagged sentence. Default built in."
    )
    notice_template: Annotated[Text | None, Stricter.VISIBLE] = Field(
        default=None,
        description="gate, withhold and stop: stands in the place of the text. Default built in.",
    )
    max_hold_s: Annotated[float, Stricter.HIGHER] = Field(
        default=3.0,
        gt=0,
        le=60,
        description="gate: seconds after which text is scored although its sentence is not complete.",
    )
    max_hold_bytes: Annotated[int, Stricter.NO_EFFECT] = Field(
        default=65_536,
        ge=4096,
        le=524_288,
        description="gate: bytes of a stream that are held before no more is read.",
    )


class CascadeSettings(Section):
    """When the detectors that ask models run, after those that ask nobody (hallucination-guidelines, "multi-layer detection").

    ``band`` are the lowest and the highest score of the first stage, 0..1 at the plan's rate, at which ``when: band`` asks;
    ``sample`` is the share (0..1) of the other answers that are asked about all the same. An answer that the first
    stage could not score is always asked about. All asking of one answer takes ``timeout_s`` at most.
    """

    when: Annotated[AskWhen, Lax, Stricter.LATER] = Field(
        default=AskWhen.BAND,
        description="band: models are asked about answers whose first score lies in the band, or that got none. "
        "always: about every answer.",
    )
    band: Annotated[tuple[Unit, Unit], Lax, Stricter.WIDER] = Field(
        default=(0.3, 0.6),
        description="Lowest and highest first score at which models are asked.",
    )
    sample: Annotated[Unit, Stricter.HIGHER] = Field(
        default=0.0,
        description="Share of the other answers that models are asked about all the same, to measure how often they agree.",
    )
    in_loop: Annotated[Rescoring, Lax, Stricter.LATER] = Field(
        default=Rescoring.END,
        description="end: of the corrections of an answer only the last is judged by models. every: each one.",
    )
    timeout_s: Annotated[float, Stricter.HIGHER] = Field(
        default=20.0, gt=0, le=600, description="Seconds that asking about an answer may take."
    )


class EvidenceRules(Section):
    """How passages are taken out of a request (``docs/evidence.md``).

    ``system`` says what of system messages may be evidence; text without a mark needs ``system_min_chars`` characters. ``roles`` are
    roles besides ``tool`` and its like whose messages are evidence as a whole, ``marks`` names of tags and labels besides the
    built-in ones behind which evidence stands. ``user_patterns`` are regular expressions; each has one group that captures
    a passage. ``intermediate_calls`` says which exchanges are no answers to users.
    """

    system: Annotated[SystemEvidence, Lax, Stricter.UNKNOWN] = Field(
        default=SystemEvidence.AUTO,
        description="What of system messages may be evidence: never, what is marked, or (auto) also text without a mark "
        "that reads as reference text.",
    )
    system_min_chars: Annotated[int, Stricter.UNKNOWN] = Field(
        default=120,
        ge=0,
        description="Under system auto, shorter text without a mark is no evidence.",
    )
    roles: Annotated[tuple[Role, ...], Lax, Stricter.UNKNOWN] = Field(
        default=(),
        max_length=64,
        description="Message roles besides `tool` and its like whose messages are evidence as a whole.",
    )
    marks: Annotated[tuple[MarkName, ...], Lax, Stricter.UNKNOWN] = Field(
        default=(),
        max_length=64,
        description="Names of tags and labels besides the built-in ones behind which evidence stands.",
    )
    user_patterns: Annotated[tuple[Text, ...], Lax, Stricter.UNKNOWN] = Field(
        default=(), description="Regular expressions with one group each, which captures a passage."
    )
    intermediate_calls: Annotated[IntermediateCalls, Lax, Stricter.UNKNOWN] = Field(
        default=IntermediateCalls.DETECT,
        description="Exchanges that are steps of an application and no answers to users: detect finds them by the request, "
        "none treats all as answers, all says it of every exchange of the decision. They are not checked.",
    )
