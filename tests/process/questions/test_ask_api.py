"""``POST /v1/ask`` through the application: what is answered, refused, counted, bounded and cancelled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import jsonschema
import pytest
from pydantic import TypeAdapter

from tests.fakes.agentic_parts import CITED, QUESTION, act, judged, search, use
from tests.fakes.review_console import TOKEN, TOKENS, VIEWER_TOKEN
from tests.process.access.test_logins import bearer, proxied
from tests.process.questions.conftest import ACCEPTED, POLICY, MemorySource, Rig
from truthlens.core.records.retrieval import FoundPassage, SearchResult
from truthlens.mitigation.agentic.synthesis import NO_INFORMATION
from truthlens.process.questions.schema import AskReply
from truthlens.process.settings import Access

Make = Callable[..., Rig]
BAD = judged(0.9, 0.1, unsupported_claims=["speed", "rpm"])
FILTERED = POLICY.replace(
    "type: memory}", "type: memory}, {name: teams, type: memory, filter: {team: x-team}}"
)


def error(reply: httpx.Response) -> dict[str, Any]:
    found: dict[str, Any] = reply.json()["error"]
    return found


async def test_an_accepted_answer_has_its_sources_and_its_verdict(rig: Make) -> None:
    """The object is the one of the command, as it is described; the metrics of the loop count the run."""
    made = rig(*ACCEPTED)
    reply = await made.ask()
    shown = reply.json()
    assert (reply.status_code, shown["answer"], shown["accepted"], shown["stop"]) == (
        200,
        CITED,
        True,
        "accepted",
    )
    assert shown["sources"] == [{"id": "doc-7", "title": "Data sheet", "source": "handbook", "cited": True}]
    assert (shown["verdict"]["decision"], shown["verdict"]["detected"]) == ("default", False)
    jsonschema.validate(shown, TypeAdapter(AskReply).json_schema())
    assert made.asked_models() == {"small"}
    assert made.counted("agent_stops_total", cause="accepted") == 1
    assert made.counted("retrievals_total", source="handbook", result="ok") == 1
    assert made.counted("tool_seconds_count", tool="text_search") == 1


@pytest.mark.parametrize(
    ("replies", "stop", "answer"),
    [
        ((search(), act("finish"), CITED, *BAD, "It runs [doc-7]."), "rejected", "It runs [doc-7]."),
        ((act("evaluate"), *BAD, act("evaluate"), *BAD, act("evaluate"), *BAD), "circular", ""),
    ],
)
async def test_what_is_not_accepted_is_a_reply_too(
    rig: Make, replies: tuple[Any, ...], stop: str, answer: str
) -> None:
    """200, with why the run ended."""
    reply = await rig(*replies).ask()
    shown = reply.json()
    assert (reply.status_code, shown["accepted"], shown["stop"], shown["answer"]) == (
        200,
        False,
        stop,
        answer,
    )


async def test_the_detectors_have_the_last_word(rig: Make) -> None:
    """An answer that the model's own evaluation accepts can be flagged."""
    wrong = CITED.replace("600", "900")
    shown = (await rig(search(), act("synthesize"), wrong, *judged()).ask()).json()
    assert (shown["accepted"], shown["verdict"]["detected"]) == (True, True)


async def test_nothing_found_is_no_answer_and_no_verdict(rig: Make, source: type[MemorySource]) -> None:
    source.passages = ()
    shown = (await rig(search(), act("finish")).ask()).json()
    assert (shown["answer"], shown["sources"], shown["verdict"]) == (NO_INFORMATION, [], None)


