"""A pipeline around given detectors, with models that a test scripts in place of a network."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from truthlens.detection.engine import Engine
from truthlens.detection.similarity import Similarity
from truthlens.exchange.agentic_mode import AgenticMode
from truthlens.exchange.assessor import Assessor
from truthlens.exchange.callers import Callers
from truthlens.exchange.corrector import Corrector
from truthlens.exchange.memory_release import GiveBack
from truthlens.exchange.mode_runner import ModeRunner
from truthlens.exchange.reading_pool import Pool
from truthlens.exchange.retrieval_step import RetrievalStep
from truthlens.llm.client import LlmClient
from truthlens.llm.loop_guard import Marks
from truthlens.mitigation.auto.bandit import Bandit
from truthlens.pipeline import Pipeline
from truthlens.policy import PolicyHolder
from truthlens.store.arm_store import MemoryArms
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent
from truthlens.telemetry.tracing import Tracer

Answering = Callable[[dict[str, Any]], Awaitable[httpx.Response]]


def pipeline_for(
    holder: PolicyHolder,
    engine: Engine,
    signals: Metrics,
    recent: Recent,
    *,
    answering: Answering | None = None,
    marks: Marks | None = None,
    tracer: Tracer | None = None,
    pool: Pool | None = None,
    give_back: GiveBack | None = None,
    retrieval: Callable[[], RetrievalStep | None] = lambda: None,
    kind: Callable[..., Pipeline] = Pipeline,
) -> Pipeline:
    """A pipeline whose models answer as ``answering`` says; without it every call fails. ``kind`` makes it of its parts."""
    marks = marks or Marks()

    async def send(request: httpx.Request) -> httpx.Response:
        if answering is None:
            raise httpx.ConnectError("no models here", request=request)
        return await answering(json.loads(request.content))

    client = client_for(holder, send, marks=marks)
    callers = Callers(client, signals, tracer=tracer)
    assessor = Assessor(engine, callers, retrieval=retrieval, tracer=tracer)
    agentic = AgenticMode(assessor, retrieval, observe=signals.observe_step, tracer=tracer)
    runner = ModeRunner(
        assessor,
        Bandit(MemoryArms(), rng=random.Random(1)),
        signals,
        load_similarity=_no_similarity,
        agentic=lambda: agentic,
        tracer=tracer,
    )
    return kind(
        holder,
        engine,
        signals,
        recent,
        assessor=assessor,
        corrector=Corrector(assessor, lambda: runner),
        marks=marks,
        tracer=tracer,
        retrieval=retrieval,
        pool=pool,
        give_back=give_back,
    )


def client_for(
    holder: PolicyHolder,
    send: Callable[[httpx.Request], Awaitable[httpx.Response]],
    *,
    marks: Marks | None = None,
    upstream: str | None = "http://backend",
) -> LlmClient:
    """A client of the policy's models, with ``send`` in the place of a network."""

    async def no_sleep(_seconds: float) -> None:
        return None

    client = LlmClient(
        upstream=upstream, environ={}, transport=httpx.MockTransport(send), sleep=no_sleep, marks=marks
    )
    client.use(holder.current.models or {})
    return client


def says(text: str, **fields: Any) -> httpx.Response:
    """A chat completion."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return httpx.Response(200, json={"id": "x", "choices": [choice], "usage": usage, **fields})


async def _no_similarity() -> Similarity:
    raise AssertionError("no similarity model in this test")
