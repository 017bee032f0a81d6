"""Judge the claims of an answer by what the detectors found, and the answer by its claims. Pure.

A detector that speaks of whole claims says so in its ``findings``; of the others, spans accuse the claims that they touch, and values
that were verified vouch for those in which they stand.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from truthlens.core.records.claims import ClaimOutcome, Finding, JudgedClaim
from truthlens.core.records.coefficients import Coefficients
from truthlens.core.records.explanation import SpanKind
from truthlens.core.records.verdict import DetectorResult, Span, ValueClaim
from truthlens.text.claims.claims import Claim, scored_claims
from truthlens.text.spans import touching
from truthlens.text.values.quantities import figures

Quoted = Callable[[str, str], tuple[int, tuple[int, int]] | None]
"""Finds a text, under its lead-in, as a whole sentence of the evidence: passage's number and sentence's characters, or ``None``."""

_LEAST = 1e-3
_SURE = 4.8
"""Power of the highest accusation that a risk is at least: 0.9 gives 0.603."""
_EVEN = 0.5
_SUPPORT = 0.9
"""Log-odds that opinions take off an accusation at most: who reads well may overlook a year."""
_VOUCHES = 0.2
"""Risk up to which a finding that a claim is supported proves it, where all its values are verified."""
_AGAINST = frozenset((ClaimOutcome.CONTRADICTED, ClaimOutcome.NOT_STATED))


@dataclass(slots=True)
class _Heard:
    """What was found of one claim."""

    opinions: dict[str, Finding] = field(default_factory=dict)
    accusations: dict[str, Span] = field(default_factory=dict)
    values: list[ValueClaim] = field(default_factory=list)

    @property
    def read(self) -> float:
        """The largest share of the evidence, 0..1, that a detector read with the claim."""
        return max((each.read for each in self.opinions.values()), default=0.0)

    def is_denied(self, *, verified: bool) -> bool:
        """Return whether a detector finds the claim contradicted or not stated, and not only for values that are verified."""
        return any(
            each.outcome in _AGAINST and not (verified and each.apart is not None)
            for each in self.opinions.values()
        )

    def is_vouched_for(self, risk: float | None) -> bool:
        """Return whether a detector is sure that the evidence supports the claim, and all of them together do not suspect it."""
        return (risk or 0.0) < _EVEN and any(
            each.outcome is ClaimOutcome.SUPPORTED and each.risk <= _VOUCHES
            for each in self.opinions.values()
        )


def judged_claims(
    text: str,
    results: Sequence[DetectorResult],
    coefficients: Coefficients,
    *,
    quoted: Quoted,
    start: int = 0,
) -> tuple[JudgedClaim, ...]:
    """Return the claims of ``text`` with what ``results`` say of each, in order; phrases that claim nothing are none of them.

    ``start`` is where ``text`` stands in the answer whose characters results and claims count.
    """
    found, heard = _heard(text, results, start)
    weights = _weights(results)
    return tuple(
        replace(
            _judged(claim, each, coefficients, weights, partial(quotation, claim, text, quoted)),
            path=claim.path,
            context=claim.context and (claim.context[0] + start, claim.context[1] + start),
        )
        for claim, each in zip(found, heard, strict=True)
    )


@dataclass(frozen=True, slots=True)
class ClaimTerms:
    """What was found of a claim as the fusion adds it up, before coefficients: log-odds of opinions, hazards of accusations.

    ``verified`` says that all values of the claim are; ``read`` is the share of the evidence, 0..1, that was read with it.
    """

    start: int
    end: int
    opinions: Mapping[str, float]
    accusations: Mapping[str, float]
    verified: bool
    read: float = 0.0


def claim_terms(text: str, results: Sequence[DetectorResult]) -> list[ClaimTerms]:
    """Return the terms of the claims of ``text``, in order: what ``judged_claims`` makes their risks of."""
    weights = _weights(results)
    return [
        ClaimTerms(claim.start, claim.end, *_terms(each, weights, verified=verified), verified, each.read)
        for claim, each in zip(*_heard(text, results, 0), strict=True)
        for verified in [_is_verified(claim, each.values)]
    ]


def _heard(text: str, results: Sequence[DetectorResult], start: int) -> tuple[list[Claim], list[_Heard]]:
    """Return the claims of ``text``, which begins at ``start``, and what was found of each."""
    found = [replace(each, start=each.start + start, end=each.end + start) for each in scored_claims(text)]
    heard = [_Heard() for _ in found]
    for result in results:
        if result.score is None:
            continue
        name = result.detector
        for finding in result.findings:
            for place in _touched(found, finding.start, finding.end):
                opinions = heard[place].opinions
                opinions[name] = max(opinions.get(name, finding), finding, key=lambda each: each.risk)
        for span in () if result.findings else result.spans:
            for place in _touched(found, span.start, span.end):
                accusations = heard[place].accusations
                accusations[name] = max(accusations.get(name, span), span, key=lambda each: each.score)
        for value in result.claims:
            for place in _touched(found, value.start, value.end):
                heard[place].values.append(value)
    return found, heard


def answer_risk(risks: Sequence[float], scores: Sequence[float] = (), *, idle_risk: float) -> float:
    """Return the risk of an answer, 0..1: the Noisy-OR of what its claims' risks exceed ``idle_risk`` by, never below the highest.

    ``scores`` are those of detectors that speak of the answer as a whole, and count in full. No claims and scores give 0.0.
    """
    clean = 1.0
    for risk in risks:
        clean *= 1.0 - max(0.0, risk - idle_risk) / (1.0 - idle_risk)
    for score in scores:
        clean *= 1.0 - score
    return max(*risks, *scores, 0.0, 1.0 - clean) if risks or scores else 0.0


def is_by_claims(result: DetectorResult) -> bool:
    """Return whether the claims say all that a result says of its answer; if not, its score counts for the answer as a whole."""
    if result.findings or not result.score:
        return True
    return any(span.score >= result.score for span in result.spans)


def _judged(
    claim: Claim,
    heard: _Heard,
    coefficients: Coefficients,
    weights: dict[str, float],
    quoted: Callable[[], tuple[int, tuple[int, int]] | None],
) -> JudgedClaim:
    judged = partial(JudgedClaim, claim.start, claim.end)
    verified = _is_verified(claim, heard.values)
    risk = _risk(heard, coefficients, weights, verified=verified)
    if not heard.accusations and not heard.is_denied(verified=verified):
        limit = coefficients.proved_risk if risk is None else min(risk, coefficients.proved_risk)
        restated = heard.values if verified and all(value.is_all for value in heard.values) else []
        if proving := [value for value in restated if value.source]:
            return _sourced(judged(ClaimOutcome.PROVED, limit, "numbers"), proving)
        if (place := quoted()) is not None:
            return judged(ClaimOutcome.PROVED, limit, "quotation", *place)
        if verified and heard.is_vouched_for(risk):
            return judged(ClaimOutcome.PROVED, limit, "numbers", heard.values[0].passage)
        if risk is None:
            if not restated:
                return judged(ClaimOutcome.UNJUDGED, None)
            return judged(ClaimOutcome.SUPPORTED, limit, "numbers", restated[0].passage)
    assert risk is not None, "what speaks against a claim gives it a risk"
    if risk < _EVEN:
        supporter = min(heard.opinions, key=lambda name: heard.opinions[name].risk, default="")
        return _of_finding(claim, ClaimOutcome.SUPPORTED, risk, supporter, heard.opinions.get(supporter))
    return _doubted(claim, heard, risk)


def _doubted(claim: Claim, heard: _Heard, risk: float) -> JudgedClaim:
    """Return a claim of even ``risk`` or more, with what is most against it: accusation, else opinion."""
    name, span = max(heard.accusations.items(), key=lambda each: each[1].score, default=("", None))
    if span is not None and span.score >= _EVEN:
        why = span.explanation.kind if span.explanation is not None else span.kind
        outcome = ClaimOutcome.CONTRADICTED if why is SpanKind.CONTRADICTED else ClaimOutcome.NOT_STATED
        there = None if span.explanation is None else span.explanation.sentence
        against = [
            value
            for value in heard.values
            if value.source and not value.verified and value.start < span.end and value.end > span.start
        ]
        return _sourced(
            JudgedClaim(claim.start, claim.end, outcome, risk, name, span.passage, there), against
        )
    name, finding = max(
        heard.opinions.items(),
        key=lambda each: (each[1].outcome in _AGAINST, each[1].risk),
        default=("", None),
    )
    said = finding.outcome if finding is not None and finding.outcome in _AGAINST else None
    return _of_finding(claim, said or ClaimOutcome.NOT_STATED, risk, name, finding)


def quotation(claim: Claim, text: str, quoted: Quoted) -> tuple[int, tuple[int, int]] | None:
    """Return where the evidence has a claim of ``text`` word for word under the same lead-in; no row of a table, no leaf of JSON."""
    if claim.row or claim.path:
        return None
    return quoted(claim.text, text[slice(*claim.context)] if claim.context else "")


def _sourced(claim: JudgedClaim, values: Sequence[ValueClaim]) -> JudgedClaim:
    """Return the claim with the database that decided it and what it gives; as it is where ``values`` are of none."""
    if not values:
        return claim
    told = dict.fromkeys(f"the database {value.source} gives {value.given}" for value in values)
    return replace(claim, source=values[0].source, reason="; ".join(told))


def _of_finding(
    claim: Claim, outcome: ClaimOutcome, risk: float, detector: str, finding: Finding | None
) -> JudgedClaim:
    if finding is None:
        return JudgedClaim(claim.start, claim.end, outcome, risk, detector)
    return JudgedClaim(
        claim.start, claim.end, outcome, risk, detector, finding.passage, finding.sentence, finding.source
    )


def _is_verified(claim: Claim, values: Sequence[ValueClaim]) -> bool:
    """Return whether every word of the claim that holds a digit is of a value that was verified, and there is one such value."""
    if not values or not all(value.verified for value in values):
        return False
    known = [(value.start - claim.start, value.end - claim.start) for value in values]
    return all(touching(figures(claim.text), known))


def _risk(
    heard: _Heard, coefficients: Coefficients, weights: dict[str, float], *, verified: bool
) -> float | None:
    """Return the risk of a claim, 0..1, or ``None`` where nothing was found that tells of it.

    The accusations alone give their Noisy-OR. Opinions that suspect the claim never lower that, and opinions for it never raise it.
    """
    if not heard.opinions and not heard.accusations:
        return None
    opinions, accusations = _terms(heard, weights, verified=verified)
    doubt = sum(coefficients.opinion(name, term, heard.read) for name, term in opinions.items())
    doubt += coefficients.intercept - coefficients.vouchers * verified
    accused = sum(coefficients.accusations.get(name, 1.0) * term for name, term in accusations.items())
    highest, clean = 0.0, 1.0
    for name, span in heard.accusations.items():
        highest, clean = max(highest, span.score), clean * float((1.0 - span.score) ** weights[name])
    risk = 1.0 - clean
    if opinions:
        held = max(doubt, -_SUPPORT) if heard.accusations else doubt
        joint = 1.0 / (1.0 + math.exp(-held - accused))
        alone = joint if not heard.accusations else risk
        risk = max(joint, alone) if doubt > 0.0 else min(joint, alone)
    return max(risk, math.pow(highest, _SURE))


def _terms(
    heard: _Heard, weights: Mapping[str, float], *, verified: bool
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the weighted log-odds of the opinions on a claim, and the weighted hazards of the accusations of it."""
    opinions = {
        name: weights[name]
        * _log_odds(finding.apart if verified and finding.apart is not None else finding.risk)
        for name, finding in heard.opinions.items()
    }
    accusations = {
        name: -weights[name] * math.log1p(-min(span.score, 1.0 - _LEAST))
        for name, span in heard.accusations.items()
    }
    return opinions, accusations


def _weights(results: Sequence[DetectorResult]) -> dict[str, float]:
    ran = [result for result in results if result.score is not None]
    heaviest = max((result.weight for result in ran), default=1.0)
    return {result.detector: result.weight / heaviest for result in ran}


def _touched(found: Sequence[Claim], start: int, end: int) -> range:
    """Return the numbers of the claims that share a character with ``start`` to ``end``; they are in order and do not overlap."""
    first = bisect_left(found, start + 1, key=lambda claim: claim.end)
    return range(first, bisect_left(found, end, key=lambda claim: claim.start))


def _log_odds(risk: float) -> float:
    held = min(max(risk, _LEAST), 1.0 - _LEAST)
    return math.log(held / (1.0 - held))
