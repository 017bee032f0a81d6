"""The console's pages: what they show of an exchange, and that nothing of anybody's text becomes a part of them."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

import truthlens.desk
from tests.desk.test_console import POLICY, Parts
from truthlens.core.records.agentic_run import (
    AgenticNode,
    AgenticRun,
    AgenticStep,
    AgenticStop,
    CollectedPassage,
)
from truthlens.core.records.calls import CallFailure, CallRecord, Role, Usage
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim
from truthlens.core.records.enums import (
    Action,
    AnswerKind,
    Endpoint,
    Mode,
    Provenance,
    Reason,
    Status,
    Streaming,
    Trigger,
)
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.mitigation_result import Attempt, CandidateFate, Correction, Stop
from truthlens.core.records.outcome import Outcome, StreamRecord
from truthlens.core.records.plan import Plan
from truthlens.core.records.retrieval import SearchedFor, SearchRecord, SearchResult
from truthlens.core.records.settings import RetrievalSettings
from truthlens.core.records.verdict import Coverage, DetectorResult, Span, Verdict, unchecked
from truthlens.policy import compile_policy

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ANSWER = "Tea costs <b>three</b> euros."
EXPLAINED = Explanation(
    SpanKind.CONTRADICTED, 0.8, "the nearest sentence gives another number", (0, 21), 0.7,
    (Difference(DifferenceKind.NUMBER, 13, 18, (10, 14)),),
)  # fmt: skip
VERDICT = Verdict(
    Status.CHECKED,
    score=0.913,
    threshold=0.25,
    spans=(Span(13, 18, 0.9, passage=0, explanation=EXPLAINED), Span(15, 24, 0.4)),
    coverage=Coverage(7, 7, 9, 9, 9, 1),
    results=(DetectorResult("encoder", 0.913, duration_s=0.0124, details={"max_token": 0.9, "model": "m1"}),),
)
CALLS = (
    CallRecord("judge-1", Role.JUDGE, Usage(20, 5), 0.0001, 0.5),
    CallRecord("<i>a client's words</i>", Role.REFINER, failure=CallFailure.TIMEOUT, attempts=2),
)
CORRECTED = Correction(
    "the mended text", VERDICT, Mode.STANDARD, Stop.NO_GAIN,
    (Attempt("<i>a client's words</i>", Role.REFINER, CandidateFate.WORSE, 0.95), Attempt("judge-1", Role.JUDGE, CandidateFate.FAILED)),
    consensus=False,
)  # fmt: skip
FULL = Outcome(
    Plan("strict", mode=Mode.PREMIUM, threshold=0.25, policy_version="abc"),
    VERDICT,
    (VERDICT,),
    mode=Mode.STANDARD,
    action=Action.WARN,
    body=b"a new body",
    initial_score=0.95,
    latency_s=0.0521,
    model="m1",
    notes=("no-consensus",),
    corrections=(CORRECTED,),
    calls=CALLS,
    mitigation_s=0.04,
    stream=StreamRecord(Streaming.GATE, 0.02, 0.5, 4096, {"passed": 2, "flagged": 1}),
    answers=(Answer(0, AnswerKind.TEXT, ANSWER),),
)
EXCHANGE = Exchange(
    Endpoint.CHAT, "m", "What does <u>tea</u> cost?", (Passage("Tea costs nine euros.", Provenance.TOOL, "d<1>", "T"),)
)  # fmt: skip


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
async def client(parts: Parts) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(parts.app), base_url="http://localhost"
    ) as client:
        yield client


def allow_text(parts: Parts) -> None:
    parts.policy.swap(compile_policy(POLICY + "telemetry: {log_text: true}\n", file="p.yaml"))


async def page_of(client: httpx.AsyncClient, parts: Parts) -> str:
    """The page of the latest exchange, reached by the list's link."""
    link = re.search(r'href="(/exchanges/[^"]+)"', (await client.get("/")).text)
    assert link
    assert link[1].endswith(parts.recent.entries()[0].id)
    response = await client.get(link[1])
    assert response.status_code == 200
    return response.text


