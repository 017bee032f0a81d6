"""The playground's page over HTTP, as a browser without script sees it."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

import httpx
import pytest

from tests.desk.test_annotated import HOSTILE, read
from tests.desk.test_console import POLICY, Parts
from tests.desk.test_evidence import FORM, REQUEST
from tests.desk.test_pages import words
from tests.fakes.detectors import FailingDetector, FixedDetector, HeldDetector, scored
from tests.fakes.engines import engine_of
from tests.fakes.pipelines import pipeline_for
from tests.fakes.review_console import TOKENS, VIEWER_TOKEN
from truthlens.core.deadline import Deadline
from truthlens.core.records.calls import Ask
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.core.records.verdict import DetectorResult, Span
from truthlens.core.registry import SourceContext, SourceType
from truthlens.desk.app import desk_app
from truthlens.detection.engine import Engine
from truthlens.exchange.retrieval_step import RetrievalStep
from truthlens.policy import compile_policy
from truthlens.process.endpoints import WebParts
from truthlens.process.settings import Access
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.retriever import Retriever

TEA = {
    "context": "Tea costs nine euros.",
    "query": "What does tea cost?",
    "response": "Tea costs three euros.",
}
JUDGED = """\
models: [{name: judge-1, base_url: "http://judge/v1"}]
hallucination: {threshold: 0.5, detectors: [encoder, {name: judge, model: judge-1}], cascade: {when: always}}
decisions:
  - name: also
    priority: 1
    rules: {type: domain, name: healthcare}
    plugins: [{type: hallucination, configuration: {threshold: 0.9}}]
"""


class Judge:
    """Says 0.9, once it has asked a model."""

    def __init__(self) -> None:
        self.asked = 0

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        return True

    async def examine(self, exchange: Exchange, answer: Answer, first: Any, *, ask: Ask) -> DetectorResult:
        self.asked += 1
        return DetectorResult("judge", 0.9)


SEARCHING = """\
sources:
  - {name: shelf, type: memory}
  - {name: attic, type: memory, cache_ttl_s: 0}
  - {name: tenants, type: memory, filter: {tenant: x-tenant}}
  - {name: own, type: memory, auth: passthrough}
trusted_headers: [x-tenant]
hallucination: {threshold: 0.5, retrieval: {sources: [shelf], when: [unsupported, no-context], k: 3}}
"""


class Shelf:
    """A source of one passage, or of what the test gives it; knows what it was asked."""

    revision = ""
    asked: ClassVar[list[Search]]
    passages: ClassVar[list[FoundPassage]]
    failing: ClassVar[set[str]]

    def __init__(self, context: SourceContext) -> None:
        self._name = context.name

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> list[FoundPassage]:
        self.asked.append(search)
        if self._name in self.failing:
            raise SourceError(SearchResult.UNAVAILABLE)
        return self.passages

    async def aclose(self) -> None:
        return None


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> type[Shelf]:
    """The type of all sources; what they give is the same."""

    class Own(Shelf):
        asked: ClassVar[list[Search]] = []
        passages: ClassVar[list[FoundPassage]] = [
            FoundPassage("Tea costs nine euros.", "7<b>", "Prices & more")
        ]
        failing: ClassVar[set[str]] = set()

    types = {"memory": SourceType("memory", Own, filters=True, passes_authorization=True)}
    for module in ("truthlens.policy.compile", "truthlens.retrieval.retriever"):
        monkeypatch.setattr(f"{module}.source_types", lambda: types)
    return Own


class Playing(Parts):
    """The console around an engine and a policy of the test's own."""

    def __init__(self, engine: Engine, policy: str = POLICY, access: Access | None = None) -> None:
        super().__init__()
        self.policy.swap(compile_policy(policy, file="p.yaml"))
        retriever = Retriever(embed=_no_vectors, environ={})
        retriever.use(self.policy.current.sources, Path())
        step = RetrievalStep(retriever)
        self.pipeline = pipeline_for(self.policy, engine, self.signals, self.recent, retrieval=lambda: step)
        self.app = desk_app(
            WebParts(
                policy=self.policy,
                pipeline=self.pipeline,
                signals=self.signals,
                recent=self.recent,
                readiness=self.readiness,
                access=access,
                retrieval=lambda: step,
            )
        )

    async def post(self, fields: Mapping[str, str | list[str]], **headers: str) -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="http://localhost"
        ) as client:
            return await client.post(
                "/playground", content=urlencode(fields, doseq=True), headers=FORM | headers
            )

    async def get(self, path: str = "/playground") -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="http://localhost"
        ) as client:
            return await client.get(path)