@pytest.mark.parametrize(
    ("replies", "result", "status", "code", "told"),
    [
        (("no JSON", "none again"), None, 502, "bad-decision", "name another model"),
        ((httpx.Response(401),), None, 502, "call-failed", "http-401"),
        ((httpx.ReadTimeout("slow"),) * 9, None, 504, "call-failed", "timeout"),
        ((search(), act("finish")), SearchResult.REFUSED, 502, "search-failed", "handbook: refused"),
    ],
)
async def test_a_run_that_fails_is_an_error(
    rig: Make,
    source: type[MemorySource],
    *,
    replies: tuple[Any, ...],
    result: SearchResult | None,
    status: int,
    code: str,
    told: str,
) -> None:
    """Of a server behind this one; the end of the run is counted like any other."""
    source.failure = result
    made = rig(*replies)
    reply = await made.ask()
    assert (reply.status_code, error(reply)["type"], error(reply)["code"]) == (status, "upstream_error", code)
    assert told in error(reply)["message"]
    assert made.counted("agent_stops_total", cause=code) == 1


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"no JSON", 422, "Expected {question: text"),
        (b"{}", 422, "question: Field required"),
        (b'{"question": "  "}', 422, "question: String should have at least 1 character"),
        (b'{"question": 7}', 422, "question: Input should be a valid string"),
        (b'{"question": "?", "k": 7}', 422, "k: Extra inputs are not permitted"),
        (b'{"question": "?", "sources": []}', 422, "sources: List should have at least 1 item"),
        (b'{"question": "?", "scope": {"a": ""}}', 422, "scope.a: String should have at least 1 character"),
        (
            b'{"question": "?", "sources": ["wiki"]}',
            422,
            "there is no source of that name; there are: handbook",
        ),
        (b'{"question": "?", "model": "big"}', 422, "the policy has no model of that name; it has: small"),
        (b'{"question": "?", "decision": "hr"}', 422, "no decision of that name is loaded; known: default"),
        (json.dumps({"question": "?" * 10_001}).encode(), 422, "at most 10000 characters"),
        (b'{"question": "?"}' + b" " * 600_000, 413, "the body has more than"),
    ],
)
async def test_bad_input_is_refused_before_a_model_is_asked(
    rig: Make, body: bytes, status: int, told: str
) -> None:
    """With what is wrong, and without the texts that were sent."""
    made = rig()
    async with made.client() as client:
        reply = await client.post("/v1/ask", content=body, headers={"content-type": "application/json"})
    assert (reply.status_code, error(reply)["type"]) == (status, "invalid_request_error")
    assert told in error(reply)["message"]
    assert not any(word in reply.text for word in ("wiki", "big", '"hr"'))
    assert made.requests == []


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("hallucination: {threshold: 0.5}\n", "name what can be searched under sources"),
        (POLICY + "limits: {max_questions: 0}\n", "limits.max_questions be more than 0"),
        (
            POLICY.replace('"http://backend/v1"', '"http://b/v1", api_key_env: NO_SUCH_KEY'),
            "the model small of the policy",
        ),
        ("sources: [{name: handbook, type: memory}]\n", "start with --upstream"),
    ],
)
async def test_what_is_not_configured_is_said(rig: Make, policy: str, told: str) -> None:
    """409, with what to configure."""
    reply = await rig(policy=policy).ask(**({"model": "m"} if "models" not in policy else {}))
    assert (reply.status_code, error(reply)["code"]) == (409, "not-configured")
    assert told in error(reply)["message"]


async def test_the_models_of_a_policy_are_asked(rig: Make) -> None:
    """The one that is named takes the steps that ``agentic`` names none for; one has to be known."""
    two = POLICY.replace("[{", '[{name: big, base_url: "http://backend/v1"}, {', 1)
    reply = await rig(policy=two).ask()
    assert (reply.status_code, "it has: big, small" in error(reply)["message"]) == (422, True)
    for policy, fields, models in (
        (two, {"model": "big"}, {"big"}),
        (two.replace("0.5}", "0.5, agentic: {model_id: small}}"), {}, {"small"}),
        (two.replace("0.5}", "0.5, agentic: {decision_model: small}}"), {"model": "big"}, {"big", "small"}),
    ):
        made = rig(*ACCEPTED, policy=policy)
        assert (await made.ask(**fields)).status_code == 200
        assert made.asked_models() == models


async def test_the_limits_of_the_plan_hold(rig: Make) -> None:
    """Those of mode agentic, the budget and the deadline: they end a run, and its reply says which."""
    for more, stop in (
        ("agentic: {max_iterations: 1}", "iterations"),
        ("mitigation: {max_tokens: 60}", "budget"),
        ("timeout_s: 0.1, mitigation: {deadline_s: 0.3}", "time"),
    ):
        made = rig(search(), None, CITED, policy=POLICY.replace("0.5}", f"0.5, {more}}}"))
        if stop == "iterations":
            made.replies.remove(None)
        reply = await made.ask()
        assert (reply.status_code, reply.json()["stop"]) == (200, stop)


