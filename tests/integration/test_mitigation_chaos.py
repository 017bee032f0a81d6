"""Mitigation under bad weather: many clients and models that misbehave, processes that end, policies that change.

What a single failure of a single model does stands in ``test_mitigation``.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.support.backend import Raw, completion, http
from tests.integration.support.chaos.backend import ChaosBackend, HoldingBackend, framed, held
from tests.integration.support.chaos.client import Got, post
from tests.integration.support.chaos.rounds import (
    DISCLAIMER,
    chaos_policy,
    complaints,
    faults_of,
    gauge,
    run_round,
    settle,
)
from tests.integration.support.models import BAD, GOOD, PASSAGES, QUESTION, Models, request
from tests.integration.support.stack import Stack, free_port, wait_for
from truthlens.core.net import Address


def slow(text: str, seconds: float) -> Raw:
    """A good answer that takes its time."""
    return http(json.dumps(completion(text)), delay_s=seconds)


# --- many at once -----------------------------------------------------------------------------------------

CHAOS_DEADLINE_S = 6.0
SEED = 20


@pytest.fixture(scope="module")
def weather() -> ChaosBackend:
    """Models that misbehave by lot."""
    return ChaosBackend(SEED)


@pytest.fixture(scope="module")
def stormy(tmp_path_factory: pytest.TempPathFactory, weather: ChaosBackend) -> Iterator[Stack]:
    """A deployment in front of them."""
    stack = Stack(
        tmp_path_factory.mktemp("chaos"), chaos_policy(CHAOS_DEADLINE_S), backend=weather, patient=True
    )
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def test_every_client_gets_one_whole_answer_whatever_the_models_do(
    stormy: Stack, weather: ChaosBackend
) -> None:
    """40 clients at once, of whom some leave: no answer is lost, mixed up, worse than the first, or held too long."""
    done = asyncio.run(run_round(stormy, seed=SEED, first=1000, clients=40, each=1, leaving=0.25))
    faults = [
        fault
        for number, (plan, got) in done.got.items()
        for fault in faults_of(number, plan, got, deadline_s=CHAOS_DEADLINE_S)
    ]
    assert not faults, "\n".join(faults)
    assert len(done.got) + done.left == 40
    assert done.left
    assert done.actions["refine"] + done.actions["replace"]
    settle(stormy, weather)
    assert not complaints(stormy)


# --- processes that end -----------------------------------------------------------------------------------


def premium_models() -> Models:
    """An unsupported first answer; the others' better ones are held back at first."""
    return Models(
        {
            ("main", "answer"): [BAD],
            ("main", "correct"): [held(GOOD)],
            ("second", "answer"): [held(GOOD), GOOD],
            ("third", "answer"): [held(GOOD), GOOD],
            ("judge", "arbitrate"): [GOOD],
            ("judge", "correct"): [GOOD],
        }
    )


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Callable[..., Stack]]:
    """Starts a deployment that a test may break."""
    started: list[Stack] = []

    def start(**options: Any) -> Stack:
        stack = Stack(tmp_path, chaos_policy(60), backend=HoldingBackend(), patient=True, **options)
        started.append(stack)
        stack.start()
        return stack

    yield start
    for stack in started:
        stack.stop()


async def begun(stack: Stack, models: Models, plan: str, *, calls: int) -> asyncio.Task[Got | None]:
    """A request under ``plan`` whose mitigation is under way: the backend has had ``calls`` calls."""
    stack.backend.reply = models
    models.asked.clear()
    task = asyncio.create_task(post(stack.listen, request(), plan=plan))
    await until(lambda: len(models.asked) >= calls)
    return task


def release(stack: Stack) -> None:
    """Let come what was held back."""
    assert isinstance(stack.backend, HoldingBackend)
    stack.backend.release.set()


async def until(condition: Callable[[], bool]) -> None:
    """Wait without holding up the tasks of the test."""
    await asyncio.to_thread(wait_for, condition, "the condition")