async def _no_vectors(_texts: Sequence[str]) -> Any:
    raise AssertionError("no source here makes vectors")


def fixed(score: float = 0.3, *spans: Span) -> FixedDetector:
    return FixedDetector(replace(scored(score), spans=spans))


def rows(page: str) -> dict[str, list[str]]:
    """The cells of each decision's row."""
    table = page.partition("What each decision would do")[2]
    found = [
        [words(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.DOTALL)
    ]
    return {cells[0]: cells[1:] for cells in found if cells}


async def test_the_form_comes_with_an_example_and_the_decisions() -> None:
    """Nothing is scored before somebody asks."""
    detector = fixed()
    page = (await Playing(engine_of({None: detector})).get()).text
    assert "Vaccinations are given on Wednesdays" in page
    assert re.findall(r"<option[^>]*>(\w+)", page) == ["default", "strict"]
    assert detector.calls == 0
    assert "What each decision would do" not in page


async def test_an_answer_is_shown_with_its_spans_detectors_and_decisions() -> None:
    """Without script: the marks, the sentence that is nearest, what differs, and what each decision does."""
    playing = Playing(engine_of({None: fixed(0.3, Span(10, 15, 0.9))}))
    response = await playing.post(TEA)
    assert response.status_code == 200
    page = response.text
    links = [attributes for tag, attributes in read(page) if tag == "a" and "data-span" in attributes]
    assert [(each["data-passage"], each["data-sentence"]) for each in links] == [("0", "0-21")]
    shown = words(page)
    for told in (
        "contradicted",
        "number: the answer says three euros , the evidence nine euros",
        "0.30 at a threshold of 0.5: not flagged",
    ):
        assert told in shown
    assert re.search(r"encoder 0\.3 weight 1", shown)
    assert rows(page)["strict"][:3] == ["0.30", "threshold 0.1", "flagged"]
    assert rows(page)["default"][2] == "not flagged"
    assert rows(page)["strict"][5] == "action warn"
    assert not playing.recent.entries()


def _levels(page: str) -> list[str | None]:
    return [
        attributes["data-level"] for tag, attributes in read(page) if tag == "a" and "data-span" in attributes
    ]


async def test_the_decision_that_is_named_is_shown_in_full() -> None:
    """Its threshold decides which claims are shown as flagged."""
    playing = Playing(engine_of({None: fixed(0.3, Span(10, 15, 0.2))}))
    assert _levels((await playing.post(TEA)).text) == ["supported"]
    strict = (await playing.post({**TEA, "decision": "strict"})).text
    assert _levels(strict) == ["flagged"]
    assert "Verdict of strict" in words(strict)


async def test_decisions_that_share_their_detectors_share_a_detection() -> None:
    """Another aggregation or list is another detection; threshold, rate, weight and mode are not."""
    domains = ", ".join(f"{{name: area{number}, keywords: [word{number}]}}" for number in range(7))
    behaviour = "{threshold: 0.5, detectors: [encoder]}"
    policy = f"signals: {{domains: [{domains}]}}\nhallucination: {behaviour}\ndecisions:\n" + "".join(
        f"  - name: d{number}\n    priority: {number}\n    rules: {{type: domain, name: area{number}}}\n"
        f"    plugins: [{{type: hallucination, configuration: {{{settings}}}}}]\n"
        for number, settings in enumerate(
            [
                "threshold: 0.1",
                "expected_rate: 0.1",
                "mode: lightweight, on_unchecked: block",
                "detectors: [{name: encoder, weight: 0.5}]",
                "evidence: {system: never}",
                "aggregation: span_max",
                "detectors: [encoder, citations]",
            ]
        )
    )
    detector = fixed(0.5)
    cited = {"citations": FixedDetector(scored(0.5, detector="citations"))}
    playing = Playing(engine_of({None: detector}, detectors=cited), policy)
    found = rows((await playing.post(TEA)).text)
    assert detector.calls == 3
    assert found["d1"][0] == "0.10 at rate 0.1"
    assert found["d6"][0] == "0.75"
    # Of a whole request other rules may take other evidence.
    await playing.post({"body": REQUEST, "response": "Tea is free."})
    assert detector.calls == 3 + 4


async def test_each_decision_gets_the_score_that_detect_gives_it() -> None:
    """Fused by its own weights, at its own rate."""
    policy = """\
hallucination: {threshold: 0.5, expected_rate: 0.2, detectors: [encoder, {name: citations, weight: 0.3}]}
decisions:
  - name: other
    priority: 1
    rules: {type: domain, name: healthcare}
    plugins: [{type: hallucination, configuration: {expected_rate: 0.7, detectors: [{name: encoder, weight: 0.2}, citations]}}]
"""
    cited = {"citations": FixedDetector(scored(0.6, detector="citations"))}
    playing = Playing(engine_of({None: fixed(0.4)}, detectors=cited), policy)
    page = (await playing.post(TEA)).text
    scores = re.findall(r'<td data-tried hidden data-score="([^"]+)"', page)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(playing.app), base_url="http://localhost"
    ) as client:
        for decision, score in zip(("other", "default"), scores, strict=True):
            body = {"context": [TEA["context"]], "response": TEA["response"], "decision": decision}
            found = (await client.post("/v1/detect", json=body)).json()
            assert float(score) == pytest.approx(found["score"])


