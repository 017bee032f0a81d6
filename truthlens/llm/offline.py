"""Ask models for commands that score answers without a gateway: one caller an answer, and the sum of what it cost."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import httpx

from truthlens.core.deadline import Deadline
from truthlens.core.errors import TruthLensError
from truthlens.core.records.calls import CallRecord, ModelSpec, Usage
from truthlens.core.records.plan import Plan
from truthlens.llm.budget import Budget
from truthlens.llm.caller import Caller
from truthlens.llm.client import LlmClient


class RecordingError(TruthLensError):
    """A file of recorded replies cannot be used; the message names it."""


class RecordedTransport(httpx.AsyncBaseTransport):
    """Answers what was asked before from a file, and keeps what is asked for the first time.

    A reply is known by the path and the body of its request, not by the host. Only replies with status 200 are kept:
    a refusal or a failure is asked again.

    Args:
        file: JSON lines ``{"key", "body"}``; made where it is missing.
        network: what sends new requests; ``None``: they fail, as to a server that is not there.

    Raises:
        RecordingError: the file is no such file.
    """

    def __init__(self, file: Path, network: httpx.AsyncBaseTransport | None) -> None:
        self._file = file
        self._network = network
        self._replies = _read(file)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the reply that is kept, or the network's."""
        content = await request.aread()
        key = hashlib.sha256(request.url.raw_path + b"\n" + content).hexdigest()
        kept = self._replies.get(key)
        if kept is not None:
            return _reply(kept)
        if self._network is None:
            raise httpx.ConnectError(f"no reply is recorded in {self._file}", request=request)
        response = await self._network.handle_async_request(request)
        if response.status_code != httpx.codes.OK or request.method != "POST":
            return response
        body = await response.aread()
        await response.aclose()
        self._replies[key] = body
        with self._file.open("a", encoding="ascii") as out:
            out.write(json.dumps({"key": key, "body": base64.b64encode(body).decode("ascii")}) + "\n")
        return _reply(body)

    async def aclose(self) -> None:
        """Close the network's connections."""
        if self._network is not None:
            await self._network.aclose()


class OfflineModels:
    """The models of a policy, asked over the network or out of a file of recorded replies.

    Args:
        models: the configured models by name.
        environ: where keys come from.
        upstream: the address of models without one, such as ``http://10.0.0.5:8000``.
        replies: file of recorded replies; what is not in it is asked and added (``RecordedTransport``).
        network: whether anything may be asked over the network.

    Raises:
        RecordingError: the file of replies cannot be used.
    """

    def __init__(
        self,
        models: Mapping[str, ModelSpec],
        *,
        environ: Mapping[str, str],
        upstream: str | None = None,
        replies: Path | None = None,
        network: bool = True,
    ) -> None:
        self._models = models
        transport: httpx.AsyncBaseTransport | None = None
        if replies is not None:
            transport = RecordedTransport(replies, httpx.AsyncHTTPTransport() if network else None)
        self._client = LlmClient(upstream=upstream, environ=environ, transport=transport)
        self._client.use(models)
        self.calls: list[CallRecord] = []
        """Every call that was made or refused, in the order in which they ended."""

    def caller(self, plan: Plan) -> Caller:
        """Return what asks models about one answer, within the budget of ``plan`` and the time of its cascade."""
        bounds = plan.mitigation
        return Caller(
            self._client,
            deadline=Deadline.after(plan.cascade.timeout_s),
            budget=Budget(bounds.max_tokens, bounds.max_cost_usd),
            models=self._models,
            observe=self.calls.append,
        )

    def summary(self, answers: int) -> dict[str, object]:
        """Return calls, tokens and cost of all callers together, and per 1,000 of so many ``answers``."""
        made = [call for call in self.calls if call.attempts > 0]
        usage = sum((call.usage for call in made), Usage())
        priced = [call.cost_usd for call in made if call.cost_usd is not None]
        cost = sum(priced) if priced else None
        return {
            "calls": len(made),
            "failed": sum(call.failure is not None for call in self.calls),
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "calls_per_1000_answers": round(1000 * len(made) / answers, 1) if answers else None,
            "cost_usd": cost,
            "cost_usd_per_1000_answers": None
            if cost is None or not answers
            else round(1000 * cost / answers, 4),
        }

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def _reply(body: bytes) -> httpx.Response:
    return httpx.Response(httpx.codes.OK, headers={"content-type": "application/json"}, content=body)


def _read(file: Path) -> dict[str, bytes]:
    if not file.exists():
        return {}
    found: dict[str, bytes] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            found[row["key"]] = base64.b64decode(row["body"], validate=True)
        except (ValueError, TypeError, KeyError) as error:
            raise RecordingError(f"{file}, line {number}: not a recorded reply; name another file") from error
    return found
