"""Ask models for commands that score answers without a gateway: one caller an answer, and the sum of what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import httpx

from truthlens.core.deadline import Deadline
from truthlens.core.records.calls import CallRecord, ModelSpec, Usage
from truthlens.core.records.plan import Plan
from truthlens.llm.budget import Budget
from truthlens.llm.caller import Caller
from truthlens.llm.client import LlmClient
from truthlens.llm.http.recording import RecordedTransport


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
