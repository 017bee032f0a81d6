"""The page ``/playground``: score an answer that somebody pastes, and show what every decision would do with it.

Detection runs once for all decisions whose detectors, model, aggregation and evidence are the same; fusion, rate and threshold
are each decision's own. Nothing is kept or logged. Models are asked only where the form says so, and then for
one decision; sources are searched only where it says so, for the question, whatever decisions say of retrieval.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from truthlens.core.deadline import Deadline
from truthlens.core.errors import DialectError, check
from truthlens.core.limits import Limits
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.exchange import Answer, Exchange, plain_exchange
from truthlens.core.records.mitigation_result import Assessment
from truthlens.core.records.plan import Plan
from truthlens.core.records.retrieval import SearchRecord, SourceSpec
from truthlens.core.records.settings import EvidenceRules
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.core.risk import risk_of
from truthlens.delivery import outcome_of
from truthlens.desk.annotated import AnnotatedAnswer, annotate
from truthlens.desk.pages import Pages, why
from truthlens.detection.fusion import Fusion
from truthlens.policy import Policy
from truthlens.policy.policy import DEFAULT_DECISION
from truthlens.process.detect_api import (
    LONGEST_REPEATED,
    Bodies,
    evidence_of,
    form_pairs,
    named,
)
from truthlens.process.endpoints import WebParts

# For all detections of one form together, none begins after it; and for what the others make of one.
_MOST_S = 20.0
# As many as a decision may name.
_MOST_SOURCES = 8
_SOURCE = "source"
_SEPARATOR = re.compile(r"^---[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PlaygroundForm:
    """What the form holds: a request's JSON ``body``, or (where that is empty) context and question; and the answer."""

    context: str = ""
    query: str = ""
    response: str = ""
    body: str = ""
    decision: str = DEFAULT_DECISION
    ask: bool = False
    sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> PlaygroundForm:
        """Return the form of its fields; line ends are those of the text, not of the form's encoding."""
        fields = dict(pairs)

        def text(name: str) -> str:
            return fields.get(name, "").replace("\r\n", "\n")

        return cls(
            text("context"),
            text("query"),
            text("response"),
            text("body"),
            decision=fields.get("decision") or DEFAULT_DECISION,
            ask="ask" in fields,
            sources=tuple(dict.fromkeys(value for name, value in pairs if name == _SOURCE)),
        )

    def exchanges(self, rules: Iterable[EvidenceRules], limits: Limits) -> dict[EvidenceRules, Exchange]:
        """Return the request half of it under each of ``rules``: the same one where it holds no body.

        Raises:
            DialectError: The body is no request.
            BodyTooLargeError: It exceeds a limit.
        """
        if self.body.strip():
            body = self.body.encode()
            return {each: evidence_of(body, each, limits) for each in dict.fromkeys(rules)}
        passages = _SEPARATOR.split(self.context)
        check(len(passages), limits.max_passages, key="max_passages")
        exchange, _ = plain_exchange(self.query, [each.strip("\n") for each in passages], "")
        return dict.fromkeys(rules, exchange)


_EXAMPLE = PlaygroundForm(
    "The clinic is open from Monday to Friday, 8:00 to 17:00.\n---\nVaccinations are given on Wednesdays.",
    "When can I get a vaccination?",
    "Vaccinations are given on Wednesdays from 7:00. The clinic also offers free dental surgery on Sundays.",
)


@dataclass(frozen=True, slots=True)
class OfferedSource:
    """A source of the policy; ``withheld`` says why this page does not search it, ``""`` where it does."""

    name: str
    type: str
    withheld: str


@dataclass(frozen=True, slots=True)
class Row:
    """What one decision would do with the answer; ``note`` says what else there is to know."""

    plan: Plan
    verdict: Verdict
    does: str
    risk: str
    note: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class PlaygroundResult:
    """What was found: of the chosen decision all, of the others a row; ``searches`` were made for it."""

    chosen: Row
    rows: tuple[Row, ...]
    view: AnnotatedAnswer
    query: str
    searches: tuple[SearchRecord, ...]


