"""Models and sources answer from what was kept, and what was not kept is noted."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest, Role, TokenLogprob, Usage
from truthlens.core.records.retrieval import SearchResult
from truthlens.core.review_settings import Redaction, ReviewSettings
from truthlens.lab.replay.kept import Library, Playing, ReplayClient, ReplayRetriever, playing
from truthlens.lab.replay.reading import KeptExchange, KeptReply
from truthlens.llm.errors import AttemptError
from truthlens.llm.http.causes import Cause
from truthlens.process.capture.cleaning import Cleaner
from truthlens.process.capture.lines import reply_content
from truthlens.process.capture.recording import Reply
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.retriever import Asker

NONE = Cleaner(ReviewSettings(), ())


def _asked(text: str, **more: Any) -> ModelRequest:
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 100, **more}
    return ModelRequest("m", Role.REFINER, body)


def _kept(
    *replies: tuple[ModelRequest, Completion | CallError], cleaner: Cleaner = NONE, **more: Any
) -> KeptExchange:
    return KeptExchange.model_validate({
        "id": "a",
        "request": {"method": "POST", "path": "/", "body": "{}"},
        "response": None,
        "outcome": {},
        "replies": [reply_content(Reply(*each), cleaner) for each in replies],
        **more,
    })  # fmt: skip


def _play(kept: KeptExchange, *others: KeptExchange) -> Playing:
    play = Playing(kept, Library([kept, *others]))
    playing.set(play)
    return play


async def _said(request: ModelRequest, *, live: bool = False, **client: Any) -> Completion | CallError:
    asking = ReplayClient(live=live, upstream="http://backend", environ={}, **client)
    try:
        return await asking.complete(request, deadline=Deadline.after(60))
    except CallError as error:
        return error
    finally:
        await asking.aclose()


async def test_a_reply_is_given_as_it_came() -> None:
    """With tokens, logprobs and why it ended; how long it might have been does not matter."""
    said = Completion("yes", "m", "stop", Usage(3, 1), (TokenLogprob("yes", -0.1, (("no", -2.0),)),))
    play = _play(_kept((_asked("Is it?"), said)))
    assert await _said(_asked("Is it?", max_tokens=64)) == said
    assert play.would_ask == []


async def test_the_same_question_has_its_replies_in_turn_then_those_of_other_exchanges() -> None:
    one, two, three = (Completion(text, "m") for text in ("one", "two", "three"))
    other = _kept((_asked("x"), three), id="b")
    play = _play(_kept((_asked("x"), one), (_asked("x"), two)), other)
    told = [await _said(_asked("x")) for _ in range(4)]
    assert [each.text for each in told[:3] if isinstance(each, Completion)] == ["one", "two", "three"]
    assert isinstance(told[3], CallError)
    assert [(each.model, each.role) for each in play.would_ask] == [("m", "refiner")]


@pytest.mark.parametrize(
    "error",
    [
        CallError(CallFailure.TIMEOUT),
        AttemptError(CallFailure.CLIENT_ERROR, cause=Cause(400, "context-length", 4096)),
    ],
)
async def test_a_failure_is_given_as_it_came(error: CallError) -> None:
    """One about the length of the prompt says so: it is asked again with less."""
    _play(_kept((_asked("x"), error)))
    told = await _said(_asked("x"))
    assert isinstance(told, CallError)
    assert (told.failure, told.code) == (error.failure, error.code)
    assert getattr(told, "cause", None) == getattr(error, "cause", None)


async def test_what_is_not_kept_is_asked_with_live_alone() -> None:
    """And then over the network."""
    play = _play(_kept())
    told = await _said(_asked("x"))
    assert isinstance(told, CallError)
    assert told.failure is CallFailure.NO_BACKEND

    async def send(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"choices": [{"message": {"role": "assistant", "content": "new"}}]})

    live = await _said(_asked("x"), live=True, transport=httpx.MockTransport(send))
    assert isinstance(live, Completion)
    assert live.text == "new"
    assert len(play.would_ask) == 1


async def test_scores_in_a_prompt_may_differ_where_something_was_taken_out() -> None:
    """Of the exchange itself alone, and not where the words differ."""
    cleaner = Cleaner(ReviewSettings(redact=(Redaction.EMAIL,)), ())
    cleaner.text("anna@example.org")
    kept = _kept((_asked("risk 0.89 of it"), Completion("ok", "m")), cleaner=cleaner, redacted=True)
    _play(kept)
    assert isinstance(await _said(_asked("risk 0.87 of it")), Completion)
    assert isinstance(await _said(_asked("risk 0.87 of that")), CallError)
    _play(_kept(id="b"), kept)
    assert isinstance(await _said(_asked("risk 0.87 of it")), CallError)


def test_the_text_of_a_reply_with_something_taken_out_has_no_tokens() -> None:
    cleaner = Cleaner(ReviewSettings(redact=(Redaction.EMAIL,)), ())
    said = Completion("anna@example.org", "m", logprobs=(TokenLogprob("anna@example.org", -0.1),))
    kept = KeptReply.model_validate(reply_content(Reply(_asked("x"), said), cleaner))
    assert (kept.text, kept.logprobs) == ("█" * 16, ())


async def test_a_search_is_answered_where_enough_was_found_then() -> None:
    """More than was asked for then is only known where the source had no more."""
    found = [{"text": f"passage {number}"} for number in range(3)]
    search = {"source": "docs", "text": "when?", "k": 3, "result": "ok", "passages": found}
    play = _play(_kept(searches=[search, {**search, "text": "few", "k": 5}]))
    retriever = ReplayRetriever(live=False, embed=None, environ={})

    async def searched(text: str, k: int) -> tuple[SearchResult, int]:
        record, passages = await retriever.search_one("docs", text, k, Deadline.after(1), Asker())
        return record.result, len(passages)

    assert await searched("when?", 2) == (SearchResult.OK, 2)
    assert await searched("few", 9) == (SearchResult.OK, 3)
    assert play.would_search == []
    assert await searched("when?", 4) == (SearchResult.UNAVAILABLE, 0)
    assert await searched("who?", 1) == (SearchResult.UNAVAILABLE, 0)
    assert play.would_search == ["docs", "docs"]


async def test_a_tool_gives_what_it_gave_then() -> None:
    tool = {"source": "s", "name": "t", "input_schema": {"type": "object"}, "gives_evidence": True}
    uses = [
        {"source": "s", "text": 't {"a": 1}', "k": 0, "result": "ok", "passages": [{"text": "one"}]},
        {"source": "s", "text": 't {"a": 2}', "k": 0, "result": "timeout"},
    ]
    play = _play(_kept(tools=[tool, {**tool, "source": "other"}], searches=uses))
    retriever = ReplayRetriever(live=False, embed=None, environ={})
    (offered,) = await retriever.tools(["s"], deadline=Deadline.after(1))
    assert (offered.name, offered.gives_evidence) == ("t", True)
    (passage,) = await retriever.call_tool(offered, {"a": 1}, deadline=Deadline.after(1))
    assert passage.text == "one"
    for arguments, result in (({"a": 2}, SearchResult.TIMEOUT), ({"a": 3}, SearchResult.UNAVAILABLE)):
        with pytest.raises(SourceError) as told:
            await retriever.call_tool(offered, arguments, deadline=Deadline.after(1))
        assert told.value.result is result
    assert play.would_search == ["s"]


def test_who_was_in_the_sample_of_a_cascade_is_in_it_again() -> None:
    """And who was not is not, at the same share; the draws are the same each time."""
    sampled = _kept(outcome={"sample": 0.1, "choices": [{"stage": "sample"}]})
    other = _kept(outcome={"sample": 0.1, "choices": [{}]})
    assert all(_play(sampled).draw() < 0.1 for _ in range(3))
    assert all(_play(other).draw() >= 0.1 for _ in range(3))
    assert _play(other).draw() == _play(other).draw()
