"""Compare two plans field by field: every field of a plan says here how it is compared.

A plan that is not weaker than a second, which is not weaker than a third, is not weaker than the third: so a client cannot
go down by steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields

from pydantic import BaseModel

from truthlens.core.records.enums import (
    AskWhen,
    IntermediateCalls,
    Mode,
    OnFlagged,
    OnUnchecked,
    Streaming,
    Stricter,
)
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.settings import CascadeSettings
from truthlens.core.thresholds import EVEN_ODDS, at_rate
from truthlens.policy.strictness.modes import (
    ASKING_OTHERS,
    CALLING,
    CORRECTING,
    REFINING,
    SEARCHING,
    are_compared,
    mode_weaknesses,
    rank,
    ranks,
)
from truthlens.policy.strictness.settings import is_visible, setting_weaknesses, weakness

_Compare = Callable[[Plan, Plan], Iterable[str]]
_Strength = tuple[bool, bool, int, float, float, float, int, int]
_ROUNDING = 1e-9
_STREAMING = tuple(Streaming)
_ON_FLAGGED = tuple(OnFlagged)
_ON_UNCHECKED = tuple(OnUnchecked)
# After two rounds without gain correction ends by itself, so that more of them are a price and no strictness: in the white paper's own
# policy (6.2) the support desk has two, where three are the default.
_ENOUGH_ROUNDS = 2
# The fields of a plan that a policy writes under another name.
_KEYS: Mapping[str, str] = {"coefficients": "fusion"}


def weaknesses(plan: Plan, *, than: Plan) -> tuple[str, ...]:
    """Return in which ways ``plan`` is weaker than ``than``, in words; empty if it is not.

    Nothing is weaker than a plan with detection switched off.
    """
    if plan is than or not than.enabled:
        return ()
    if not plan.enabled:
        return ("detection is off",)
    if not _checks(than):
        # Of a plan under which no answer is checked, only what becomes of requests that cannot be read is left.
        return tuple(weakness(plan.on_unchecked, than.on_unchecked, Stricter.LATER, key="on_unchecked"))
    if not _checks(plan):
        return ("no answer is checked (evidence.intermediate_calls all)",)
    found: list[str] = []
    for field in fields(Plan):
        how = COMPARED.get(field.name, Stricter.UNKNOWN)
        if isinstance(how, Stricter):
            key = _KEYS.get(field.name, field.name)
            found += weakness(getattr(plan, field.name), getattr(than, field.name), how, key=key)
        else:
            found += how(plan, than)
    return tuple(found)


def strictest(plans: Iterable[Plan]) -> Plan:
    """Return the plan that checks most, of one or more; of equals the first.

    Plans need not be stronger or weaker in everything: what counts first is whether an answer may leave
    unchecked, for this is asked where a request could not be read.
    """
    return max(plans, key=_strength)


def _strength(plan: Plan) -> _Strength:
    return (
        plan.enabled,
        _checks(plan),
        _ON_UNCHECKED.index(plan.on_unchecked),
        -plan.even_threshold,
        -plan.threshold,
        rank(plan),
        _STREAMING.index(plan.streaming),
        _ON_FLAGGED.index(plan.on_flagged),
    )


def _checks(plan: Plan) -> bool:
    """Return whether any answer is checked."""
    return plan.enabled and not plan.exempts_calls


def _threshold(plan: Plan, than: Plan) -> Iterable[str]:
    """Compare what it takes to be flagged: by a score, on one scale, and by a finding whose floor no rate shifts."""
    if plan.expected_rate == than.expected_rate:
        if plan.threshold > than.threshold:
            yield f"threshold {plan.threshold:.2f} instead of {than.threshold:.2f}"
    elif plan.even_threshold > than.even_threshold + _ROUNDING or plan.threshold > than.threshold:
        own = f"threshold {plan.threshold:.2f} at expected_rate {plan.expected_rate:g}"
        yield f"{own} instead of {than.threshold:.2f} at {than.expected_rate:g}"


def _with_another(_plan: Plan, _than: Plan) -> Iterable[str]:
    """Say nothing: the field is compared together with another one."""
    return ()


def _mode(plan: Plan, than: Plan) -> Iterable[str]:
    return mode_weaknesses(plan, than=than)


def _on_flagged(plan: Plan, than: Plan) -> Iterable[str]:
    if plan.streaming is than.streaming is Streaming.GATE:
        return weakness(plan.on_flagged, than.on_flagged, Stricter.LATER, key="on_flagged")
    return ()


def _detectors(plan: Plan, than: Plan) -> Iterable[str]:
    """Compare the detectors by name: which are left out, what each counts for in fusion, and its options."""
    own = {spec.name: spec for spec in plan.detectors}
    missing = {spec.name for spec in than.detectors} - own.keys()
    if missing:
        yield f"without the detector {', '.join(sorted(missing))}"
    for spec in than.detectors:
        if spec.name in own:
            yield from _detector(own[spec.name], spec, _share(own[spec.name], plan), _share(spec, than))


def _detector(own: DetectorSpec, other: DetectorSpec, share: float, other_share: float) -> Iterable[str]:
    if share < other_share - _ROUNDING:
        yield f"{own.name}.weight {share:g} instead of {other_share:g} of the largest"
    given = [each for each in (own.options, other.options) if each is not None]
    if all(isinstance(each, BaseModel) for each in given):
        yield from setting_weaknesses(own.options, other.options, key=own.name)  # type: ignore[arg-type]
    elif own.options != other.options:
        yield f"other options of {own.name}"


def _share(spec: DetectorSpec, plan: Plan) -> float:
    """Return the weight of a detector over the largest one of its plan, which is its exponent in fusion."""
    return spec.weight / max(each.weight for each in plan.detectors)


def _warning(plan: Plan, than: Plan) -> Iterable[str]:
    """Compare what a reader of the text is told: of flagged answers, and of those that were not fully checked."""
    if _warns(than) and not _warns(plan):
        yield "without a warning or disclaimer in the text"
    elif _owes_disclaimer(than) and not _owes_disclaimer(plan):
        yield "without require_disclaimer"


def _warns(plan: Plan) -> bool:
    """Return whether a flagged answer always carries a warning that its reader sees."""
    if plan.mode_to_run is Mode.LIGHTWEIGHT:
        return is_visible(plan.warning_template)
    return plan.require_disclaimer is not False and _shows_disclaimer(plan)


def _owes_disclaimer(plan: Plan) -> bool:
    return plan.require_disclaimer is True and _shows_disclaimer(plan)


def _shows_disclaimer(plan: Plan) -> bool:
    return is_visible(plan.disclaimer_template or plan.warning_template)


def _timeout(plan: Plan, than: Plan) -> Iterable[str]:
    own, other = _first_stage_s(plan), _first_stage_s(than)
    if own < other:
        key = "timeout_s" if own == plan.timeout_s else "mitigation.deadline_s"
        instead = "no limit to what waits for a verdict" if math.isinf(other) else f"{other:g}"
        yield f"{key} {own:g} instead of {instead}"


def _first_stage_s(plan: Plan) -> float:
    """Return the seconds that detection has before an answer leaves without it; infinity where none leaves so."""
    if plan.on_unchecked is OnUnchecked.BLOCK:
        return math.inf
    return min(plan.timeout_s, plan.hold_s)


def _standard(plan: Plan, than: Plan) -> Iterable[str]:
    if are_compared(plan, than, REFINING):
        yield from _rounds(plan.standard.max_iterations, than.standard.max_iterations, "standard")
    if are_compared(plan, than, CORRECTING):
        without = ("max_iterations", "convergence_threshold")
        yield from setting_weaknesses(plan.standard, than.standard, key="standard", without=without)
        if _convergence(plan) > _convergence(than) + _ROUNDING:
            own, other = _ends_at(plan), _ends_at(than)
            yield f"standard.convergence_threshold {own:g} instead of {other:g}"


def _rounds(own: int, other: int, section: str) -> Iterable[str]:
    if own < min(other, _ENOUGH_ROUNDS):
        yield f"{section}.max_iterations {own} instead of {other}"


def _convergence(plan: Plan) -> float:
    return at_rate(_ends_at(plan), EVEN_ODDS, given=plan.expected_rate)


def _ends_at(plan: Plan) -> float:
    """Return the score below which correction ends."""
    convergence = plan.standard.convergence_threshold
    return plan.threshold if convergence is None else min(plan.threshold, convergence)


def _premium(plan: Plan, than: Plan) -> Iterable[str]:
    if are_compared(plan, than, ASKING_OTHERS):
        yield from _rounds(plan.premium.max_iterations, than.premium.max_iterations, "premium")
        yield from setting_weaknesses(plan.premium, than.premium, key="premium", without=("max_iterations",))


def _auto(plan: Plan, than: Plan) -> Iterable[str]:
    # Which modes there are to choose from is compared as the mode.
    if rank(plan) == rank(than) and len(ranks(than)) > 1:
        return setting_weaknesses(plan.auto, than.auto, key="auto", without=("modes",))
    return ()


def _mitigation(plan: Plan, than: Plan) -> Iterable[str]:
    corrects = are_compared(plan, than, CALLING)
    if corrects and plan.hold_s < than.hold_s:
        yield f"mitigation.deadline_s {plan.hold_s:g} instead of {than.hold_s:g}"
    if corrects or (plan.asking and than.asking):
        yield from setting_weaknesses(
            plan.mitigation, than.mitigation, key="mitigation", without=("deadline_s",)
        )


def _stream(plan: Plan, than: Plan) -> Iterable[str]:
    if plan.streaming is not Streaming.BUFFER and _warns_in_streams(than) and not _warns_in_streams(plan):
        yield "without a warning at the end of streams"
    if plan.streaming is than.streaming is Streaming.GATE:
        yield from setting_weaknesses(plan.stream, than.stream, key="stream", without=("warning",))


def _warns_in_streams(plan: Plan) -> bool:
    return plan.stream.warning and is_visible(plan.warning_template)


def _evidence(plan: Plan, than: Plan) -> Iterable[str]:
    """Compare what is evidence: less of it leaves answers unchecked, more of it lets a client bring its own."""
    without = ("intermediate_calls",)
    yield from setting_weaknesses(plan.evidence, than.evidence, key="evidence", without=without)
    own, other = plan.evidence.intermediate_calls, than.evidence.intermediate_calls
    if own is not other and other is IntermediateCalls.NONE:
        yield f"evidence.intermediate_calls {own} instead of {other}"


def _cascade(plan: Plan, than: Plan) -> Iterable[str]:
    if plan.asking and than.asking:
        return setting_weaknesses(_asked(plan), _asked(than), key="cascade")
    return ()


def _retrieval(plan: Plan, than: Plan) -> Iterable[str]:
    """Compare how evidence is retrieved, which has no effect where neither plan retrieves any."""
    if plan.retrieval.when or than.retrieval.when:
        yield from setting_weaknesses(plan.retrieval, than.retrieval, key="retrieval")


def _agentic(plan: Plan, than: Plan) -> Iterable[str]:
    """Compare how mode agentic searches, and where, where that is not compared as retrieval."""
    if are_compared(plan, than, SEARCHING):
        yield from setting_weaknesses(plan.agentic, than.agentic, key="agentic")
        if not (plan.retrieval.when or than.retrieval.when):
            own, other = plan.retrieval.sources, than.retrieval.sources
            yield from weakness(own, other, Stricter.UNKNOWN, key="retrieval.sources")


def _asked(plan: Plan) -> CascadeSettings:
    """Return when models are asked, with what has no effect as what is done: all are asked about under ``always``."""
    written = plan.cascade
    bounded = written.model_copy(update={"timeout_s": min(written.timeout_s, plan.hold_s)})
    if written.when is AskWhen.ALWAYS:
        return bounded.model_copy(update={"band": (0.0, 1.0), "sample": 1.0})
    return bounded


COMPARED: Mapping[str, Stricter | _Compare] = {
    "decision": Stricter.NO_EFFECT,
    "enabled": Stricter.HIGHER,
    "mode": _mode,
    "threshold": _threshold,
    "expected_rate": _with_another,
    "aggregation": Stricter.UNKNOWN,
    "streaming": Stricter.LATER,
    "on_flagged": _on_flagged,
    "on_unchecked": Stricter.LATER,
    "max_unscored": Stricter.LOWER,
    "reasoning": Stricter.LATER,
    "details": Stricter.NO_EFFECT,
    "detectors": _detectors,
    "coefficients": Stricter.UNKNOWN,
    "model_id": Stricter.UNKNOWN,
    "use_cpu": Stricter.NO_EFFECT,
    "warning_template": _warning,
    "warning_position": Stricter.NO_EFFECT,
    "require_disclaimer": _with_another,
    "disclaimer_template": _with_another,
    "timeout_s": _timeout,
    "standard": _standard,
    "premium": _premium,
    "auto": _auto,
    "mitigation": _mitigation,
    "stream": _stream,
    "evidence": _evidence,
    "cascade": _cascade,
    "retrieval": _retrieval,
    "agentic": _agentic,
    "model_refs": Stricter.NO_EFFECT,
    "policy_version": Stricter.NO_EFFECT,
    "shadow": Stricter.LOWER,
    "intended": _with_another,
}
"""How each field of a plan is compared; a field that does not stand here cannot be compared."""