class Playground:
    """``GET`` and ``POST /playground``."""

    def __init__(self, bodies: Bodies, pages: Pages, parts: WebParts) -> None:
        self._bodies, self._pages, self._pipeline = bodies, pages, parts.pipeline
        self._policy, self._retrieval = parts.policy, parts.retrieval

    async def page(self, request: Request) -> Response:
        """Return the form, and what the one that was sent came to."""
        if request.method != "POST":
            return self._made(request, _EXAMPLE)
        return await self._bodies.answer(
            request,
            self._of_form,
            lambda status, problem: self._made(request, PlaygroundForm(), status, problem),
        )

    async def _of_form(self, request: Request, policy: Policy, body: bytes) -> Response:
        timeout_s = policy.default.timeout_s
        form = await self._pipeline.read(
            lambda: PlaygroundForm.of(form_pairs(body, more=len(policy.sources))), len(body), timeout_s
        )
        chosen = named(policy, form.decision)
        plans = (*policy.plans, policy.default)

        def read() -> dict[EvidenceRules, Exchange] | str:
            try:
                return form.exchanges((plan.evidence for plan in plans), policy.limits)
            except DialectError as error:
                return str(error)

        exchanges = await self._pipeline.read(read, len(body), timeout_s)
        if isinstance(exchanges, str):
            return self._made(request, form, 422, exchanges)
        if form.sources:
            found = await self._searched(policy, form.sources, chosen, exchanges)
            if isinstance(found, str):
                return self._made(request, form, 422, found)
            exchanges = found
        _, answer = plain_exchange("", (), form.response)
        scored = await self._scored(form, chosen, plans, exchanges, answer)

        def made() -> Response:
            exchange = exchanges[chosen.evidence]
            rows = tuple(
                _row(plan, verdict, answer, chosen=plan is chosen, asked=form.ask)
                for plan, verdict in zip(plans, scored, strict=True)
            )
            own = next(row for row in rows if row.chosen)
            view = annotate(
                answer.text,
                own.verdict.spans,
                exchange.passages,
                even_threshold=chosen.even_threshold,
                claims=own.verdict.claims,
            )
            result = PlaygroundResult(own, rows, view, exchange.query, exchange.searches)
            return self._made(request, form, result=result)

        return await self._pipeline.read(made, _size(exchanges[chosen.evidence], answer), timeout_s)

    async def _searched(
        self,
        policy: Policy,
        sources: Sequence[str],
        chosen: Plan,
        exchanges: Mapping[EvidenceRules, Exchange],
    ) -> dict[EvidenceRules, Exchange] | str:
        """Return the exchanges with what ``sources`` give for their questions, or why none is searched."""
        if problem := _refusal(sources, self._offered(policy)):
            return problem
        if not exchanges[chosen.evidence].query.strip():
            return "query: sources are searched for the question, and there is none"
        step = self._retrieval() if self._retrieval is not None else None
        assert step is not None  # something is offered
        distinct = {id(each): each for each in exchanges.values()}
        k, time_s = chosen.retrieval.k, chosen.retrieval.timeout_s
        # All at once, so that those with one question share a search.
        found = await asyncio.gather(
            *(step.beside(each, sources, k=k, time_s=time_s) for each in distinct.values())
        )
        widened = dict(zip(distinct, found, strict=True))
        return {rules: widened[id(each)] for rules, each in exchanges.items()}

    def _offered(self, policy: Policy) -> tuple[OfferedSource, ...]:
        """Return the sources of ``policy``, none where nothing here searches them."""
        if self._retrieval is None or self._retrieval() is None:
            return ()
        return tuple(OfferedSource(spec.name, spec.type, _withheld(spec)) for spec in policy.sources.values())

    async def _scored(
        self,
        form: PlaygroundForm,
        chosen: Plan,
        plans: Sequence[Plan],
        exchanges: Mapping[EvidenceRules, Exchange],
        answer: Answer,
    ) -> list[Verdict]:
        """Return the verdict of each plan, from one detection for all that share it; the chosen one's comes first."""
        groups: dict[Hashable, list[Plan]] = {}
        for plan in (chosen, *(each for each in plans if each is not chosen)):
            groups.setdefault(_key(plan, exchanges), []).append(plan)
        within, found = Deadline.after(_MOST_S), dict[str, Verdict]()
        for first, *others in groups.values():
            own = _searching_nothing(first if form.ask and first is chosen else _without_models(first))
            exchange = exchanges[first.evidence]
            verdict = (
                unchecked(Reason.TIMEOUT, threshold=first.threshold)
                if within.passed
                else await self._pipeline.score(own, exchange, answer)
            )
            found[first.decision] = verdict
            if others:
                work = partial(_under, others, verdict, exchange, answer)
                found |= await self._pipeline.read(work, _size(exchange, answer), _MOST_S)
        return [found[plan.decision] for plan in plans]

    def _made(
        self,
        request: Request,
        form: PlaygroundForm,
        status: int = 200,
        problem: str = "",
        result: PlaygroundResult | None = None,
    ) -> Response:
        policy = self._policy.current
        plans = policy.all_plans
        texts = {name: getattr(form, name) for name in ("context", "query", "response", "body")}
        return self._pages.page(
            request,
            "playground.html.j2",
            status=status,
            plans=plans,
            asking=any(plan.asking for plan in plans),
            sources=self._offered(policy),
            form=form,
            texts={name: text if len(text) <= LONGEST_REPEATED else "" for name, text in texts.items()},
            dropped=any(len(text) > LONGEST_REPEATED for text in texts.values()),
            problem=problem,
            result=result,
        )


