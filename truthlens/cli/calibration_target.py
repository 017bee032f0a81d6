"""The plan that ``calibrate`` works on: its model, its scores, its place in the policy file.

It scores as the gateway does, without deadlines, and chooses nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from truthlens.core.errors import PolicyError
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import ModelIdentity, Verdict
from truthlens.detection.building import OneModel, build_engine
from truthlens.detection.models.fingerprint import model_identity
from truthlens.detection.models.loading import load_encoder
from truthlens.model_store import find_model, has_model, scoring_folder
from truthlens.policy import InvalidPolicyError, Policy, Severity, default_policy, load_policy
from truthlens.policy.compile import check_text, read_text
from truthlens.policy.files import replace_file
from truthlens.policy.plans.threshold_edit import with_threshold
from truthlens.policy.plans.threshold_record import MissRateGoal, ThresholdRecord
from truthlens.settings import Settings
from truthlens.training.calibrate.threshold import Scorer
from truthlens.training.data.dataset import as_exchange

_NO_DEADLINE_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Target:
    """A plan with its model, and the policy file that it comes from.

    ``threshold`` is the plan's present one, ``None`` where there is no policy or it cannot be used.
    """

    plan: Plan
    max_windows: int
    folder: Path
    identity: ModelIdentity
    config: Path | None
    threshold: float | None


def find_target(settings: Settings, config: Path | None, decision: str, model: str | None) -> Target:
    """Return the plan of ``decision`` (without ``config``: the built-in one), and the model that scores.

    Raises:
        PolicyError: the policy cannot be used, has no such decision, or detection is off in it.
        ModelError: there is no such model, or it cannot be used.
    """
    policy = _load(config, settings) if config else default_policy()
    plan = _plan(policy, decision)
    if not plan.enabled:
        raise PolicyError(
            f"{config}: detection is off in the decision {decision!r}; there is no score to set a threshold on"
        )
    folder = find_model(model, settings) if model is not None else scoring_folder(plan.model_id, settings)
    threshold = _threshold_now(config, settings, decision) if config else None
    return Target(plan, policy.limits.max_windows, folder, model_identity(folder), config, threshold)


def _load(config: Path, settings: Settings) -> Policy:
    """Load the policy without its threshold records: the one to be made may be missing or not fit."""
    return load_policy(config, model_exists=model_finder(settings), use_records=False)


def _threshold_now(config: Path, settings: Settings, decision: str) -> float | None:
    try:
        policy = load_policy(config, model_exists=model_finder(settings), identify=identifier(settings))
    except InvalidPolicyError:
        return None
    return _plan(policy, decision).threshold


def _plan(policy: Policy, decision: str) -> Plan:
    plan = policy.plan_named(decision)
    if plan is None:
        names = ", ".join(policy.decision_names)
        raise PolicyError(f"{policy.file}: there is no decision {decision!r}; known: {names}")
    return plan


@contextmanager
def scorer_of(target: Target, *, threads: int) -> Iterator[Scorer]:
    """Open a scorer that scores as the gateway does, by the target's plan, without its deadline."""
    encoder = load_encoder(
        target.folder,
        use_cpu=target.plan.use_cpu,
        threads=threads,
        max_windows=target.max_windows,
    )
    encoder.warm_up()
    plan = replace(target.plan, timeout_s=_NO_DEADLINE_S)
    engine = build_engine([plan], OneModel(encoder), queue_limit=1)

    with asyncio.Runner() as runner:

        def scorer(query: str, passages: Sequence[str], answer: str) -> Verdict:
            exchange, choice = as_exchange(query, passages, answer)
            (verdict,) = runner.run(engine.detect(plan, exchange, (choice,)))
            return verdict

        try:
            yield scorer
        finally:
            runner.run(engine.aclose())


def set_threshold(target: Target, record: ThresholdRecord, output: Path | None, settings: Settings) -> int:
    """Write the threshold into the policy; the result is how many errors it has elsewhere."""
    assert target.config is not None
    path, decision = target.config, target.plan.decision
    # Scoring takes a while: what counts is the file as it is now.
    text = read_text(path)
    plan = _plan(_load(path, settings), decision)
    if _scoring(plan) != _scoring(target.plan):
        raise PolicyError(
            f"{path}: the decision {decision!r} was changed while the answers were scored; run it again"
        )
    value: float | dict[str, Any] = record.threshold
    if isinstance(record.goal, MissRateGoal):
        assert output is not None
        name = Path(os.path.relpath(output.resolve(), path.parent.resolve())).as_posix()
        value = {"max_miss_rate": record.goal.max_miss_rate, "calibration": name}
    changed = with_threshold(text, value, decision=decision, file=str(path))
    before, after = (_errors(content, path, settings) for content in (text, changed))
    new = [line for line in after if line not in before]
    if new:
        raise PolicyError("\n".join(new))
    raw = path.read_bytes()
    if raw.decode("utf-8-sig") != text:
        raise PolicyError(f"{path}: was changed by someone else just now; run it again")
    replace_file(path, changed if not raw.startswith(b"\xef\xbb\xbf") else "\ufeff" + changed)
    return len(after)


def _scoring(plan: Plan) -> tuple[Any, ...]:
    return plan.model_id, plan.use_cpu, plan.aggregation, plan.detectors, plan.expected_rate


def _errors(text: str, path: Path, settings: Settings) -> list[str]:
    found = check_text(
        text, file=str(path), model_exists=model_finder(settings), identify=identifier(settings)
    )
    return [f"{d.key}: {d.message}; {d.remedy}" for d in found if d.severity is Severity.ERROR]


def identifier(settings: Settings) -> Callable[[str | None], ModelIdentity]:
    """Return a function that says which model scores for a ``model_id``; by default the bundled one."""
    return lambda model_id: model_identity(scoring_folder(model_id, settings))


def model_finder(settings: Settings) -> Callable[[str], bool]:
    """Return a function that says whether there is a folder for a ``model_id``."""
    return partial(has_model, settings=settings)
