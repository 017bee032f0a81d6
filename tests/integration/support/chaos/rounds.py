"""Rounds of many clients at once, some of which leave, and what has to hold of every answer and after every round."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.integration.support.chaos.backend import ChaosBackend, case_name, case_request, first_answer
from tests.integration.support.chaos.client import Got, post
from tests.integration.support.stack import Stack, wait_for

MECHANISMS = ("judge", "segment_vote", "weighted_fusion", "replacement", "debate")
PLANS = ("standard", "checking", "auto", *(f"premium-{each}" for each in MECHANISMS))
DISCLAIMER = "⚠️ **Disclaimer**"
# A bound that only a fault reaches: the machine may be busy with other things.
SLACK_S = 15.0
_OWN = re.compile(r"\bC-\d+\b")


def chaos_policy(deadline_s: float, *, more: str = "") -> str:
    """A policy with a decision for each of ``PLANS``, chosen by the header ``x-plan``."""
    panel = "verification_models: [second, third], judge_model: judge"
    bounds = f"mitigation: {{deadline_s: {deadline_s}}}"
    plans = {
        "standard": f"{{mode: standard, {bounds}}}",
        "checking": f"{{mode: standard, standard: {{self_check: true}}, {bounds}}}",
        "auto": f"{{mode: auto, premium: {{{panel}}}, auto: {{modes: [lightweight, standard, premium]}}, {bounds}}}",
        **{
            f"premium-{each}": f"{{mode: premium, premium: {{{panel}, consensus: {each}}}, {bounds}}}"
            for each in MECHANISMS
        },
    }
    domains = "\n".join(f"    - {{name: {name}, headers: {{x-plan: [{name}]}}}}" for name in plans)
    decisions = "".join(
        f"  - name: {name}\n    priority: {100 - place}\n    rules: {{type: domain, name: {name}}}\n"
        f"    plugins: [{{type: hallucination, configuration: {text}}}]\n"
        for place, (name, text) in enumerate(plans.items())
    )
    return f"""\
