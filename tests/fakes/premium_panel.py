"""A panel of models that say what a test tells them, and tools whose figures follow from a list of true sentences."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest, ModelSpec, Role
from truthlens.core.records.enums import AnswerKind, Endpoint, Mode, Provenance, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import Consensus, PremiumSettings
from truthlens.core.records.verdict import Span, Verdict
from truthlens.mitigation.interfaces import Task, Tools
from truthlens.mitigation.questions import Opinion
from truthlens.text.sentences import sentences

HEIGHT = "The tower is 330 metres tall."
WRONG_HEIGHT = "The tower is 312 metres tall."
BUILDER = "The tower was built by the company of Gustave Eiffel."
OPENING = "The tower opened to visitors in 1889."
WRONG_OPENING = "The tower opened to visitors in 1901."
CITY = "The tower stands in the city of Paris."
FACTS = (HEIGHT, BUILDER, OPENING, CITY)

Reply = str | Completion | CallFailure | Callable[[ModelRequest], "str | Awaitable[str]"]


def parts(text: str) -> list[tuple[int, int, str]]:
    """Sentences with their ranges, in one case and without what ends them."""
    return [(start, end, text[start:end].casefold().rstrip(".。!")) for start, end in sentences(text)]


class Script:
    """An ``Ask`` that answers by model, else by role; keeps what it was asked, and which calls were cut off.

    Lists are worked off one reply at a time, and the last one is repeated.
    """

    def __init__(self, **replies: Reply | list[Reply]) -> None:
        self.replies = {name: list(r) if isinstance(r, list) else [r] for name, r in replies.items()}
        self.requests: list[ModelRequest] = []
        self.running = 0
        self.most_running = 0
        self.cancelled = 0

    async def __call__(self, request: ModelRequest) -> Completion:
        self.requests.append(request)
        replies = self.replies.get(request.model) or self.replies.get(request.role.value)
        assert replies, f"no reply for {request.model} as {request.role}"
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(0)
            if isinstance(reply, CallFailure):
                raise CallError(reply)
            if isinstance(reply, Completion):
                return reply
            text = reply if isinstance(reply, str) else reply(request)
            if inspect.isawaitable(text):
                text = await text
            return Completion(text, request.model, "stop")
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1

    def roles(self) -> list[Role]:
        return [request.role for request in self.requests]

    def prompts(self, role: Role) -> list[str]:
        return [prompt_of(request) for request in self.requests if request.role is role]


def prompt_of(request: ModelRequest) -> str:
    if "prompt" in request.body:
        return str(request.body["prompt"])
    messages = request.body["messages"]
    assert isinstance(messages, list)
    return "\n".join(str(message["content"]) for message in messages)


async def forever(_: ModelRequest) -> str:
    await asyncio.Event().wait()
    return ""


class Scorer:
    """A ``Rescore``: a sentence that is no fact is a span, and the score grows with their share."""

    def __init__(self, facts: Collection[str] = FACTS, *, threshold: float = 0.6) -> None:
        self.facts = {part for fact in facts for _, _, part in parts(fact)}
        self.threshold = threshold
        self.texts: list[str] = []
        self.wait: Callable[[], Awaitable[None]] | None = None

    async def __call__(self, texts: Sequence[str]) -> list[Verdict]:
        if self.wait is not None:
            await self.wait()
        self.texts += texts
        return [self.verdict(text) for text in texts]

    def verdict(self, text: str) -> Verdict:
        found = parts(text)
        spans = tuple(
            Span(start, end, 0.9, passage=0) for start, end, part in found if part not in self.facts
        )
        score = 0.6 + 0.35 * len(spans) / len(found) if spans else 0.05
        return Verdict(Status.CHECKED, score=score, threshold=self.threshold, spans=spans)


class JsonScorer(Scorer):
    """Scores a JSON object by its values."""

    def verdict(self, text: str) -> Verdict:
        try:
            text = " ".join(map(str, json.loads(text).values()))
        except ValueError:
            return super().verdict(text)
        verdict = super().verdict(text)
        return Verdict(verdict.status, score=verdict.score, threshold=verdict.threshold)


class Words:
    """A ``Compare``: similar is what has words in common, supported what is said in the same words."""

    async def similar(self, left: Sequence[str], right: Sequence[str]) -> list[list[float]]:
        return [[_shared(a, b) for b in right] for a in left]

    async def support(self, claims: Sequence[str], text: str) -> Sequence[float | None]:
        said = {part for _, _, part in parts(text)}
        return [1.0 if all(part in said for _, _, part in parts(claim)) else 0.0 for claim in claims]


class Unscored(Words):
    """Compares by words, and cannot tell what supports what."""

    async def support(self, claims: Sequence[str], text: str) -> list[float | None]:
        return [None for _ in claims]


def _shared(left: str, right: str) -> float:
    a, b = set(left.casefold().split()), set(right.casefold().split())
    return len(a & b) / len(a | b)


def task_of(
    answer: str,
    *,
    facts: Collection[str] = FACTS,
    evidence: Sequence[str] | None = None,
    query: str = "Tell me about the tower.",
    endpoint: Endpoint = Endpoint.CHAT,
    structured: bool = False,
    models: Mapping[str, ModelSpec] | None = None,
    scorer: Scorer | None = None,
    judge: str | None = "judge",
    verifiers: Sequence[str] = ("b", "c"),
    consensus: Consensus | None = None,
    significance: float = 0.1,
    max_iterations: int = 2,
    debate_rounds: int = 3,
    **request: object,
) -> Task:
    """An exchange about a tower that model ``a`` answered."""
    passages = tuple(Passage(text, Provenance.TOOL) for text in (evidence or [" ".join(facts)]))
    settings = PremiumSettings(
        verification_models=tuple(verifiers),
        judge_model=judge,
        max_iterations=max_iterations,
        consensus=consensus,
        significance=significance,
        debate_rounds=debate_rounds,
    )
    asked: dict[str, object] = {"model": "a", **request}
    if endpoint is Endpoint.CHAT:
        asked["messages"] = [{"role": "user", "content": query}]
    else:
        asked["prompt"] = query
    return Task(
        plan=Plan(decision="careful", mode=Mode.PREMIUM, premium=settings),
        exchange=Exchange(endpoint, "a", query, passages, structured=structured),
        request=asked,
        model="a",
        answer=Answer(0, AnswerKind.TEXT, answer),
        verdict=(scorer or Scorer(facts)).verdict(answer),
        models=models or {},
    )


def tools_of(
    ask: Script | None = None,
    *,
    scorer: Scorer | None = None,
    seconds: float = 60.0,
    deadline: Deadline | None = None,
) -> Tools:
    return Tools(
        ask=ask or Script(),
        rescore=scorer or Scorer(),
        compare=Words(),
        deadline=deadline or Deadline.after(seconds),
    )


def heard(*texts: str | CallFailure, models: Sequence[str] = ("b", "c", "d", "e")) -> tuple[Opinion, ...]:
    return tuple(
        Opinion(model, text) if not isinstance(text, CallFailure) else Opinion(model, None, failure=text)
        for model, text in zip(models, texts, strict=False)
    )
