"""Fit what findings of a claim are worth: a logistic over the terms that the fusion adds up, none of them negative.

The detectors are an argument; nothing here loads one, reads a policy or writes a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from truthlens.core.errors import TruthLensError
from truthlens.core.records.claims import ClaimOutcome
from truthlens.core.records.coefficients import Coefficients
from truthlens.detection.claims.claim_risk import ClaimTerms, claim_terms
from truthlens.detection.claims.shipped_coefficients import COEFFICIENTS
from truthlens.detection.fusion import unmarked
from truthlens.lab.calibrate.logistic import fit_logistic
from truthlens.lab.data.dataset import Example
from truthlens.lab.evaluate.metrics import auroc
from truthlens.lab.evaluate.plan_scorer import PlanAnswer

LEAST_CLAIMS = 50
"""Of either kind; fewer tell no weights."""

_PRIOR = 4.0
"""Ridge of a slope towards the shipped one: as if half a unit from it were one standard deviation, so that what rarely speaks stays."""
_FALSE_ALARMS = 0.05


@dataclass(frozen=True, slots=True)
class FittingClaim:
    """What was found of a claim, whether it is unsupported, and the source text that it belongs to."""

    terms: ClaimTerms
    wrong: bool
    group: str


@dataclass(frozen=True, slots=True)
class FusionQuality:
    """How weights tell claims at even odds: AUROC, log loss, and the share of the wrong ones found at 5 % false alarms."""

    auroc: float
    log_loss: float
    found: float


@dataclass(frozen=True, slots=True)
class FusionFit:
    """Fitted coefficients, and how well they tell claims.

    ``before`` is the quality of the shipped ones, ``after`` that of coefficients that were fitted on the other half of the source texts.
    """

    coefficients: Coefficients
    claims: int
    unsupported: int
    before: FusionQuality
    after: FusionQuality


def claims_of(
    examples: Iterable[Example], scorer: Callable[[str, Sequence[str], str], PlanAnswer]
) -> list[FittingClaim]:
    """Return the claims of labelled answers that a fit can use: those that a detector judges, whose truth is known, and not proved.

    Of an unsupported answer the claims with a marked span are wrong; where nothing is marked, its only claim is.
    """
    found: list[FittingClaim] = []
    for example in examples:
        answer = scorer(example.query, example.context, example.response)
        results = [unmarked(result, answer.read) for result in answer.verdict.results]
        terms = claim_terms(answer.read.text, results)
        wrong = _wrong(example, terms, answer)
        if wrong is None:
            continue
        for claim, judged, is_wrong in zip(terms, answer.verdict.claims, wrong, strict=True):
            if claim.opinions and judged.outcome is not ClaimOutcome.PROVED:
                found.append(FittingClaim(claim, is_wrong, example.group))
    return found


def fit_fusion(claims: Sequence[FittingClaim]) -> FusionFit:
    """Return coefficients for the detectors that speak in ``claims``, with wrong and right claims weighing alike.

    What never speaks keeps its shipped coefficient.

    Raises:
        TruthLensError: there are too few claims of either kind, or they are of one source text.
    """
    gold = np.array([claim.wrong for claim in claims], dtype=np.float64)
    wrong = int(gold.sum())
    if min(wrong, len(claims) - wrong) < LEAST_CLAIMS:
        raise TruthLensError(
            f"the answers hold {wrong} unsupported and {len(claims) - wrong} supported claims that a detector judges and whose truth is "
            f"known; weights take at least {LEAST_CLAIMS} of each: give more answers, with their wrong parts marked (spans)"
        )
    names = _Names.of(claims)
    inputs = names.inputs(claims)
    side = np.array([int(hashlib.sha256(claim.group.encode()).hexdigest(), 16) % 2 for claim in claims])
    odds = np.zeros(len(claims))
    for held in (0, 1):
        fitted, scored = side != held, side == held
        if len(set(gold[fitted])) < 2 or not scored.any():
            raise TruthLensError(
                "the answers are of too few source texts to fit on one half and measure on the other; give answers from more texts"
            )
        found = _fitted(inputs[fitted], gold[fitted], names.shipped)
        odds[scored] = inputs[scored] @ found[:-1] + found[-1]
    shipped = inputs @ names.shipped + COEFFICIENTS.intercept
    return FusionFit(
        names.coefficients(_fitted(inputs, gold, names.shipped)),
        len(claims),
        wrong,
        _quality(shipped, gold),
        _quality(odds, gold),
    )


@dataclass(frozen=True, slots=True)
class _Names:
    """The columns of a fit: opinions, those with all evidence read, accusations, and whether all values are verified."""

    opinions: tuple[str, ...]
    whole: tuple[str, ...]
    accusations: tuple[str, ...]

    @classmethod
    def of(cls, claims: Sequence[FittingClaim]) -> _Names:
        opinions = {name for claim in claims for name in claim.terms.opinions}
        whole = opinions if any(claim.terms.read for claim in claims) else ()
        accusations = {name for claim in claims for name in claim.terms.accusations}
        return cls(tuple(sorted(opinions)), tuple(sorted(whole)), tuple(sorted(accusations)))

    @property
    def shipped(self) -> NDArray[np.float64]:
        """The shipped coefficients of the columns."""
        opinions = [COEFFICIENTS.weight(name, 0.0) for name in self.opinions]
        whole = [COEFFICIENTS.weight(name, 1.0) for name in self.whole]
        accusations = [COEFFICIENTS.accusations.get(name, 1.0) for name in self.accusations]
        return np.array([*opinions, *whole, *accusations, COEFFICIENTS.vouchers])

    def inputs(self, claims: Sequence[FittingClaim]) -> NDArray[np.float64]:
        """Return the columns, shape (claims, columns), each such that more of it means more risk where its coefficient is positive."""
        rows = [
            [
                *(
                    _counted(claim.terms, name) * (1.0 - claim.terms.read if self.whole else 1.0)
                    for name in self.opinions
                ),
                *(_counted(claim.terms, name) * claim.terms.read for name in self.whole),
                *(claim.terms.accusations.get(name, 0.0) for name in self.accusations),
                -float(claim.terms.verified),
            ]
            for claim in claims
        ]
        return np.array(rows, dtype=np.float64)

    def coefficients(self, found: NDArray[np.float64]) -> Coefficients:
        """Return slopes and intercept as coefficients; detectors of no column keep the shipped ones."""
        values = [round(float(value), 4) for value in found]
        *columns, vouchers, intercept = values
        left = iter(columns)
        opinions, whole, accusations = (
            _sorted({**shipped, **{name: next(left) for name in names}})
            for shipped, names in (
                (COEFFICIENTS.opinions, self.opinions),
                (COEFFICIENTS.whole, self.whole),
                (COEFFICIENTS.accusations, self.accusations),
            )
        )
        return Coefficients(intercept, opinions, accusations, vouchers, whole, COEFFICIENTS.most)


def _counted(terms: ClaimTerms, detector: str) -> float:
    """Return the log-odds of an opinion as the fusion counts them, before its weight; 0 where there is none."""
    return COEFFICIENTS.counted(detector, terms.opinions.get(detector, 0.0), terms.read)


def _sorted(weights: Mapping[str, float]) -> Mapping[str, float]:
    return MappingProxyType(dict(sorted(weights.items())))


def _wrong(example: Example, terms: Sequence[ClaimTerms], answer: PlanAnswer) -> list[bool] | None:
    """Return which claims are unsupported, ``None`` where nobody can tell."""
    if not example.label:
        return [False] * len(terms)
    if not example.spans:
        return [True] if len(terms) == 1 else None
    spans = [(answer.read.place(start), answer.read.place(end)) for start, end in example.spans]
    return [any(start < claim.end and end > claim.start for start, end in spans) for claim in terms]


def _fitted(
    inputs: NDArray[np.float64], gold: NDArray[np.float64], shipped: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return slopes, none negative, and intercept. The slope that is most negative is left out until none is."""
    weights = _even(gold)
    penalty = np.full(inputs.shape[1], _PRIOR)
    left = list(range(inputs.shape[1]))
    while True:
        found = fit_logistic(inputs[:, left], gold, weights, penalty=penalty[left], toward=shipped[left])
        if not left or found[:-1].min() >= 0.0:
            slopes = np.zeros(inputs.shape[1] + 1)
            slopes[[*left, -1]] = found
            return slopes
        left.pop(int(found[:-1].argmin()))


def _even(gold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights of claims by which both kinds weigh alike."""
    rate = gold.mean()
    weights: NDArray[np.float64] = np.where(gold > 0, 0.5 / rate, 0.5 / (1.0 - rate))
    return weights


def _quality(odds: NDArray[np.float64], gold: NDArray[np.float64]) -> FusionQuality:
    ranked = auroc(gold.astype(int).tolist(), odds.tolist())
    limit = np.quantile(odds[gold == 0], 1.0 - _FALSE_ALARMS)
    loss = float(np.average(np.logaddexp(0.0, odds) - gold * odds, weights=_even(gold)))
    return FusionQuality(
        round(ranked or 0.0, 4), round(loss, 4), round(float((odds[gold == 1] > limit).mean()), 4)
    )
