"""Evidence on demand for one exchange: when it is searched for, what becomes of it, and that it never outvotes the request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.detectors import WordDetector
from tests.fakes.engines import engine_of
from tests.fakes.pipelines import pipeline_for
from truthlens.api.paths import RequestKind
from truthlens.core.deadline import Deadline
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim
from truthlens.core.records.enums import (
    Action,
    AnswerKind,
    Endpoint,
    Mode,
    OnFailure,
    OnUnchecked,
    Provenance,
    Reason,
    Status,
    Trigger,
)
from truthlens.core.records.exchange import Answer, Exchange, Passage, RequestHead, ResponseHead
from truthlens.core.records.mitigation_result import Assessment
from truthlens.core.records.plan import Plan
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult, SourceSpec
from truthlens.core.records.settings import RetrievalSettings
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.core.registry import SourceContext, SourceOptions, SourceType
from truthlens.delivery import outcome_of, unscored_outcome
from truthlens.exchange.assessor import Assessor, Case
from truthlens.exchange.retrieval_step import (
    RETRIEVAL_INCOMPLETE,
    SOURCES_DISAGREE,
    RetrievalStep,
    settled,
)
from truthlens.exchange.ticket import Ticket
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.policy import compile as compiling
from truthlens.retrieval import retriever as module
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.retriever import Retriever
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

FLAGGED, CLEAN = 0.9, 0.1
TEA = Passage("Tea costs two euros.", Provenance.DOCUMENTS)

_POLICY = """
trusted_headers: [x-tenant]
sources: [{name: shelf, type: memory}]
hallucination:
  retrieval: {when: [no-context], sources: [shelf], on_failure: block}
"""


class _Shelf:
    """A source whose passages the test puts in place; ``fails`` names the texts that it fails at."""

    revision = "1"

    def __init__(self) -> None:
        self.passages: list[FoundPassage] = []
        self.fails: Callable[[str], bool] = lambda text: False
        self.asked: list[Search] = []
        self.k = 0

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> Sequence[FoundPassage]:
        self.asked.append(search)
        self.k = k
        if self.fails(search.text):
            raise SourceError(SearchResult.UNAVAILABLE)
        return self.passages

    async def aclose(self) -> None:
        return None

    @property
    def texts(self) -> list[str]:
        return [search.text for search in self.asked]


@pytest.fixture
def shelf() -> _Shelf:
    """The one source, named ``shelf``."""
    return _Shelf()


@pytest.fixture
async def step(shelf: _Shelf, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RetrievalStep]:
    """The step that searches the shelf."""

    def build(_context: SourceContext) -> _Shelf:
        return shelf

    for where in (module, compiling):
        monkeypatch.setattr(
            where,
            "source_types",
            lambda: {"memory": SourceType("memory", build, filters=True, passes_authorization=True)},
        )
    retriever = Retriever(embed=_no_vectors, environ={})
    options = SourceOptions(cache_ttl_s=0, auth="passthrough", filter={"tenant": "x-tenant"})
    retriever.use({"shelf": SourceSpec("shelf", "memory", options)}, Path())
    yield RetrievalStep(retriever)
    await retriever.aclose()


async def _no_vectors(_texts: Sequence[str]) -> Any:
    raise AssertionError("no source here makes vectors")


def plan_of(*when: Trigger, **settings: Any) -> Plan:
    given = {"sources": ("shelf",), "when": when or tuple(Trigger), **settings}
    return Plan("d", threshold=0.6, retrieval=RetrievalSettings(**given))


def asks(*passages: Passage, query: str = "What is tea?", unchecked: Reason | None = None) -> Exchange:
    scope = {"x-tenant": "acme"}
    return Exchange(Endpoint.CHAT, "m", query, passages, unchecked=unchecked, scope=scope)


def claim(
    start: int, outcome: ClaimOutcome, *, passage: int | None = None, risk: float | None = None
) -> JudgedClaim:
    against = outcome in (ClaimOutcome.CONTRADICTED, ClaimOutcome.NOT_STATED)
    given = risk if risk is not None else FLAGGED if against else CLEAN
    return JudgedClaim(start, start + 10, outcome, given, passage=passage)


def verdict(score: float | None, *claims: JudgedClaim, threshold: float = 0.6) -> Verdict:
    status = Status.UNCHECKED if score is None else Status.CHECKED
    return Verdict(status, score=score, threshold=threshold, claims=claims)


def answer(text: str, index: int = 0) -> Answer:
    return Answer(index, AnswerKind.TEXT, text)


# --- a request without evidence ----------------------------------------------------------------------------------


@pytest.mark.parametrize("lacking", [None, Reason.NO_CONTEXT, Reason.UNSURE_CONTEXT])
async def test_a_request_without_evidence_gets_what_its_question_finds(
    step: RetrievalStep, shelf: _Shelf, lacking: Reason | None
) -> None:
    """Passages say where they are from; the source is given the operator's filter and the client's Authorization."""
    shelf.passages = [FoundPassage("Tea is a plant.", "7#2", title="Tea", parent_id="7", score=3.0)]
    exchange, plan = asks(unchecked=lacking), plan_of(Trigger.NO_CONTEXT, k=4)
    assert step.applies_before(plan, exchange)
    found = await step.before(plan, exchange, authorization="Bearer one", time_s=20)
    assert found.passages == (
        Passage(
            "Tea is a plant.", Provenance.RETRIEVED, id="7#2", title="Tea", parent_id="7", source="shelf"
        ),
    )
    assert (found.not_checkable, found.notes) == (None, ())
    assert [(each.source, each.result.value, each.passages) for each in found.searches] == [
        ("shelf", "ok", 1)
    ]
    (search,) = shelf.asked
    assert (search.text, dict(search.filter)) == ("What is tea?", {"tenant": "acme"})
    assert (search.authorization, shelf.k) == ("Bearer one", 4)


@pytest.mark.parametrize(
    ("fails", "reason"), [(False, Reason.RETRIEVAL_EMPTY), (True, Reason.RETRIEVAL_FAILED)]
)
async def test_a_failed_search_is_never_told_as_an_empty_one(
    step: RetrievalStep, shelf: _Shelf, fails: bool, reason: Reason
) -> None:
    """What was not found where the search failed may be there."""
    shelf.fails = lambda text: fails
    for lacking in (None, Reason.UNSURE_CONTEXT):
        found = await step.before(plan_of(), asks(unchecked=lacking), authorization=None, time_s=20)
        assert (found.passages, found.not_checkable) == ((), reason)
        assert [each.result.is_failure for each in found.searches] == [fails]


async def test_a_search_without_the_operators_filter_has_failed(step: RetrievalStep, shelf: _Shelf) -> None:
    """An exchange of no tenant is answered from nobody's documents."""
    shelf.passages = [FoundPassage("Tea is a plant.", "7")]
    found = await step.before(plan_of(), replace(asks(), scope={}), authorization=None, time_s=20)
    assert (found.not_checkable, shelf.asked) == (Reason.RETRIEVAL_FAILED, [])


