"""What an attack asks of a deployment, and how many attacks there are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from hypothesis import HealthCheck, Phase, settings

from tests.attack.backend import SCRIPT, Answer, DecodingBackend
from tests.attack.texts import PLAIN, TRUE
from tests.integration.support.backend import completion
from tests.integration.support.stack import Stack

NIGHTLY = os.environ.get("TRUTHLENS_ATTACK") == "nightly"
_SHOWN = 3000


def attacks(ci: int, nightly: int) -> Callable[[Any], Any]:
    """Return settings for so many examples: always the same few in CI, other ones every night."""
    return settings(
        max_examples=nightly if NIGHTLY else ci,
        derandomize=not NIGHTLY,
        database=None,
        deadline=None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
        # To shrink means to ask the deployment hundreds of times: a failure prints its bodies instead.
        phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if NIGHTLY else [])],
    )


class Target:
    """A deployment under attack."""

    def __init__(self, stack: Stack, backend: DecodingBackend) -> None:
        self.stack = stack
        self.backend = backend
        self._client = httpx.Client(timeout=90)

    @contextmanager
    def opened(self) -> Iterator[Target]:
        with self._client:
            yield self

    def ask(
        self,
        answer: Answer | dict[str, Any] | str,
        *,
        plan: str | None = None,
        body: bytes | dict[str, Any] = PLAIN,
        method: str = "POST",
        path: str = "/v1/chat/completions",
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        """Return the gateway's response to a request that the backend answers so."""
        if isinstance(answer, str):
            answer = completion(answer)
        if isinstance(answer, dict):
            answer = Answer([json.dumps(answer).encode()])
        name = self.backend.register(answer)
        sent = {"content-type": "application/json", **(headers or {}), SCRIPT: name}
        if plan is not None:
            sent["x-domain"] = plan
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        # As it is written: httpx would make the path of a URL regular.
        target = {"target": path.encode()}
        try:
            return self._client.request(
                method, self.stack.url, content=content, headers=sent, extensions=target
            )
        finally:
            self.backend.forget(name)

    def is_well(self) -> None:
        """Raise where the sidecar is gone or an exchange that is in order is not checked."""
        assert self.stack.sidecar is not None
        assert self.stack.sidecar.poll() is None
        response = self.ask(TRUE)
        assert (response.status_code, response.headers.get("x-truthlens-status")) == (200, "checked")

    def memory(self) -> int:
        """Return the bytes of memory that the sidecar holds."""
        assert self.stack.sidecar is not None
        status = Path(f"/proc/{self.stack.sidecar.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def says(response: httpx.Response) -> dict[str, str]:
    """Return the verdict's headers, without what they all begin with."""
    start = "x-truthlens-"
    return {
        key.removeprefix(start): value for key, value in response.headers.items() if key.startswith(start)
    }


def shown(response: httpx.Response, *sent: object) -> str:
    """Return an exchange as a failure prints it, long bodies cut."""
    parts = [*map(repr, sent), f"{response.status_code} {says(response)}", repr(response.content)]
    return "\n".join(part if len(part) < _SHOWN else f"{part[:_SHOWN]}… ({len(part)})" for part in parts)
