"""Say which keys of a decision do not go together, or have no effect: one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from truthlens.core.records.calls import ModelSpec
from truthlens.core.records.enums import (
    AskWhen,
    Mode,
    OnFailure,
    OnFlagged,
    OnUnchecked,
    Reasoning,
    Streaming,
    WarningPosition,
)
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import Consensus
from truthlens.policy.schema import Behaviour
from truthlens.yamlfile.diagnostics import KeyPath, Report, Severity

_HIGHEST_SENSIBLE_THRESHOLD = 0.99


@dataclass(frozen=True, slots=True)
class _Case:
    """A plan as it came out, the ``keys`` that were written for it, and the policy's ``models``, if it has any."""

    plan: Plan
    keys: Behaviour
    models: Mapping[str, ModelSpec] | None

    @property
    def answering(self) -> str | None:
        """The model that answers requests of this decision."""
        return next(iter(self.plan.model_refs), None)

    @property
    def own_verifiers(self) -> str:
        """The detectors that ask that model about its own answers: it tends to believe its own words."""
        return ", ".join(spec.name for spec in self.plan.asking if self.answering in spec.models)

    @property
    def second_opinions(self) -> str:
        """Whom mode premium asks where its list has the model that answers: nobody verifies itself."""
        plan, named = self.plan, self.plan.premium.verification_models
        runs = plan.mode is Mode.PREMIUM or (plan.mode is Mode.AUTO and Mode.PREMIUM in plan.auto.modes)
        if not runs or self.answering not in named:
            return ""
        others = [repr(name) for name in named if name != self.answering]
        return f"only {', '.join(others)}" if others else "nobody"

    @property
    def enforces(self) -> bool:
        """Whether flagged sentences of a stream that leaves unscored are to be held back."""
        return self.plan.streaming is Streaming.OBSERVE and self.plan.on_flagged is not OnFlagged.MARK

    def written(self, key: str) -> Any:
        """Return what stands at ``key``, such as ``premium.consensus``; ``None`` where nothing does."""
        value: Any = self.keys
        for name in key.split("."):
            if value is None or name not in value.model_fields_set:
                return None
            value = getattr(value, name)
        return value


@dataclass(frozen=True, slots=True)
class _Rule:
    """What is reported ``when`` it holds, at the first of ``keys`` that is written; not where none is.

    Without ``keys`` the decision itself is the place. ``message`` may name the case's ``plan``, the ``value`` that is written
    there and what ``when`` ``found``.
    """

    severity: Severity
    keys: str
    when: Callable[[_Case], object]
    message: str
    remedy: str


_error, _warning = partial(_Rule, Severity.ERROR), partial(_Rule, Severity.WARNING)

