"""The console's other pages in a real browser: accessibility, live figures, the playground by keyboard, hostile texts, logins."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.browser.conftest import HOSTILE, SIZES, Listening, Server, every_size
from tests.browser.page_faults import axe_faults, small_targets, too_wide
from tests.desk.test_pages import (
    AGENTIC,
    EXCHANGE,
    EXPLAINED,
    FULL,
    NOW,
    RETRIEVED,
    SEARCHES,
    VERDICT,
)
from tests.fakes.engines import engine_of
from tests.fakes.pipelines import pipeline_for
from tests.fakes.review_console import TOKENS, VIEWER_TOKEN, entry, queue_in
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim
from truthlens.core.records.enums import Aggregation, AnswerKind, Provenance, Reason
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Coverage, DetectorResult, Span, unchecked
from truthlens.core.review_settings import ReviewSettings
from truthlens.desk.app import desk_app
from truthlens.exchange.retrieval_step import RetrievalStep
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.process.endpoints import Readiness, WebParts
from truthlens.process.settings import Access
from truthlens.retrieval.retriever import Retriever
from truthlens.review.entry.content import entry_of
from truthlens.review.records import Change, ReviewStatus
from truthlens.review.store.queue import ReviewQueue
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

POLICY = """\
hallucination: {threshold: 0.5}
telemetry: {log_text: true}
trusted_headers: [x-tenant]
sources:
  - {name: a_source_with_a_name_that_is_longer_than_narrow_screens_are_wide, type: folder, path: .}
  - {name: contracts, type: folder, path: ., filter: {folder: x-tenant}}
decisions:
  - name: strict_with_a_name_that_is_longer_than_narrow_screens_are_wide
    priority: 1
    rules: {type: domain, name: healthcare}
    plugins: [{type: hallucination, configuration: {threshold: 0.1}}]
"""
TEA = {
    "context": "Tea is sold here. Tea costs nine euros.",
    "query": "What does tea cost?",
    "response": "Tea costs three euros.",
}
ERROR_LINK = "The link's texts cannot be read"


class Prices:
    """A detector that doubts each ``three`` of an answer; an answer without any scores 0.02."""

    model = "prices"

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        return True

    def detect_all(
        self,
        exchange: Exchange,
        answers: Sequence[Answer],
        *,
        aggregation: Aggregation | None,
        stop: Callable[[], bool],
    ) -> list[DetectorResult]:
        found = [
            tuple(Span(each.start(), each.end(), 0.7) for each in re.finditer("three", answer.text))
            for answer in answers
        ]
        whole = Coverage(4, 4, 8, 8, 8, 1)
        return [
            DetectorResult("encoder", 0.7 if spans else 0.02, spans=spans, coverage=whole) for spans in found
        ]


class Shelf(RetrievalStep):
    """Finds the price of tea in the first of the sources, and fails in the second."""

    async def beside(self, exchange: Exchange, sources: Sequence[str], *, k: int, time_s: float) -> Exchange:
        found = replace(
            EXCHANGE.passages[0], provenance=Provenance.RETRIEVED, title=HOSTILE, source=sources[0]
        )
        return replace(exchange, passages=(*exchange.passages, found), searches=SEARCHES)


class Console(Listening):
    """A console with texts of exchanges and a detector for the playground."""

    def __init__(self, *, queue: ReviewQueue | None = None, access: Access | None = None) -> None:
        policy = PolicyHolder(compile_policy(POLICY, file="p.yaml"))
        self.recent, self.signals = Recent(), Metrics()
        shelf = Shelf(Retriever(embed=_no_vectors, environ={}))
        super().__init__(
            desk_app(
                WebParts(
                    policy=policy,
                    pipeline=pipeline_for(policy, engine_of({None: Prices()}), self.signals, self.recent),
                    signals=self.signals,
                    recent=self.recent,
                    readiness=Readiness(models=["m1"], warm=True),
                    access=access,
                    reviews=queue,
                    reviews_waiting=lambda: 3,
                    retrieval=lambda: shelf,
                )
            )
        )

    def add(self, outcome: Outcome = FULL, exchange: Exchange = EXCHANGE) -> str:
        """Add an exchange and return the path of its page."""
        self.recent.add(outcome, time=NOW, request_id="r-1", exchange=exchange, keep_text=True)
        self.signals.observe(outcome, request_s=0.0, response_s=outcome.latency_s)
        return f"/exchanges/{self.recent.entries()[0].id}"


async def _no_vectors(_texts: Sequence[str]) -> Any:
    raise AssertionError("nothing here makes vectors")


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewQueue]:
    """A queue from which a threshold can be proposed: hallucinations from 0.7 on."""
    queue, now = queue_in(tmp_path_factory.mktemp("settled")), time.time()
    new = [
        entry(number, created=now - number, decision="default", score=number / 100, even_score=number / 100, threshold=0.5, flagged=number >= 50, sample=1.0)
        for number in range(100)
    ]  # fmt: skip
    queue.add(new)
    queue.change_many(
        [
            Change(each.id, 1, ReviewStatus.REJECTED if (each.score or 0) >= 0.7 else ReviewStatus.APPROVED)
            for each in new
        ],
        actor="ann",
    )
    yield queue
    queue.database.dispose()


@pytest.fixture(scope="module")
def console(settled: ReviewQueue) -> Iterator[Console]:
    made = Console(queue=settled)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Console]:
    """One where a token is needed."""
    made = Console(access=TOKENS)
    yield made
    made.stop()


# --- every page -----------------------------------------------------------------------------------------------------


def score(page: Any, **fields: str) -> None:
    """Fill the playground's form and wait for what becomes of it."""
    for name, text in (TEA | fields).items():
        page.fill(f"#{name}", text)
    page.evaluate("document.getElementById('result').dataset.old = '1'")
    page.click("#playground button:not([type])")
    page.wait_for_selector("#result:not([data-old])", state="attached")


