"""A scripted model, scripted scores and a clock of our own, for the modes that mend answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Reason, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import StandardSettings
from truthlens.core.records.verdict import Span, Verdict, unchecked
from truthlens.mitigation.interfaces import Task, Tools

THRESHOLD = 0.5
FIRST = "The pump runs at 900 rpm. It was built in Ulm. The housing is made of cast iron."
PASSAGE = "The pump runs at 600 rpm and its housing is made of cast iron."

Reply = str | Completion | CallFailure | Callable[[ModelRequest], Completion]


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class ScriptedAsk:
    """Gives its replies one after the other and keeps what it was asked."""

    def __init__(self, *replies: Reply, clock: Clock | None = None, call_s: float = 0.0) -> None:
        self.requests: list[ModelRequest] = []
        self._replies = list(replies)
        self._clock = clock
        self._call_s = call_s

    async def __call__(self, request: ModelRequest) -> Completion:
        self.requests.append(request)
        if self._clock:
            self._clock.now += self._call_s
        assert self._replies, "more calls than the script has replies"
        reply = self._replies.pop(0)
        if isinstance(reply, CallFailure):
            raise CallError(reply)
        if isinstance(reply, str):
            return Completion(reply, request.model, "stop")
        return reply if isinstance(reply, Completion) else reply(request)

    @property
    def prompts(self) -> list[str]:
        """The last message, or the completions prompt, of every request."""
        return [last_text(request.body) for request in self.requests]


class HangingAsk:
    """Never answers; knows whether it was cancelled."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.cancelled = False

    async def __call__(self, request: ModelRequest) -> Completion:
        self.entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        raise AssertionError


class ScriptedRescore:
    """Scores by text; a text that the script does not know fails the test."""

    def __init__(
        self, scores: Mapping[str, float | Verdict], *, clock: Clock | None = None, scoring_s: float = 0.0
    ) -> None:
        self.texts: list[str] = []
        self._scores = scores
        self._clock = clock
        self._scoring_s = scoring_s

    async def __call__(self, texts: Sequence[str]) -> Sequence[Verdict]:
        self.texts += texts
        if self._clock:
            self._clock.now += self._scoring_s
        return [verdict_of(self._scores[text], text) for text in texts]


class NoCompare:
    """For modes that compare nothing."""

    async def similar(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Sequence[float]]:
        raise AssertionError

    async def support(self, claims: Sequence[str], text: str) -> Sequence[float]:
        raise AssertionError


def verdict_of(score: float | Verdict, text: str, *parts: str) -> Verdict:
    """A complete verdict; spans where ``parts`` stand, or over the first three words."""
    if isinstance(score, Verdict):
        return score
    found = [re.search(re.escape(part), text) for part in parts] or [re.match(r"\S+(?:\s+\S+){0,2}", text)]
    spans = tuple(Span(match.start(), match.end(), score) for match in found if match)
    return Verdict(Status.CHECKED, None, score, THRESHOLD, spans if score >= THRESHOLD else ())


def partial(score: float, reason: Reason = Reason.TOO_LARGE) -> Verdict:
    """A verdict on a part of the answer."""
    return Verdict(Status.PARTIAL, reason, score, THRESHOLD)


def unscored() -> Verdict:
    """A verdict that says nothing."""
    return unchecked(Reason.DETECTOR_ERROR, threshold=THRESHOLD)


def task(
    text: str = FIRST,
    score: float | Verdict = 0.9,
    *,
    flagged: Sequence[str] = ("900 rpm", "It was built in Ulm"),
    query: str = "How fast is the pump?",
    passage: str = PASSAGE,
    request: Mapping[str, object] | None = None,
    endpoint: Endpoint = Endpoint.CHAT,
    structured: bool = False,
    settings: StandardSettings | None = None,
) -> Task:
    """An answer to be mended, with its verdict."""
    if request is None:
        request = {"model": "m", "messages": [{"role": "user", "content": query}]}
    return Task(
        plan=Plan("d", threshold=THRESHOLD, standard=settings or StandardSettings()),
        exchange=Exchange(
            endpoint, "m", query, (Passage(passage, Provenance.DOCUMENTS, "S0"),), structured=structured
        ),
        request=request,
        model="m",
        answer=Answer(0, AnswerKind.TEXT, text),
        verdict=verdict_of(score, text, *flagged),
    )


def tools(
    ask: ScriptedAsk | HangingAsk,
    rescore: ScriptedRescore,
    *,
    clock: Clock | None = None,
    seconds: float = 30.0,
) -> Tools:
    """Tools with a deadline so many seconds from now."""
    deadline = Deadline.after(seconds, clock=clock) if clock else Deadline.after(seconds)
    return Tools(ask, rescore, NoCompare(), deadline)


def last_text(body: Mapping[str, object]) -> str:
    """The text that a request ends with."""
    messages = body.get("messages")
    if isinstance(messages, list):
        return str(messages[-1]["content"])
    return str(body["prompt"])
