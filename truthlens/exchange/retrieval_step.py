"""Retrieve evidence for one exchange: where its request holds none, and where an answer is not supported by what it holds.

What is retrieved becomes passages behind those of the request. It may support what the request says nothing of;
it never outvotes the request: what that contradicts stays flagged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from truthlens.core.deadline import Deadline
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim
from truthlens.core.records.enums import DetectorName, Provenance, Reason, Trigger
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import Plan
from truthlens.core.records.retrieval import Retrieved, SearchedFor, SearchRecord
from truthlens.core.records.verdict import Verdict
from truthlens.core.risk import LOW_RISK
from truthlens.retrieval.retriever import Asker, Retriever

SOURCES_DISAGREE = "sources-disagree"
"""Note of an exchange: what was retrieved supports something that the request's evidence contradicts."""

RETRIEVAL_INCOMPLETE = "retrieval-incomplete"
"""Note of an exchange: some of its searches failed, others gave passages."""

RETRIEVED_RULE = "retrieved"
_LACKING = (Reason.NO_CONTEXT, Reason.UNSURE_CONTEXT)
_FOR = (ClaimOutcome.SUPPORTED, ClaimOutcome.PROVED)
_MOST_CHARS = 40_000
# With the passages of other questions the encoder, which names no passage, calls a claim in ten supported at .2 to .3 and none below this.
_CLEARLY = 0.15
_EXACT = frozenset((DetectorName.NUMBERS, DetectorName.CONTRADICTIONS))


class RetrievalStep:
    """Retrieves evidence as a plan says, by its ``retriever``; does nothing for one that retrieves none."""

    def __init__(self, retriever: Retriever) -> None:
        self.retriever = retriever

    def applies_before(self, plan: Plan, exchange: Exchange) -> bool:
        """Return whether evidence is retrieved for the question alone: the plan says so, and the request holds none."""
        return (
            plan.retrieves(Trigger.NO_CONTEXT)
            and exchange.not_checkable in _LACKING
            and bool(exchange.query.strip())
        )

    async def before(
        self, plan: Plan, exchange: Exchange, *, authorization: str | None, time_s: float
    ) -> Exchange:
        """Return the exchange with what was retrieved for its question, or with the reason why there is nothing."""
        found = await self._search(plan, exchange, [exchange.query], authorization, time_s)
        return _with_first(exchange, found)

    async def beside(self, exchange: Exchange, sources: Sequence[str], *, k: int, time_s: float) -> Exchange:
        """Return the exchange with what ``sources`` give for its question behind its own passages.

        Where it has none and there is nothing, it has the reason. Nobody's ``Authorization`` is passed on.
        """
        found = await self.retriever.search(
            sources, [exchange.query], k=k, deadline=Deadline.after(time_s), asker=Asker(exchange.scope)
        )
        if exchange.not_checkable in _LACKING:
            return _with_first(exchange, found)
        return _with_more(exchange, found)

    async def for_flagged(
        self,
        plan: Plan,
        exchange: Exchange,
        answers: Sequence[Answer],
        verdicts: Sequence[Verdict],
        *,
        authorization: str | None,
        time_s: float,
    ) -> Exchange:
        """Return the exchange with what was retrieved for its question and its riskiest flagged claims."""
        claims = [
            (claim.risk or 0.0, answer.text[claim.start : claim.end])
            for answer, verdict in zip(answers, verdicts, strict=True)
            if verdict.flagged
            for claim in verdict.claims
            if _is_flagged(claim, verdict)
        ]
        claims.sort(key=lambda pair: -pair[0])
        texts = [exchange.query, *(text for _, text in claims[: plan.retrieval.max_claims])]
        found = await self._search(plan, exchange, texts, authorization, time_s)
        return _with_more(exchange, found)

    async def search(
        self,
        exchange: Exchange,
        sources: Sequence[str],
        query: str,
        *,
        k: int,
        deadline: Deadline,
        authorization: str | None,
    ) -> Retrieved:
        """Return at most ``k`` passages of ``sources`` for a model's ``query``, and how searches ended."""
        asker = Asker(exchange.scope, authorization)
        found = await self.retriever.search(sources, [query], k=k, deadline=deadline, asker=asker)
        searches = tuple(replace(each, sought=SearchedFor.AGENT) for each in found.searches)
        return replace(found, searches=searches)

    async def _search(
        self, plan: Plan, exchange: Exchange, texts: Sequence[str], authorization: str | None, time_s: float
    ) -> Retrieved:
        settings = plan.retrieval
        return await self.retriever.search(
            settings.sources,
            texts,
            k=settings.k,
            deadline=Deadline.after(min(settings.timeout_s, time_s)),
            asker=Asker(exchange.scope, authorization),
        )