def log_in(page: Any, token: str) -> None:
    page.fill("#name", "eve")
    page.fill("#token", token)
    page.keyboard.press("Enter")


def opened(console: Console, guarded: Console) -> dict[str, Callable[[Any], object]]:
    """How to come to every page, with a result below where it has a form."""

    def to(path: str) -> Callable[[Any], object]:
        return lambda page: page.goto(console.url(path))

    def scored(page: Any) -> None:
        page.goto(console.url("/playground"))
        page.check("[name=source]")
        score(page)
        assert page.locator("#result .passage-label").count() == 2
        page.focus("a.span")

    def read(page: Any) -> None:
        page.goto(console.url("/evidence"))
        page.click("main form button")
        page.wait_for_selector("text=Taken as evidence")

    def proposed(page: Any) -> None:
        page.goto(console.url("/reviews/thresholds?goal=cost_ratio"))
        page.wait_for_selector("dt:has-text('Proposed')")

    def refused(page: Any) -> None:
        page.goto(guarded.url("/login"))
        log_in(page, "wrong")
        page.wait_for_selector("[role=alert]")

    not_checked = Outcome(Plan("default"), unchecked(Reason.NO_CONTEXT))
    return {
        "overview": to("/"),
        "decisions": to("/decisions"),
        "playground": scored,
        "evidence": read,
        "exchange": to(console.add()),
        "agentic": to(console.add(AGENTIC, RETRIEVED)),
        "unchecked": to(console.add(not_checked)),
        "gone": to("/exchanges/0"),
        "thresholds": proposed,
        "no goal": to("/reviews/thresholds?goal=x"),
        "login": refused,
    }


@every_size
def test_pages_are_accessible_and_fit(page: Any, console: Console, guarded: Console) -> None:
    """Axe finds nothing serious; nothing is wider than the page; targets are large enough for fingers."""
    problems: dict[tuple[str, str], object] = {}
    for name, go in opened(console, guarded).items():
        go(page)
        page.wait_for_load_state()  # the answer to a form is there before its style is
        if wide := too_wide(page):
            problems[name, "wide"] = wide
        if page.viewport_size["width"] < 500 and (small := small_targets(page)):
            problems[name, "small"] = small
        problems |= {(name, rule): found for rule, found in axe_faults(page).items()}
        if wide := too_wide(page):
            problems[name, "wide with details"] = wide
    assert problems == {}


# --- overview -------------------------------------------------------------------------------------------------------


def rows(page: Any) -> int:
    counted: int = page.locator("#exchanges tbody tr").count()
    return counted


