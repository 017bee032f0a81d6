"""Choose the doubtful claims of an answer, and make the request on each. Pure.

All requests on one answer begin with the same text, instructions and evidence, so that a server that keeps
prefixes reads them once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from truthlens.core.records.calls import ModelRequest, Role
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim
from truthlens.core.records.coefficients import Coefficients
from truthlens.core.records.enums import DetectorName
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.claims.quotations import Quotations
from truthlens.detection.claims.shipped_coefficients import COEFFICIENTS
from truthlens.detection.detectors.verify.options import Options
from truthlens.detection.fusion import claims_of
from truthlens.detection.plain_answers import PlainAnswers
from truthlens.prompts import delimiters, render
from truthlens.prompts.evidence_selection import Relevant, relevant
from truthlens.prompts.excerpts import OMITTED
from truthlens.prompts.model_requests import stand_alone

_TEMPLATE = "verify_claim"
_BEFORE_CHARS = 300
_CONTEXT_CHARS = 120
_WORD_TOKENS, _JSON_TOKENS = 5, 64
_UNJUDGED_RISK = 0.5


@dataclass(frozen=True, slots=True)
class Question:
    """A doubtful claim, characters ``start`` to ``end`` of the answer, and what stands before it."""

    start: int
    end: int
    text: str
    before: str


@dataclass(frozen=True, slots=True)
class Questions:
    """What a model is asked about one answer: the riskiest claims first, all behind the same ``evidence``.

    ``digest`` is that of the evidence; ``selected`` says that it is not all there is. ``left_out`` counts the
    doubtful claims beyond the limit, ``unjudged`` those of them that nothing else judged.
    """

    asked: tuple[Question, ...]
    left_out: int = 0
    unjudged: int = 0
    evidence: str = ""
    digest: str = ""
    selected: bool = False
    chinese: bool = False


def questions_on(
    exchange: Exchange,
    answer: Answer,
    first: Sequence[DetectorResult],
    options: Options,
    coefficients: Coefficients = COEFFICIENTS,
) -> Questions:
    """Return the questions on an answer: of claims of which the first stage is not sure, or says nothing."""
    claims = claims_of(
        answer.text,
        first,
        quoted=Quotations(exchange.passages).find,
        reading=PlainAnswers(exchange).reading(answer),
        coefficients=coefficients,
    )
    low, high = options.doubtful
    doubtful = [each for each in claims if each.risk is None or low <= each.risk <= high]
    doubtful.sort(key=lambda each: _UNJUDGED_RISK if each.risk is None else each.risk, reverse=True)
    taken, left = doubtful[: options.max_claims], doubtful[options.max_claims :]
    asked = tuple(
        Question(each.start, each.end, answer.text[each.start : each.end], _before(answer.text, each))
        for each in taken
    )
    if not asked:
        return Questions(())
    texts = [passage.text for passage in exchange.passages]
    most = options.most_chars
    selected = sum(map(len, texts)) > most
    near = relevant(texts, [answer.text, exchange.query], most_chars=most) if selected else Relevant()
    evidence = delimiters.evidence(
        exchange.passages, near=near.passages, around=near.sentences, most_chars=most
    )
    return Questions(
        asked,
        left_out=len(left),
        unjudged=sum(each.outcome is ClaimOutcome.UNJUDGED for each in left),
        evidence=evidence,
        digest=hashlib.sha256(evidence.encode(errors="surrogatepass")).hexdigest(),
        selected=selected,
        chinese=render.in_chinese(answer.text, exchange.query),
    )


def request(
    exchange: Exchange, asked: Questions, question: Question, model: str, *, as_json: bool
) -> ModelRequest:
    """Return the request on one claim, without what asks for log probabilities or for the form of a reply.

    It cannot be made shorter: a model that sees less evidence would find less of it supported.
    """
    part = partial(render.render, _TEMPLATE, chinese=asked.chinese)
    user = part(
        part="user",
        as_json=as_json,
        evidence=asked.evidence,
        question=delimiters.tag("question", exchange.query),
        before=delimiters.tag("before", question.before),
        claim=delimiters.tag("claim", question.text),
    )
    most = _JSON_TOKENS if as_json else _WORD_TOKENS
    body = stand_alone(system=part(part="system"), user=user, max_tokens=most)
    return ModelRequest(model, Role.VERIFY_DETECTOR, body, selected=asked.selected)


def cache_key(exchange: Exchange, asked: Questions, question: Question, model: str) -> tuple[str, ...]:
    """Return all that the reading of one request depends on."""
    language = "zh" if asked.chinese else "en"
    own = (asked.digest, exchange.query, question.before, question.text)
    return (DetectorName.VERIFY.value, model, render.version(_TEMPLATE), language, *own)


def _before(text: str, claim: JudgedClaim) -> str:
    """Return the text before a claim, and the begin of its lead-in or head where that is further up."""
    near = max(0, claim.start - _BEFORE_CHARS)
    if claim.context is None or claim.context[0] >= near or claim.context[1] > claim.start:
        return text[near : claim.start]
    start, end = claim.context
    lead = f"{text[start : min(end, start + _CONTEXT_CHARS)]} {OMITTED} "
    return lead + text[claim.start - _BEFORE_CHARS + len(lead) : claim.start]
