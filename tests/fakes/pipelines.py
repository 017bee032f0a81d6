"""A pipeline around given detectors, with models that a test scripts in place of a network."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from truthlens.detection.engine import Engine
from truthlens.detection.similarity.model import Similarity
from truthlens.llm.client import LlmClient
from truthlens.llm.loop_guard import Marks
from truthlens.memory_release import GiveBack
from truthlens.mitigation.auto.bandit import Bandit
from truthlens.mitigator import Mitigator
from truthlens.pipeline import Pipeline
from truthlens.policy import PolicyHolder
from truthlens.reading_pool import Pool
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
) -> Pipeline:
    """A pipeline whose models answer as ``answering`` says; without it every call fails."""
    marks = marks or Marks()

    async def send(request: httpx.Request) -> httpx.Response:
        if answering is None:
            raise httpx.ConnectError("no models here", request=request)
        return await answering(json.loads(request.content))

    async def no_sleep(_seconds: float) -> None:
        return None

    client = LlmClient(
        upstream="http://backend",
        environ={},
        transport=httpx.MockTransport(send),
        sleep=no_sleep,
        marks=marks,
    )
    client.use(holder.current.models or {})
    mitigator = Mitigator(
        engine,
        client,
        Bandit(MemoryArms(), rng=random.Random(1)),
        signals,
        load_similarity=_no_similarity,
        tracer=tracer,
    )
    return Pipeline(
        holder,
        engine,
        signals,
        recent,
        mitigator=mitigator,
        marks=marks,
        tracer=tracer,
        pool=pool,
        give_back=give_back,
    )


def says(text: str, **fields: Any) -> httpx.Response:
    """A chat completion."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return httpx.Response(200, json={"id": "x", "choices": [choice], "usage": usage, **fields})


async def _no_similarity() -> Similarity:
    raise AssertionError("no similarity model in this test")