def test_the_overview_shows_new_exchanges_without_a_reload(page: Any, console: Console) -> None:
    """Each refresh; the focus stays on its link."""
    older = console.add()
    page.clock.install()
    page.goto(console.url("/"))
    page.evaluate("window.loaded = 1")
    page.focus(f"[href='{older}']")
    newer = console.add()
    assert not page.query_selector(f"[href='{newer}']")
    page.clock.run_for(2_100)
    page.wait_for_selector(f"[href='{newer}']")
    assert page.evaluate("[window.loaded, document.activeElement.pathname]") == [1, older]


def test_the_focus_stays_in_a_list_that_drops_what_it_was_on(page: Any, console: Console) -> None:
    """The oldest exchange goes when a newer one comes: who was on it goes on from the last of the list."""
    for _ in range(25):
        console.add()
    page.clock.install()
    page.goto(console.url("/"))
    page.focus("#exchanges tr:last-child a")
    newer = console.add()
    page.clock.run_for(2_100)
    page.wait_for_selector(f"[href='{newer}']")
    assert page.evaluate("document.activeElement.matches('#exchanges tr:last-child a')")


def test_the_overview_waits_while_text_is_selected(page: Any, console: Console) -> None:
    """Also where the selection is made while a refresh is on its way."""
    console.add()
    page.clock.install()
    page.goto(console.url("/"))
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.route(console.url("/"), hold)
    newer = console.add()
    with page.expect_request(console.url("/")):
        page.clock.run_for(2_100)
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#exchanges tbody tr'))")
    chosen = page.evaluate("getSelection().toString()")
    held[0].continue_()
    page.unroute(console.url("/"))
    page.wait_for_function("() => document.getElementById('connection').textContent === 'live'")
    page.clock.run_for(10_000)
    assert page.evaluate("getSelection().toString()") == chosen != ""
    assert not page.query_selector(f"[href='{newer}']")
    page.evaluate("getSelection().removeAllRanges()")
    page.clock.run_for(2_100)
    page.wait_for_selector(f"[href='{newer}']")


def test_the_overview_says_when_nobody_answers(page: Any, console: Console) -> None:
    """And shows what was; it goes on by itself."""
    console.add()
    page.clock.install()
    page.goto(console.url("/"))
    page.route(console.url("/"), lambda route: route.abort("connectionrefused"))
    page.clock.run_for(2_100)
    page.wait_for_selector("#connection.bad")
    assert rows(page)
    page.unroute(console.url("/"))
    page.clock.run_for(2_100)
    page.wait_for_selector("#connection.good")


# --- playground -----------------------------------------------------------------------------------------------------


def tab_to(page: Any, selector: str) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab does not come to {selector}")


def test_the_playground_works_by_keyboard_alone(page: Any, console: Console) -> None:
    """Type, score, go on to the spans, light up a sentence, try thresholds without asking anybody."""
    keys = page.keyboard
    page.goto(console.url("/playground"))
    for name, text in TEA.items():
        tab_to(page, f"#{name}")
        keys.press("Control+A")
        keys.type(text)
    tab_to(page, "#playground button:not([type])")
    keys.press("Enter")
    page.wait_for_selector(".annotated", state="attached")
    assert page.inner_text("#shared") == "The result is below."
    # The focus is where it was; what comes next is reached from there.
    page.wait_for_selector("#playground:not([aria-busy])")
    assert page.evaluate("document.activeElement.textContent") == "Score"
    console.asked.clear()
    tab_to(page, "#threshold")
    assert page.inner_text("#tried-verdict") == "flagged"
    keys.press("End")
    page.wait_for_selector("#tried-verdict:has-text('not flagged')")
    assert page.inner_text("#tried") == "1.00"
    assert page.query_selector("a.span.over") is None
    assert "not flagged (changes)" in page.inner_text("td[data-tried] >> nth=0")
    keys.press("ArrowLeft")
    page.wait_for_selector("#tried:has-text('0.99')")
    keys.press("Home")
    page.wait_for_selector("#tried-verdict.bad")
    assert page.query_selector("a.span.under") is None
    tab_to(page, "a.span")
    assert page.inner_text(".sentence.lit") == "Tea costs nine euros."
    card = page.inner_text("[data-card-body]")
    for told in ("contradicted", "three", "nine"):
        assert told in card
    keys.press("Escape")
    assert page.query_selector(".lit") is None
    assert page.is_hidden("[data-card]")
    assert console.asked == []