async def test_a_login_is_needed_and_a_viewers_is_enough(rig: Make) -> None:
    """JSON alone is read, so that no form of another site asks; a page of the console sends its CSRF token."""
    made = rig(*ACCEPTED, access=TOKENS)
    assert (await made.ask()).status_code == 401
    assert (await made.ask(headers=bearer(VIEWER_TOKEN))).status_code == 200
    made = rig(access=Access())
    async with made.client() as client:
        assert (await client.post("/v1/ask", data={"question": "?"})).status_code == 415
        for headers, code in (
            ({"origin": "http://evil.example"}, "invalid_origin"),
            ({"sec-fetch-site": "cross-site"}, "invalid_origin"),
            ({"origin": "http://localhost"}, "invalid_csrf"),
            ({"cookie": "session=x"}, "invalid_csrf"),
        ):
            reply = await client.post("/v1/ask", json={"question": "?"}, headers=headers)
            assert (reply.status_code, error(reply)["code"]) == (403, code)
    assert made.requests == []


async def test_who_calls_is_nobodys_business(rig: Make, source: type[MemorySource]) -> None:
    """The caller's Authorization opens this process: neither models nor sources get it."""
    made = rig(*ACCEPTED, access=TOKENS)
    assert (await made.ask(headers=bearer(VIEWER_TOKEN))).status_code == 200
    assert not any("authorization" in request.headers for request in made.requests)
    assert [each.authorization for _, each in source.searches] == [None]


@pytest.mark.parametrize(
    ("token", "fields", "status", "told"),
    [
        (VIEWER_TOKEN, {"sources": ["teams"]}, 403, "teams has a filter; only a reviewer"),
        (VIEWER_TOKEN, {"scope": {"x-team": "red"}}, 403, "only a reviewer may say"),
        (TOKEN, {"sources": ["teams"]}, 422, "teams is filtered by x-team"),
        (TOKEN, {"sources": ["teams"], "scope": {"x-other": "red"}}, 422, "teams is filtered by x-team"),
    ],
)
async def test_a_filter_is_filled_by_a_reviewer_alone(
    rig: Make, source: type[MemorySource], *, token: str, fields: dict[str, Any], status: int, told: str
) -> None:
    """Nobody else's word opens a tenant's passages, and without a value nothing is searched."""
    reply = await rig(policy=FILTERED, access=TOKENS).ask(headers=bearer(token), **fields)
    assert reply.status_code == status
    assert told in error(reply)["message"]
    assert source.searches == []


async def test_without_names_all_are_searched_that_may_be(rig: Make, source: type[MemorySource]) -> None:
    """A viewer's question reaches none with a filter, a reviewer's those that the scope has values for."""
    for token, scope, searched in (
        (VIEWER_TOKEN, {}, {("handbook", "")}),
        (TOKEN, {}, {("handbook", "")}),
        (TOKEN, {"X-Team": "red"}, {("handbook", ""), ("teams", "red")}),
    ):
        source.searches.clear()
        made = rig(*ACCEPTED, policy=FILTERED, access=TOKENS)
        assert (await made.ask(headers=bearer(token), scope=scope)).status_code == 200
        assert {(name, each.filter.get("team", "")) for name, each in source.searches} == searched


async def test_a_source_of_the_clients_own_rights_is_not_searched(rig: Make) -> None:
    """There is no client with rights at it here; where there is no other source, that is said."""
    policy = POLICY.replace("type: memory", "type: memory, auth: passthrough")
    for fields in ({}, {"sources": ["handbook"]}):
        reply = await rig(policy=policy).ask(**fields)
        assert (reply.status_code, "the rights of an exchange" in error(reply)["message"]) == (422, True)


async def test_questions_are_counted_for_each_user_and_each_address(rig: Make) -> None:
    """429 with ``Retry-After``; what is refused for another reason costs nothing."""
    made = rig(*ACCEPTED * 4, access=proxied(), policy=POLICY + "limits: {questions_per_minute: 2}\n")

    async def status(user: str, address: str, **fields: Any) -> int:
        headers = {"x-forwarded-user": user, "x-forwarded-for": address}
        reply = await made.ask(headers=headers, **fields)
        if reply.status_code == 429:
            assert int(reply.headers["retry-after"]) > 0
            assert error(reply)["code"] == "rate_limit"
        return reply.status_code

    assert await status("ada", "10.0.0.1", model="none") == 422
    assert [await status("ada", "10.0.0.1"), await status("ada", "10.0.0.2")] == [200, 200]
    assert await status("ada", "10.0.0.3") == 429
    assert [await status("bob", "10.0.0.1"), await status("eve", "10.0.0.1")] == [200, 429]
    assert await status("eve", "10.0.0.4") == 200


