"""A deployment with a plan for every way of treating streams, and what tests ask of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.integration.support.backend import Raw
from tests.integration.support.models import BAD, request
from tests.integration.support.stack import Stack
from tests.integration.support.streams.stage import LiveClient, ReadBack, Scene, envoy_stats, read_back, until
from tests.integration.support.streams.streams import PATHS
from truthlens.core.records.enums import Endpoint

MARK, NOTICE, WARNING = " (?)", "(withheld)", "Check this."
WRONG, RIGHT = BAD.split(". ")[0] + ".", BAD.split(". ")[1]
_TEXTS = f'mark_template: "{MARK}", notice_template: "{NOTICE}"'
_GATE = f"threshold: 0.6, warning_template: {WARNING}, streaming: gate"
PLANS = {
    "observe": f"threshold: 0.6, warning_template: {WARNING}, streaming: observe",
    "mark": f"{_GATE}, on_flagged: mark, stream: {{{_TEXTS}}}",
    "withhold": f"{_GATE}, on_flagged: withhold, stream: {{{_TEXTS}}}",
    "stop": f"{_GATE}, on_flagged: stop, stream: {{{_TEXTS}}}",
    "block": f"{_GATE}, on_flagged: mark, on_unchecked: block, stream: {{{_TEXTS}}}",
    "hasty": f"streaming: gate, threshold: 1.0, stream: {{max_hold_s: 0.3, {_TEXTS}}}",
    "mark-patient": f"{_GATE}, on_flagged: mark, stream: {{max_hold_s: 60, {_TEXTS}}}",
    "withhold-patient": f"{_GATE}, on_flagged: withhold, stream: {{max_hold_s: 60, {_TEXTS}}}",
    "gate-patient": f"streaming: gate, threshold: 1.0, stream: {{max_hold_s: 60, {_TEXTS}}}",
    "narrow": f"{_GATE}, on_flagged: mark, stream: {{max_hold_bytes: 4096, {_TEXTS}}}",
    "buffer": f"threshold: 0.6, warning_template: {WARNING}, streaming: buffer",
    "buffer-block": "threshold: 0.6, streaming: buffer, on_unchecked: block",
    "disabled": "enabled: false",
}
LIVE = ("observe", "mark", "withhold", "stop", "block")
MODES = (*LIVE, "buffer")
LENIENT = tuple(plan for plan in MODES if plan != "block")
FAULTS = (
    "spurious_msgs_received",
    "rejected_header_mutations",
    "message_timeouts",
    "failure_mode_allowed",
    "streams_failed",
)
NO_EVIDENCE = {"model": "scripted-model", "messages": [{"role": "user", "content": "Good morning!"}]}


def policy() -> str:
    """A decision for each of ``PLANS``, chosen by the header ``x-domain``."""
    return policy_of(PLANS)


def policy_of(plans: Mapping[str, str]) -> str:
    """A policy with a decision for each of ``plans``, by name the keys of its configuration; chosen by ``x-domain``."""
    domains = "\n".join(f"    - {{name: {name}, headers: {{x-domain: [{name}]}}}}" for name in plans)
    decisions = "\n".join(
        f"  - name: {name}\n    priority: {90 - place}\n    rules: {{type: domain, name: {name}}}\n"
        f"    plugins: [{{type: hallucination, configuration: {{{keys}}}}}]"
        for place, (name, keys) in enumerate(plans.items())
    )
    return f"""\
trusted_headers: [x-domain, x-truthlens-details]
hallucination: {{enabled: true, default_mode: lightweight, detectors: [encoder]}}
signals:
  domains:
{domains}
decisions:
{decisions}
"""


@dataclass(frozen=True)
class Gateway:
    """The deployment, with what a test asks of it."""

    stack: Stack

    def open(
        self,
        plan: str,
        reply: Callable[..., Raw] | Raw,
        *,
        details: bool = False,
        endpoint: Endpoint = Endpoint.CHAT,
        path: str = "",
        body: dict[str, Any] | None = None,
        name: str = "",
        **fields: Any,
    ) -> LiveClient:
        """A client whose request has been sent; ``name`` is its request id."""
        self.stack.backend.reply = reply if callable(reply) else lambda _request: reply
        asked = dict(body or request("scripted-model"), **fields)
        if endpoint is Endpoint.COMPLETIONS:
            asked["prompt"] = asked.pop("messages")[0]["content"]
        headers = {"x-domain": plan, "x-request-id": name or str(uuid.uuid4())}
        if details:
            headers["x-truthlens-details"] = "spans"
        return LiveClient(self.stack.listen, asked, headers, path=path or PATHS[endpoint])

    def read(self, plan: str, reply: Callable[..., Raw] | Raw, **options: Any) -> LiveClient:
        """The same, with its whole answer."""
        with self.open(plan, reply, **options) as client:
            client.rest()
            assert not client.broken
            return client

    def told(self, plan: str, reply: Callable[..., Raw] | Raw, **options: Any) -> ReadBack:
        """What the whole answer says."""
        return read_back(self.read(plan, reply, **options).body)

    def step(self, scene: Scene) -> None:
        """Let the next frame go, and wait until the sidecar has been sent it: Envoy merges what comes close together."""
        sent = envoy_stats(self.stack)["stream_msgs_sent"]
        scene.step()
        until(lambda: envoy_stats(self.stack)["stream_msgs_sent"] > sent, "a message")

    def logged(self, name: str) -> dict[str, Any]:
        """The line of the sidecar's log on one request."""
        return self._one(self.stack.log_lines, name)

    def accessed(self, name: str) -> dict[str, Any]:
        """The line of Envoy's access log on one request."""
        return self._one(self.stack.access_log, name)

    def _one(self, lines: Callable[[], list[dict[str, Any]]], name: str) -> dict[str, Any]:
        until(lambda: any(line.get("request_id") == name for line in lines()), "a line of the log")
        (found,) = [line for line in lines() if line.get("request_id") == name]
        return found


def sentence_ends(frames: Sequence[bytes]) -> list[int]:
    """The places of frames that carry the first character behind a sentence, which shows that it is complete."""
    return [place for place, frame in enumerate(frames) if b'" An"' in frame or b'" A"' in frame]