@pytest.mark.parametrize(
    ("exchange", "plan"),
    [
        (asks(TEA), plan_of()),
        (asks(query=" \n"), plan_of()),
        (asks(unchecked=Reason.NOT_AN_ANSWER), plan_of()),
        (asks(), plan_of(Trigger.UNSUPPORTED)),
        (asks(), replace(plan_of(), enabled=False)),
    ],
)
def test_nothing_is_searched_for_beforehand(exchange: Exchange, plan: Plan) -> None:
    """Where there is evidence, no question, no answer for a user, or the plan does not say so."""
    step = RetrievalStep(Retriever(embed=_no_vectors, environ={}))
    assert not step.applies_before(plan, exchange)


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [
        ([20_000, 20_000, 1], [20_000, 20_000]),
        ([30_000, 10_001, 10_000, 1], [30_000, 10_000]),
        ([40_001, 5], [40_000]),
        ([5, 40_001, 6], [5, 6]),
    ],
)
async def test_what_is_retrieved_is_bounded(
    step: RetrievalStep, shelf: _Shelf, lengths: list[int], kept: list[int]
) -> None:
    """Passages that do not fit are left out; the nearest is cut where it alone is too long, so that there is always one."""
    shelf.passages = [FoundPassage(chr(97 + n) * length, str(n)) for n, length in enumerate(lengths)]
    found = await step.before(plan_of(), asks(), authorization=None, time_s=20)
    assert [len(each.text) for each in found.passages] == kept
    assert found.not_checkable is None


# --- an answer that is not supported --------------------------------------------------------------------------------