def settled(first: Verdict, second: Verdict, *, own: int) -> tuple[Verdict, bool]:
    """Return the verdict on an answer that was flagged by the request's evidence and scored again with what was retrieved.

    It is cleared where every flagged claim is supported by a retrieved passage, and the request contradicts none in a value or by
    an opposite: such a claim stays flagged, whatever else is. What the reader calls contradicted does not count: beside evidence
    about something else it says so of true claims too.

    Args:
        first: by the request's passages.
        second: by these and the retrieved ones.
        own: how many passages are the request's.

    Returns:
        the verdict, and whether the request and what was retrieved disagree.
    """
    if second.score is None:
        return first, False
    flagged = [claim for claim in first.claims if _is_flagged(claim, first)]
    still = _denied(second)
    if any(not any(_is_same(other, claim) for other in still) for claim in _denied(first)):
        return first, True
    if second.flagged:
        return second, False
    supported = all(any(_supports(other, claim, own) for other in second.claims) for claim in flagged)
    return (second if flagged and supported else first), False


def contradicts(verdict: Verdict) -> bool:
    """Return whether a flagged claim of the answer differs from its evidence in a value or word that both state."""
    return bool(_denied(verdict))


def _denied(verdict: Verdict) -> list[JudgedClaim]:
    return [
        claim
        for claim in verdict.claims
        if _is_flagged(claim, verdict)
        and claim.outcome is ClaimOutcome.CONTRADICTED
        and claim.detector in _EXACT
    ]


def _supports(other: JudgedClaim, claim: JudgedClaim, own: int) -> bool:
    """Return whether ``other`` is the same claim, supported by a retrieved passage, or clearly where its detector names none."""
    if other.risk is None or other.outcome not in _FOR or not _is_same(other, claim):
        return False
    if other.passage is None:
        return other.risk <= _CLEARLY
    return other.passage >= own and other.risk <= LOW_RISK


def _is_same(other: JudgedClaim, claim: JudgedClaim) -> bool:
    return other.start < claim.end and claim.start < other.end


def _is_flagged(claim: JudgedClaim, verdict: Verdict) -> bool:
    return claim.risk is not None and claim.risk >= min(verdict.threshold, 0.5)


def with_passages(exchange: Exchange, passages: Iterable[Passage]) -> Exchange:
    """Return the exchange with as many of the passages as there is room for, of the first its beginning."""
    known = {passage.text for passage in exchange.passages}
    added: list[Passage] = []
    room = _MOST_CHARS
    for passage in passages:
        text = passage.text if added else passage.text[:_MOST_CHARS]
        if text in known or len(text) > room:
            continue
        room -= len(text)
        known.add(text)
        added.append(replace(passage, text=text))
    return replace(exchange, passages=(*exchange.passages, *added))


def with_searches(exchange: Exchange, searches: Iterable[SearchRecord]) -> Exchange:
    """Return the exchange that says of ``searches``, too, that they were made for it."""
    return replace(exchange, searches=(*exchange.searches, *searches))


def _with_first(exchange: Exchange, found: Retrieved) -> Exchange:
    """Return an exchange without evidence with what was found, or with the reason why there is nothing."""
    if found.passages:
        return _with_found(replace(exchange, unchecked=None), found)
    reason = Reason.RETRIEVAL_FAILED if found.failed else Reason.RETRIEVAL_EMPTY
    return with_searches(replace(exchange, unchecked=reason), found.searches)


def _with_more(exchange: Exchange, found: Retrieved) -> Exchange:
    """Return an exchange that holds evidence with what was found besides."""
    if found.failed and not found.passages:
        notes = (*exchange.notes, Reason.RETRIEVAL_FAILED.value)
        return with_searches(replace(exchange, notes=notes), found.searches)
    return _with_found(exchange, found)


def _with_found(exchange: Exchange, found: Retrieved) -> Exchange:
    passages = (
        Passage(
            each.passage.text,
            Provenance.RETRIEVED,
            id=each.passage.id,
            title=each.passage.title,
            rule=RETRIEVED_RULE,
            parent_id=each.passage.parent_id,
            source=each.source,
        )
        for each in found.passages
    )
    notes = (*exchange.notes, RETRIEVAL_INCOMPLETE) if found.failed else exchange.notes
    widened = replace(with_passages(exchange, passages), notes=notes)
    return with_searches(widened, found.searches)
