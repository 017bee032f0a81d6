"""Read the verifier's replies, and make the detector's result of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Literal

import pydantic

from truthlens.core.errors import CallError
from truthlens.core.records.calls import CUT_OFF, Completion
from truthlens.core.records.claims import ClaimOutcome, Finding
from truthlens.core.records.enums import DetectorName, Reason
from truthlens.core.records.explanation import SpanKind
from truthlens.core.records.verdict import DetectorResult, Span
from truthlens.detection.asking.failures import ReplyError, reason_of
from truthlens.detection.asking.words import Reading, read
from truthlens.detection.detectors.verify.options import Options
from truthlens.detection.detectors.verify.questions import Question, Questions
from truthlens.prompts.json_replies import one_object

_KINDS = {
    ClaimOutcome.CONTRADICTED: SpanKind.CONTRADICTED,
    ClaimOutcome.NOT_STATED: SpanKind.UNSUPPORTED,
}


class Answered(pydantic.BaseModel):
    """The reply of a verifier whose server gives no log probabilities."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)

    answer: Literal["yes", "no", "unsure"]


def word_of(reply: Completion) -> Reading:
    """Return how likely each answer is.

    Raises:
        ReplyError: the reply does not say it.
    """
    found = read(reply)
    if found is None:
        raise ReplyError("the verifier did not answer YES, NO or UNSURE with figures that fit")
    return found


def json_of(reply: Completion) -> Reading:
    """Return the answer of a reply in JSON, for certain.

    Raises:
        ReplyError: it was cut off, holds no object or several, or something else than was asked for.
    """
    if reply.finish_reason in CUT_OFF:
        raise ReplyError("the verifier's reply was cut off")
    try:
        said = Answered.model_validate(one_object(reply.text)).answer
    except pydantic.ValidationError:
        raise ReplyError("the verifier's reply has other members than were asked for") from None
    except ValueError as error:
        raise ReplyError(f"the verifier's reply {error}") from None
    yes, no, unsure = (float(said == each) for each in ("yes", "no", "unsure"))
    return Reading(yes, no, unsure, listed=said == "yes", most_yes=yes, several=False)


def finding_of(question: Question, reading: Reading, trust: float) -> Finding:
    """Return what a reading says of its claim; one is supported where YES has half of it or more."""
    share = reading.share()
    against = ClaimOutcome.CONTRADICTED if reading.no > reading.unsure else ClaimOutcome.NOT_STATED
    outcome = ClaimOutcome.SUPPORTED if share >= 0.5 else against
    return Finding(question.start, question.end, min(max(1.0 - share, 1.0 - trust), trust), outcome)


def result_of(
    readings: Sequence[Reading | CallError | ReplyError], asked: Questions, options: Options
) -> DetectorResult:
    """Return the result: a finding for each claim that the model judged, and why others were not.

    Raises:
        CallError: no claim was judged, and a call failed.
        ReplyError: no claim was judged, for replies that cannot be read.
    """
    findings = [
        finding_of(question, each, options.trust)
        for question, each in zip(asked.asked, readings, strict=True)
        if isinstance(each, Reading)
    ]
    failures = [each for each in readings if not isinstance(each, Reading)]
    failed = next((each for each in failures if isinstance(each, CallError)), next(iter(failures), None))
    if failed is not None and not findings:
        raise failed
    against = [each for each in findings if each.outcome in _KINDS]
    reason, why = None, ""
    if failed is not None:
        reason = reason_of(failed) if isinstance(failed, CallError) else Reason.DETECTOR_ERROR
        told = f"a model call failed: {failed.code}" if isinstance(failed, CallError) else str(failed)
        why = f"; {len(failures)} not judged ({told})"
    elif asked.unjudged:
        reason = Reason.TOO_LARGE
    supported = len(findings) - len(against)
    contradicted = sum(each.outcome is ClaimOutcome.CONTRADICTED for each in findings)
    left_out = f"; {asked.left_out} more were doubtful" if asked.left_out else ""
    return DetectorResult(
        DetectorName.VERIFY,
        max((each.risk for each in against), default=0.0),
        spans=tuple(
            Span(
                each.start,
                each.end,
                each.risk,
                DetectorName.VERIFY,
                shown=(each.start, each.end),
                kind=_KINDS[each.outcome],
            )
            for each in sorted(against, key=lambda each: each.start)
            if each.outcome is not None
        ),
        reason=reason,
        explanation=f"{supported} of {len(findings)} doubtful claims supported{why}{left_out}",
        details=MappingProxyType(
            {
                "asked_claims": len(asked.asked),
                "supported_claims": supported,
                "contradicted_claims": contradicted,
                "not_stated_claims": len(against) - contradicted,
                "failed_claims": len(failures),
                "claims_left_out": asked.left_out,
            }
        ),
        findings=tuple(findings),
    )