async def test_the_question_and_the_riskiest_claims_of_flagged_answers_are_searched_for(
    step: RetrievalStep, shelf: _Shelf
) -> None:
    """As many as the plan says; what the request has already is not added again, and comes first."""
    shelf.passages = [FoundPassage(TEA.text, "1"), FoundPassage("Tea is a plant.", "2")]
    text = "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd"
    flagged = verdict(
        FLAGGED,
        claim(0, ClaimOutcome.NOT_STATED, risk=0.6),
        JudgedClaim(10, 20, ClaimOutcome.UNJUDGED, None),
        claim(20, ClaimOutcome.NOT_STATED, risk=0.8),
        claim(30, ClaimOutcome.NOT_STATED, risk=0.7),
    )
    clean = verdict(CLEAN, claim(0, ClaimOutcome.NOT_STATED, risk=0.99))
    found = await step.for_flagged(
        plan_of(max_claims=2),
        asks(TEA),
        [answer(text), answer("zzzzzzzzzz", 1)],
        [flagged, clean],
        authorization=None,
        time_s=20,
    )
    assert shelf.texts == ["What is tea?", "cccccccccc", "dddddddddd"]
    assert [each.text for each in found.passages] == [TEA.text, "Tea is a plant."]
    assert found.passages[0] is TEA


@pytest.mark.parametrize(
    ("failing", "passages", "notes"),
    [
        (("What is tea?", "cccccccccc"), 1, (Reason.RETRIEVAL_FAILED.value,)),
        (("What is tea?",), 2, (RETRIEVAL_INCOMPLETE,)),
        ((), 2, ()),
    ],
)
async def test_notes_tell_of_searches_that_failed(
    step: RetrievalStep, shelf: _Shelf, failing: tuple[str, ...], passages: int, notes: tuple[str, ...]
) -> None:
    """All of them, or some."""
    shelf.passages = [FoundPassage("Tea is a plant.", "2")]
    shelf.fails = lambda text: text in failing
    first = verdict(FLAGGED, claim(0, ClaimOutcome.NOT_STATED))
    found = await step.for_flagged(
        plan_of(), asks(TEA), [answer("cccccccccc")], [first], authorization=None, time_s=20
    )
    assert (len(found.passages), found.notes) == (passages, notes)
    assert [(each.sought.value, each.result.is_failure) for each in found.searches] == [
        ("question", "What is tea?" in failing),
        ("claim", "cccccccccc" in failing),
    ]


# --- beside what somebody gives ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [(), (TEA,)])
@pytest.mark.parametrize("found", [(), (FoundPassage("Tea is a plant.", "2"),)])
@pytest.mark.parametrize("fails", [False, True])
async def test_what_is_found_stands_behind_what_is_given(
    step: RetrievalStep, shelf: _Shelf, own: tuple[Passage, ...], found: tuple[FoundPassage, ...], fails: bool
) -> None:
    """Without either there is a reason, and a failed search is never an empty one; no Authorization is passed on."""
    shelf.passages, shelf.fails = list(found), lambda text: fails
    given = await step.beside(asks(*own), ["shelf"], k=3, time_s=20)
    texts = [each.text for each in (*own, *(() if fails else found))]
    assert [each.text for each in given.passages] == texts
    lacking = Reason.RETRIEVAL_FAILED if fails else Reason.RETRIEVAL_EMPTY
    assert given.not_checkable == (None if texts else lacking)
    assert [each.result.is_failure for each in given.searches] == [fails]
    assert (shelf.asked[0].authorization, shelf.k) == (None, 3)


# --- settling -------------------------------------------------------------------------------------------------------

MISSING = claim(0, ClaimOutcome.NOT_STATED)
DENIED = replace(claim(0, ClaimOutcome.CONTRADICTED, passage=0), detector="numbers")
READ = replace(DENIED, detector="reader")
FOUND = claim(0, ClaimOutcome.SUPPORTED, passage=2)
OWN = claim(0, ClaimOutcome.SUPPORTED, passage=1)
FIRST = verdict(FLAGGED, MISSING)


