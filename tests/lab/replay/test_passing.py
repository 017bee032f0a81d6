"""An exchange passes through a pipeline as it does behind Envoy, also where its answer was never read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.detectors import FixedDetector, scored
from tests.fakes.engines import engine_of
from tests.fakes.pipelines import pipeline_for
from truthlens.core.records.enums import Action, Reason
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.core.records.outcome import Outcome
from truthlens.lab.replay.kept import Library, Playing, playing
from truthlens.lab.replay.passing import ANSWER_NOT_KEPT, NO_ANSWER, passed
from truthlens.lab.replay.reading import KeptExchange
from truthlens.lab.replay.running import ReplayPipeline
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

REQUEST: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "<context>Tea is free.</context>\nIs tea free?"}],
}
ANSWER = json.dumps({
    "id": "1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Tea is free."}}],
}).encode()  # fmt: skip
STREAM = b"".join(
    f"data: {json.dumps({'id': '1', 'choices': [{'index': 0, 'delta': {'content': piece}}]})}\n\n".encode()
    for piece in ("Tea ", "is ", "free.") * 120
)
JSON = ResponseHead(200, {"content-type": "application/json"})
SSE = ResponseHead(200, {"content-type": "text/event-stream"})


async def _passed(
    policy: str,
    response: tuple[ResponseHead, bytes] | None,
    *,
    reason: Reason | None = None,
    path: str = "/v1/chat/completions",
    **request: Any,
) -> tuple[str, Outcome | None]:
    kept = KeptExchange.model_validate({
        "id": "a", "request": {"method": "POST", "path": path, "body": ""}, "response": None, "outcome": {},
    })  # fmt: skip
    play = Playing(kept, Library([kept]))
    playing.set(play)
    engine = engine_of({None: FixedDetector(scored(0.9))}, workers=1, queue_limit=4)
    pipeline = pipeline_for(
        PolicyHolder(compile_policy(policy, file="p.yaml")), engine, Metrics(), Recent(), kind=ReplayPipeline
    )
    body = json.dumps({**REQUEST, **request}).encode()
    why = await passed(pipeline, (RequestHead("POST", path, {}, {}), body), response, reason=reason)
    await engine.aclose()
    return why, play.outcome


@pytest.mark.parametrize("streaming", ["buffer", "observe", "gate"])
@pytest.mark.parametrize("response", [(JSON, ANSWER), (SSE, STREAM + b"data: [DONE]\n\n"), (SSE, STREAM)])
async def test_answers_of_any_form_are_checked(streaming: str, response: tuple[ResponseHead, bytes]) -> None:
    """A stream that has no end as well; no deadline of the policy is kept to."""
    policy = f"hallucination: {{streaming: {streaming}, timeout_s: 0.001, threshold: 0.5}}\n"
    why, outcome = await _passed(policy, response, stream=response[0].streams)
    assert why == ""
    assert outcome is not None
    assert outcome.verdict.flagged


@pytest.mark.parametrize(
    ("policy", "reason", "expected"),
    [
        ("hallucination: {on_unchecked: block}\n", Reason.ENCODING, Action.BLOCK),
        ("hallucination: {threshold: 0.5}\n", Reason.UPSTREAM_ERROR, Action.PASS),
        ("hallucination: {enabled: false}\n", Reason.DISABLED, Action.PASS),
        ("hallucination: {threshold: 0.5}\n", Reason.DISABLED, None),
        ("hallucination: {threshold: 0.5}\n", None, None),
    ],
)
async def test_an_answer_that_was_never_read(
    policy: str, reason: Reason | None, expected: Action | None
) -> None:
    """What its head said holds for any policy; one that would read it cannot be tried."""
    why, outcome = await _passed(policy, None, reason=reason)
    assert why == ("" if expected is not None else ANSWER_NOT_KEPT)
    assert (None if outcome is None else outcome.action) == expected


async def test_a_path_without_answers_is_not_replayed() -> None:
    assert await _passed("hallucination: {}\n", (JSON, b"{}"), path="/v1/embeddings") == (NO_ANSWER, None)


async def test_an_error_of_the_backend_stays_one() -> None:
    _, outcome = await _passed("hallucination: {}\n", (ResponseHead(500, {}), b"oops"))
    assert outcome is not None
    assert outcome.verdict.reason is Reason.UPSTREAM_ERROR
