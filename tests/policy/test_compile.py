"""From keys to plans: defaults, inheritance, and the files that cannot be read."""

from dataclasses import replace
from pathlib import Path

import pytest

from truthlens.core.cache_settings import CacheSettings
from truthlens.core.errors import PolicyError
from truthlens.core.records.enums import (
    Aggregation,
    IntermediateCalls,
    Mode,
    OnUnchecked,
    Streaming,
    SystemEvidence,
    WarningPosition,
)
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.settings import EvidenceRules
from truthlens.core.registry import SourceType
from truthlens.policy import (
    InvalidPolicyError,
    Limits,
    check_file,
    compile_policy,
    load_policy,
)
from truthlens.process.settings import shipped_policy

ONE = "decisions:\n  - name: one\n    rules: {type: domain, name: finance}\n"


def test_an_empty_policy_is_the_plan_record() -> None:
    """Where nothing is written everything has the defaults of the plan record, and nothing is warned of."""
    policy = compile_policy("hallucination: {}\n", file="p.yaml")
    assert policy.default == Plan("default", policy_version=policy.version)
    assert (policy.plans, policy.warnings, policy.limits) == ((), (), Limits())
    assert policy.telemetry.log_text is False


@pytest.mark.parametrize("text", ["hallucination: {default_mode: standard}\n", ONE])
def test_a_policy_that_names_no_detectors_has_those_of_the_shipped_one(text: str) -> None:
    """And its threshold: in the default plan and in every decision."""
    shipped, policy = load_policy(shipped_policy()).default, compile_policy(text, file="p.yaml")
    for plan in (policy.default, *policy.plans):
        assert (plan.detectors, plan.threshold) == (shipped.detectors, shipped.threshold)


def test_every_key_arrives() -> None:
    """Every key of `hallucination` arrives in the default plan."""
    plan = compile_policy(
        """
hallucination:
  enabled: false
  default_mode: premium
  threshold: {cost_ratio: 1, prior: 0.25}
  expected_rate: 0.2
  model_id: models/mine
  use_cpu: false
  aggregation: span_max
  streaming: buffer
  on_unchecked: block
  max_unscored: 0.4
  details: true
  detectors: [{name: encoder, weight: 2}]
  warning_template: careful
  warning_position: after
  require_disclaimer: true
  timeout_s: 1.5
  standard: {max_iterations: 2, convergence_threshold: 0.1}
  premium: {verification_models: [a], judge_model: b, max_iterations: 4, require_consensus: true}
  evidence:
    {system: marked, system_min_chars: 10, roles: [kb], marks: [Fact sheet], user_patterns: ["x(.)x"],
     intermediate_calls: none}
""",
        file="f",
        model_exists=lambda name: name == "models/mine",
    ).default
    assert (plan.enabled, plan.mode, plan.expected_rate) == (False, Mode.PREMIUM, 0.2)
    assert plan.threshold == pytest.approx(0.25)
    assert (plan.model_id, plan.use_cpu, plan.aggregation) == ("models/mine", False, Aggregation.SPAN_MAX)
    assert (plan.streaming, plan.on_unchecked, plan.details) == (Streaming.BUFFER, OnUnchecked.BLOCK, True)
    assert plan.max_unscored == 0.4
    assert plan.detectors == (DetectorSpec("encoder", 2.0),)
    assert (plan.warning_template, plan.warning_position) == ("careful", WarningPosition.AFTER)
    assert (plan.require_disclaimer, plan.timeout_s) == (True, 1.5)
    assert (plan.standard.max_iterations, plan.standard.convergence_threshold) == (2, 0.1)
    assert (plan.premium.verification_models, plan.premium.judge_model) == (("a",), "b")
    assert (plan.premium.max_iterations, plan.premium.require_consensus) == (4, True)
    assert plan.evidence == EvidenceRules(
        system=SystemEvidence.MARKED,
        system_min_chars=10,
        roles=("kb",),
        marks=("Fact sheet",),
        user_patterns=("x(.)x",),
        intermediate_calls=IntermediateCalls.NONE,
    )


