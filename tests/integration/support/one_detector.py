"""A deployment that checks with one detector and nothing else; one of its plans gates streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.integration.support.backend import completion, json_reply
from tests.integration.support.stack import Stack
from tests.integration.support.streams.stage import read_back
from tests.integration.support.streams.streams import answer, sse

_POLICY = """\
trusted_headers: [x-domain]
hallucination:
  detectors: [{detector}]
  details: true
signals:
  domains:
    - {{name: gated, headers: {{x-domain: [gated]}}}}
decisions:
  - name: gated
    priority: 90
    rules: {{type: domain, name: gated}}
    plugins: [{{type: hallucination, configuration: {{streaming: gate, on_flagged: withhold}}}}]
"""


def one_detector_stack(detector: str, folder: Path) -> Iterator[Stack]:
    """Yield the deployment with the detector of this name, and end it."""
    stack = Stack(folder, _POLICY.format(detector=detector))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def reply_to(stack: Stack, request: Mapping[str, Any], text: str) -> httpx.Response:
    """Return what the client gets where the backend answers with ``text``."""
    stack.backend.reply = lambda _request: json_reply(completion(text))
    return stack.post({**request})


def gated_reply_to(stack: Stack, request: Mapping[str, Any], text: str) -> str:
    """Return the text that passes the gate where the backend streams ``text``."""
    stack.backend.reply = lambda _request: sse(answer(text))
    response = stack.post({**request, "stream": True}, headers={"x-domain": "gated"})
    return read_back(response.content).texts[0]