trusted_headers: [x-plan]
hallucination: {{default_mode: lightweight, detectors: [encoder, numbers, contradictions], threshold: 0.3}}
models:
  - {{name: main, reliability: 0.6, price: {{input: 1, output: 2}}}}
  - {{name: second, reliability: 0.8}}
  - {{name: third, reliability: 0.7}}
  - {{name: judge}}
{more}signals:
  domains:
{domains}
decisions:
{decisions}"""


@dataclass
class Round:
    """What came of one round."""

    got: dict[int, tuple[str, Got]] = field(default_factory=dict)
    left: int = 0

    @property
    def actions(self) -> Counter[str]:
        """How many answers left with which action."""
        return Counter(got.says("action") for _, got in self.got.values())


async def run_round(stack: Stack, *, seed: int, first: int, clients: int, each: int, leaving: float) -> Round:
    """``clients`` at once, each of which asks ``each`` times; a share ``leaving`` of the requests is given up.

    Cases are numbered from ``first``; plan, pause and leave of a case depend on ``seed`` and its number alone.
    """
    done = Round()

    async def client(place: int) -> None:
        for turn in range(each):
            number = first + place * each + turn
            rng = random.Random(f"{seed} client {number}")
            plan = PLANS[number % len(PLANS)]
            leave_s = rng.uniform(0.0, 4.0) if rng.random() < leaving else None
            await asyncio.sleep(rng.uniform(0.0, 0.3))
            body = case_request(number, **({"n": 2} if rng.random() < 0.1 else {}))
            got = await post(stack.listen, body, plan=plan, leave_s=leave_s)
            if got is None:
                done.left += 1
            else:
                done.got[number] = (plan, got)

    async with asyncio.TaskGroup() as group:
        for place in range(clients):
            group.create_task(client(place))
    return done


def faults_of(number: int, plan: str, got: Got, *, deadline_s: float) -> list[str]:
    """What is wrong with one answer; nothing where all that is promised holds."""
    faults: list[str] = []

    def expect(holds: bool, what: str) -> None:
        if not holds:
            faults.append(f"case {number}, {plan}: {what}; headers {_ours(got)}")

    expect(got.status == 200, f"status {got.status}")
    expect(not got.surplus, f"{len(got.surplus)} bytes too many")
    if got.status != 200:
        return faults
    texts = [choice["message"]["content"] for choice in got.json["choices"]]
    action = got.says("action")
    for name in ("status", "iterations", "latency-ms"):
        expect(bool(got.says(name)), f"{name} is missing")
    expect(got.says("decision") == plan, f"decision {got.says('decision')}")
    expect(got.says("mode") in ("lightweight", "standard", "premium"), f"mode {got.says('mode')}")
    expect(action in ("pass", "warn", "refine", "replace"), f"action {action}")
    if got.says("status") == "checked":
        expect(got.says("enabled") == "true", "not enabled")
        expect(got.says("detected") in ("true", "false"), "detected is missing")
        expect(bool(got.says("score")), "the score is missing")
    else:
        # On a machine that is busy a detection may come late; whoever was not scored says so.
        expect(got.says("reason") in ("timeout", "overloaded"), f"unchecked for {got.says('reason')}")
    for text in texts:
        expect(set(_OWN.findall(text)) == {case_name(number)}, f"text of {set(_OWN.findall(text))}")
        expect("nobody" not in text and "truthlens:" not in text, "text of nobody")
        if action in ("pass", "warn"):
            expect(text.endswith(first_answer(number)), "another text without a word about it")
    if action in ("refine", "replace"):
        lower = float(got.says("score")) <= float(got.says("initial-score") or "0")
        expect(lower, f"score {got.says('score')} after {got.says('initial-score')}")
        expect(any(first_answer(number) not in text for text in texts), f"{action}, and the text is the same")
    else:
        expect(not got.says("initial-score"), "an initial score of a text that stayed")
        expect(text == first_answer(number) or action == "warn", "a disclaimer on a clean answer")
    held_s = int(got.says("latency-ms") or 0) / 1000
    expect(held_s <= deadline_s + SLACK_S, f"held for {held_s} s")
    return faults


def settle(stack: Stack, backend: ChaosBackend) -> None:
    """Wait until nothing of a round is left: no exchange, no held byte, no call at the backend, no busy connection."""
    wait_for(lambda: gauge(stack, "truthlens_inflight") == 0, "no exchange in flight")
    wait_for(lambda: gauge(stack, "truthlens_held_bytes") == 0, "no held bytes")
    wait_for(lambda: backend.answering == 0, "no call left at the backend")
    wait_for(lambda: stack.stat("cluster.truthlens.upstream_rq_active") == 0, "no ext_proc stream left")


def gauge(stack: Stack, name: str) -> float:
    """A metric without labels."""
    text = httpx.get(f"{stack.console_url}/metrics").text
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(line.split(" ")[1])


def resident_mb(stack: Stack) -> float:
    """Resident memory of the sidecar, in MiB."""
    assert stack.sidecar is not None
    status = Path(f"/proc/{stack.sidecar.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def complaints(stack: Stack) -> list[str]:
    """Lines of the sidecar's log that tell of a fault of its own."""
    text = (stack.folder / "sidecar.log").read_text()
    words = (
        "Traceback",
        "never awaited",
        "never retrieved",
        "assessment failed",
        "mitigation failed",
        "stream aborted",
    )
    lines = text.splitlines()
    return [_whole(lines, at) for at, line in enumerate(lines) if any(word in line for word in words)]


def _whole(lines: list[str], at: int) -> str:
    """A line of a log, and of a traceback all lines: those that are indented, one before, and the error behind."""
    if not lines[at].startswith("Traceback"):
        return lines[at]
    end = next((n for n in range(at + 1, len(lines)) if not lines[n].startswith(" ")), len(lines) - 1)
    return "\n".join(lines[max(0, at - 1) : end + 1])[-3000:]


def _ours(got: Got) -> dict[str, str]:
    return {name: value for name, value in got.headers.items() if name.startswith("x-truthlens-")}