def test_plugin_inherits() -> None:
    """A decision has the keys of `hallucination`, and its plugin's keys over them, section by section."""
    policy = compile_policy(
        "hallucination: {threshold: 0.5, details: true, standard: {max_iterations: 7, convergence_threshold: 0.2}}\n"
        + ONE
        + "    plugins: [{type: hallucination, configuration: {threshold: 0.3, standard: {max_iterations: 1}}}]\n",
        file="f",
    )
    (plan,) = policy.plans
    assert (plan.threshold, plan.details) == (0.3, True)
    assert (plan.standard.max_iterations, plan.standard.convergence_threshold) == (1, 0.2)
    assert plan.policy_version == policy.version


def test_a_key_without_a_value_is_inherited() -> None:
    """``enabled:`` with nothing behind it switches nothing off."""
    keys = ("enabled", "threshold", "streaming", "on_unchecked", "timeout_s", "default_mode", "detectors")
    empty = "".join(f"  {key}:\n" for key in keys)
    assert replace(
        compile_policy(f"hallucination:\n{empty}", file="p.yaml").default, policy_version=""
    ) == Plan("default")


def test_costs_give_the_threshold_of_proposition_1() -> None:
    """The same number under every expected_rate, as for a number that is written."""
    policy = compile_policy(
        "hallucination: {threshold: {cost_ratio: 10, prior: 0.2}}\n"
        + ONE
        + "    plugins: [{type: hallucination, configuration: {expected_rate: 0.2}}]\n",
        file="f",
    )
    (plan,) = policy.plans
    assert policy.default.threshold == pytest.approx(1 / 41)
    assert plan.threshold == pytest.approx(1 / 41)
    assert plan.even_threshold > policy.default.even_threshold


def test_a_number_is_a_probability_at_the_plans_own_rate() -> None:
    """A threshold that is inherited as a number stays that number under another expected_rate."""
    text = ONE + "    plugins: [{type: hallucination, configuration: {expected_rate: 0.1}}]\n"
    (plan,) = compile_policy("hallucination: {threshold: 0.5}\n" + text, file="f").plans
    assert (plan.threshold, plan.expected_rate, plan.even_threshold) == (0.5, 0.1, pytest.approx(0.9))


def test_decision_without_plugin() -> None:
    """A decision without a plugin has the plan of `hallucination` under its own name."""
    policy = compile_policy("hallucination: {threshold: 0.4}\n" + ONE, file="f")
    assert [(p.decision, p.threshold) for p in policy.plans] == [("one", 0.4)]


@pytest.mark.parametrize(
    ("keys", "standard", "premium"),
    [
        ("mode: standard, max_iterations: 9", 9, 5),
        ("mode: premium, max_iterations: 9", 3, 9),
        ("mode: auto, max_iterations: 9", 9, 9),
        ("default_mode: standard, max_iterations: 9", 9, 5),
        ("mode: standard, max_iterations: 9, standard: {max_iterations: 2}", 2, 5),
    ],
)
def test_short_max_iterations(keys: str, standard: int, premium: int) -> None:
    """max_iterations of a plugin is that of its mode; the long form goes before it."""
    text = ONE + f"    plugins: [{{type: hallucination, configuration: {{{keys}}}}}]\n"
    (plan,) = compile_policy(text, file="f").plans
    assert (plan.standard.max_iterations, plan.premium.max_iterations) == (standard, premium)


def test_limits_and_telemetry() -> None:
    """Limits and telemetry settings arrive; what is left out keeps its default."""
    policy = compile_policy(
        "limits: {max_body_bytes: 2048, queue_limit: 3}\ntelemetry: {log_text: true}\n", file="f"
    )
    assert policy.limits == Limits(max_body_bytes=2048, queue_limit=3)
    assert policy.telemetry.log_text is True


def test_cache() -> None:
    """The section arrives; what is left out keeps its default, with and without the section."""
    text = "cache: {max_entries: 5, max_bytes: 65536, ttl_s: 60, redis: false}\n"
    expected = CacheSettings(max_entries=5, max_bytes=65_536, ttl_s=60.0, redis=False)
    assert compile_policy(text, file="f").cache == expected
    assert compile_policy("cache: {enabled: false}\n", file="f").cache == CacheSettings(enabled=False)
    for text in ("cache: {}\n", "hallucination: {}\n"):
        assert compile_policy(text, file="f").cache == CacheSettings()


