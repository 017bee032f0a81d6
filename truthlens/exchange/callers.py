"""Make what asks models for one case; only a process with a plan that asks some imports this."""

from __future__ import annotations

from truthlens.core.records.calls import CallRecord
from truthlens.exchange.assessor import Case
from truthlens.llm.budget import Budget
from truthlens.llm.caller import Caller
from truthlens.llm.client import LlmClient
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.tracing import Tracer

# What a call is counted under where its model's name comes from a request.
_UPSTREAM_LABEL = "upstream"


class Callers:
    """Makes what asks models for one case: within its deadline and its budget, counted and traced."""

    def __init__(self, client: LlmClient, signals: Metrics, *, tracer: Tracer | None = None) -> None:
        self._client, self._signals, self._tracer = client, signals, tracer or Tracer()

    def __call__(self, case: Case) -> Caller:
        """Return the caller of ``case``."""
        bounds = case.plan.mitigation
        models = case.models or {}
        named = {*models, *case.plan.named_models}

        def label(model: str) -> str:
            return model if model in named else _UPSTREAM_LABEL

        def observe(call: CallRecord) -> None:
            self._signals.observe_call(call, label=label(call.model))

        return Caller(
            self._client,
            deadline=case.deadline,
            budget=Budget(bounds.max_tokens, bounds.max_cost_usd),
            models=models,
            path=case.path,
            authorization=case.authorization if bounds.forward_authorization else None,
            label=label,
            observe=observe,
            trace=self._tracer.call,
        )