def test_a_link_carries_the_texts_to_nobody_else(page: Any, console: Console) -> None:
    """Made by keyboard, opened in another page, scored from there: no address or referrer has a word of it."""
    texts = {
        "context": "Umlaute: äöü \U0001f600 zebra-one",
        "query": 'zebra-two <b>"',
        "response": "a\n three zebras",
    }
    console.asked.clear()
    page.goto(console.url("/playground"))
    for name, text in texts.items():
        page.fill(f"#{name}", text)
    page.select_option("#decision", index=1)
    tab_to(page, "#share")
    page.keyboard.press("Enter")
    page.wait_for_selector("#link:not([hidden])")
    link = page.input_value("#url")
    assert link == page.url
    assert link.startswith(console.url("/playground#p1="))
    other = page.context.new_page()
    other.goto(link)
    other.wait_for_selector("#shared:has-text('Press Score')")
    assert {name: other.input_value(f"#{name}") for name in texts} == texts
    assert other.input_value("#decision").startswith("strict")
    assert other.inner_text("#result") == ""
    other.click("#playground button:not([type])")
    other.wait_for_selector(".annotated")
    other.click("nav >> text=Overview")
    other.wait_for_url(console.url("/"))
    fragment = link.partition("#")[2]
    assert len(console.asked) > 5
    assert "POST /playground" in " ".join(console.asked)
    assert not [line for line in console.asked if "zebra" in line or fragment[:20] in line]


def packed(page: Any, text: str) -> str:
    """The part behind # of a link whose contents are ``text``."""
    made: str = page.evaluate(
        """async text => {
            const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
            const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
            let found = "";
            for (const byte of bytes) found += String.fromCharCode(byte);
            return "#p1=" + btoa(found).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
        }""",
        text,
    )
    return made


def test_a_link_that_cannot_be_read_says_so(page: Any, console: Console) -> None:
    """Cut short, no encoding of anything, no texts, or far too long once unpacked; the form stays as it was."""
    page.goto(console.url("/playground"))
    whole = packed(page, '{"context": "from the link", "decision": "nobody"}')
    long = packed(page, '{"context": "' + "x" * 3_000_000 + '"}')
    assert len(long) < 10_000
    broken = [packed(page, text) for text in ("no JSON", "null", "[1]")]
    for fragment in ("#p1=%%%", whole[:-8], *broken, long):
        page.goto("about:blank")
        page.goto(console.url(f"/playground{fragment}"))
        page.wait_for_selector("#shared:not(:empty)")
        assert ERROR_LINK in page.inner_text("#shared"), fragment[:40]
        assert "Vaccinations" in page.input_value("#context")
    # One that is pasted over the address of an open page is followed.
    page.evaluate("fragment => { location.hash = fragment }", whole)
    page.wait_for_selector("#shared.good")
    assert page.input_value("#context") == "from the link"
    assert page.input_value("#decision") == "default"


def test_texts_too_long_for_a_link_are_told(page: Any, console: Console) -> None:
    """In characters after compression; the address stays as it was."""
    page.goto(console.url("/playground"))
    page.fill("#response", random.Random(1).randbytes(40_000).hex())
    page.click("#share")
    page.wait_for_selector("#shared.bad")
    assert re.search(r"too long for a link: \d{5} characters .* at most 32000", page.inner_text("#shared"))
    assert page.is_hidden("#link")
    assert page.url == console.url("/playground")


# --- hostile texts --------------------------------------------------------------------------------------------------


def check_harmless(page: Any) -> None:
    """Nothing ran, no element came of a text, and what would turn or hide text is shown as a code."""
    assert page.evaluate("window.hurt") is None
    assert page.query_selector("main img, main [onerror]") is None
    shown = page.inner_text("main")
    assert "onerror" in shown
    assert not re.search("[\x00\u202e\u200b]", shown)