async def test_models_are_asked_only_if_the_form_says_so() -> None:
    """And then for the chosen decision alone; the page says of the others that theirs were not."""
    judge = Judge()
    playing = Playing(engine_of({None: fixed(0.1)}, asking={"judge": judge}), JUDGED)
    page = (await playing.post(TEA)).text
    assert judge.asked == 0
    assert "without its models" in words(page)
    assert rows(page)["default without its models, which were not asked"][2] == "not flagged"
    asked = (await playing.post({**TEA, "ask": "on"})).text
    assert judge.asked == 1
    assert rows(asked)["default"][2] == "flagged"
    assert rows(asked)["also without its models, which were not asked"][2] == "not flagged"
    assert "were asked (always)" in words(asked)


async def test_without_models_in_the_policy_there_is_nothing_to_tick() -> None:
    """The tick is for policies that have detectors that ask."""
    assert 'name="ask"' not in (await Playing(engine_of({None: fixed()})).get()).text
    assert 'name="ask"' in (await Playing(engine_of({None: fixed()}), JUDGED).get()).text


# --- sources --------------------------------------------------------------------------------------------------------

ASKED = {"query": TEA["query"], "response": TEA["response"], "source": "shelf"}


async def test_sources_are_offered_where_the_policy_has_some(shelf: type[Shelf]) -> None:
    """Those that need what only the gateway knows of an exchange are not, and the page says why."""
    page = (await Playing(engine_of({None: fixed()}), SEARCHING).get()).text
    assert re.findall(r'name="source" value="(\w+)"', page) == ["shelf", "attic"]
    shown = words(page)
    assert "Not tenants (memory): its filter needs x-tenant, which only the gateway knows" in shown
    assert "Not own (memory): it is asked with the Authorization of a client" in shown
    assert "unless you search a source" in shown
    without = (await Playing(engine_of({None: fixed()})).get()).text
    assert 'name="source"' not in without
    assert "search a source" not in words(without)


async def test_what_a_search_finds_is_evidence_beside_what_is_given(shelf: type[Shelf]) -> None:
    """Shown with its source and title, escaped; asked once for all decisions, without anybody's Authorization."""
    playing = Playing(engine_of({None: fixed(0.3, Span(10, 15, 0.9))}), SEARCHING)
    alone = await playing.post(ASKED | {"source": ["shelf", "attic"]}, authorization="Bearer one")
    page = words(alone.text.partition('id="result"')[2])
    assert "1 · retrieved · shelf · 7<b> · Prices & more Tea costs nine euros." in page
    assert "shelf (" not in page
    assert "Nearest, in passage 1 ( shelf · 7<b> · Prices & more ): Tea costs nine euros." in page
    assert "shelf the question ok" in page
    assert "attic the question ok" in page
    assert "<b>" not in alone.text
    assert [(each.text, each.authorization) for each in shelf.asked] == [(TEA["query"], None)] * 2
    beside = words(
        (await playing.post(ASKED | {"context": "Tea is green."})).text.partition('id="result"')[2]
    )
    assert "1 · documents Tea is green. 2 · retrieved · shelf" in beside
    assert not playing.recent.entries()


async def test_what_was_found_goes_into_no_field_of_the_form(shelf: type[Shelf]) -> None:
    """So that no link has it; the choice stays."""
    page = (await Playing(engine_of({None: fixed()}), SEARCHING).post(ASKED)).text
    form = page.partition("<form")[2].partition("</form>")[0]
    assert "nine" not in form
    assert re.findall(r'value="(\w+)" checked', form) == ["shelf"]