def test_terminated_it_ends_what_it_corrects(own: Callable[..., Stack]) -> None:
    """SIGTERM in the middle of mitigation: the exchanges are mended to their end, those after them pass unchecked."""
    stack = own()

    async def scene() -> tuple[Got | None, Got | None, Got | None]:
        models = premium_models()
        replaced = await begun(stack, models, "premium-judge", calls=3)
        refined = await begun(stack, models, "standard", calls=2)
        assert stack.sidecar is not None
        stack.sidecar.send_signal(signal.SIGTERM)
        await until(lambda: stack.stat("cluster.truthlens.membership_healthy") == 0)
        later = await post(stack.listen, request(), plan="standard")
        assert not replaced.done()
        release(stack)
        return await replaced, await refined, later

    replaced, refined, later = asyncio.run(scene())
    assert replaced is not None
    assert refined is not None
    assert later is not None
    assert (replaced.text, replaced.says("action")) == (GOOD, "replace")
    assert (refined.text, refined.says("action")) == (GOOD, "refine")
    assert (later.status, later.text) == (200, BAD)
    assert (later.says("status"), later.says("reason")) == ("unchecked", "unavailable")
    assert stack.sidecar is not None
    assert stack.sidecar.wait(60) == 0
    assert not complaints(stack)


@pytest.mark.parametrize("opens", [True, False])
def test_killed_in_the_middle_it_fails_as_envoy_was_told(own: Callable[..., Stack], *, opens: bool) -> None:
    """SIGKILL: the first answer unchecked, or a 503 without it; the calls for it end."""
    stack = own(failure_mode_allow=opens)

    async def scene() -> Got | None:
        waiting = await begun(stack, premium_models(), "premium-judge", calls=3)
        stack.kill_sidecar()
        return await waiting

    got = asyncio.run(scene())
    assert got is not None
    assert (got.says("status"), got.says("reason")) == ("unchecked", "unavailable")
    assert not got.surplus
    if opens:
        assert (got.status, got.text) == (200, BAD)
    else:
        assert (got.status, got.body) == (503, b"")
    wait_for(lambda: len(stack.backend.aborted) == 2, "both calls ended")


# --- policies that change ---------------------------------------------------------------------------------

_PREMIUM = (
    "mode: premium, premium: {verification_models: [second, third], judge_model: judge, consensus: judge}"
)
# What is changed in the policy, what the next exchange ends with, and who is asked for it.
CHANGES = (
    (("[second, third]", "[third]"), "replace", {"main", "third", "judge"}),
    ((_PREMIUM, "mode: lightweight"), "warn", {"main"}),
    (
        ("{name: judge}", "{name: judge, base_url: 'http://127.0.0.1:9/v1', max_concurrency: 1}"),
        "replace",
        {"main", "second", "third"},
    ),
)


def test_what_runs_keeps_the_policy_that_it_began_with(own: Callable[..., Stack]) -> None:
    """The policy changes while verification models are being waited for; only later exchanges are judged by it."""
    stack = own()
    before = stack.policy.read_text()

    async def scene() -> Got | None:
        models = premium_models()
        running = await begun(stack, models, "premium-judge", calls=3)
        for change, action, asked in CHANGES:
            await asyncio.to_thread(_put, stack, before.replace(*change))
            models.asked.clear()
            # The scripts go by how often a model was asked: what is held back comes first.
            models.says["second", "answer"] = models.says["third", "answer"] = [GOOD]
            got = await post(stack.listen, request(), plan="premium-judge")
            assert got is not None
            assert got.says("action") == action
            assert {model for model, _ in models.asked} == asked
        models.asked.clear()
        assert not running.done()
        release(stack)
        kept = await running
        assert models.asked == [("judge", "arbitrate")]
        return kept

    kept = asyncio.run(scene())
    assert kept is not None
    assert (kept.text, kept.says("action")) == (GOOD, "replace")
    assert not complaints(stack)


def _put(stack: Stack, policy: str) -> None:
    """Write a policy and wait until it is in force."""

    def reloads() -> float:
        name = 'truthlens_policy_reloads_total{result="ok"}'
        lines = httpx.get(f"{stack.console_url}/metrics").text.splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    count = reloads()
    stack.policy.write_text(policy)
    wait_for(lambda: reloads() > count, "the policy in force")


# --- clocks, queues and circuits --------------------------------------------------------------------------