def words(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


async def test_the_page_leads_to_the_review(client: httpx.AsyncClient, parts: Parts) -> None:
    """Where the answer was queued, and only there."""
    parts.recent.add(replace(FULL, review_id="rv_1"), time=NOW)
    assert '<a href="/reviews/rv_1">' in await page_of(client, parts)


async def test_a_page_tells_all_of_an_exchange_but_its_texts(client: httpx.AsyncClient, parts: Parts) -> None:
    """Status, plan, coverage, spans by position, detectors, mending, calls, stream, notes; no word of anybody."""
    parts.recent.add(FULL, time=NOW, request_id="r-1")
    page = await page_of(client, parts)
    shown = words(page)
    for told in (
        "Status checked", "0.95 → 0.91 at a threshold of 0.25", "Detected yes", "Action warn",
        "7 of 7 answer tokens scored, 9 of 9 evidence tokens seen", "52 ms, of it 40 ms correction", "no-consensus", "r-1",
        "strict of policy abc", "premium (ran: standard)", "13–24 0.9 encoder contradicted",
        "the nearest sentence gives another number nearest: passage 1", "encoder 0.913 1.0 12.4 ms", "max_token 0.9",
        "Correction: standard, ended no-gain, the models did not agree", "the backend's refiner worse 0.95",
        "the backend's refiner timeout 2", "2 passed, 1 flagged", "500 ms, 4096 bytes", "log_text: false",
    ):  # fmt: skip
        assert told in shown
    for text in ("three", "nine", "tea", "client's words", "mended text", "<mark"):
        assert text not in page


async def test_a_page_tells_what_a_decision_in_shadow_would_have_done(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    """Beside the plan that it stands for."""
    plan = replace(FULL.plan, shadow=True).in_shadow()
    shadow = Outcome(plan, VERDICT, (VERDICT,), shadow_action=Action.REFINE, answers=FULL.answers)
    parts.recent.add(shadow, time=NOW)
    shown = words(await page_of(client, parts))
    for told in (
        "Action pass",
        "Mode lightweight",
        "In shadow premium, streams buffer, if unchecked annotate: would have been refine",
    ):
        assert told in shown


async def test_texts_are_shown_where_the_policy_allows_them(client: httpx.AsyncClient, parts: Parts) -> None:
    """The answer with its spans marked, the nearest sentence, question and evidence; escaped."""
    allow_text(parts)
    parts.recent.add(FULL, time=NOW, exchange=EXCHANGE, keep_text=True)
    page = await page_of(client, parts)
    for markup in ("<b>", "<u>", "<i>", "d<1>"):
        assert markup not in page
    marked = re.findall(r"<mark[^>]*>([^<]*)</mark>", page.partition('class="findings"')[0])
    assert [html.unescape(text) for text in marked] == ["three</b> e"]
    assert "Nearest, in passage 1: Tea costs nine euros." in words(page)
    assert (
        html.unescape(
            re.sub(r"<[^>]*>", "", page.partition('class="answer" dir="auto">')[2]).partition("\n")[0]
        )
        == ANSWER
    )


async def test_texts_are_gone_with_the_edit_that_forbids_them(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    """Exchanges of the time before it lose theirs as well."""
    allow_text(parts)
    parts.recent.add(FULL, time=NOW, exchange=EXCHANGE, keep_text=True)
    assert "nine" in await page_of(client, parts)
    parts.policy.swap(compile_policy(POLICY, file="p.yaml"))
    assert "nine" not in await page_of(client, parts)


SEARCHES = (
    SearchRecord("handbook", SearchResult.OK, 0.012, 2),
    SearchRecord("wiki", SearchResult.TIMEOUT, 2.0, sought=SearchedFor.CLAIM),
    SearchRecord("handbook", SearchResult.EMPTY, 0.001, sought=SearchedFor.AGENT),
)
FOUND = Passage(
    "Tea costs nine euros.", Provenance.RETRIEVED, "p<1>", "Price & list", "retrieved", source="handbook"
)
RETRIEVED = replace(EXCHANGE, passages=(*EXCHANGE.passages, FOUND), searches=SEARCHES)
RUN = AgenticRun(
    "the run's answer", AgenticStop.CIRCULAR, 3, 1234,
    (
        AgenticStep(AgenticNode.AGENT_DECISION, "", 0.5, "use_tool"),
        AgenticStep(AgenticNode.EXECUTE_TOOL, "text_search", 0.02, "1 new", (1, 2)),
        AgenticStep(AgenticNode.EXECUTE_TOOL, "calculation", 0.001, "1 new", (2, 3)),
        AgenticStep(AgenticNode.EXECUTE_TOOL, "text_search", 2.0, "<i>timeout</i>"),
    ),
    (
        CollectedPassage("d1", "request", "Tea costs nine euros."),
        CollectedPassage("p<1>", "handbook", "<b>nine</b> \u202eeuros", "Price & list", cited=True),
        CollectedPassage("calculation-1", "calculation", "3 * 3 = 9", computed=True),
    ),
    risk=0.25, search_failed=True,
)  # fmt: skip
SUPPORTED = JudgedClaim(0, 29, ClaimOutcome.SUPPORTED, 0.1, "reader", passage=1, sentence=(0, 21))
AGENTIC = replace(
    FULL,
    plan=replace(FULL.plan, mode=Mode.AGENTIC, retrieval=RetrievalSettings(sources=("handbook", "wiki"), when=(Trigger.UNSUPPORTED,))),
    verdicts=(replace(VERDICT, spans=(), claims=(SUPPORTED,)),),
    corrections=(replace(CORRECTED, mode=Mode.AGENTIC, stop=Stop.NO_GAIN, cause="circular", run=RUN),),
)  # fmt: skip


@pytest.mark.parametrize("text", [False, True])
async def test_a_page_tells_what_was_searched_and_what_a_run_did(
    client: httpx.AsyncClient, parts: Parts, text: bool
) -> None:
    """Sources with results, steps in order, why the run ended, and the source behind a claim; texts only where they are allowed."""
    if text:
        allow_text(parts)
    parts.recent.add(AGENTIC, time=NOW, exchange=RETRIEVED, keep_text=text)
    page = await page_of(client, parts)
    shown = words(page)
    for told in (
        "Sources handbook, wiki (searched: unsupported, mode agentic)",
        "handbook the question ok 12 ms 2 passages", "wiki a flagged claim timeout no answer in time 2 s –",
        "handbook what the model asked empty the source holds nothing on it 1.0 ms 0 passages",
        "A search that failed says nothing of what its source holds.",
        "Ended circular the last three decisions were the same", "Took 3 decisions, 1234 tokens", "risk 0.25",
        "1. agent_decision – 500 ms use_tool 2. execute_tool text_search 20 ms 1 new 1 of handbook, 1 cited",
        "3. execute_tool calculation 1.0 ms 1 new", "4. execute_tool text_search 2 s <i>timeout</i>",
        "ended no-gain (circular)",
    ):  # fmt: skip
        assert told in shown
    for markup in ("<b>", "<i>", "p<1>", "\u202e", "the run's answer"):
        assert markup not in page
    with_text = (
        "[p<1>] Price & list · handbook · cited <b>nine</b> [U+202E]euros", "[calculation-1] · calculation · computed, no evidence 3 * 3 = 9",
        "Evidence, in passage 2 ( handbook · p<1> · Price & list ): Tea costs nine euros.",
        "2 · retrieved · handbook · p<1> · Price & list",
    )  # fmt: skip
    without = ("passage 2 of handbook, characters 0–21",)
    for told in (*with_text, *without):
        assert (told in shown) is (text == (told in with_text))


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(Plan("default"), unchecked(Reason.NO_CONTEXT)),
        Outcome(Plan("default"), unchecked(Reason.TIMEOUT), action=Action.BLOCK, body=b"{}"),
        Outcome(Plan("default", mode=Mode.AUTO), VERDICT, (VERDICT, unchecked(Reason.LANGUAGE)), corrections=(None, CORRECTED)),
        replace(AGENTIC, corrections=(replace(CORRECTED, run=AgenticRun("", AgenticStop.DEADLINE, 0, 0, (), failure="deadline")),)),
        replace(FULL, stream=StreamRecord(Streaming.BUFFER), corrections=(None,), calls=(), initial_score=None),
        replace(FULL, verdicts=(replace(VERDICT, coverage=None, results=(), spans=()),), corrections=()),
        replace(
            FULL,
            verdict=replace(VERDICT, status=Status.PARTIAL, reason=Reason.LANGUAGE),
            verdicts=(
                replace(VERDICT, results=(DetectorResult("encoder", None, reason=Reason.TIMEOUT),)),
            ),
        ),
    ],
)  # fmt: skip
async def test_every_kind_of_exchange_has_a_page(
    client: httpx.AsyncClient, parts: Parts, outcome: Outcome
) -> None:
    """Whatever is missing in it; what was not checked is never shown as not detected."""
    parts.recent.add(outcome, time=NOW)
    page = words(await page_of(client, parts))
    assert ("Detected not checked" in page) == (outcome.verdict.score is None)
    assert ("Detected no " in page) is False


async def test_an_exchange_that_is_not_kept_is_said_to_be_gone(client: httpx.AsyncClient) -> None:
    """404 with a way back."""
    response = await client.get("/exchanges/0123456789abcdef")
    assert response.status_code == 404
    assert 'href="/"' in response.text


class _Tags(HTMLParser):
    """The tags of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("text", [False, True])
async def test_pages_obey_their_own_content_security_policy(
    client: httpx.AsyncClient, parts: Parts, text: bool
) -> None:
    """Scripts and styles come from files of the console that are there; no inline ones, no handlers, nothing foreign."""
    if text:
        allow_text(parts)
    parts.recent.add(FULL, time=NOW, exchange=EXCHANGE, keep_text=text)
    files = set()
    for page in (
        (await client.get("/")).text,
        await page_of(client, parts),
        (await client.get("/exchanges/x")).text,
    ):
        reader = _Tags()
        reader.feed(page)
        for tag, attributes in reader.tags:
            assert tag not in ("style", "iframe", "object", "embed", "base")
            assert not [name for name in attributes if name.startswith("on") or name == "style"]
            assert tag != "script" or attributes.get("src")
            files |= {url for url in (attributes.get("src"), tag == "link" and attributes["href"]) if url}
    for url in files:
        assert url.startswith("/static/")
        assert (await client.get(url)).status_code == 200


async def test_the_page_is_refreshed_in_its_live_parts(client: httpx.AsyncClient) -> None:
    """The script finds every live part by its id, and no form is in one; without scripts the page reloads."""
    page = (await client.get("/")).text
    live = re.findall(r'<(?:div|span) id="(\w+)" data-live', page)
    assert live == ["readiness", "messages", "figures", "exchanges", "decisions"]
    script = (Path(truthlens.desk.__file__).parent / "static" / "console.js").read_text()
    for used in re.findall(r'field\("(\w+)"\)', script):
        assert f'id="{used}"' in page
    assert "<form" not in page
    assert '<noscript><meta http-equiv="refresh"' in page
