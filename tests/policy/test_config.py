"""The policies that ship, and the generated schema."""

from pathlib import Path

import jsonschema
import pytest
import yaml

from truthlens.core.records.enums import Mode
from truthlens.core.records.exchange import Facts, RequestHead
from truthlens.core.records.plan import Plan
from truthlens.policy import Policy, Severity, check_file, json_schema, load_policy
from truthlens.policy.schema import Behaviour, PluginConfiguration, PolicyFile

CONFIG = Path(__file__).parent.parent.parent / "config"
EXAMPLES = sorted((CONFIG / "examples").glob("*.yaml"))


def head(headers: dict[str, str] | None = None, **route: str) -> RequestHead:
    metadata = {name.replace("_", "-"): value for name, value in route.items()}
    return RequestHead("POST", "/v1/chat/completions", headers or {}, metadata)


def test_shipped_policy_is_clean() -> None:
    """The shipped policy gives no error and no warning."""
    assert check_file(CONFIG / "truthlens.yaml") == []


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_examples_load(file: Path) -> None:
    """Every example loads."""
    assert [d.render() for d in check_file(file) if d.severity is Severity.ERROR] == []


def test_schema_describes_every_section() -> None:
    """The schema refuses unknown keys and knows every section and every plugin key by its name in YAML."""
    schema = json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(PolicyFile.model_fields)
    assert "modelRefs" in schema["$defs"]["DecisionSection"]["properties"]
    assert set(PluginConfiguration.model_fields) >= set(Behaviour.model_fields)


@pytest.mark.parametrize("file", [CONFIG / "truthlens.yaml", *EXAMPLES], ids=lambda file: file.stem)
def test_schema_accepts_shipped_files(file: Path) -> None:
    """An editor that validates with the published schema marks nothing in the shipped files."""
    validator = jsonschema.Draft202012Validator(json_schema())
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert [error.message for error in validator.iter_errors(data)] == []


@pytest.mark.parametrize(
    "text",
    [
        "hallucination: {treshold: 0.5}",
        "hallucination: {threshold: 2}",
        "decisions: [{name: a, rules: {type: topic, name: b}}]",
        "decisions: [{name: a, rules: {type: model, name: b}, plugins: [{type: hallucination, configuration: {x: 1}}]}]",
    ],
)
def test_schema_refuses_mistakes(text: str) -> None:
    """An editor that validates with the published schema marks common mistakes."""
    assert not jsonschema.Draft202012Validator(json_schema()).is_valid(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("What DOSAGE is right for a child?", "medical_assistant"),
        ("这种药物的剂量是多少？", "medical_assistant"),
        ("Should I sell my shares?", "financial_advisor"),
        ("Is this a breach of contract?", "legal_assistant"),
        ("我的订单什么时候发货？", "customer_support"),
        ("Write a poem about the sea", "default"),
        ("How do I boil an egg?", "default"),
    ],
)
def test_shipped_policy_by_words(text: str, decision: str) -> None:
    """The shipped policy tells common domains from the words of the user."""
    policy = load_policy(CONFIG / "truthlens.yaml")
    assert policy.select(Facts(head(), text=text)).decision == decision


@pytest.mark.parametrize(
    ("domain", "decision"), [("creative", "creative_writing"), ("internal", "internal_assistant")]
)
def test_shipped_policy_by_route(domain: str, decision: str) -> None:
    """The weak decisions of the shipped policy are chosen by the route."""
    policy = load_policy(CONFIG / "truthlens.yaml")
    assert policy.select(Facts(head(truthlens_domain=domain), text="once upon a time")).decision == decision


def whitepaper() -> Policy:
    return load_policy(CONFIG / "examples" / "whitepaper.yaml")


def plan(policy: Policy, name: str) -> Plan:
    return next(plan for plan in policy.plans if plan.decision == name)


def test_whitepaper_values() -> None:
    """All values of the white paper's form arrive in the plans."""
    policy = whitepaper()
    assert [p.decision for p in policy.plans] == [
        "medical_assistant", "financial_advisor", "customer_support", "internal_assistant", "creative_writing"
    ]  # fmt: skip
    medical = plan(policy, "medical_assistant")
    assert (medical.mode, medical.threshold, medical.require_disclaimer) == (Mode.PREMIUM, 0.3, True)
    assert medical.model_refs == ("gpt-4-turbo",)
    assert medical.premium.verification_models == ("claude-3-sonnet", "gpt-4-turbo")
    assert (medical.premium.judge_model, medical.premium.require_consensus) == ("llama-3.1-70b", True)
    assert (medical.premium.max_iterations, medical.standard.max_iterations) == (5, 3)
    assert plan(policy, "financial_advisor").standard.max_iterations == 4
    assert plan(policy, "financial_advisor").standard.convergence_threshold == 0.4
    assert plan(policy, "internal_assistant").mode is Mode.LIGHTWEIGHT
    assert plan(policy, "creative_writing").enabled is False
    assert (policy.default.mode, policy.default.threshold, policy.default.use_cpu) == (
        Mode.STANDARD,
        0.6,
        False,
    )
    assert policy.default.model_id == "models/lettucedetect-large-modernbert-en-v1"
    assert policy.default.warning_template is not None
    assert policy.default.warning_template.startswith("⚠️")


def test_details_example_lets_clients_ask() -> None:
    """The example for details lists the header with which clients ask for it."""
    assert "x-truthlens-details" in load_policy(CONFIG / "examples" / "details.yaml").trusted_headers


def test_route_example() -> None:
    """In the example for routes, the router's header chooses and the client's words do not."""
    policy = load_policy(CONFIG / "examples" / "routes.yaml")
    assert policy.select(Facts(head({"x-route-class": "fiction"}))).decision == "fiction"
    assert policy.select(Facts(head({"x-route-class": "clinic-north"}))).decision == "clinic"
    assert (
        policy.select(Facts(head(), text="Please explain photosynthesis to my pupils")).decision == "tutoring"
    )
    assert (
        policy.select(Facts(head(), model="draft-1", text="explain photosynthesis to a pupil")).decision
        == "default"
    )