def _tight_policy() -> str:
    panel = "premium: {verification_models: [second, third], judge_model: judge}"
    plans = {
        "one": "{mode: standard, mitigation: {deadline_s: 1}}",
        "two": "{mode: standard, standard: {self_check: true}, mitigation: {deadline_s: 2}}",
        "six": "{mode: standard, mitigation: {deadline_s: 6}}",
        "panel-one": f"{{mode: premium, {panel}, mitigation: {{deadline_s: 1}}}}",
        "no-time": f"{{mode: premium, {panel}, mitigation: {{deadline_s: 0.001}}}}",
        "panel": f"{{mode: premium, {panel}, mitigation: {{deadline_s: 10}}}}",
        "detailed": "{mode: standard, details: true, mitigation: {deadline_s: 10}}",
    }
    domains = "\n".join(f"    - {{name: {name}, headers: {{x-plan: [{name}]}}}}" for name in plans)
    decisions = "".join(
        f"  - name: {name}\n    priority: {100 - place}\n    rules: {{type: domain, name: {name}}}\n"
        f"    plugins: [{{type: hallucination, configuration: {text}}}]\n"
        for place, (name, text) in enumerate(plans.items())
    )
    return f"""\
trusted_headers: [x-plan]
hallucination: {{default_mode: lightweight, detectors: [encoder, numbers, contradictions], threshold: 0.3, timeout_s: 2}}
models:
  - {{name: narrow, max_concurrency: 1}}
  - {{name: broken}}
  - {{name: limited}}
  - {{name: second}}
  - {{name: third}}
  - {{name: judge}}
signals:
  domains:
{domains}
decisions:
{decisions}"""


