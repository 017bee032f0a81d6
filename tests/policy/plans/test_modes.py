"""Settings of the modes that act on answers, as they reach a plan."""

from __future__ import annotations

import pytest

from truthlens.core.errors import PolicyError
from truthlens.core.records.calls import ModelSpec, Price
from truthlens.core.records.enums import Mode
from truthlens.core.records.settings import Consensus, MitigationSettings, StandardSettings
from truthlens.policy import compile_policy
from truthlens.process.start_checks import called

TEXT = """\
hallucination:
  default_mode: standard
  threshold: 0.5
  standard: {max_iterations: 4, convergence_threshold: 0.3, self_check: true}
  premium: {verification_models: [second, third], judge_model: judge, consensus: debate, debate_rounds: 2}
  mitigation: {deadline_s: 20, max_tokens: 9000, forward_authorization: true}
models:
  - {name: second, base_url: "http://10.0.0.5/v1/", api_key_env: SECOND_KEY, price: {input: 1, output: 2}, reliability: 0.9}
  - {name: third, max_concurrency: 3, max_model_len: 4096}
  - {name: judge}
decisions:
  - name: short
    priority: 2
    rules: {type: domain, name: healthcare}
    plugins: [{type: hallucination, configuration: {mode: premium, max_iterations: 2, require_disclaimer: false}}]
  - name: own
    priority: 1
    rules: {type: domain, name: finance}
    plugins:
      - type: hallucination
        configuration: {mode: standard, max_iterations: 9, standard: {max_iterations: 1}, mitigation: {max_tokens: 5}}
"""


def test_settings_are_inherited_key_by_key() -> None:
    policy = compile_policy(TEXT, file="x.yaml")
    default = policy.default
    assert default.standard == StandardSettings(max_iterations=4, convergence_threshold=0.3, self_check=True)
    assert default.premium.verification_models == ("second", "third")
    assert default.premium.consensus is Consensus.DEBATE
    own = next(plan for plan in policy.plans if plan.decision == "own")
    assert own.mitigation == MitigationSettings(deadline_s=20, max_tokens=5, forward_authorization=True)


def test_short_max_iterations_goes_to_the_mode_of_the_decision() -> None:
    short, own = compile_policy(TEXT, file="x.yaml").plans
    assert (short.mode, short.premium.max_iterations, short.standard.max_iterations) == (Mode.PREMIUM, 2, 4)
    assert own.standard.max_iterations == 1
    assert short.require_disclaimer is False
    assert own.require_disclaimer is None


def test_models_are_specs_by_name() -> None:
    models = compile_policy(TEXT, file="x.yaml").models
    assert models is not None
    assert models["second"] == ModelSpec(
        "second", "http://10.0.0.5/v1", "SECOND_KEY", Price(1, 2), reliability=0.9
    )
    assert models["third"] == ModelSpec("third", max_concurrency=3, max_model_len=4096)


def test_without_keys_the_plan_has_the_documented_defaults() -> None:
    plan = compile_policy("hallucination: {}\n", file="x.yaml").default
    assert plan.standard == StandardSettings()
    assert plan.standard.convergence_threshold is None
    assert plan.mitigation.deadline_s is None
    assert plan.auto.modes == (Mode.LIGHTWEIGHT, Mode.STANDARD, Mode.PREMIUM)


AGENTIC = (
    "models: [{name: decider}, {name: writer}]\nsources: [{name: a, type: mcp, command: [x], tool: t}]\n"
    "hallucination: {default_mode: agentic, retrieval: {sources: [a]}, agentic: {decision_model: decider}}\n"
    "decisions:\n  - name: own\n    rules: {type: domain, name: finance}\n"
    "    plugins: [{type: hallucination, configuration: {agentic: {synthesis_model: writer, max_iterations: 3}}}]\n"
)


def test_settings_of_agentic_are_inherited_and_its_models_named() -> None:
    """A decision writes over the default key by key, and nothing is kept of a request that the mode makes anew."""
    (own,) = compile_policy(AGENTIC, file="x.yaml").plans
    assert (own.mode, own.mode_to_run, own.corrects, own.keeps_request) == (
        Mode.AGENTIC,
        Mode.AGENTIC,
        True,
        False,
    )
    assert own.named_models == called(own) == ("decider", "writer")
    assert own.agentic.max_iterations == 3


def test_defaults_of_agentic_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written goes before; a variable that holds no number refuses the policy and names it."""
    monkeypatch.setenv("AGENTIC_MAX_ITERATIONS", "7")
    policy = compile_policy(AGENTIC, file="x.yaml")
    assert (policy.default.agentic.max_iterations, policy.plans[0].agentic.max_iterations) == (7, 3)
    monkeypatch.setenv("AGENTIC_MAX_TOKENS", "many")
    with pytest.raises(PolicyError, match="AGENTIC_MAX_TOKENS"):
        compile_policy("hallucination: {}\n", file="x.yaml")