def test_version_names_the_text() -> None:
    """Two texts have two versions, and the same text always the same."""
    one, two = (compile_policy(f"hallucination: {{threshold: {t}}}", file="f") for t in (0.1, 0.2))
    assert one.version != two.version
    assert one.version == compile_policy("hallucination: {threshold: 0.1}", file="g").version


def test_model_exists_is_asked() -> None:
    """A model that the caller can load is not warned of, and one that it cannot is."""
    text = "hallucination: {model_id: some-model}"
    assert compile_policy(text, file="f", model_exists=lambda _: True).warnings == ()
    (warning,) = compile_policy(text, file="f", model_exists=lambda _: False).warnings
    assert warning.key == "hallucination.model_id"


def test_missing_file(tmp_path: Path) -> None:
    """A file that is not there is an error with its name, from loading and from checking."""
    path = tmp_path / "none.yaml"
    with pytest.raises(PolicyError, match=r"none\.yaml:1: \(file\): cannot be read: No such file"):
        load_policy(path)
    assert [d.message for d in check_file(path)] == ["cannot be read: No such file or directory"]


def test_not_utf8(tmp_path: Path) -> None:
    """A file in another encoding is told to be saved as UTF-8, and a byte order mark does no harm."""
    path = tmp_path / "p.yaml"
    path.write_bytes(b"hallucination: {}\n# \xff\n")
    with pytest.raises(InvalidPolicyError, match="save the file as UTF-8"):
        load_policy(path)
    path.write_bytes(b"\xef\xbb\xbfhallucination: {threshold: 0.1}\n")
    assert load_policy(path).default.threshold == 0.1


def test_a_pasted_key_is_not_repeated() -> None:
    """What stands where the name of an environment variable belongs is not shown in the message."""
    text = "models: [{name: m, base_url: 'http://h/v1', api_key_env: sk-verysecret}]"
    with pytest.raises(InvalidPolicyError) as caught:
        compile_policy(text, file="f")
    assert "verysecret" not in str(caught.value)


def test_detectors_at_the_top_are_those_of_plans_that_list_none() -> None:
    """As in the contract's list of sections; a list further in goes before it."""
    top = "detectors: [{name: numbers, weight: 0.5}]\n"
    own = "hallucination: {detectors: [encoder]}\n"
    for text, names in ((top, ["numbers"]), (top + own, ["encoder"])):
        plan = compile_policy(text, file="x.yaml").default
        assert [spec.name for spec in plan.detectors] == names
    assert compile_policy(top, file="x.yaml").default.detectors[0].weight == 0.5


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            "type: ddgs, filter: {tenant: x-tenant}",
            "sources[0].filter: a source of type 'ddgs' cannot filter",
        ),
        ("type: folder, path: docs, filter: {folder: x-tenant}", ""),
        ("type: mcp, url: 'http://127.0.0.1:9/mcp', tool: find, auth: passthrough", "does not send on"),
        ("type: searxng, base_url: 'http://127.0.0.1:9', auth: passthrough", ""),
    ],
)
def test_what_keeps_tenants_apart_is_refused_where_a_source_does_not_heed_it(
    source: str, problem: str
) -> None:
    """A source of one's own heeds neither unless it declares it: to leave it out must not open the border."""
    text = f"trusted_headers: [x-tenant]\nsources: [{{name: own, {source}}}]\n"
    found = check_file_text(text)
    assert (problem in found) if problem else not found


def test_a_source_that_declares_nothing_takes_neither_filter_nor_passthrough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("truthlens.policy.compile.source_types", lambda: {"own": SourceType("own", print)})
    for key in ("filter: {tenant: x-tenant}", "auth: passthrough"):
        found = check_file_text(f"trusted_headers: [x-tenant]\nsources: [{{name: a, type: own, {key}}}]\n")
        assert f"sources[0].{key.partition(':')[0]}" in found


def check_file_text(text: str) -> str:
    """Return what is wrong with a policy, ``""`` where nothing is."""
    try:
        compile_policy(text, file="p.yaml")
    except InvalidPolicyError as error:
        return str(error)
    return ""