@pytest.fixture(scope="module")
def tight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment with deadlines that slow models miss."""
    stack = Stack(tmp_path_factory.mktemp("tight"), _tight_policy(), patient=True)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def ask(stack: Stack, models: Models, plan: str, body: Any = None, **options: Any) -> Got:
    """One answer."""
    stack.backend.reply = models
    got = asyncio.run(post(stack.listen, request() if body is None else body, plan=plan, **options))
    assert got is not None
    assert not got.surplus
    return got


@pytest.mark.parametrize(("plan", "seconds"), [("one", 1), ("two", 2), ("panel-one", 1)])
def test_slow_models_do_not_hold_an_answer_beyond_its_deadline(tight: Stack, plan: str, seconds: int) -> None:
    """Everybody would take half a minute; the first answer leaves in time, marked."""
    sluggish = slow(GOOD, 30)
    kinds = [("main", "correct"), ("main", "other"), ("judge", "arbitrate"), ("judge", "correct")]
    says = {key: [sluggish] for key in [*kinds, ("second", "answer"), ("third", "answer")]}
    got = ask(tight, Models({("main", "answer"): [BAD], **says}), plan)
    assert got.text.startswith(DISCLAIMER)
    assert got.text.endswith(BAD)
    assert got.says("action") == "warn"
    # A bound that only a fault reaches, and well below what the models take.
    assert int(got.says("latency-ms")) < (seconds + 10) * 1000


def test_a_deadline_that_no_detection_can_keep_leaves_the_answer_unchecked(tight: Stack) -> None:
    got = ask(tight, Models({("main", "answer"): [BAD]}), "no-time")
    assert (got.status, got.text) == (200, BAD)
    assert (got.says("status"), got.says("reason")) == ("unchecked", "timeout")


@pytest.mark.parametrize(
    "header",
    [
        {"retry-after": "3600"},
        {"retry-after": "7"},
        {"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"},
        {"retry-after-ms": "99999999"},
    ],
)
def test_a_wait_that_does_not_fit_is_not_begun(tight: Stack, header: dict[str, str]) -> None:
    """A model that asks for more time than there is is not asked again, and the client need not wait."""
    models = Models(
        {
            ("limited", "answer"): [BAD],
            ("limited", "correct"): [http("{}", status="429 Too Many Requests", headers=header), GOOD],
        }
    )
    got = ask(tight, models, "six", request("limited"))
    assert got.says("action") == "warn"
    assert models.asked == [("limited", "answer"), ("limited", "correct")]


def test_a_narrow_model_serves_who_fits_and_the_rest_get_the_first_answer(tight: Stack) -> None:
    """One call at a time and a short queue: ten exchanges at once all end, and clients that leave block nobody."""
    models = Models({("narrow", "answer"): [BAD], ("narrow", "correct"): [slow(GOOD, 0.3)]})
    tight.backend.reply = models

    async def at_once(count: int, leave_s: float | None = None) -> list[Got | None]:
        asked = (post(tight.listen, request("narrow"), plan="six", leave_s=leave_s) for _ in range(count))
        return await asyncio.gather(*asked)

    ended = [got for got in asyncio.run(at_once(10)) if got is not None]
    actions = [got.says("action") for got in ended]
    assert len(actions) == 10
    assert "refine" in actions
    assert set(actions) <= {"refine", "warn"}
    assert all((got.text == GOOD) == (got.says("action") == "refine") for got in ended)
    # While the first holds the slot and others queue, all of them go.
    models.says["narrow", "correct"] = [slow(GOOD, 30)]
    assert asyncio.run(at_once(5, leave_s=0.7)) == [None] * 5
    models.says["narrow", "correct"] = [GOOD]
    wait_for(lambda: gauge(tight, "truthlens_inflight") == 0, "no exchange in flight")
    assert ask(tight, models, "six", request("narrow")).text == GOOD


@pytest.fixture(scope="module")
def broken(tight: Stack) -> Models:
    """A model whose circuit has just opened: five attempts in a row failed."""
    models = Models({("broken", "answer"): [BAD], ("broken", "correct"): [http("{}", status="500 Oh")]})
    for _ in range(2):
        assert ask(tight, models, "six", request("broken")).says("action") == "warn"
    return models


def test_a_model_that_is_down_is_left_alone(tight: Stack, broken: Models) -> None:
    asked = broken.asked.count(("broken", "correct"))
    assert asked == 5
    assert ask(tight, broken, "six", request("broken")).says("action") == "warn"
    assert broken.asked.count(("broken", "correct")) == asked


# --- bodies of every kind ---------------------------------------------------------------------------------

_TOOL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def _choices(*messages: dict[str, Any]) -> dict[str, Any]:
    choices = [
        {"index": place, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        for place, message in enumerate(messages)
    ]
    return {**completion(), "choices": choices}


def test_of_mixed_choices_only_the_texts_are_corrected(tight: Stack) -> None:
    """A tool call and an empty choice stay; a text beside them is mended, a supported one is left alone."""
    messages = (
        {"content": BAD},
        {"content": None, "tool_calls": [_TOOL]},
        {"content": ""},
        {"content": GOOD},
    )
    models = Models({("main", "answer"): [_choices(*messages)], ("main", "correct"): [GOOD]})
    got = ask(tight, models, "six", request(n=4))
    found = [choice["message"] for choice in got.json["choices"]]
    assert [message["content"] for message in found] == [GOOD, None, "", GOOD]
    assert found[1]["tool_calls"] == [_TOOL]
    assert (got.says("action"), got.says("status"), got.says("reason")) == ("refine", "partial", "tool-call")


def test_content_parts_stay_parts(tight: Stack) -> None:
    parts = [{"type": "text", "text": BAD[:40]}, {"type": "text", "text": BAD[40:]}]
    models = Models({("main", "answer"): [_choices({"content": parts})], ("main", "correct"): [GOOD]})
    got = ask(tight, models, "six")
    assert got.json["choices"][0]["message"]["content"] == [{"type": "text", "text": GOOD}]


def test_a_long_answer_and_much_evidence_end_in_time(tight: Stack) -> None:
    """200 KB of answer, or 300 passages: judged as far as time allows, never lost."""
    filler = " ".join(
        f"On day {i} the branch in town {i} opened at {i % 12} and closed early." for i in range(3200)
    )
    long = f"{BAD} {filler}"
    assert len(long) > 200_000
    models = Models({("main", "answer"): [long], ("main", "correct"): [long.replace("75", "12")]})
    got = ask(tight, models, "six")
    assert got.status == 200
    assert got.text.endswith(filler)
    assert int(got.says("latency-ms")) < 30_000
    streets = (f"Branch {i} of Brightwater Bank stands in street {i * 7}." for i in range(298))
    models = Models({("main", "answer"): [BAD], ("main", "correct"): [GOOD]})
    got = ask(tight, models, "detailed", request(passages=(*PASSAGES, *streets)))
    assert got.says("status") == "checked"
    assert got.text == (GOOD if got.says("action") == "refine" else BAD)


def test_a_correction_may_come_gzipped_and_a_bomb_is_refused(tight: Stack) -> None:
    def gzipped(data: bytes) -> Raw:
        return http(gzip.compress(data), headers={"content-encoding": "gzip"})

    models = Models(
        {("main", "answer"): [BAD], ("main", "correct"): [gzipped(json.dumps(completion(GOOD)).encode())]}
    )
    assert ask(tight, models, "six").text == GOOD
    models.says["main", "correct"] = [gzipped(b'{"a": "' + b" " * (64 << 20))]
    got = ask(tight, models, "detailed")
    assert got.text.endswith(BAD)
    (attempt,) = got.json["truthlens"]["choices"][0]["mitigation"]["attempts"]
    assert attempt["reason"] == "bad-response"


def test_what_follows_an_answer_on_its_connection_is_nobodys(tight: Stack) -> None:
    """A backend that writes a second response unasked: the calls after it, of other exchanges, get their own answers."""
    stray = "A domestic wire transfer costs 12 dollars, says the stray answer. An international one costs 40 dollars."
    another = "A domestic wire transfer costs 12 dollars, and an international one costs 40 dollars."
    doubled = Raw([framed(GOOD) + framed(stray)])
    models = Models(
        {
            ("main", "answer"): [BAD],
            ("main", "correct"): [doubled],
            ("limited", "answer"): [BAD],
            ("limited", "correct"): [another],
        }
    )
    assert ask(tight, models, "six").text == GOOD
    got = ask(tight, models, "six", request("limited"))
    assert (got.text, got.says("iterations")) == (another, "1")


CHINESE = "国内电汇是免费的，安全附加费也由银行自己承担。国际电汇同样免费。"


def test_what_cannot_be_scored_is_not_corrected(tight: Stack) -> None:
    """The bundled model reads English: a Chinese exchange is passed unchecked, and no model is asked for it."""
    evidence = "布莱特沃特银行国内电汇收费十二美元，国际电汇收费四十美元。"
    content = f"<context>\n{evidence}\n</context>\n\n布莱特沃特银行的电汇费用是多少？"
    for plan in ("six", "panel"):
        models = Models({("main", "answer"): [CHINESE]})
        got = ask(tight, models, plan, {"model": "main", "messages": [{"role": "user", "content": content}]})
        assert got.text == CHINESE
        assert (got.says("status"), got.says("reason"), got.says("action")) == (
            "unchecked",
            "language",
            "pass",
        )
        assert models.asked == [("main", "answer")]


def test_an_answer_to_a_schema_stays_one(tight: Stack) -> None:
    """JSON that was asked for by a schema is mended as JSON, and a warning is never pasted into it."""
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    asked = request(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})
    models = Models({("main", "answer"): [json.dumps({"answer": BAD})]})
    models.says["main", "correct"] = [json.dumps({"answer": GOOD})]
    got = ask(tight, models, "six", asked)
    assert json.loads(got.text) == {"answer": GOOD}
    assert models.bodies[-1]["response_format"] == asked["response_format"]
    models.says["main", "correct"] = [GOOD]
    got = ask(tight, models, "six", asked)
    assert json.loads(got.text) == {"answer": BAD}
    assert got.says("detected") == "true"


def test_the_completions_api_under_a_panel(tight: Stack) -> None:
    says = {("main", "answer"): [BAD], ("second", "answer"): [GOOD], ("third", "answer"): [GOOD]}
    models = Models({**says, ("judge", "arbitrate"): [GOOD]})
    prompt = f"Context:\n{PASSAGES[0]}\n{PASSAGES[1]}\n\nQuestion: {QUESTION}\nAnswer:"
    got = ask(tight, models, "panel", {"model": "main", "prompt": prompt}, path="/v1/completions")
    assert got.json["choices"][0]["text"].strip() == GOOD
    assert got.says("action") == "replace"


@pytest.mark.parametrize(
    "addition", ['"temperature": NaN', '"seed": 1e999', '"metadata": ' + "[" * 900 + "]" * 900]
)
def test_a_request_that_cannot_be_repeated_costs_only_its_correction(tight: Stack, addition: str) -> None:
    """JSON of a kind that only some parsers take: the answer is scored and leaves whole."""
    body = f"{json.dumps(request())[:-1]}, {addition}}}".encode()
    models = Models({("main", "answer"): [BAD], ("main", "correct"): [GOOD]})
    got = ask(tight, models, "six", body)
    assert got.says("status") == "checked"
    assert got.text.endswith(BAD) or got.text == GOOD
    assert not complaints(tight)


# --- recovery: last, for the circuit stays open for 10 s -----------------------------------------------------


def test_a_model_that_was_down_is_tried_by_one_call(tight: Stack, broken: Models) -> None:
    """After the circuit's time one exchange of several probes; its success closes the circuit for all."""
    before = broken.asked.count(("broken", "correct"))
    broken.says["broken", "correct"] = [slow(GOOD, 1.5)]
    tight.backend.reply = broken

    async def at_once() -> list[Got | None]:
        return await asyncio.gather(*(post(tight.listen, request("broken"), plan="six") for _ in range(4)))

    began = time.monotonic()
    while not (
        corrected := [got for got in asyncio.run(at_once()) if got and got.says("action") == "refine"]
    ):
        assert time.monotonic() - began < 60
        time.sleep(0.2)
    assert [got.text for got in corrected] == [GOOD]
    assert broken.asked.count(("broken", "correct")) == before + 1
    assert ask(tight, broken, "six", request("broken")).text == GOOD