async def test_only_so_many_are_answered_at_once(rig: Make) -> None:
    """One more is 503; where one ends there is room again."""
    made = rig(None, *ACCEPTED, policy=POLICY + "limits: {max_questions: 1}\n")
    first = asyncio.create_task(made.ask())
    await asyncio.wait_for(made.waiting.wait(), 20)
    reply = await made.ask()
    assert (reply.status_code, error(reply)["code"]) == (503, "overloaded")
    made.release.set()
    await first
    assert made.questions.running == 0
    made.replies[:] = ACCEPTED
    assert (await made.ask()).status_code == 200


async def _gone(made: Rig, waiting: asyncio.Event) -> None:
    """Ask, and go away once something is waited for."""
    body = json.dumps({"question": QUESTION}).encode()
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await waiting.wait()
        return {"type": "http.disconnect"}

    async def send(_message: Any) -> None:
        return None

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {
        "type": "http", "method": "POST", "path": "/v1/ask", "raw_path": b"/v1/ask", "query_string": b"",
        "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "scheme": "http",
        "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    await asyncio.wait_for(made.app(scope, receive, send), 20)  # type: ignore[arg-type]


async def test_a_client_that_goes_away_ends_its_call(rig: Make) -> None:
    """The run is cancelled with the call that it waits for, and its place is free."""
    made = rig(search(), None)
    await _gone(made, made.waiting)
    assert (made.cancelled, made.questions.running, len(made.requests)) == (True, 0, 2)


async def test_a_client_that_goes_away_ends_its_search(rig: Make, source: type[MemorySource]) -> None:
    """A tool is cancelled like a call, and the time that it took is counted."""
    source.waits, source.waiting = True, asyncio.Event()
    made = rig(search())
    await _gone(made, source.waiting)
    assert (source.cancelled, made.questions.running) == (True, 0)
    assert made.counted("tool_seconds_count", tool="text_search") == 1


async def test_a_stop_ends_what_is_asked(rig: Make) -> None:
    """The process does not wait for minutes: 503 for the running one, and for whoever comes then."""
    made = rig(None)
    running = asyncio.create_task(made.ask())
    await asyncio.wait_for(made.waiting.wait(), 20)
    made.readiness.draining = True
    await made.questions.aclose()
    for reply in (await running, await made.ask()):
        assert (reply.status_code, error(reply)["code"]) == (503, "stopping")


async def test_an_error_of_ours_tells_no_text(rig: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 in the shape of all errors."""
    made = rig()

    async def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError(QUESTION)

    monkeypatch.setattr("truthlens.process.questions.service.answered", broken)
    reply = await made.ask(QUESTION)
    assert (reply.status_code, error(reply)["code"]) == (500, "internal")
    assert QUESTION not in reply.text


async def test_evidence_beyond_the_limits_is_not_checked(rig: Make, source: type[MemorySource]) -> None:
    """The verdict says so; the answer is there."""
    source.passages = tuple(
        FoundPassage(f"Passage {number}. " + "x" * 400, f"d{number}") for number in range(3)
    )
    written = "Passage 1 [d1]."
    made = rig(
        search(), act("synthesize"), written, *judged(), policy=POLICY + "limits: {max_prompt_chars: 1000}\n"
    )
    verdict = (await made.ask()).json()["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("unchecked", "too-large")


async def test_tools_that_do_not_exist_have_no_time(rig: Make) -> None:
    """Their names are a model's text, and no label."""
    made = rig(use("weather"), use("calculation", expression="1+1"), *ACCEPTED)
    assert (await made.ask()).status_code == 200
    assert b'tool="calculation"' in made.signals.exposition()
    assert b"weather" not in made.signals.exposition()
    assert b'tool="unknown"' not in made.signals.exposition()
