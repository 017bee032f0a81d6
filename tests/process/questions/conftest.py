"""A process that answers questions: its access control, its endpoints, a source in memory, and scripted models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from tests.fakes.agentic_parts import CITED, PASSAGE, act, judged, search
from tests.fakes.detectors import WordDetector
from tests.fakes.engines import engine_of
from tests.fakes.pipelines import client_for, pipeline_for, says
from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.core.registry import SourceContext, SourceType
from truthlens.exchange.assessor import Assessor
from truthlens.exchange.callers import Callers
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.process.endpoints import Readiness, WebParts, endpoints_app
from truthlens.process.questions.service import QuestionService
from truthlens.process.settings import Access
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.retriever import Retriever
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

ACCEPTED = (search(), act("synthesize"), CITED, *judged())
POLICY = """
models: [{name: small, base_url: "http://backend/v1"}]
sources: [{name: handbook, type: memory}]
hallucination: {threshold: 0.5}
"""


class MemorySource:
    """Gives its passages for every query, or fails, or waits until it is cancelled; keeps what it was asked."""

    revision = "1"
    passages: Sequence[FoundPassage] = (PASSAGE,)
    failure: SearchResult | None = None
    waits = False
    searches: list[tuple[str, Search]]
    waiting: asyncio.Event
    cancelled = False

    def __init__(self, context: SourceContext) -> None:
        self.context = context

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> Sequence[FoundPassage]:
        kind = type(self)
        kind.searches.append((self.context.name, search))
        if self.failure is not None:
            raise SourceError(self.failure)
        if self.waits:
            kind.waiting.set()
            try:
                await asyncio.Event().wait()
            finally:
                kind.cancelled = True
        return self.passages[:k]

    async def aclose(self) -> None:
        return None


class Rig:
    """The endpoints of a process; its models give ``replies`` in order, and wait for ``release`` where one is ``None``.

    Answers with 900 in them are flagged unless the evidence has it.
    """

    def __init__(
        self, *replies: Any, policy: str = POLICY, access: Access | None = None, upstream: str | None = None
    ) -> None:
        self.replies, self.requests = list(replies), list[httpx.Request]()
        self.waiting, self.release, self.cancelled = asyncio.Event(), asyncio.Event(), False
        self.holder = PolicyHolder(compile_policy(policy, file="p.yaml"))
        self.signals, self.readiness = Metrics(), Readiness(warm=True)
        retriever = Retriever(embed=_no_vectors, environ={}, observe=self.signals.observe_search)
        retriever.use(self.holder.current.sources, Path())
        client = client_for(self.holder, self._send, upstream=upstream)
        callers = Callers(client, self.signals)
        engine = engine_of({None: WordDetector({"900": 0.9})})
        self.questions = QuestionService(
            Assessor(engine, callers),
            callers,
            reachable=client.reachable,
            retriever=retriever,
            signals=self.signals,
        )

        async def questions() -> QuestionService:
            return self.questions

        recent = Recent()
        self.app: ASGIApp = endpoints_app(
            WebParts(
                policy=self.holder,
                pipeline=pipeline_for(self.holder, engine, self.signals, recent),
                signals=self.signals,
                recent=recent,
                readiness=self.readiness,
                access=access,
                questions=questions,
            )
        )

    async def _send(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self.replies.pop(0)
        if reply is None:
            self.waiting.set()
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
            return says(act("finish"))
        if isinstance(reply, Exception):
            raise reply
        return says(reply) if isinstance(reply, str) else reply

    @asynccontextmanager
    async def client(self, peer: str = "127.0.0.1") -> AsyncIterator[httpx.AsyncClient]:
        """A client of the endpoints, at that address."""
        transport = httpx.ASGITransport(self.app, client=(peer, 40000))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client

    async def ask(self, question: str = "How fast does the pump run?", **fields: Any) -> httpx.Response:
        """The reply to one question."""
        headers = fields.pop("headers", {})
        async with self.client() as client:
            return await client.post("/v1/ask", json={"question": question, **fields}, headers=headers)

    def counted(self, name: str, **labels: str) -> float:
        """The value of a metric."""
        return self.signals.registry.get_sample_value(f"truthlens_{name}", labels) or 0.0

    def asked_models(self) -> set[str]:
        """The names of the models that were asked."""
        return {json.loads(request.content)["model"] for request in self.requests}


async def _no_vectors(texts: Sequence[str]) -> Any:
    raise AssertionError("nothing here searches by vectors")


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> type[MemorySource]:
    """Declare the type of source ``memory``; each test has a class of its own to change."""

    class Own(MemorySource):
        searches: list[tuple[str, Search]] = []  # noqa: RUF012 - one for each test
        waiting = asyncio.Event()

    types = {"memory": SourceType("memory", Own, filters=True, passes_authorization=True)}
    for module in ("truthlens.policy.compile", "truthlens.retrieval.retriever"):
        monkeypatch.setattr(f"{module}.source_types", lambda: types)
    return Own


@pytest.fixture
def rig(source: type[MemorySource]) -> Callable[..., Rig]:
    """Make a process."""
    return Rig
