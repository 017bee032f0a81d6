"""Setting one threshold in the text of a policy."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.policy import compile_policy
from truthlens.policy.plans.threshold_edit import EditError, with_key

RULES = "rules: {type: domain, name: finance}"
RECORD = {"max_miss_rate": 0.05, "calibration": "a b/r.json"}
FLOW = "{max_miss_rate: 0.05, calibration: a b/r.json}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "# mine\nhallucination:\n  enabled: true  # on\n  threshold:   0.6   # stricter\n\n# end\n",
            "# mine\nhallucination:\n  enabled: true  # on\n  threshold:   0.25   # stricter\n\n# end\n",
        ),
        (
            "hallucination:\n  threshold:\n    cost_ratio: 10\n    prior: 0.2   # keep\n\n# x\nmodels: []\n",
            "hallucination:\n  threshold: 0.25   # keep\n\n# x\nmodels: []\n",
        ),
        ("hallucination: {threshold: {cost_ratio: 2, prior: 0.3}} # z", "hallucination: {threshold: 0.25} # z"),
        ("hallucination: {details: true,}\n", "hallucination: {details: true, threshold: 0.25,}\n"),
        ("hallucination: {}\n", "hallucination: {threshold: 0.25}\n"),
        ("hallucination:\r\n  details: true # d\r\n", "hallucination:\r\n  details: true # d\r\n  threshold: 0.25\r\n"),
        ("# top\nlimits: {queue_limit: 3}", "# top\nlimits: {queue_limit: 3}\nhallucination: {threshold: 0.25}"),
        (
            "hallucination:\n  warning_template: |\n    a\n    b\n  detectors:\n    - encoder\n",
            "hallucination:\n  threshold: 0.25\n  warning_template: |\n    a\n    b\n  detectors:\n    - encoder\n",
        ),
    ],
)  # fmt: skip
def test_default(before: str, after: str) -> None:
    """Only the threshold changes: comments, order, spacing and line ends stay."""
    assert with_key(before, 0.25, decision="default", file="f") == after


PLUGIN = f"    plugins: [{{type: hallucination, configuration: {{threshold: {FLOW}}}}}]\n"
BESIDE_ANOTHER = """\
    plugins:
      - type: router
        x: 1
      - type: hallucination  # ours
"""
BLOCK = """\
    plugins:
      - type: hallucination
        configuration:
          threshold: 0.5 # t
"""


@pytest.mark.parametrize(
    ("plugins", "after"),
    [
        ("", PLUGIN),
        ("    plugins: [{type: hallucination}]\n", PLUGIN),
        (BESIDE_ANOTHER, f"{BESIDE_ANOTHER}        configuration: {{threshold: {FLOW}}}\n"),
        (BLOCK, BLOCK.replace("0.5", FLOW)),
    ],
)
def test_decision(plugins: str, after: str) -> None:
    """What is missing around the threshold is added, and other decisions stay as they are."""
    head = (
        "decisions:\n  - name: other\n    rules: {type: domain, name: legal}\n  - name: one # n\n    " + RULES
    )
    tail = "models: [] # last\n"
    text = with_key(f"{head}\n{plugins}{tail}", RECORD, decision="one", file="f")
    assert text == f"{head}\n{after}{tail}"


ALIAS = """\
hallucination: {threshold: &t 0.5}
decisions: [{name: one, RULES, plugins: [{type: hallucination, configuration: {threshold: *t}}]}]
"""
SHARED = """\
hallucination: &h {details: true}
decisions: [{name: one, RULES, plugins: [{type: hallucination, configuration: *h}]}]
"""
COMMENT = """\
decisions:
  - name: one
    RULES
    plugins:
      - type: hallucination
        configuration:
          threshold:
            cost_ratio: 10 # because
            prior: 0.2
"""
ROUTER = "decisions: [{name: one, RULES, plugins: [{type: router}]}]\n"


@pytest.mark.parametrize("text", [ALIAS, SHARED, COMMENT, ROUTER])
def test_refused(text: str) -> None:
    """Where more than the threshold would change, or a comment would be lost, the line to write is told."""
    with pytest.raises(EditError, match=r"by hand: threshold: 0\.3"):
        with_key(text.replace("RULES", RULES), 0.3, decision="one", file="f")


def test_an_anchor_that_others_use_is_not_changed() -> None:
    """The threshold that is replaced may not be the anchor of another one."""
    with pytest.raises(EditError, match="anchor"):
        with_key(ALIAS.replace("RULES", RULES), 0.3, decision="default", file="f")


def test_unknown_decision() -> None:
    """The message names those that there are."""
    text = f"decisions: [{{name: one, {RULES}}}]"
    with pytest.raises(EditError, match="no decision 'two'; known: one, default"):
        with_key(text, 0.3, decision="two", file="f")


KEYS = {
    "details": True,
    "threshold": 0.7,
    "on_unchecked": "block",
    "detectors": ["encoder"],
    "timeout_s": 2.5,
}


@settings(deadline=None)
@given(
    keys=st.lists(st.sampled_from(sorted(KEYS)), unique=True),
    flow=st.booleans(),
    indent=st.integers(2, 6),
    threshold=st.floats(0, 1),
)
def test_any_layout(keys: list[str], flow: bool, indent: int, threshold: float) -> None:
    """Whatever keys stand there and however they are laid out, the plan gets just the threshold."""
    own = {key: KEYS[key] for key in keys}
    entry = {"name": "one", "rules": {"type": "domain", "name": "finance"}}
    entry["plugins"] = [{"type": "hallucination", "configuration": own}]  # type: ignore[assignment]
    data = {"hallucination": own, "decisions": [entry]}
    text = yaml.safe_dump(data, default_flow_style=flow, indent=indent, sort_keys=False)
    if "&id" in text:
        text = yaml.safe_dump(yaml.safe_load(yaml.safe_dump(entry)), sort_keys=False, default_flow_style=True)
        text = f"decisions:\n  - {text}"
    changed = with_key(text, threshold, decision="one", file="f")
    assert compile_policy(changed, file="f").plans[0].threshold == threshold
    expected = yaml.safe_load(text)
    expected["decisions"][0]["plugins"][0]["configuration"]["threshold"] = threshold
    assert yaml.safe_load(changed) == expected
