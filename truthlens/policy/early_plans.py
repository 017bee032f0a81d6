"""Cache what heads alone decide about plans: most requests differ in nothing that the policy reads."""

from __future__ import annotations

from truthlens.core.records.exchange import RequestHead
from truthlens.core.records.plan import Plan
from truthlens.policy.policy import Policy

# Clients choose header values: so many of them are remembered, and of so many characters.
_MOST = 256
_LONGEST = 256


class EarlyPlans:
    """Caches ``Policy.early`` and ``Policy.strictest`` for requests that look alike to the policy."""

    def __init__(self) -> None:
        self._policy: Policy | None = None
        self._names: tuple[str, ...] = ()
        self._plans: dict[tuple[object, ...], tuple[Plan | None, Plan]] = {}

    def of(self, policy: Policy, head: RequestHead) -> tuple[Plan | None, Plan]:
        """Return ``policy.early(head)``, and ``policy.strictest(head)``."""
        if policy is not self._policy:
            self._policy, self._names = policy, tuple(policy.header_names)
            self._plans.clear()
        values = tuple(map(head.headers.get, self._names))
        if sum(len(value) for value in (*values, *head.route.values()) if value is not None) > _LONGEST:
            return policy.early(head), policy.strictest(head)
        key = (values, *head.route.items())
        if key not in self._plans:
            if len(self._plans) >= _MOST:
                self._plans.clear()
            self._plans[key] = policy.early(head), policy.strictest(head)
        return self._plans[key]