@pytest.mark.parametrize("page", SIZES[:2], indirect=True, ids=lambda each: f"{each[0]}-{each[1]}")
def test_hostile_texts_in_the_playground_do_nothing(page: Any, console: Console) -> None:
    """In each field, by a link, and in place of a request; the page goes on."""
    hostile = HOSTILE + " three</textarea><script>window.hurt=1</script>"
    page.goto(console.url("/playground"))
    score(page, context=hostile, query=hostile, response=hostile)
    page.wait_for_selector("a.span", state="attached")
    check_harmless(page)
    assert too_wide(page) == 0
    page.focus("a.span")
    page.wait_for_selector("[data-card]:not([hidden])")
    page.keyboard.press("Escape")
    page.click("#share")
    page.wait_for_selector("#link:not([hidden])")
    other = page.context.new_page()
    other.goto(page.input_value("#url"))
    other.wait_for_selector("#shared.good")
    assert other.input_value("#query").startswith("<img")
    assert other.evaluate("window.hurt") is None
    page.click("#playground summary")
    score(page, body=hostile)
    assert "cannot be scored" in page.inner_text("[role=alert]")
    assert page.evaluate("window.hurt") is None
    score(page, body="")
    assert "three" in page.inner_text("a.span")


def test_a_long_answer_with_thousands_of_spans_stays_usable(page: Any, console: Console) -> None:
    """Nearly 200 KB and 4,600 claims: cards, slider and a next answer work; the long text stays in the form."""
    text = "This costs exactly three of the new coins. " * 4_600
    page.goto(console.url("/playground"))
    score(page, response=text)
    count = page.locator("a.span").count()
    assert count == text.count("three")
    assert page.input_value("#response") == text
    page.focus("a.span >> nth=-1")
    page.wait_for_selector("[data-card]:not([hidden])")
    page.focus("#threshold")
    page.keyboard.press("End")
    page.wait_for_function("() => !document.querySelector('a.claim[data-level=flagged]')")
    assert page.locator("a.claim[data-level=doubtful]").count() == count
    page.focus(".skip")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.href.endsWith('-findings')")
    score(page)
    assert page.locator("a.span").count() == 1


@pytest.mark.parametrize("page", SIZES[:2], indirect=True, ids=lambda each: f"{each[0]}-{each[1]}")
def test_hostile_texts_of_an_exchange_do_nothing(page: Any, console: Console) -> None:
    """Answer, question, passages with their ids and titles, models, what explains a span: on both of its pages."""
    explained = replace(EXPLAINED, reason=HOSTILE, sentence=(0, 60), differences=())
    verdict = replace(
        VERDICT,
        spans=(Span(1, 60, 0.9, HOSTILE, passage=0, explanation=explained, note=HOSTILE),),
        results=(DetectorResult("encoder", 0.9, explanation=HOSTILE, details={"model": HOSTILE}),),
    )
    outcome = replace(
        FULL,
        verdict=verdict,
        verdicts=(verdict,),
        answers=(Answer(0, AnswerKind.TEXT, HOSTILE + "long" * 5_000),),
        model=HOSTILE,
    )
    passage = Passage(HOSTILE, Provenance.TOOL, HOSTILE, HOSTILE)
    path = console.add(outcome, replace(EXCHANGE, query=HOSTILE, passages=(passage,)))
    page.goto(console.url(path))
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    check_harmless(page)
    assert too_wide(page) == 0
    page.goto(console.url("/"))
    assert page.evaluate("window.hurt") is None
    page.click(f"[href='{path}']")
    page.wait_for_url(console.url(path))


def test_hostile_texts_of_a_request_do_nothing(page: Any, console: Console) -> None:
    """On the page of its evidence, in what is read and in what cannot be."""
    page.goto(console.url("/evidence"))
    body = page.evaluate(
        "text => JSON.stringify({messages: [{role: 'user', content: text}], documents: [text]})", HOSTILE
    )
    page.fill("#body", body)
    page.click("main form button")
    page.wait_for_selector("text=Taken as evidence")
    check_harmless(page)
    assert too_wide(page) == 0
    page.fill("#body", HOSTILE)
    page.click("main form button")
    page.wait_for_selector("[role=alert]")
    assert page.input_value("#body").startswith("<img src=x")
    assert page.evaluate("window.hurt") is None