@pytest.mark.parametrize("context", ["", "Tea is green."])
@pytest.mark.parametrize("fails", [False, True])
async def test_a_failed_search_is_never_shown_as_an_empty_one(
    shelf: type[Shelf], context: str, fails: bool
) -> None:
    """Each has its own reason where there is no other evidence, and its own words where there is."""
    shelf.passages = []
    shelf.failing = {"shelf"} if fails else set()
    page = words(
        (await Playing(engine_of({None: fixed()}), SEARCHING).post(ASKED | {"context": context})).text
    )
    assert ("shelf the question unavailable the source is down" in page) is fails
    assert ("A search that failed says nothing of what its source holds." in page) is fails
    assert ("the source holds nothing on it" in page) is not fails
    assert ("unchecked (retrieval-failed)" in page) is (fails and not context)
    assert ("unchecked (retrieval-empty)" in page) is (not fails and not context)


async def test_a_whole_request_is_searched_for_its_own_question(shelf: type[Shelf]) -> None:
    """Once, though decisions take other evidence of it."""
    policy = SEARCHING + (
        "decisions:\n  - name: other\n    priority: 1\n    rules: {type: domain, name: healthcare}\n"
        "    plugins: [{type: hallucination, configuration: {evidence: {system: never}}}]\n"
    )
    playing = Playing(engine_of({None: fixed()}), policy)
    page = words((await playing.post({"body": REQUEST, "response": "Tea is free.", "source": "attic"})).text)
    assert [each.text for each in shelf.asked] == ["Is tea free?"]
    assert "retrieved · attic · 7<b>" in page


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "tenants"}, "source: tenants is not searched here: its filter needs x-tenant"),
        (
            {"source": ["shelf", "own"]},
            "source: own is not searched here: it is asked with the Authorization",
        ),
        ({"source": "<i>nope"}, "source: no source of that name can be searched here; known: shelf, attic"),
        ({"query": " "}, "query: sources are searched for the question, and there is none"),
        ({"source": [str(n) for n in range(30)]}, "the form cannot be read"),
    ],
)
async def test_a_search_that_cannot_be_made_is_refused(
    shelf: type[Shelf], fields: dict[str, str | list[str]], message: str
) -> None:
    """With what to change; nothing is searched or scored."""
    detector = fixed()
    response = await Playing(engine_of({None: detector}), SEARCHING).post(ASKED | fields)
    assert response.status_code == 422
    assert message in words(response.text)
    assert "<i>" not in response.text
    assert (shelf.asked, detector.calls) == ([], 0)


async def test_viewers_search_what_they_may_ask(shelf: type[Shelf]) -> None:
    """A source without a filter is for whoever may ask ``/v1/ask`` of it."""
    playing = Playing(engine_of({None: fixed()}), SEARCHING, access=TOKENS)
    response = await playing.post(ASKED, authorization=f"Bearer {VIEWER_TOKEN}")
    assert response.status_code == 200
    assert len(shelf.asked) == 1


@pytest.mark.parametrize("context", ["", TEA["context"]])
async def test_no_decision_searches_unless_the_form_says_so(shelf: type[Shelf], context: str) -> None:
    """Neither for a question without evidence nor for a flagged answer."""
    playing = Playing(engine_of({None: fixed(0.9)}), SEARCHING)
    assert (await playing.post(TEA | {"context": context})).status_code == 200
    assert shelf.asked == []


# --- the form -------------------------------------------------------------------------------------------------------


async def test_passages_are_separated_by_a_line() -> None:
    """With line ends as a form sends them; positions count those of the text."""
    playing = Playing(engine_of({None: fixed(0.9, Span(3, 8, 0.9))}))
    page = (await playing.post({"context": "One.\r\n---\r\nTwo.\r\nThree.", "response": "a\r\nbcdefgh"})).text
    assert re.findall(r'data-passage="(\d)">', page) == ["0", "1"]
    (shown,) = re.findall(r'data-span="0"[^>]*>(.*?)</a>', page, re.DOTALL)
    assert re.sub(r"</?mark>", "", shown) == "a\nbcdefgh"
    assert "[U+000D]" not in page