def _key(plan: Plan, exchanges: Mapping[EvidenceRules, Exchange]) -> Hashable:
    """Return what two plans must share to share a detection."""
    own = tuple((spec.name, spec.options) for spec in _without_models(plan).detectors)
    return plan.enabled, own, plan.model_id, plan.use_cpu, plan.aggregation, id(exchanges[plan.evidence])


def _without_models(plan: Plan) -> Plan:
    return replace(plan, detectors=tuple(spec for spec in plan.detectors if not spec.models))


def _searching_nothing(plan: Plan) -> Plan:
    """Return the plan that retrieves nothing by itself: the form says what is searched."""
    return replace(plan, retrieval=plan.retrieval.model_copy(update={"when": ()}))


def _refusal(sources: Sequence[str], offered: Sequence[OfferedSource]) -> str:
    """Return why ``sources`` are not searched, ``""`` where they are."""
    known = {each.name: each.withheld for each in offered}
    if any(name not in known for name in sources):
        usable = ", ".join(name for name, withheld in known.items() if not withheld) or "none"
        return f"source: no source of that name can be searched here; known: {usable}"
    for name in sources:
        if known[name]:
            return f"source: {name} is not searched here: {known[name]}"
    if len(sources) > _MOST_SOURCES:
        return f"source: {len(sources)} sources are chosen; at most {_MOST_SOURCES} are searched at once"
    return ""


def _withheld(spec: SourceSpec) -> str:
    """Return why a source cannot be searched from this page, ``""`` where it can."""
    if spec.options.filter:
        names = ", ".join(sorted(spec.options.filter.values()))
        return f"its filter needs {names}, which only the gateway knows of an exchange"
    if spec.options.auth == "passthrough":
        return "it is asked with the Authorization of a client, and there is none here"
    return ""


def _size(exchange: Exchange, answer: Answer) -> int:
    return len(answer.text) + sum(len(each.text) for each in exchange.passages)


def _under(plans: Iterable[Plan], verdict: Verdict, exchange: Exchange, answer: Answer) -> dict[str, Verdict]:
    """Return by decision the verdicts of ``plans`` where their detection gave ``verdict`` to another plan. CPU-bound."""
    fusion = Fusion(exchange)

    def under(plan: Plan) -> Verdict:
        weights = {spec.name: spec.weight for spec in _without_models(plan).detectors}
        if not weights:
            return unchecked(Reason.DISABLED, threshold=plan.threshold)
        results = [
            replace(result, weight=weights[result.detector])
            for result in verdict.results
            if result.detector in weights
        ]
        if not results:
            return replace(verdict, threshold=plan.threshold, expected_rate=plan.expected_rate)
        return fusion.verdict(plan, answer, results)

    return {plan.decision: under(plan) for plan in plans}


def _row(plan: Plan, verdict: Verdict, answer: Answer, *, chosen: bool, asked: bool) -> Row:
    unasked = bool(plan.asking) and not (chosen and asked)
    note = ""
    if not plan.enabled:
        note = "this decision checks nothing"
    elif unasked:
        note = "without its models, which were not asked"
    elif verdict.reason is not None:
        note = why(verdict.reason)
    return Row(
        plan,
        verdict,
        does=_does(plan, verdict, answer),
        risk=risk_of(verdict.score).value if verdict.score is not None else "",
        note=note,
        chosen=chosen,
    )


def _does(plan: Plan, verdict: Verdict, answer: Answer) -> str:
    action = outcome_of(plan, Assessment((verdict,), (verdict,)), (answer,), model="").action
    if plan.corrects and verdict.flagged and verdict.status is not Status.UNCHECKED:
        return f"asks models for a correction, else {action.value}"
    return action.value