@pytest.mark.parametrize(
    ("first", "second", "stays", "disagree"),
    [
        # cleared: every flagged claim is supported by a retrieved passage
        (FIRST, verdict(CLEAN, FOUND), False, False),
        (FIRST, verdict(CLEAN, replace(FOUND, outcome=ClaimOutcome.PROVED)), False, False),
        (FIRST, verdict(CLEAN, replace(FOUND, passage=None)), False, False),
        (verdict(FLAGGED, READ), verdict(CLEAN, FOUND), False, False),
        (verdict(FLAGGED, MISSING, claim(10, ClaimOutcome.SUPPORTED)), verdict(CLEAN, FOUND), False, False),
        # not cleared: by the request's own passage, by none, for one of two, by what speaks against it
        (FIRST, verdict(CLEAN, OWN), True, False),
        (FIRST, verdict(CLEAN, replace(FOUND, passage=None, risk=0.4)), True, False),
        (FIRST, verdict(CLEAN, JudgedClaim(0, 10, ClaimOutcome.UNJUDGED, None, passage=2)), True, False),
        (FIRST, verdict(CLEAN, replace(FOUND, start=10, end=20)), True, False),
        (verdict(FLAGGED, MISSING, claim(10, ClaimOutcome.NOT_STATED)), verdict(CLEAN, FOUND), True, False),
        (FIRST, verdict(0.59, claim(0, ClaimOutcome.CONTRADICTED, passage=2, risk=0.55)), True, False),
        # a verdict without claims, or none that is flagged, tells of nothing that could be found
        (verdict(FLAGGED), verdict(CLEAN, FOUND), True, False),
        (verdict(FLAGGED, claim(0, ClaimOutcome.SUPPORTED)), verdict(CLEAN, FOUND), True, False),
        # the second one could not be made
        (FIRST, verdict(None), True, False),
        (verdict(FLAGGED, DENIED), verdict(None), True, False),
        # still flagged, by more evidence
        (FIRST, verdict(0.8, MISSING), False, False),
        (verdict(FLAGGED, DENIED), verdict(0.8, DENIED), False, False),
        # what the request contradicts stays, cleared as a whole or as one claim of several
        (verdict(FLAGGED, DENIED), verdict(CLEAN, FOUND), True, True),
        (verdict(FLAGGED, DENIED, claim(10, ClaimOutcome.NOT_STATED)), verdict(CLEAN, FOUND), True, True),
        (
            verdict(FLAGGED, DENIED, claim(10, ClaimOutcome.NOT_STATED)),
            verdict(0.8, FOUND, claim(10, ClaimOutcome.NOT_STATED)),
            True,
            True,
        ),
    ],
)
def test_what_is_retrieved_may_support_and_never_outvotes(
    first: Verdict, second: Verdict, *, stays: bool, disagree: bool
) -> None:
    """The request has two passages of its own here."""
    assert settled(first, second, own=2) == (first if stays else second, disagree)


async def test_an_assessor_scores_flagged_answers_again(step: RetrievalStep, shelf: _Shelf) -> None:
    """And them alone; the exchange with what was retrieved goes on to what comes behind."""
    shelf.passages = [FoundPassage("A guide costs nine euros.", "2")]
    detector = WordDetector({"nine": 0.95, "ten": 0.95})
    assessor = Assessor(engine_of({None: detector}), retrieval=lambda: step)
    texts = ["Tea costs two euros.", "A guide costs nine euros.", "A guide costs ten euros."]
    answers = tuple(answer(text, place) for place, text in enumerate(texts))
    case = Case(plan_of(Trigger.UNSUPPORTED), asks(TEA), answers, Deadline.after(20))
    plain, before = await assessor.first(replace(case, plan=Plan("d", threshold=0.6)))
    assert (plain.exchange, shelf.asked) == (case.exchange, [])
    assert [each.flagged for each in before] == [False, True, True]
    after, verdicts = await assessor.first(case)
    assert [each.text for each in after.exchange.passages] == [TEA.text, "A guide costs nine euros."]
    assert shelf.texts == ["What is tea?", texts[1], texts[2]]
    assert verdicts[0] == before[0]
    assert verdicts[2].flagged
    (cleared,) = verdicts[1].claims
    assert (verdicts[1].flagged, cleared.outcome, cleared.passage) == (False, ClaimOutcome.PROVED, 1)


async def test_a_contradiction_of_the_request_stays_flagged(step: RetrievalStep, shelf: _Shelf) -> None:
    """With a note, whatever a source says."""
    shelf.passages = [FoundPassage("Tea costs nine euros.", "2")]
    denied = verdict(FLAGGED, JudgedClaim(0, 21, ClaimOutcome.CONTRADICTED, FLAGGED, "numbers", passage=0))
    assessor = Assessor(engine_of({None: WordDetector({"nine": 0.95})}), retrieval=lambda: step)
    answers = (answer("Tea costs nine euros."),)
    case = Case(plan_of(Trigger.UNSUPPORTED), asks(TEA), answers, Deadline.after(20))
    after, verdicts = await assessor.supported(case, (denied,))
    assert verdicts == (denied,)
    assert after.exchange.notes == (SOURCES_DISAGREE,)