async def test_a_whole_request_is_read_as_the_gateway_reads_it() -> None:
    """Evidence and question are the request's, whatever else the form holds."""
    playing = Playing(engine_of({None: fixed()}))
    page = words((await playing.post({**TEA, "body": REQUEST})).text.partition('id="result"')[2])
    assert "Tea is <b>free</b>." in page
    assert "Is tea free?" in page
    assert "nine euros" not in page


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"body": "{", "response": "x"}, 422, "not JSON"),
        ({"body": '{"messages": 7}', "response": "x"}, 422, "expected a list"),
        ({**TEA, "decision": "nope"}, 422, "known: strict, default"),
        ({**TEA, **{f"more{number}": "" for number in range(10)}}, 422, "the form cannot be read"),
        ({**TEA, "context": ""}, 200, "unchecked (no-context) no evidence was found"),
        ({**TEA, "response": " "}, 200, "unchecked (empty-answer)"),
        ({**TEA, "response": "x" * 5_000}, 413, "max_body_bytes"),
        ({**TEA, "context": "a\n---\n" * 50}, 413, "max_passages"),
        ({**TEA, "response": "x " * 600}, 200, "unchecked (too-large)"),
    ],
)
async def test_what_cannot_be_scored_is_said(fields: dict[str, str], status: int, message: str) -> None:
    """On the page itself, with the form around it."""
    policy = POLICY + "limits: {max_body_bytes: 4000, max_passages: 20, max_answer_chars: 1000}\n"
    response = await Playing(engine_of({None: fixed()}), policy).post(fields)
    assert response.status_code == status
    assert message in words(response.text)
    assert '<form method="post" action="/playground"' in response.text


async def test_a_detector_that_fails_is_said() -> None:
    """An answer that could not be scored is not clean."""
    page = words((await Playing(engine_of({None: FailingDetector(OSError("secret"))})).post(TEA)).text)
    assert "unchecked (detector-error) a detector failed" in page
    assert "secret" not in page


async def test_overload_is_said() -> None:
    """Where too much waits, and where too many bytes are held."""
    held = HeldDetector()
    playing = Playing(engine_of({None: held}, queue_limit=0))
    first = asyncio.create_task(playing.post(TEA))
    await asyncio.to_thread(held.entered.acquire)
    page = words((await playing.post(TEA)).text)
    held.release.set()
    await first
    assert "unchecked (overloaded)" in page
    small = Playing(engine_of({None: fixed()}), POLICY + "limits: {max_held_bytes: 1024}\n")
    response = await small.post({**TEA, "response": "x" * 2000})
    assert response.status_code == 503
    assert "too much is being checked" in response.text
    assert not small.signals.registry.get_sample_value("truthlens_held_bytes")


async def test_hostile_text_is_repeated_and_does_nothing() -> None:
    """In every field and in the result: no element, no attribute; the response is UTF-8."""
    hostile = HOSTILE.replace("\ud800", "") + '</textarea><script>alert(1)</script>" onfocus="x'
    playing = Playing(engine_of({None: fixed(0.9, Span(1, 20, 0.9))}))
    body = '{"messages": [{"role": "user", "content": "<context>\\ud800<img src=x onerror=y>\\u202e</context>Is it\\ud800?"}]}'
    for fields in (
        dict.fromkeys(("context", "query", "response"), hostile),
        {"body": body, "response": hostile},
        {"body": hostile, "response": hostile},
    ):
        page = (await playing.post(fields)).text
        tags = read(page)
        assert not {tag for tag, _ in tags} & {"img", "i"}
        assert all(attributes.get("src") for tag, attributes in tags if tag == "script")
        assert not [
            name for _, attributes in tags for name in attributes if name.startswith("on") or name == "style"
        ]
        assert "\u202e" not in page.partition('id="result"')[2]
        assert html.unescape(page).count(hostile) >= 1


async def test_a_long_answer_with_many_spans_is_shown_within_bounds() -> None:
    """200 KB and 5,000 spans: all marked, some explained; the form does not repeat what is too long."""
    text = ("Every word of it counts. " * 8_200)[:201_000]
    spans = [Span(at, at + 5, 0.5) for at in range(0, 5_000 * 25, 25)]
    playing = Playing(engine_of({None: fixed(0.9, *spans)}), "hallucination: {timeout_s: 60}\n")
    response = await playing.post({"context": "It counts.", "response": text})
    assert 1 <= response.text.count("data-span=") <= 5_000
    assert len(response.text) < 3_000_000
    assert "are not repeated in the form" in response.text
    assert f"{text}</textarea>" not in response.text


async def test_a_form_of_another_page_is_refused() -> None:
    """Only the console's own page may send it."""
    playing = Playing(engine_of({None: fixed()}))
    assert (await playing.post(TEA, origin="http://elsewhere")).status_code == 403


async def test_the_page_obeys_its_content_security_policy_and_its_script_finds_its_parts() -> None:
    """Everything that the script asks for by id is on the page of a result."""
    playing = Playing(engine_of({None: fixed(0.9, Span(1, 20, 0.9))}))
    page = (await playing.post(TEA)).text
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)
    script = (await playing.get("/static/playground.js")).text
    for used in re.findall(r'field\("([\w-]+)"\)', script):
        assert f'id="{used}"' in page
    assert "location.hash" in script
    assert not re.search(r"fetch\((?!form\.action)", script)
