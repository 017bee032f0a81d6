"""What the pipeline does where an exchange is too large, takes too long, or finds no room."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
import structlog

from tests.fakes.detectors import FixedDetector, HeldDetector, scored
from tests.fakes.engines import GivenDetectors, engine_of
from tests.fakes.pipelines import pipeline_for
from truthlens.core.errors import OverloadedError
from truthlens.core.records.enums import Action, AnswerKind, Endpoint, Provenance, Reason
from truthlens.core.records.exchange import Answer, Exchange, Passage, RequestHead, ResponseHead
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.detection.engine import Engine
from truthlens.exchange.memory_release import WORTH_BYTES, GiveBack
from truthlens.exchange.reading_pool import Pool
from truthlens.exchange.ticket import Conclusion, Ticket
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

OK = ResponseHead(200, {"content-type": "application/json"})
# More than is read on the event loop.
PAD = "Milk is free as well. " * 600
EVIDENCE = {"role": "tool", "content": "Tea is free."}
QUESTION = {"role": "user", "content": "Is tea free?"}

_T = TypeVar("_T")


class OutOf(Pool):
    """A pool that has no time, or no room, from a given call on."""

    def __init__(self, error: Exception, *, after: int = 0) -> None:
        super().__init__()
        self._error = error
        self._left = after

    async def run(self, work: Callable[[], _T], *, size: int, timeout_s: float) -> _T:
        self._left -= 1
        if self._left < 0:
            raise self._error
        return await super().run(work, size=size, timeout_s=timeout_s)


class WatchedPool(Pool):
    """Notes how many exchanges count as in flight whenever it is given work."""

    def __init__(self) -> None:
        super().__init__()
        self.watched: Metrics | None = None
        self.seen: list[float | None] = []

    async def run(self, work: Callable[[], _T], *, size: int, timeout_s: float) -> _T:
        assert self.watched is not None
        self.seen.append(self.watched.registry.get_sample_value("truthlens_inflight"))
        return await super().run(work, size=size, timeout_s=timeout_s)


class TimedEngine(Engine):
    """Notes the time that each detection was given, and lets some pass."""

    def __init__(self) -> None:
        super().__init__(GivenDetectors({None: FixedDetector(scored(0.1))}))
        self.given_s: list[float] = []

    async def detect(self, plan: Plan, exchange: Exchange, answers: Sequence[Answer]) -> tuple[Verdict, ...]:
        self.given_s.append(plan.timeout_s)
        await asyncio.sleep(0.001)
        return await super().detect(plan, exchange, answers)


class Rig:
    """A pipeline under ``on_unchecked: block`` with further keys of ``hallucination`` and ``limits``."""

    def __init__(
        self, keys: str = "", limits: str = "", *, engine: Engine | None = None, **more: Any
    ) -> None:
        policy = f"hallucination: {{on_unchecked: block, {keys}}}\nlimits: {{{limits}}}\n"
        self.holder = PolicyHolder(compile_policy(policy, file="p.yaml"))
        self.signals = Metrics()
        self.engine = engine or engine_of({None: FixedDetector(scored(0.1))})
        self.pipeline = pipeline_for(self.holder, self.engine, self.signals, Recent(), **more)

    def admit(self, **headers: str) -> Ticket:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.pipeline.admit(RequestHead("POST", "/v1/chat/completions", named, {}))

    async def request(self, *messages: dict[str, str], **fields: Any) -> Ticket:
        body = {"model": "m", "messages": messages or [EVIDENCE, QUESTION], **fields}
        opened = await self.pipeline.open(self.admit(), json.dumps(body).encode())
        return await self.pipeline.prepare(opened)

    async def exchange(self, *texts: str, ticket: Ticket | None = None, **fields: Any) -> Conclusion:
        choices = [{"index": place, "message": {"content": text}} for place, text in enumerate(texts)]
        body = json.dumps({"choices": choices, **fields}).encode()
        return await self.pipeline.assess(ticket or await self.request(), OK, body)

    @property
    def held(self) -> float:
        return self.signals.registry.get_sample_value("truthlens_held_bytes") or 0.0


async def test_a_request_that_says_it_is_too_large_is_not_brought_here() -> None:
    """Its head is enough to know; a length that is no number says nothing."""
    rig = Rig(limits="max_body_bytes: 2000")
    assert rig.admit(content_length="2001").reason is Reason.TOO_LARGE
    assert rig.admit(content_length="9" * 5000).reason is Reason.TOO_LARGE
    assert rig.admit(content_length="2000").reason is None
    assert rig.admit(content_length="²").reason is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [(TimeoutError(), Reason.TIMEOUT), (OverloadedError("full"), Reason.OVERLOADED)],
)
@pytest.mark.parametrize("done", [0, 1])
async def test_requests_for_which_there_is_no_time_or_room_say_so(
    error: Exception, reason: Reason, done: int
) -> None:
    """While they are read, and while their evidence is looked for; the answer is held back where the plan says so."""
    rig = Rig(pool=OutOf(error, after=done))
    ticket = await rig.request({"role": "tool", "content": PAD}, QUESTION)
    assert ticket.reason is reason
    assert ticket.exchange is None
    assert rig.pipeline.skip(ticket, reason).outcome.action is Action.BLOCK
    assert rig.held == 0


@pytest.mark.parametrize("done", [0, 1])
async def test_a_failure_while_a_request_is_read_costs_its_verdict(done: int) -> None:
    """The exchange goes on, and the log says which kind of error it was and no more."""
    rig = Rig(pool=OutOf(KeyError("Milk"), after=done))
    with structlog.testing.capture_logs() as lines:
        ticket = await rig.request({"role": "tool", "content": PAD}, QUESTION)
    assert ticket.reason is Reason.DETECTOR_ERROR
    assert ticket.exchange is None
    assert [line.get("error") for line in lines] == ["KeyError"]
    assert "Milk" not in str(lines)
    assert rig.held == 0


@pytest.mark.parametrize(
    ("error", "reason"),
    [(TimeoutError(), Reason.TIMEOUT), (OverloadedError("full"), Reason.OVERLOADED)],
)
@pytest.mark.parametrize("done", [0, 1])
async def test_answers_for_which_there_is_no_time_or_room_say_so(
    error: Exception, reason: Reason, done: int
) -> None:
    """While they are read, and while their new bodies are made: none leaves unchanged that was to be changed."""
    rig = Rig("threshold: 0.05", pool=OutOf(error, after=done))
    conclusion = await rig.exchange("Tea is free.", pad=" " * len(PAD))
    assert conclusion.outcome.verdict.reason is reason
    assert conclusion.outcome.action is Action.BLOCK
    assert rig.held == 0


@pytest.mark.parametrize(
    ("limits", "texts", "fields"),
    [
        ("max_choices: 2", ("Yes.",) * 3, {}),
        ("max_answer_chars: 1000", ("Yes. " * 150,) * 2, {}),
        ("max_json_values: 1000", ("Yes.",), {"x": [[]] * 1000}),
    ],
)
async def test_answers_beyond_a_limit_are_not_checked(
    limits: str, texts: tuple[str, ...], fields: dict[str, Any]
) -> None:
    """No detector is asked; ``too-large`` says why."""
    detector = FixedDetector(scored(0.1))
    rig = Rig(limits=limits, engine=engine_of({None: detector}))
    conclusion = await rig.exchange(*texts, **fields)
    assert conclusion.outcome.verdict.reason is Reason.TOO_LARGE
    assert conclusion.outcome.action is Action.BLOCK
    assert detector.calls == 0


@pytest.mark.parametrize(
    ("limits", "messages", "fields"),
    [
        ("max_json_values: 1000", [EVIDENCE, QUESTION], {"x": [[]] * 1000}),
        ("max_prompt_chars: 1000", [EVIDENCE, {"role": "user", "content": PAD}], {}),
        ("max_passages: 2", [QUESTION], {"documents": ["a", "b", "c"]}),
    ],
)
async def test_requests_beyond_a_limit_are_not_searched(
    limits: str, messages: list[dict[str, str]], fields: dict[str, Any]
) -> None:
    """The exchange says ``too-large`` before its answer has come."""
    ticket = await Rig(limits=limits).request(*messages, **fields)
    assert ticket.reason is Reason.TOO_LARGE
    assert ticket.exchange is None


async def test_a_few_compressed_bytes_are_not_unpacked_on_the_event_loop() -> None:
    """They may hold megabytes: of requests, and of answers."""
    body = gzip.compress(b"{}")
    rig = Rig(pool=OutOf(TimeoutError()))
    opened = await rig.pipeline.open(rig.admit(content_encoding="gzip"), body)
    assert opened.reason is Reason.TIMEOUT
    head = ResponseHead(200, {**OK.headers, "content-encoding": "gzip"})
    conclusion = await rig.pipeline.assess(await rig.request(), head, body)
    assert conclusion.outcome.verdict.reason is Reason.TIMEOUT


async def test_what_bytes_are_unpacked_to_decides_where_they_are_read() -> None:
    """A large request that was sent as a small one is read on a thread."""
    plain = json.dumps({"model": "m", "messages": [QUESTION], "pad": PAD}).encode()
    rig = Rig(pool=OutOf(TimeoutError(), after=1))
    opened = await rig.pipeline.open(rig.admit(content_encoding="gzip"), gzip.compress(plain))
    assert opened.reason is Reason.TIMEOUT


async def test_all_choices_share_the_time_of_one_detection() -> None:
    """However many there are: each further batch gets what the ones before it left."""
    engine = TimedEngine()
    rig = Rig("timeout_s: 4", engine=engine)
    conclusion = await rig.exchange(*["Tea is free."] * 100)
    assert conclusion.outcome.verdict.reason is None
    assert len(engine.given_s) > 2
    assert engine.given_s == sorted(set(engine.given_s), reverse=True)
    assert engine.given_s[0] <= 4.0


async def test_choices_that_found_no_time_are_unchecked_and_the_others_are_not() -> None:
    """A detector that takes all of the time costs the verdicts of those that come after it, not more time."""
    held = HeldDetector()
    rig = Rig("timeout_s: 0.05", engine=engine_of({None: held}))
    conclusion = await rig.exchange(*["Tea is free."] * 40)
    held.release.set()
    assert conclusion.outcome.verdict.reason is Reason.TIMEOUT
    await rig.engine.aclose()
    assert held.stopped == [True]


async def test_a_body_that_is_read_counts_as_held() -> None:
    """Bodies that wait to be read are bounded in sum, as answers are that wait to be scored."""
    rig = Rig(limits=f"max_held_bytes: {len(PAD)}")
    assert (await rig.request({"role": "tool", "content": PAD}, QUESTION)).reason is Reason.OVERLOADED
    assert (await rig.request()).reason is None
    assert rig.held == 0


async def test_an_exchange_counts_once_as_in_flight() -> None:
    """While its request is read, its evidence is looked for, and its answer is read and rewritten."""
    pool = WatchedPool()
    rig = Rig("threshold: 0.05", pool=pool)
    pool.watched = rig.signals
    ticket = await rig.request({"role": "tool", "content": PAD}, QUESTION)
    await rig.exchange("Tea is free.", ticket=ticket, pad=" " * len(PAD))
    assert pool.seen == [1, 1, 1, 1]


async def test_a_kept_request_is_let_go_when_its_answer_finds_no_room() -> None:
    """However often that happens, there is room again afterwards."""
    rig = Rig("default_mode: standard", limits="max_held_bytes: 1100")
    for _ in range(2):
        ticket = await rig.request()
        assert ticket.plain
        conclusion = await rig.exchange("Tea is free.", ticket=ticket, pad="x" * 1100)
        assert conclusion.outcome.verdict.reason is Reason.OVERLOADED
        assert rig.held == 0


async def test_a_kept_request_is_let_go_when_its_client_leaves_as_it_was_read() -> None:
    """What reading it gave is lost with the stream that waited for it, and the gateway knows the first ticket alone."""
    rig = Rig("default_mode: standard")
    ticket = rig.admit()
    body = json.dumps({"model": "m", "messages": [EVIDENCE, QUESTION]}).encode()
    assert (await rig.pipeline.open(ticket, body)).plain
    assert rig.held > 0
    rig.pipeline.abandon(ticket)
    assert rig.held == 0


async def test_memory_is_given_back_after_a_large_exchange() -> None:
    """Request or answer; and after requests that were too large to be read."""
    for fields, texts in ((WORTH_BYTES, 1), (1, WORTH_BYTES)):
        done = asyncio.Event()
        loop = asyncio.get_running_loop()

        def trim(loop: asyncio.AbstractEventLoop = loop, done: asyncio.Event = done) -> None:
            loop.call_soon_threadsafe(done.set)

        rig = Rig(give_back=GiveBack(trim, delay_s=0.0), limits="max_answer_chars: 1000")
        ticket = await rig.request(pad="x" * fields)
        await rig.exchange("x" * texts, ticket=ticket)
        async with asyncio.timeout(30):
            await done.wait()


async def test_memory_is_given_back_after_a_large_score() -> None:
    """When it has ended: before that there is nothing to give."""
    held, rounds, done = HeldDetector(), [], asyncio.Event()
    loop = asyncio.get_running_loop()

    def trim() -> None:
        rounds.append(held.release.is_set())
        loop.call_soon_threadsafe(done.set)

    rig = Rig(give_back=GiveBack(trim, delay_s=0.0), engine=engine_of({None: held}))
    exchange = Exchange(Endpoint.CHAT, "", "", (Passage("x" * WORTH_BYTES, Provenance.DOCUMENTS),))
    answer = Answer(0, AnswerKind.TEXT, "Yes.")
    scoring = asyncio.create_task(rig.pipeline.score(rig.holder.current.default, exchange, answer))
    assert await asyncio.to_thread(held.entered.acquire, timeout=30)
    held.release.set()
    await scoring
    async with asyncio.timeout(30):
        await done.wait()
    assert rounds == [True]


@pytest.mark.parametrize(
    ("limits", "context", "answer"),
    [
        ("max_answer_chars: 1000", "Tea is free.", "Yes. " * 300),
        ("max_prompt_chars: 1000", "Tea is free. " * 100, "Yes."),
    ],
)
async def test_a_score_that_was_asked_for_has_the_same_limits(limits: str, context: str, answer: str) -> None:
    """The console's exchanges do not pass the gateway, but cost as much."""
    rig = Rig(limits=limits)
    exchange = Exchange(Endpoint.CHAT, "", "", (Passage(context, Provenance.DOCUMENTS),))
    plan = rig.holder.current.default
    verdict = await rig.pipeline.score(plan, exchange, Answer(0, AnswerKind.TEXT, answer))
    assert verdict.reason is Reason.TOO_LARGE