# What cannot work is an error where it is written and where it is inherited into. ``warning_position`` alone is about whole answers where
# it is inherited: the warning of a stream that has left comes behind it.
_RULES = (
    _error(
        "detectors streaming enabled",
        lambda case: (
            case.plan.streaming is Streaming.GATE
            and case.plan.asking
            and len(case.plan.asking) == len(case.plan.detectors)
        ),
        "streaming gate scores sentence by sentence, and models are asked about whole answers only: nothing would be scored before it leaves",
        "list a detector that asks no model as well, such as encoder, or write streaming: buffer",
    ),
    _error(
        "retrieval.on_failure streaming enabled",
        lambda case: (
            case.plan.streaming is not Streaming.BUFFER
            and bool(case.plan.retrieval.when)
            and case.plan.retrieval.on_failure is OnFailure.BLOCK
        ),
        "retrieval.on_failure block needs answers that are held whole, and this decision lets text of streams leave before",
        "write streaming: buffer, or on_failure: warn",
    ),
    _warning(
        "",
        lambda case: case.own_verifiers,
        "{case.answering!r} answers requests of this decision (modelRefs) and is asked about its own answers, for {found}",
        "name another model in the options of the detector",
    ),
    _warning(
        "cascade",
        lambda case: not case.plan.asking,
        "no detector of this decision asks models, so the cascade has one stage",
        "list a detector that does, such as judge, or remove it",
    ),
    _warning(
        "cascade",
        lambda case: (
            case.plan.asking
            and case.plan.cascade.when is AskWhen.ALWAYS
            and (case.written("cascade.band") or case.written("cascade.sample"))
        ),
        "with when: always every answer is asked about, and band and sample have no effect",
        "remove them, or write when: band",
    ),
    _error(
        "retrieval.sources auto.modes mode default_mode enabled",
        lambda case: case.plan.may_search and not case.plan.retrieval.sources,
        "mode agentic has no source of evidence to search",
        "list one under retrieval.sources, or choose another mode",
    ),
    _warning(
        "max_iterations",
        lambda case: case.plan.mode is Mode.LIGHTWEIGHT,
        "max_iterations has no effect in mode lightweight",
        "remove it, or choose another mode",
    ),
    _warning(
        "standard.convergence_threshold",
        lambda case: case.written("standard.convergence_threshold") > case.plan.threshold,
        "{value:g} lies above the threshold {plan.threshold:g}, at which the answer would still be flagged; "
        "the threshold is used instead",
        "lower it, or remove it",
    ),
    _error(
        "premium.consensus",
        lambda case: (
            case.written("premium.consensus") is Consensus.JUDGE and case.plan.premium.judge_model is None
        ),
        "consensus judge needs a judge_model",
        "name one, or choose segment_vote, weighted_fusion, replacement or debate",
    ),
    _warning(
        "premium.consensus",
        lambda case: (
            case.written("premium.consensus") is Consensus.DEBATE
            and case.plan.premium.judge_model is None
            and case.plan.premium.verification_models
        ),
        "there is no judge_model; {found[0]!r} writes the answer after the debate",
        "name a judge_model",
    ),
    _warning(
        "",
        lambda case: case.second_opinions,
        "{case.answering!r} answers requests of this decision (modelRefs) and is one of its verification_models; no model verifies itself, so "
        "that {found} gives a second opinion on its answers",
        "name another model under premium.verification_models",
    ),
    _warning(
        "mode default_mode premium",
        lambda case: case.plan.mode is Mode.PREMIUM and not case.plan.premium.verification_models,
        "mode premium has no verification_models, so that there is no second opinion; flagged answers are refined as in standard",
        "name models under premium.verification_models, or write standard",
    ),
    _warning(
        "auto.modes",
        lambda case: (
            case.plan.mode is Mode.AUTO
            and Mode.PREMIUM in case.written("auto.modes")
            and not case.plan.premium.verification_models
        ),
        "premium has no verification_models and is never chosen",
        "name models under premium.verification_models, or remove premium",
    ),
    _warning(
        "mitigation.deadline_s",
        lambda case: case.written("mitigation.deadline_s") < case.plan.timeout_s,
        "{value:g} s are less than one detection may take (timeout_s {plan.timeout_s:g})",
        "raise it, or lower timeout_s",
    ),
    _warning(
        "mitigation.max_cost_usd",
        lambda case: all(model.price is None for model in (case.models or {}).values()),
        "no model under `models` has a price, so that nothing is counted",
        "write prices, or bound max_tokens instead",
    ),
    _error(
        "streaming mode default_mode enabled",
        lambda case: case.plan.mode is not Mode.LIGHTWEIGHT and case.plan.streaming is not Streaming.BUFFER,
        "mode {plan.mode} changes whole answers and cannot work with streaming {plan.streaming}, where text leaves before it is scored",
        "write streaming: buffer, or mode lightweight",
    ),
    _error(
        "on_unchecked streaming enabled",
        lambda case: case.plan.streaming is Streaming.OBSERVE and case.plan.on_unchecked is OnUnchecked.BLOCK,
        "on_unchecked block cannot work with streaming observe, where text leaves before it is checked",
        "write streaming: gate or buffer, or on_unchecked: annotate",
    ),
    # Observing where withholding was inherited would let through what is to be held back.
    _error(
        "streaming",
        lambda case: case.enforces and case.written("on_flagged") is None,
        "streaming observe cannot {plan.on_flagged} a flagged sentence, as on_flagged asks: text leaves before it is scored",
        "write streaming: gate, or on_flagged: mark",
    ),
    _error(
        "on_flagged",
        lambda case: case.enforces,
        "on_flagged {value} cannot work with streaming observe, where text leaves before it is scored",
        "write streaming: gate, or on_flagged: mark",
    ),
    _warning(
        "on_flagged",
        lambda case: case.plan.streaming is Streaming.BUFFER,
        "on_flagged has no effect with streaming buffer, where the mode acts on the whole answer",
        "write streaming: gate, or remove it",
    ),
    _error(
        "reasoning streaming enabled",
        lambda case: case.plan.streaming is Streaming.GATE and case.plan.reasoning is Reasoning.SCORE,
        "reasoning score cannot work with streaming gate, where reasoning leaves before it is scored",
        "write streaming: buffer or observe, or reasoning: pass",
    ),
    _error(
        "warning_position",
        lambda case: (
            case.plan.streaming is not Streaming.BUFFER
            and case.written("warning_position") is WarningPosition.BEFORE
        ),
        "warning_position before cannot work with streaming {plan.streaming}, where the answer has left before the warning is known",
        "write warning_position: after, or streaming: buffer",
    ),
    *(
        _warning(
            f"stream.{name}",
            lambda case: case.plan.streaming is Streaming.OBSERVE,
            f"{name} has no effect with streaming {{plan.streaming}}, which holds no text",
            "write streaming: gate, or remove it",
        )
        for name in ("mark_template", "notice_template", "max_hold_s", "max_hold_bytes")
    ),
    _warning(
        "expected_rate",
        lambda case: case.plan.even_threshold > _HIGHEST_SENSIBLE_THRESHOLD,
        "where {plan.expected_rate:g} of the answers are expected to be unsupported, the threshold {plan.threshold:g} takes a score of "
        "{plan.even_threshold:.4f} at even odds: hardly any answer is flagged",
        "lower the threshold as well: it is the probability from which you want an answer flagged",
    ),
)


def report_conflicts(
    plan: Plan, keys: Behaviour, path: KeyPath, report: Report, *, models: Mapping[str, ModelSpec] | None
) -> None:
    """Report what of ``plan`` cannot work or has no effect, at its place among the ``keys`` at ``path``.

    Nothing is wrong with a plan that detects nothing.
    """
    case = _Case(plan, keys, models)
    for rule in _RULES if plan.enabled else ():
        place = next((key for key in rule.keys.split() if case.written(key) is not None), "")
        if (place or not rule.keys) and (found := rule.when(case)):
            value = case.written(place) if place else None
            message = rule.message.format(case=case, plan=plan, value=value, found=found)
            report.add(rule.severity, (*path, *place.split(".")) if place else path, message, rule.remedy)
