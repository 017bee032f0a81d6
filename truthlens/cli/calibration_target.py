"""The scores of the plan that ``calibrate`` works on, and the threshold written into its policy file.

It scores as the gateway does, without deadlines, and chooses nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from truthlens.cli.plan_target import Target, identifier, load_plain, model_finder, plan_of
from truthlens.core.errors import PolicyError
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.detection.building import LateModel, build_engine
from truthlens.detection.encoder.detector import EncoderDetector
from truthlens.detection.models.loading import load_encoder
from truthlens.llm.offline import OfflineModels
from truthlens.policy import Severity
from truthlens.policy.compile import check_text, read_text
from truthlens.policy.files import replace_file
from truthlens.policy.plans.threshold_edit import with_threshold
from truthlens.policy.plans.threshold_record import MissRateGoal, ThresholdRecord
from truthlens.settings import Settings
from truthlens.training.calibrate.threshold import Scorer
from truthlens.training.data.dataset import as_exchange
from truthlens.training.evaluate.plan_scorer import NO_DEADLINE_S, demand_models, verdict_of


@contextmanager
def scorer_of(target: Target, *, threads: int, models: OfflineModels | None = None) -> Iterator[Scorer]:
    """Open a scorer that scores as the gateway does, by the target's plan, without its deadline; ``models`` is closed with it."""
    demand_models(target.plan, models)

    def load() -> EncoderDetector:
        encoder = load_encoder(
            target.folder, use_cpu=target.plan.use_cpu, threads=threads, max_windows=target.max_windows
        )
        encoder.warm_up()
        return encoder

    plan = replace(target.plan, timeout_s=NO_DEADLINE_S)
    engine = build_engine([plan], LateModel(load), queue_limit=1)

    with asyncio.Runner() as runner:

        def scorer(query: str, passages: Sequence[str], answer: str) -> Verdict:
            exchange, choice = as_exchange(query, passages, answer)
            return runner.run(verdict_of(engine, plan, exchange, choice, models))

        try:
            yield scorer
        finally:
            runner.run(engine.aclose())
            if models is not None:
                runner.run(models.aclose())


def set_threshold(target: Target, record: ThresholdRecord, output: Path | None, settings: Settings) -> int:
    """Write the threshold of ``record`` into the policy; the result is how many errors it has elsewhere."""
    assert target.config is not None
    value: float | dict[str, Any] = record.threshold
    if isinstance(record.goal, MissRateGoal):
        assert output is not None
        folder = target.config.parent.resolve()
        name = Path(os.path.relpath(output.resolve(), folder)).as_posix()
        value = {"max_miss_rate": record.goal.max_miss_rate, "calibration": name}
    return set_value(target, value, settings)


def set_value(target: Target, value: float | dict[str, Any], settings: Settings) -> int:
    """Write a number, or the mapping of another kind of threshold, into the policy; the result is how many errors it has elsewhere."""
    assert target.config is not None
    path, decision = target.config, target.plan.decision
    # Scoring takes a while: what counts is the file as it is now.
    text = read_text(path)
    plan = plan_of(load_plain(path, settings), decision)
    if _scoring(plan) != _scoring(target.plan):
        raise PolicyError(
            f"{path}: the decision {decision!r} was changed while the answers were scored; run it again"
        )
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
    return plan.model_id, plan.use_cpu, plan.aggregation, plan.detectors, plan.cascade, plan.expected_rate


def _errors(text: str, path: Path, settings: Settings) -> list[str]:
    found = check_text(
        text, file=str(path), model_exists=model_finder(settings), identify=identifier(settings)
    )
    return [f"{d.key}: {d.message}; {d.remedy}" for d in found if d.severity is Severity.ERROR]
