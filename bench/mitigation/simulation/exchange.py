"""Run one real exchange under one configuration: detection, the mode, and labels of the result."""

from __future__ import annotations

import asyncio
import random
from dataclasses import asdict
from typing import Any

from bench.mitigation.configurations import Configuration, models_of
from bench.mitigation.data import Case
from bench.mitigation.labels import Sources
from bench.mitigation.scoring import Detector, Scorer
from bench.mitigation.simulation.backend import Backend, Speed, tokens
from bench.mitigation.simulation.panel import Script
from truthlens.core.deadline import Deadline
from truthlens.core.records.enums import Mode
from truthlens.mitigation.interfaces import Correction, Stop, Task, Tools
from truthlens.mitigation.premium.panel import premium
from truthlens.mitigation.questions import opinions
from truthlens.mitigation.standard.loop import standard

_DEADLINES_S = {Mode.LIGHTWEIGHT: 30.0, Mode.STANDARD: 30.0, Mode.PREMIUM: 60.0}
_SEED = 4


async def exchange(case: Case, configuration: Configuration, detector: Detector) -> dict[str, Any]:
    """Run one exchange on a simulated clock that begins at 0.

    Return the labels before and after, calls, tokens, simulated seconds.
    """
    loop = asyncio.get_running_loop()
    plan, request = configuration.plan(case), case.exchange
    sources = Sources(case.first, [case.other(number) for number in (1, 2, 3)], case.prompt.passages)
    dice = random.Random(f"{_SEED} {case.id} {configuration.name}")
    script = Script(case, configuration.habits, configuration.panel, sources, dice)
    backend = Backend(case, script, speed=Speed(), max_tokens=plan.mitigation.max_tokens)
    scorer = Scorer(detector, request, threshold=plan.threshold)
    deadline = Deadline.after(_DEADLINES_S[plan.mode], clock=loop.time)
    tools = Tools(ask=backend, rescore=scorer, compare=scorer, deadline=deadline)
    models = models_of(case)

    def panel() -> Any:
        return opinions(
            plan=plan, exchange=request, request=case.request, answering=case.first.model,
            models=models, ask=backend, deadline=deadline,
        )  # fmt: skip

    asked = asyncio.create_task(panel()) if configuration.always else None
    (verdict,) = await scorer([case.first.text])
    task = Task(plan, request, case.request, case.first.model, case.answer, verdict, models)
    corrected = Correction(case.first.text, verdict, plan.mode, Stop.CLEAN)
    if plan.mode is Mode.STANDARD:
        corrected = await standard(task, tools)
    elif plan.mode is Mode.PREMIUM and (asked or verdict.flagged):
        corrected = await premium(task, tools, await (asked or panel()))
    before, after = sources.tally(case.first.text), sources.tally(corrected.text)
    return {
        "id": case.id,
        "group": case.prompt.group,
        "flagged": verdict.flagged,
        "flagged_after": corrected.verdict.flagged,
        "score": verdict.score,
        "score_after": corrected.verdict.score,
        "before": asdict(before),
        "after": asdict(after),
        "loss": asdict(sources.loss(corrected.text)),
        "changed": corrected.text != case.first.text,
        "replaced": corrected.replaced,
        "consensus": corrected.consensus,
        "stop": corrected.stop.value,
        "attempts": [f"{each.role} {each.fate} {each.reason}".strip() for each in corrected.attempts],
        "notes": list(corrected.notes),
        "calls": [role.value for role in backend.calls],
        "prompt_tokens": backend.usage.prompt_tokens,
        "completion_tokens": backend.usage.completion_tokens,
        "first_tokens": tokens(case.request) + -(-len(case.first.text) // 4),
        "latency_s": loop.time(),
        "detection_s": scorer.seconds,
        "text": corrected.text if corrected.text != case.first.text else None,
    }
