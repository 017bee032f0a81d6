"""Settings of the modes that act on answers, as they reach a plan."""

from __future__ import annotations

from truthlens.core.records.calls import ModelSpec, Price
from truthlens.core.records.enums import Mode
from truthlens.core.records.plan import Consensus, MitigationSettings, StandardSettings
from truthlens.policy import compile_policy

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
    assert default.standard == StandardSettings(4, 0.3, self_check=True)
    assert default.premium.verification_models == ("second", "third")
    assert default.premium.consensus is Consensus.DEBATE
    own = next(plan for plan in policy.plans if plan.decision == "own")
    assert own.mitigation == MitigationSettings(20, 5, forward_authorization=True)


def test_short_max_iterations_goes_to_the_mode_of_the_decision() -> None:
    short, own = compile_policy(TEXT, file="x.yaml").plans
    assert (short.mode, short.premium.max_iterations, short.standard.max_iterations) == (Mode.PREMIUM, 2, 4)
    assert own.standard.max_iterations == 1
    assert not short.require_disclaimer
    assert own.require_disclaimer


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
