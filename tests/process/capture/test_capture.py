"""Which exchanges are captured, and that whatever fails at it touches none of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.fakes.detectors import FixedDetector, scored
from tests.fakes.engines import engine_of
from tests.fakes.pipelines import pipeline_for
from truthlens.core.records.enums import Action, Reason
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.exchange.ticket import Conclusion
from truthlens.llm.loop_guard import MARK_HEADER
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.process.capture.capture import MOST_HELD_BYTES, Capture, CapturingPipeline
from truthlens.process.capture.files import CaptureFile
from truthlens.process.capture.recording import MOST_EXCHANGE_BYTES, Recording
from truthlens.process.settings import CaptureSettings
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

ANSWER = {"id": "1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Tea is free."}}]}
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "<context>Tea is free.</context>\nIs it?"}]}
OK = ResponseHead(200, {"content-type": "application/json"})


class Rig:
    """A pipeline that captures."""

    def __init__(
        self, folder: Path, *, draw: Callable[[], float] = lambda: 0.0, policy: str = "", **settings: Any
    ) -> None:
        self.file = folder / "c.jsonl"
        made = CaptureSettings(self.file, **settings)
        self.signals = Metrics()
        self.capture = Capture(made, CaptureFile(made, lambda: "{}\n"), self.signals, draw=draw)
        self.pipeline = pipeline_for(
            PolicyHolder(compile_policy(policy or "hallucination: {threshold: 0.5}\n", file="p.yaml")),
            engine_of({None: FixedDetector(scored(0.9))}, workers=1, queue_limit=4),
            self.signals,
            Recent(),
            kind=partial(CapturingPipeline, capture=self.capture),
        )

    async def exchange(self, *, response: bytes = b"", headers: dict[str, str] | None = None) -> Conclusion:
        head = RequestHead("POST", "/v1/chat/completions?key=k", headers or {}, {})
        ticket = await self.pipeline.open(self.pipeline.admit(head), json.dumps(REQUEST).encode())
        ticket = await self.pipeline.prepare(ticket)
        return await self.pipeline.assess(ticket, OK, response or json.dumps(ANSWER).encode())

    def kept(self) -> list[dict[str, Any]]:
        """What was captured, once all is written."""
        self.capture.close()
        lines = self.file.read_text().splitlines()
        return [json.loads(line) for line in lines[1:]]

    def counted(self) -> dict[str, float]:
        (family,) = self.signals.captured.collect()
        return {each.labels["result"]: each.value for each in family.samples if each.value}


async def test_an_exchange_is_kept_with_what_became_of_it(tmp_path: Path) -> None:
    """Bodies to the byte; of the path no query, of the headers none that nobody reads."""
    rig = Rig(tmp_path)
    await rig.exchange(headers={"authorization": "Bearer secret", "accept": "application/json"})
    (kept,) = rig.kept()
    assert kept["request"] == {
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": {},
        "route": {},
        "body": json.dumps(REQUEST),
    }
    assert kept["response"]["body"] == json.dumps(ANSWER)
    assert (kept["outcome"]["action"], kept["outcome"]["flagged"], kept["outcome"]["score"]) == (
        "warn",
        True,
        0.9,
    )
    assert kept["outcome"]["answers"] == ["Tea is free."]
    assert rig.counted() == {"kept": 1}


async def test_a_decision_in_shadow_keeps_what_it_would_have_done(tmp_path: Path) -> None:
    rig = Rig(tmp_path, policy="hallucination: {threshold: 0.5, shadow: true}\n")
    await rig.exchange()
    (kept,) = rig.kept()
    assert (kept["outcome"]["action"], kept["outcome"]["shadow_action"]) == ("pass", "warn")


async def test_a_share_is_captured_and_no_more_than_allowed(tmp_path: Path) -> None:
    """What was not drawn does not count; our own calls that come back are no exchanges of clients."""
    draws = iter([0.6, 0.4, 0.4, 0.4])
    rig = Rig(tmp_path, draw=lambda: next(draws), sample=0.5, most_exchanges=2)
    await rig.exchange(headers={MARK_HEADER: "x"})
    for _ in range(5):
        await rig.exchange()
    assert len(rig.kept()) == 2
    assert rig.counted() == {"kept": 2}


async def test_what_cannot_be_kept_is_left_out_whole_and_counted(tmp_path: Path) -> None:
    """A body that is no text, one that nobody waits for any more, and a request that never came."""
    rig = Rig(tmp_path)
    assert (await rig.exchange(response=b"\xff\xfe")).outcome.action is Action.PASS
    rig.pipeline.abandon(rig.pipeline.admit(RequestHead("POST", "/v1/chat/completions", {}, {})))
    ticket = rig.pipeline.admit(RequestHead("POST", "/v1/chat/completions", {}, {}))
    rig.pipeline.skip(ticket, Reason.DISABLED)
    assert rig.kept() == []
    assert rig.counted() == {"content": 1, "abandoned": 1, "unread": 1}


async def test_a_mistake_of_ours_costs_the_capture_alone(tmp_path: Path) -> None:
    """The exchange has its verdict, and the log says it once."""

    def draw() -> float:
        raise RuntimeError("secret words")

    rig = Rig(tmp_path, draw=draw)
    with structlog.testing.capture_logs() as log:
        outcomes = [(await rig.exchange()).outcome for _ in range(2)]
    assert [each.action for each in outcomes] == [Action.WARN, Action.WARN]
    assert rig.kept() == []
    assert rig.counted() == {"failed": 2}
    errors = [line for line in log if line["log_level"] == "error"]
    assert [line["error"] for line in errors] == ["RuntimeError"]
    assert "secret" not in str(log)


@pytest.mark.parametrize(
    ("room", "size", "lost"), [(True, MOST_EXCHANGE_BYTES + 1, "large"), (False, 1, "full")]
)
def test_a_recording_without_room_keeps_nothing_more(room: bool, size: int, lost: str) -> None:
    recording = Recording(RequestHead("POST", "/", {}, {}), 0.0, lambda _size: room)
    recording.note_request(b"x" * size)
    recording.note_response(OK, [b"y"])
    assert (recording.lost, recording.request, recording.body) == (lost, None, [])


async def test_what_is_held_is_let_go(tmp_path: Path) -> None:
    """Of exchanges that were written, abandoned and left out alike: later ones are captured."""
    rig, big = Rig(tmp_path), b"x" * (MOST_HELD_BYTES // 16)
    head = RequestHead("POST", "/v1/chat/completions", {}, {})
    for _ in range(20):
        recording = rig.capture.begin(head)
        assert recording is not None
        recording.note_request(big)
        assert not recording.lost
        rig.capture.drop(recording)
    await rig.exchange()
    assert len(rig.kept()) == 1
    assert rig.counted() == {"abandoned": 20, "kept": 1}
