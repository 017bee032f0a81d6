"""Evaluate an answer against what was collected: rules, then models in two stages, then the decision.

The citations are checked first, because that costs no call: where they alone make the risk high, no model is
asked. The judging is the detector ``judge``'s own (its prompts, its reply, 0.30 rules + 0.40 judge + 0.30
mean of four, the merged risk, the decision), given as an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from truthlens.core.errors import DetectorError
from truthlens.core.records.agentic_run import CollectedPassage
from truthlens.core.records.calls import Ask
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import DetectorResult
from truthlens.core.risk import HIGH_RISK, Decision, decide, rule_part
from truthlens.mitigation.agentic.collected import answer_of, exchange_of
from truthlens.mitigation.candidate_checks import retention
from truthlens.text.claims.non_claims import is_abstention


class CheckCitations(Protocol):
    """Checks the citations of an answer: the detector ``citations``."""

    async def __call__(self, exchange: Exchange, answer: Answer) -> DetectorResult:
        """Return its result; one without a score found nothing to check."""


class Judge(Protocol):
    """Judges an answer: ``examine`` of the detector ``judge``."""

    async def __call__(
        self, exchange: Exchange, answer: Answer, first: Sequence[DetectorResult], *, ask: Ask
    ) -> DetectorResult:
        """Return its result, with the decision, and the quality in its details.

        Raises:
            CallError: a call gave no usable text.
            DetectorError: a model answered something else than was asked for.
        """


class EvaluatedBy(StrEnum):
    """How far an evaluation went."""

    RULES = "rules"
    JUDGE = "judge"


@dataclass(frozen=True, slots=True)
class AnswerEvaluation:
    """What becomes of an answer, with its risk and quality, 0..1 (``None`` where no model was asked)."""

    decision: Decision
    risk: float = 0.0
    quality: float | None = None
    by: EvaluatedBy = EvaluatedBy.RULES


async def evaluate(
    question: str,
    collected: Sequence[CollectedPassage],
    answer: str,
    *,
    ask: Ask,
    citations: CheckCitations,
    judge: Judge,
) -> AnswerEvaluation:
    """Return the evaluation of ``answer``, or of what was collected where there is none yet.

    Raises:
        CallError: a call gave no usable text.
        DetectorError: the judge's reply is of no use. That is never an acceptance.
    """
    if not answer.strip():
        return of_results(question, collected)
    if is_abstention(answer):
        # It claims nothing, so nothing is at risk; whether to look further is for the next decision.
        return AnswerEvaluation(decide(quality=0.0, risk=0.0))
    exchange, candidate = exchange_of(question, collected), answer_of(answer)
    cited = await citations(exchange, candidate)
    rule_risk = max(cited.score or 0.0, cited.floor)
    if rule_risk > HIGH_RISK:
        return AnswerEvaluation(Decision.REJECT, rule_risk)
    judged = await judge(exchange, candidate, (cited,), ask=ask)
    if judged.score is None or judged.decision is None:
        raise DetectorError("the judge gave no score")
    return AnswerEvaluation(
        judged.decision,
        max(judged.score, judged.floor, rule_risk),
        float(judged.details["quality"]),
        EvaluatedBy.JUDGE,
    )


def of_results(question: str, collected: Sequence[CollectedPassage]) -> AnswerEvaluation:
    """Return whether the passages are enough to write from, by their number and the question's words in them.

    There is no answer that a model could judge, so none is asked; with no passages at all the search is to be
    refined.
    """
    found = [each.text for each in collected if not each.computed]
    if not found:
        return AnswerEvaluation(Decision.REFINE_SEARCH)
    share = retention((question,), "\n".join(found))
    quality = rule_part(passages=len(found), valid_citations=0, claims=0, addressed_share=share)
    return AnswerEvaluation(decide(quality, risk=0.0), quality=quality)
