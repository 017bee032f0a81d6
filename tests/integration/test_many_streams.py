"""Many streams at once, through a real Envoy: no other client's answer leaves without a verdict because of them."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.integration.support.backend import Raw, Received, completion, http, json_reply
from tests.integration.support.models import PASSAGES, request
from tests.integration.support.stack import Stack
from tests.integration.support.streams.streams import DONE, answer

pytestmark = pytest.mark.envoy

STREAMS, FRAMES = 16, 4_400
POLICY = """\
hallucination: {default_mode: lightweight, detectors: [encoder], threshold: 0.99, on_unchecked: block, streaming: gate}
"""
# All written at once, as a server does that answers from a cache.
BURST = answer(" ".join(PASSAGES[0] for _ in range(FRAMES // 35)))


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """A deployment whose answers must be checked."""
    made = Stack(tmp_path, POLICY)

    def reply(received: Received) -> Raw:
        if json.loads(received.body).get("stream"):
            return http(b"".join(BURST), content_type="text/event-stream")
        return json_reply(completion("Nothing of the kind was ever written there."))

    made.backend.reply = reply
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_a_burst_of_streams_costs_no_other_client_its_verdict(stack: Stack) -> None:
    """Neither Envoy's health check nor its timeouts ever decide: what is not checked is refused by the plan."""
    ended = threading.Event()
    ends: Counter[str] = Counter()

    def other() -> None:
        while not ended.is_set():
            reply = stack.post(request())
            said = [reply.headers.get(f"x-truthlens-{name}", "") for name in ("status", "reason")]
            ends[" ".join((str(reply.status_code), *said)).strip()] += 1
            time.sleep(0.05)

    def stream() -> str:
        with httpx.stream(
            "POST", f"{stack.url}/v1/chat/completions", json=request(stream=True), timeout=180
        ) as reply:
            body = b"".join(reply.iter_bytes())
        assert body.endswith(DONE)
        return reply.headers["x-truthlens-status"]

    stack.post(request())
    with ThreadPoolExecutor(STREAMS + 2) as threads:
        others = [threads.submit(other) for _ in range(2)]
        statuses = [each.result() for each in [threads.submit(stream) for _ in range(STREAMS)]]
        ended.set()
        for each in others:
            each.result()
    print(json.dumps({"others": ends, "streams": Counter(statuses)}))
    assert set(ends) == {"200 checked"}
    assert set(statuses) == {"pending"}
    for fault in ("health_check.failure", "upstream_rq_timeout", "upstream_cx_destroy_local_with_active_rq"):
        assert stack.stat(f"cluster.truthlens.{fault}") == 0
