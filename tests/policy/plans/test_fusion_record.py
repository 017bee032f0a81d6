"""Weights of the verdict that stand in records: read at start, compared with the plan, refused where they are of something else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from truthlens.core.errors import ModelError, PolicyError
from truthlens.core.records.enums import Aggregation
from truthlens.core.records.verdict import ModelIdentity
from truthlens.core.scoring_version import SCORING_VERSION
from truthlens.policy import InvalidPolicyError, Policy, check_file, load_policy
from truthlens.policy.plans.fusion_record import FusionRecord
from truthlens.policy.plans.records import MAX_BYTES, RecordError
from truthlens.policy.watch import watch

MODEL = ModelIdentity("mine", "ab" * 32, Aggregation.SPAN_MAX)
POLICY = "hallucination:\n  threshold: 0.5\n  fusion: w.json\n"
WEIGHTS = {"intercept": -0.2, "opinions": {"encoder": 0.7}, "accusations": {"numbers": 1.5}, "vouchers": 0.3}
FIGURES = {"auroc": 0.8, "log_loss": 0.5, "found": 0.4}


def content(**changes: Any) -> dict[str, Any]:
    made = {
        "model": MODEL.name,
        "model_sha256": MODEL.sha256,
        "aggregation": "span_max",
        "detectors": {"encoder": 1.0, "numbers": 1.0, "contradictions": 1.0, "reader": 1.0},
        "scoring_version": SCORING_VERSION,
    }
    return {
        "weights": WEIGHTS,
        "before": FIGURES,
        "after": FIGURES,
        "claims": 400,
        "unsupported": 200,
        "answers": 300,
        "scored_with": {**made, **changes.pop("scored_with", {})},
        "data": {"name": "twins", "sha256": "ef" * 32},
        "date": "2026-01-31",
        "truthlens": "1.0",
        **changes,
    }


def identify(_model_id: str | None) -> ModelIdentity:
    return MODEL


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "w.json").write_text(json.dumps(content()))
    path = tmp_path / "p.yaml"
    path.write_text(POLICY)
    return path


def test_the_weights_are_those_of_the_plan_and_of_what_inherits_it(policy: Path) -> None:
    """A decision can go back to those of this version; without the key there are none of the plan's own."""
    policy.write_text(
        POLICY + "decisions:\n"
        "- {name: one, rules: {type: domain, name: finance}}\n"
        "- {name: two, rules: {type: domain, name: legal}, plugins: [{type: hallucination, configuration: {fusion: default}}]}\n"
    )
    loaded = load_policy(policy, identify=identify)
    plans = {plan.decision: plan.coefficients for plan in (loaded.default, *loaded.plans)}
    assert plans["default"] is not None
    assert dict(plans["default"].opinions) == {"encoder": 0.7}
    assert (plans["default"].vouchers, plans["default"].intercept) == (0.3, -0.2)
    assert plans["one"] == plans["default"]
    assert plans["two"] is None
    assert hash(loaded.default) == hash(load_policy(policy, identify=identify).default)
    assert load_policy(policy, use_fusion=False).default.coefficients is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scored_with": {"scoring_version": SCORING_VERSION - 1}}, f"under the scoring rules {SCORING_VERSION - 1}"),
        ({"scored_with": {"scoring_version": SCORING_VERSION + 1}}, f"under the scoring rules {SCORING_VERSION + 1}"),
        ({"scored_with": {"detectors": {"encoder": 1.0}}}, "for the detectors encoder, and the plan has contradictions, encoder, numbers"),
        ({"scored_with": {"model_sha256": "cd" * 32}}, "for the model 'mine', and the plan's is 'mine', or was changed"),
        ({"scored_with": {"options": {"numbers": {"tolerance": 0.1}}}}, "detector options numbers.tolerance 0.1"),
    ],
)  # fmt: skip
def test_weights_of_something_else_are_refused_with_the_command(
    policy: Path, changes: dict[str, Any], said: str
) -> None:
    """Other rules, detectors, options or another model make other findings."""
    (policy.parent / "w.json").write_text(json.dumps(content(**changes)))
    (error,) = check_file(policy, identify=identify)
    assert (error.key, error.line) == ("hallucination.fusion", 3)
    assert said in error.message
    assert f"truthlens calibrate --fusion --config {policy} --decision default --write" in error.remedy
    assert "fusion: default" in error.remedy


