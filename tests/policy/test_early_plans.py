"""Early plans are remembered, and never for another request than theirs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from truthlens.core.records.exchange import RequestHead
from truthlens.policy import EarlyPlans, Policy, compile_policy

POLICY = """\
trusted_headers: [x-domain]
signals: {domains: [{name: free, headers: {x-domain: [free]}}]}
decisions:
  - name: free
    priority: 1
    rules: {type: domain, name: free}
    plugins: [{type: hallucination, configuration: {enabled: false}}]
"""


def head(headers: Mapping[str, str], route: Mapping[str, str] | None = None) -> RequestHead:
    return RequestHead("POST", "/v1/chat/completions", dict(headers), dict(route or {}))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[RequestHead]:
    """The heads that a policy was asked of."""
    heads: list[RequestHead] = []
    early = Policy.early

    def noting(self: Policy, head: RequestHead) -> object:
        heads.append(head)
        return early(self, head)

    monkeypatch.setattr(Policy, "early", noting)
    return heads


def test_requests_that_look_alike_to_the_policy_are_worked_out_once(asked: list[RequestHead]) -> None:
    policy, plans = compile_policy(POLICY, file="p.yaml"), EarlyPlans()
    found = [plans.of(policy, head({"x-domain": "free", "user-agent": str(n)}))[0] for n in range(5)]
    assert {plan.decision for plan in found if plan is not None} == {"free"}
    assert len(asked) == 1


def test_other_values_routes_and_policies_are_others() -> None:
    policy, plans = compile_policy(POLICY, file="p.yaml"), EarlyPlans()
    heads = [
        head({}),
        head({"x-domain": "free"}),
        head({"x-domain": "paid"}),
        head({}, {"truthlens-domain": "free"}),
    ]
    for _ in range(2):
        for each in heads:
            assert plans.of(policy, each) == (policy.early(each), policy.strictest(each))
    other = compile_policy(POLICY.replace("[free]", "[paid]"), file="p.yaml")
    for each in heads:
        assert plans.of(other, each) == (other.early(each), other.strictest(each))


def test_what_clients_make_up_is_not_kept_for_ever(asked: list[RequestHead]) -> None:
    policy, plans = compile_policy(POLICY, file="p.yaml"), EarlyPlans()
    long = head({"x-domain": "x" * 10_000})
    plans.of(policy, long)
    plans.of(policy, long)
    assert len(asked) == 2
    for number in range(2000):
        plans.of(policy, head({"x-domain": str(number)}))
    assert len(plans._plans) <= 256
