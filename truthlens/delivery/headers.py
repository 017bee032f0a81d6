"""The verdict of all choices, and the response headers that tell of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote

from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Coverage, Verdict, left_out_together, unchecked
from truthlens.core.risk import risk_of

HEADER_NAMES = (
    "x-truthlens-enabled",
    "x-truthlens-mode",
    "x-truthlens-score",
    "x-truthlens-detected",
    "x-truthlens-iterations",
    "x-truthlens-latency-ms",
    "x-truthlens-status",
    "x-truthlens-reason",
    "x-truthlens-decision",
    "x-truthlens-action",
    "x-truthlens-shadow-action",
    "x-truthlens-risk",
    "x-truthlens-initial-score",
    "x-truthlens-review-id",
)

_NO_ANSWER = (Reason.DISABLED, Reason.TOOL_CALL, Reason.UPSTREAM_ERROR)


def format_score(score: float, threshold: float) -> str:
    """Return ``score`` with two decimals, never moved across the threshold or, where possible, a risk level.

    Without this a score of 0.598 would be shown as 0.60 next to ``Detected: false`` at a threshold of 0.6.
    """
    candidates = (round(score, 2), math.floor(score * 100) / 100, math.ceil(score * 100) / 100)
    same_side = [shown for shown in candidates if (shown >= threshold) == (score >= threshold)]
    same_risk = [shown for shown in same_side if risk_of(shown) is risk_of(score)]
    return f"{next(iter(same_risk or same_side or candidates)):.2f}"


def headers(outcome: Outcome) -> dict[str, str]:
    """Return the response headers of a finished exchange: lower-case names, no text of the exchange."""
    verdict = outcome.verdict
    fields = {
        "x-truthlens-enabled": _boolean(verdict.status in (Status.CHECKED, Status.PARTIAL)),
        "x-truthlens-mode": outcome.mode.value,
        "x-truthlens-status": verdict.status.value,
        "x-truthlens-decision": _header_value(outcome.plan.decision),
        "x-truthlens-action": outcome.action.value,
        "x-truthlens-iterations": str(outcome.iterations),
        "x-truthlens-latency-ms": str(max(0, round(outcome.latency_s * 1000))),
    }
    if outcome.shadow_action is not None:
        fields["x-truthlens-shadow-action"] = outcome.shadow_action.value
    if verdict.reason is not None:
        fields["x-truthlens-reason"] = verdict.reason.value
    if verdict.score is not None:
        fields["x-truthlens-score"] = format_score(verdict.score, verdict.threshold)
        fields["x-truthlens-detected"] = _boolean(verdict.flagged)
        fields["x-truthlens-risk"] = risk_of(verdict.score).value
    if outcome.initial_score is not None:
        fields["x-truthlens-initial-score"] = format_score(outcome.initial_score, verdict.threshold)
    if outcome.review_id is not None:
        fields["x-truthlens-review-id"] = _header_value(outcome.review_id)
    return fields


def pending_headers(plan: Plan) -> dict[str, str]:
    """Return the headers of a stream whose verdict comes at its end, with status ``pending``."""
    return {
        "x-truthlens-enabled": _boolean(plan.enabled),
        "x-truthlens-mode": plan.mode.value,
        "x-truthlens-status": Status.PENDING.value,
        "x-truthlens-decision": _header_value(plan.decision),
    }


def nothing_to_check(verdict: Verdict) -> bool:
    """Return whether there was no answer to check, or one that claims nothing, or checking is switched off."""
    return verdict.claims_nothing or verdict.reason in _NO_ANSWER


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return one verdict for all choices: the highest score, and the poorest status.

    It is ``checked`` only where every choice is; ``partial`` where some choice was scored and some choice was
    not, or not wholly; ``unchecked`` where none was. The coverage is that of all choices together.
    """
    if not verdicts:
        return unchecked(Reason.EMPTY_ANSWER)
    scored = [verdict for verdict in verdicts if verdict.score is not None]
    lacking = [verdict for verdict in verdicts if verdict.status is not Status.CHECKED]
    # A failure of another choice says more.
    lacking.sort(key=nothing_to_check)
    if not scored:
        return lacking[0]
    top = max(scored, key=lambda verdict: (verdict.flagged, verdict.score))
    if not lacking:
        return top
    return replace(top, status=Status.PARTIAL, reason=lacking[0].reason, coverage=_together(verdicts, scored))


def _together(verdicts: Sequence[Verdict], scored: Sequence[Verdict]) -> Coverage | None:
    """Return the answer tokens of all choices, and the evidence of the scored choice that saw least."""
    known = [verdict.coverage for verdict in scored if verdict.coverage is not None]
    if not known:
        return None
    every = [verdict.coverage for verdict in verdicts if verdict.coverage is not None]
    return replace(
        min(known, key=lambda coverage: coverage.evidence_ratio),
        answer_tokens=sum(coverage.answer_tokens for coverage in every),
        answer_tokens_scored=sum(coverage.answer_tokens_scored for coverage in every),
        left_out=left_out_together(every),
        windows=sum(coverage.windows for coverage in every),
    )


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _header_value(text: str) -> str:
    # Names come from configuration in any script; a header holds visible ASCII.
    return quote(text, safe=" !#$&'()*+,-./:;<=>?@[]^_`{|}~")