def test_other_weights_of_detectors_are_the_operators(policy: Path) -> None:
    """`weight` multiplies what was fitted, and needs no other fit."""
    detectors = "  detectors: [encoder, {name: numbers, weight: 0.5}, contradictions, reader]\n"
    policy.write_text(POLICY + detectors)
    assert check_file(policy, identify=identify) == []


def test_a_decision_of_other_detectors_that_inherits_weights_is_refused(policy: Path) -> None:
    policy.write_text(
        POLICY + "decisions:\n- name: one\n  rules: {type: domain, name: finance}\n"
        "  plugins: [{type: hallucination, configuration: {detectors: [encoder]}}]\n"
    )
    (error,) = check_file(policy, identify=identify)
    assert "the plan has encoder" in error.message
    assert "--decision one" in error.remedy


def unknown(_model_id: str | None) -> ModelIdentity:
    raise ModelError("its folder is gone")


def test_a_model_that_cannot_be_read_is_said(policy: Path) -> None:
    (error,) = check_file(policy, identify=unknown)
    assert "its folder is gone" in error.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not valid JSON"),
        ("[" * 60_000, "not valid JSON"),
        ("[]", "the file"),
        ("{}", "weights"),
        (" " * MAX_BYTES + "{}", "larger than"),
        (json.dumps(content(weights={**WEIGHTS, "opinions": {"encoder": -0.1}})), "weights.opinions.encoder"),
        (json.dumps(content(weights={**WEIGHTS, "vouchers": float("inf")})), "weights.vouchers"),
        (json.dumps(content(kind="threshold")), "kind"),
        (json.dumps({**content(), "code": "x"}), "code"),
    ],
)
def test_what_is_no_record_is_refused(policy: Path, text: str, said: str) -> None:
    """No weight is negative, whoever wrote the file: more suspicion never lowers a risk."""
    (policy.parent / "w.json").write_text(text)
    (error,) = check_file(policy, identify=identify)
    assert "no record of weights of the verdict" in error.message
    assert said in error.message
    with pytest.raises(RecordError):
        FusionRecord.read(text.encode())


def test_a_file_that_is_not_there_is_said(policy: Path) -> None:
    (policy.parent / "w.json").unlink()
    with pytest.raises(InvalidPolicyError, match=r"'w\.json' cannot be read: No such file"):
        load_policy(policy, identify=identify)


async def test_a_change_of_the_weights_is_another_version_of_the_policy(policy: Path) -> None:
    """It is taken over while the server runs, like a change of the policy itself; what is wrong is said."""
    said: asyncio.Queue[Policy | PolicyError] = asyncio.Queue()
    first = load_policy(policy, identify=identify).version
    watching = asyncio.create_task(
        watch(policy, reload=said.put, failed=said.put, loaded=first, identify=identify)
    )
    await asyncio.sleep(0.1)
    (policy.parent / "w.json").write_text(
        json.dumps(content(weights={**WEIGHTS, "opinions": {"encoder": 0.9}}))
    )
    loaded = await asyncio.wait_for(said.get(), 30)
    assert isinstance(loaded, Policy)
    assert loaded.version != first
    assert loaded.default.coefficients is not None
    assert dict(loaded.default.coefficients.opinions) == {"encoder": 0.9}
    (policy.parent / "w.json").write_text("{}")
    failed = await asyncio.wait_for(said.get(), 30)
    assert "no record of weights" in str(failed)
    watching.cancel()
    await asyncio.wait([watching])
