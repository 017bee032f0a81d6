"""Compare plans by how much they check.

This is what keeps a client from choosing its own policy: what a client sends may lead to a stricter plan,
never to a weaker one.
"""

from __future__ import annotations

from collections.abc import Iterable

from truthlens.core.records.enums import IntermediateCalls, Mode, OnFlagged, OnUnchecked, Reasoning, Streaming
from truthlens.core.records.plan import Plan

_Strength = tuple[bool, bool, int, float, float, float, int, int]
_ROUNDING = 1e-9
_MODES = (Mode.LIGHTWEIGHT, Mode.STANDARD, Mode.AGENTIC, Mode.PREMIUM)
_STREAMING = (Streaming.OBSERVE, Streaming.GATE, Streaming.BUFFER)
_ON_FLAGGED = (OnFlagged.MARK, OnFlagged.WITHHOLD, OnFlagged.STOP)
_ON_UNCHECKED = (OnUnchecked.PASS, OnUnchecked.ANNOTATE, OnUnchecked.BLOCK)


def weaknesses(plan: Plan, *, than: Plan) -> tuple[str, ...]:
    """Return in which ways ``plan`` is weaker than ``than``, in words; empty if it is not.

    Nothing is weaker than a plan with detection switched off.
    """
    if not than.enabled:
        return ()
    if not plan.enabled:
        return ("detection is off",)
    if not _checks(than):
        # Of a plan under which no answer is checked, only what becomes of requests that cannot be read is left.
        return tuple(_unchecked_weaknesses(plan, than=than))
    if not _checks(plan):
        return ("no answer is checked (evidence.intermediate_calls all)",)
    found = []
    found += _threshold_weaknesses(plan, than=than)
    if _rank(plan) < _rank(than):
        found.append(f"mode {_mode(plan)} instead of {_mode(than)}")
    if _warns(than) and not _warns(plan):
        found.append("without a warning or disclaimer in the text")
    if _wants_consensus(than) and not _wants_consensus(plan):
        found.append("without require_consensus")
    found += _unchecked_weaknesses(plan, than=than)
    own, other = plan.evidence.intermediate_calls, than.evidence.intermediate_calls
    if own is not other and other is IntermediateCalls.NONE:
        found.append(f"evidence.intermediate_calls {own} instead of {other}")
    if plan.reasoning is not than.reasoning and than.reasoning is Reasoning.SCORE:
        found.append("reasoning pass instead of score")
    if _STREAMING.index(plan.streaming) < _STREAMING.index(than.streaming):
        found.append(f"streaming {plan.streaming} instead of {than.streaming}")
    found += _stream_weaknesses(plan, than=than)
    missing = {spec.name for spec in than.detectors} - {spec.name for spec in plan.detectors}
    if missing:
        found.append(f"without the detector {', '.join(sorted(missing))}")
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
        _rank(plan),
        _STREAMING.index(plan.streaming),
        _ON_FLAGGED.index(plan.stream.on_flagged),
    )


def _checks(plan: Plan) -> bool:
    """Return whether any answer is checked."""
    return plan.enabled and not plan.exempts_calls


def _threshold_weaknesses(plan: Plan, *, than: Plan) -> list[str]:
    """Compare what it takes to be flagged: by a score, on one scale, and by a finding whose floor no rate shifts."""
    if plan.expected_rate == than.expected_rate:
        if plan.threshold > than.threshold:
            return [f"threshold {plan.threshold:.2f} instead of {than.threshold:.2f}"]
        return []
    if plan.even_threshold > than.even_threshold + _ROUNDING or plan.threshold > than.threshold:
        own = f"threshold {plan.threshold:.2f} at expected_rate {plan.expected_rate:g}"
        return [f"{own} instead of {than.threshold:.2f} at {than.expected_rate:g}"]
    return []


def _unchecked_weaknesses(plan: Plan, *, than: Plan) -> list[str]:
    if _ON_UNCHECKED.index(plan.on_unchecked) < _ON_UNCHECKED.index(than.on_unchecked):
        return [f"on_unchecked {plan.on_unchecked} instead of {than.on_unchecked}"]
    return []


def _stream_weaknesses(plan: Plan, *, than: Plan) -> list[str]:
    found = []
    own, other = plan.stream, than.stream
    both_gate = plan.streaming is than.streaming is Streaming.GATE
    if both_gate and _ON_FLAGGED.index(own.on_flagged) < _ON_FLAGGED.index(other.on_flagged):
        found.append(f"on_flagged {own.on_flagged} instead of {other.on_flagged}")
    if plan.streaming is not Streaming.BUFFER and other.warning and not own.warning:
        found.append("without a warning at the end of streams")
    return found


def _rank(plan: Plan) -> float:
    """How much a plan's mode does; ``auto`` does what its weakest mode does, but not only that."""
    if plan.premium_alone:
        return _MODES.index(Mode.STANDARD)
    if plan.mode is not Mode.AUTO:
        return _MODES.index(plan.mode)
    return min(_MODES.index(mode) for mode in plan.auto.modes if mode in _MODES) + 0.5


def _mode(plan: Plan) -> str:
    return "premium without other models" if plan.premium_alone else plan.mode.value


def _warns(plan: Plan) -> bool:
    """Return whether a flagged answer always carries a warning that its reader sees."""
    return plan.mode is Mode.LIGHTWEIGHT or plan.require_disclaimer


def _wants_consensus(plan: Plan) -> bool:
    return plan.mode is Mode.PREMIUM and plan.premium.require_consensus