# --- a search that failed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_failure", "reason", "action"),
    [
        (OnFailure.BLOCK, Reason.RETRIEVAL_FAILED, Action.BLOCK),
        (OnFailure.WARN, Reason.RETRIEVAL_FAILED, Action.WARN),
        (OnFailure.UNCHECKED, Reason.RETRIEVAL_FAILED, Action.PASS),
        *(
            (each, reason, Action.PASS)
            for each in OnFailure
            for reason in (Reason.RETRIEVAL_EMPTY, Reason.TIMEOUT)
        ),
    ],
)
@pytest.mark.parametrize("on_unchecked", list(OnUnchecked))
def test_what_a_failed_retrieval_costs(
    on_failure: OnFailure, reason: Reason, action: Action, on_unchecked: OnUnchecked
) -> None:
    """Its own setting makes it stricter than ``on_unchecked``, never laxer; an empty one is what ``on_unchecked`` says."""
    plan = replace(plan_of(on_failure=on_failure), on_unchecked=on_unchecked)
    expected = Action.BLOCK if on_unchecked is OnUnchecked.BLOCK else action
    given = unchecked(reason, threshold=0.6)
    assessment = Assessment((given,), (given,), Mode.LIGHTWEIGHT)
    found = outcome_of(plan, assessment, [answer("Tea is free.")], model="m")
    assert (found.action, found.verdict.reason) == (expected, reason)
    skipped = unscored_outcome(plan, reason, model="m", latency_s=0.0)
    assert (skipped.action is Action.BLOCK) == (expected is Action.BLOCK)


@pytest.mark.parametrize(
    ("on_failure", "details", "seen"),
    [
        (OnFailure.BLOCK, True, Reason.RETRIEVAL_FAILED),
        (OnFailure.BLOCK, False, Reason.RETRIEVAL_FAILED),
        (OnFailure.WARN, False, None),
        (OnFailure.UNCHECKED, True, None),
        (OnFailure.UNCHECKED, False, Reason.RETRIEVAL_FAILED),
    ],
)
def test_a_stream_whose_retrieval_failed_ends_as_the_plan_says(
    on_failure: OnFailure, details: bool, seen: Reason | None
) -> None:
    """It is not begun where the answer is blocked, and is followed where it owes a disclaimer or its verdict."""
    policy = compile_policy("hallucination: {}\n", file="p.yaml")
    head = RequestHead("POST", "/v1/chat/completions", {}, {})
    plan = replace(plan_of(on_failure=on_failure), details=details)
    ticket = Ticket(policy, head, RequestKind.CHAT, plan, retrieved=asks(unchecked=Reason.RETRIEVAL_FAILED))
    assert ticket.stream_reason is seen


@pytest.mark.parametrize(
    ("found", "action", "reason"),
    [
        ("A guide costs nine euros.", Action.PASS, None),
        ("A guide costs two euros.", Action.WARN, None),
        ("", Action.PASS, Reason.RETRIEVAL_EMPTY),
        ("", Action.BLOCK, Reason.RETRIEVAL_FAILED),
    ],
)
async def test_a_whole_exchange_without_evidence(
    step: RetrievalStep, shelf: _Shelf, found: str, action: Action, reason: Reason | None
) -> None:
    """It is searched for before the answer is there, with the client's header; the answer is scored by what was found."""
    shelf.passages = [FoundPassage(found, "1")] if found else []
    shelf.fails = lambda text: reason is Reason.RETRIEVAL_FAILED
    policy = compile_policy(_POLICY, file="p.yaml")
    engine = engine_of({None: WordDetector({"nine": 0.95})})
    pipeline = pipeline_for(PolicyHolder(policy), engine, Metrics(), Recent(), retrieval=lambda: step)
    headers = {"x-tenant": "acme", "authorization": "Bearer one"}
    head = RequestHead("POST", "/v1/chat/completions", headers, {})
    request = {"model": "m", "messages": [{"role": "user", "content": "What does a guide cost?"}]}
    ticket = await pipeline.prepare(await pipeline.open(pipeline.admit(head), json.dumps(request).encode()))
    assert [(each.text, each.authorization) for each in shelf.asked] == [
        ("What does a guide cost?", "Bearer one")
    ]
    assert ticket.not_checkable is reason
    message = {"role": "assistant", "content": "A guide costs nine euros."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]})
    ended = await pipeline.assess(
        ticket, ResponseHead(200, {"content-type": "application/json"}), body.encode()
    )
    assert (ended.outcome.action, ended.outcome.verdict.reason) == (action, reason)
