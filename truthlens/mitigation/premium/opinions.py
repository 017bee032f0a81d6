"""Ask each verification model the client's own request, concurrently: second opinions.

They are asked for while the first answer is still being scored, so nothing here knows that answer or rates
what comes back. Retries, budgets and accounts are the business of ``Ask``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from truthlens.core.deadline import Deadline
from truthlens.core.records.calls import Ask, ModelRequest, ModelSpec, Role
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.plan import Plan
from truthlens.mitigation.prompts.follow_up import same_request
from truthlens.mitigation.prompts.questions import Opinion, said

__all__ = ["Opinion", "opinions"]

_SHARE_OF_TIME = 0.5


async def opinions(
    *,
    plan: Plan,
    exchange: Exchange,
    request: Mapping[str, object],
    models: Mapping[str, ModelSpec],
    ask: Ask,
    deadline: Deadline,
) -> tuple[Opinion, ...]:
    """Return each verification model's answer to the client's request, in the plan's order.

    All are asked at once; a call that fails is an opinion with a failure, and so is one that has not come
    after half of the time: one slow model must not cost what the others said. A model that is configured with
    a reliability of 0 has no say and is not asked. Cancelling this cancels every call.

    Args:
        plan: its ``premium.verification_models`` are asked.
        exchange: the request half.
        request: the client's JSON request; it is not changed.
        models: the configured models by name.
        ask: bound to the exchange.
        deadline: of the exchange.
    """
    time_s = deadline.remaining_s * _SHARE_OF_TIME
    body = same_request(request, exchange.endpoint)
    names = dict.fromkeys(plan.premium.verification_models)
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(
                said(ask, ModelRequest(name, Role.VERIFIER, body, exchange.endpoint), time_s=time_s)
            )
            for name in names
            if name not in models or models[name].reliability > 0.0
        ]
    return tuple(each.result() for each in asked)