# --- calls through the gateway, of several processes --------------------------------------------------------


class Pair(Stack):
    """A deployment with two sidecars."""

    def wait_healthy(self, healthy: bool = True) -> None:
        """Wait until Envoy takes both of them for healthy, or for ill."""
        goal = 2 * int(healthy)
        wait_for(lambda: self.stat("cluster.truthlens.membership_healthy") == goal, "Envoy's health checks")


@pytest.fixture(params=["a file", "the machine"])
def fleet(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stack]:
    """Two sidecars behind one Envoy that share a secret; all models are reached through that Envoy."""
    (tmp_path / "secret").write_text("a-secret-of-the-whole-fleet")
    # Without one of their own they share the one of their user on their machine.
    secret = ("--secret-file", str(tmp_path / "secret")) if request.param == "a file" else ()
    other, console = (Address("127.0.0.1", free_port()) for _ in range(2))
    stack = Pair(tmp_path, "hallucination: {}\n", arguments=secret, patient=True)
    stack._options |= {"extproc": [stack.extproc, other], "health": [stack.health, other.health]}
    base_url = f"http://{stack.listen}/v1"
    models = "".join(
        f"  - {{name: {name}, base_url: '{base_url}'}}\n" for name in ("main", "second", "third", "judge")
    )
    stack.policy.write_text(
        "hallucination: {default_mode: premium, threshold: 0.3, detectors: [encoder, numbers, contradictions],\n"
        "  premium: {verification_models: [second, third], judge_model: judge, consensus: judge}}\n"
        f"models:\n{models}"
    )
    twin: subprocess.Popen[bytes] | None = None
    try:
        with (tmp_path / "twin.log").open("ab") as log:
            twin = subprocess.Popen(
                [sys.executable, "-m", "truthlens", "serve", "--config", str(stack.policy), "--extproc", str(other),
                 "--console", str(console), *secret],
                stdout=log,
                stderr=log,
                env=dict(os.environ),
            )  # fmt: skip
        stack.start()
        yield stack
    finally:
        if twin is not None:
            twin.kill()
            twin.wait(20)
        stack.stop()


def test_processes_that_share_a_secret_know_each_others_calls(fleet: Stack) -> None:
    """Whichever of the two gets a call of the other passes it: six exchanges cost three extra calls each."""
    says = {("main", "answer"): [BAD], ("judge", "arbitrate"): [GOOD]}
    models = Models({**says, ("second", "answer"): [BAD.replace("75", "85")], ("third", "answer"): [GOOD]})
    for _ in range(6):
        models.asked.clear()
        got = ask(fleet, models, "")
        assert got.text == GOOD
        assert sorted(models.asked) == [
            ("judge", "arbitrate"),
            ("main", "answer"),
            ("second", "answer"),
            ("third", "answer"),
        ]