# --- logins ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [SIZES[1]], indirect=True)
def test_a_viewer_logs_in_on_a_phone_and_only_looks(page: Any, serve: Callable[..., Server]) -> None:
    """A wrong token is told and the name kept; the right one leads to where they were going, without actions."""
    server = serve(TOKENS)
    path = f"/reviews/{entry(3).id}"
    page.goto(server.url(path))
    assert "/login" in page.url
    log_in(page, "wrong" * 8)
    page.wait_for_selector("[role=alert]")
    assert "not logged in" in page.inner_text("[role=alert]")
    assert page.input_value("#name") == "eve"
    assert page.input_value("#token") == ""
    log_in(page, VIEWER_TOKEN)
    page.wait_for_url(server.url(path))
    assert "eve (viewer)" in page.inner_text("header")
    assert page.query_selector("button[name=action], form#decide, [data-mark]") is None
    assert too_wide(page) == 0
    page.click("text=Log out")
    page.click("main button")
    page.wait_for_selector("text=You are logged out")
    page.goto(server.url(path))
    assert "/login" in page.url


# --- claims ---------------------------------------------------------------------------------------------------------

CLAIMED = "Tea costs three euros. It is green. It grows in China. Serve it now."
JUDGED = (
    JudgedClaim(0, 22, ClaimOutcome.CONTRADICTED, 0.93, "numbers", 0, (0, 21)),
    JudgedClaim(23, 35, ClaimOutcome.SUPPORTED, 0.4, "encoder"),
    JudgedClaim(36, 54, ClaimOutcome.PROVED, 0.05, "numbers", source="origins"),
    JudgedClaim(55, 68, ClaimOutcome.UNJUDGED, None),
)
CLAIMED_VERDICT = replace(
    VERDICT, threshold=0.6, spans=(Span(10, 15, 0.9, "numbers", passage=0),), claims=JUDGED
)
BY_CLAIMS = replace(
    FULL,
    plan=Plan("default", threshold=0.6),
    verdict=CLAIMED_VERDICT,
    verdicts=(CLAIMED_VERDICT,),
    answers=(Answer(0, AnswerKind.TEXT, CLAIMED),),
)


def claims_shown(page: Any) -> list[tuple[str, str, str, str]]:
    """Level, title, background and line of each claim of the answer."""
    return [
        tuple(each)
        for each in page.evaluate(
            """() => Array.from(document.querySelectorAll('.annotated-answer a.claim'), e => {
                const style = getComputedStyle(e);
                return [e.dataset.level, e.title, style.backgroundColor, style.borderBottomStyle + ' ' + style.borderBottomWidth];
            })"""
        )
    ]


@pytest.mark.parametrize("page", [SIZES[0], SIZES[1]], indirect=True, ids=["light", "narrow-dark"])
def test_an_exchange_a_review_and_the_playground_show_claims_alike(
    page: Any, console: Console, settled: ReviewQueue
) -> None:
    """One legend, four colours and four kinds of lines; the words that differ are strong; a claim that is reached tells its evidence."""
    queued = entry_of(
        replace(BY_CLAIMS, review_id="rv_claims", review_rule=("flagged", 1.0)),
        EXCHANGE,
        ReviewSettings(keep_text=True),
        created=time.time(),
    )
    settled.add([queued])
    legends = set()
    # Entries of the queue are explained when somebody reads them: the value differs with its unit.
    for path, differs in ((console.add(BY_CLAIMS), "three"), ("/reviews/rv_claims", "three euros")):
        page.goto(console.url(path))
        assert page.locator(".legend").count() == 1
        legends.add(page.inner_text(".legend"))
        shown = claims_shown(page)
        assert [each[:2] for each in shown] == [
            ("flagged", "contradicted, risk 0.93"),
            ("doubtful", "supported, risk 0.40"),
            ("supported", "proved, risk 0.05"),
            ("unjudged", "unjudged"),
        ]
        assert len({each[2] for each in shown}) == len({each[3] for each in shown}) == 4
        assert page.locator(".annotated-answer mark").all_inner_texts() == [differs]
        page.focus("a.claim")
        card = page.inner_text("[data-card]")
        assert "contradicted, risk 0.93 · decided by numbers" in card
        assert "Tea costs nine euros." in card
        assert page.inner_text(".sentence.lit") == "Tea costs nine euros."
        assert axe_faults(page) == {}
        assert too_wide(page) == 0
    page.goto(console.url("/playground"))
    score(page)
    legends.add(page.inner_text(".legend"))
    assert len(legends) == 1
    assert claims_shown(page)[0][0] == "flagged"
    page.evaluate(
        "slide => { slide.value = '0.99'; slide.dispatchEvent(new Event('input', {bubbles: true})); }",
        page.query_selector("#threshold"),
    )
    page.wait_for_selector("a.claim[data-level=doubtful]")
