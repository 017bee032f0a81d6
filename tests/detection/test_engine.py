"""Tests of ``truthlens.detection.engine``: bounds, deadlines and failures become verdicts."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.fakes.detectors import FailingDetector, FixedDetector, HeldDetector, scored
from tests.fakes.engines import GivenDetectors, engine_of
from tests.fakes.tiny_encoder import write_encoder
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Reason, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage, plain_exchange
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import Coverage, DetectorResult, Span
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.engine import LARGE_ANSWER_CHARS, LARGE_EVIDENCE_CHARS
from truthlens.telemetry.logs import log_exchange
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.tracing import ExchangeTrace

EXCHANGE = Exchange(Endpoint.CHAT, "m", "", (Passage("The sky is blue.", Provenance.TOOL),))
ANSWER = Answer(0, AnswerKind.TEXT, "The sky is Zorblax.")
PLAN = Plan("default", threshold=0.5, timeout_s=30.0)
HASTY = Plan("hasty", threshold=0.5, timeout_s=0.5)


async def entered(held: HeldDetector) -> None:
    """Wait until a worker is inside of the held detector."""
    assert await asyncio.to_thread(held.entered.acquire, timeout=30)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until ``condition`` holds."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


async def test_an_answer_is_scored_by_a_real_model(tmp_path: Path) -> None:
    """From plan and answer to a verdict with score, span, coverage and threshold."""
    folder = write_encoder(tmp_path / "tiny", manifest={"revision": "r1"})
    engine = engine_of({None: load_encoder(folder)})
    (verdict,) = await engine.detect(PLAN, EXCHANGE, [ANSWER])
    assert (verdict.status, verdict.reason, verdict.threshold) == (Status.CHECKED, None, 0.5)
    assert verdict.flagged
    assert [ANSWER.text[span.start : span.end] for span in verdict.spans] == ["Zorblax"]
    assert verdict.coverage is not None
    assert verdict.coverage.complete
    assert verdict.results[0].duration_s > 0.0
    assert (engine.model_name(PLAN), verdict.results[0].revision) == ("tiny", "r1")
    await engine.aclose()


@pytest.mark.parametrize(
    ("plan", "exchange", "answer", "reason"),
    [
        (Plan("off", enabled=False), EXCHANGE, ANSWER, Reason.DISABLED),
        (Plan("none", detectors=()), EXCHANGE, ANSWER, Reason.DISABLED),
        (PLAN, EXCHANGE, Answer(0, AnswerKind.TOOL_CALL), Reason.TOOL_CALL),
        (PLAN, EXCHANGE, Answer(0, AnswerKind.REFUSAL), Reason.EMPTY_ANSWER),
        (PLAN, EXCHANGE, Answer(0, AnswerKind.REFUSAL, "I cannot help with that."), Reason.EMPTY_ANSWER),
        (
            PLAN,
            EXCHANGE,
            Answer(0, AnswerKind.TOOL_CALL, "I'm sorry, but I can't help with that."),
            Reason.TOOL_CALL,
        ),
        (PLAN, EXCHANGE, Answer(0, AnswerKind.EMPTY), Reason.EMPTY_ANSWER),
        (PLAN, EXCHANGE, Answer(0, AnswerKind.TEXT, " \n"), Reason.EMPTY_ANSWER),
        (PLAN, Exchange(Endpoint.CHAT, "m", "", ()), ANSWER, Reason.NO_CONTEXT),
    ],
)
async def test_what_need_not_run_does_not_run(
    plan: Plan, exchange: Exchange, answer: Answer, reason: Reason
) -> None:
    """Where there is nothing to check, the verdict is unchecked with its reason, and no detector is asked."""
    detector = FixedDetector(scored(0.9))
    engine = engine_of({None: detector})
    (verdict,) = await engine.detect(plan, exchange, [answer])
    assert (verdict.status, verdict.reason, verdict.score) == (Status.UNCHECKED, reason, None)
    assert verdict.threshold == plan.threshold
    assert detector.calls == 0
    await engine.aclose()


@pytest.mark.parametrize(
    "kind", [AnswerKind.TOOL_CALL, AnswerKind.REFUSAL, AnswerKind.OTHER, AnswerKind.REASONING]
)
async def test_whatever_claims_something_is_scored(kind: AnswerKind) -> None:
    """A claim beside a tool call, in a refusal or in place of an answer is a claim."""
    engine = engine_of({None: FixedDetector(scored(0.9))})
    text = "I cannot help with that. The library opens at seven."
    (verdict,) = await engine.detect(PLAN, EXCHANGE, [Answer(0, kind, text)])
    assert (verdict.status, verdict.score) == (Status.CHECKED, 0.9)
    await engine.aclose()


async def test_choices_keep_their_order_and_share_one_job() -> None:
    """Every choice gets its own verdict; those that can be scored go to the detector together."""
    detector = FixedDetector(scored(0.9))
    engine = engine_of({None: detector})
    answers = [Answer(0, AnswerKind.TOOL_CALL), ANSWER, Answer(2, AnswerKind.EMPTY), ANSWER]
    verdicts = await engine.detect(PLAN, EXCHANGE, answers)
    assert [verdict.reason for verdict in verdicts] == [Reason.TOOL_CALL, None, Reason.EMPTY_ANSWER, None]
    assert detector.calls == 1
    assert await engine.detect(PLAN, EXCHANGE, []) == ()
    await engine.aclose()


async def test_incomplete_coverage_is_partial() -> None:
    """A detector that did not get through everything gives a partial verdict."""
    engine = engine_of({None: FixedDetector(scored(0.2, coverage=Coverage(10, 5, 8, 8)))})
    (verdict,) = await engine.detect(PLAN, EXCHANGE, [ANSWER])
    assert (verdict.status, verdict.reason, verdict.score) == (Status.PARTIAL, Reason.TOO_LARGE, 0.2)
    await engine.aclose()


async def test_a_failing_detector_costs_a_verdict_and_tells_no_text() -> None:
    """An exception becomes ``detector-error`` with its kind, and never with its message."""
    engine = engine_of({None: FailingDetector(RuntimeError("The sky is Zorblax."))})
    (verdict,) = await engine.detect(PLAN, EXCHANGE, [ANSWER])
    assert (verdict.status, verdict.reason) == (Status.UNCHECKED, Reason.DETECTOR_ERROR)
    assert verdict.results[0].explanation == "RuntimeError"
    await engine.aclose()


async def test_what_the_model_does_not_read_is_known_before_scoring() -> None:
    """Nobody needs to be asked for a second opinion of an answer that cannot be scored."""

    class Monoglot(FixedDetector):
        def reads(self, exchange: Exchange, answer: Answer) -> bool:
            return answer.text.isascii()

    engine = engine_of({None: Monoglot(scored(0.1))})
    foreign = replace(ANSWER, text="水泵的转速是每分钟900转。")
    assert engine.scores(PLAN, EXCHANGE, [ANSWER])
    assert engine.scores(PLAN, EXCHANGE, [foreign, ANSWER])
    assert not engine.scores(PLAN, EXCHANGE, [foreign])
    assert not engine.scores(PLAN, replace(EXCHANGE, passages=()), [ANSWER])
    await engine.aclose()


async def test_a_detector_that_loses_an_answer_has_failed() -> None:
    """Fewer results than answers are no results."""

    class Forgetful(FixedDetector):
        def detect_all(self, *args: object, **kwargs: object) -> list[DetectorResult]:
            return [scored(0.1)]

    engine = engine_of({None: Forgetful(scored(0.1))})
    verdicts = await engine.detect(PLAN, EXCHANGE, [ANSWER, ANSWER])
    assert [verdict.reason for verdict in verdicts] == [Reason.DETECTOR_ERROR] * 2
    await engine.aclose()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (scored(math.nan), "score nan, expected 0..1"),
        (scored(1.5), "score 1.5, expected 0..1"),
        (scored(-0.1), "score -0.1, expected 0..1"),
        (scored(math.inf), "score inf, expected 0..1"),
        (replace(scored(0.5), floor=math.nan), "floor nan, expected 0..1"),
        (replace(scored(0.5), spans=(Span(0, 3, math.nan),)), "score of a span nan, expected 0..1"),
    ],
)
async def test_a_score_out_of_range_is_the_failure_of_its_detector(wrong: DetectorResult, why: str) -> None:
    """Whole, followed or in part: the others' score stands, and the failure is counted and logged."""
    plan = replace(PLAN, detectors=(DetectorSpec("encoder"), DetectorSpec("numbers")))
    engine = engine_of({None: FixedDetector(scored(0.2))}, detectors={"numbers": FixedDetector(wrong)})
    (verdict,) = await engine.detect(plan, EXCHANGE, [ANSWER])
    whole = ((0, len(ANSWER.text)),)
    followed = await engine.follow(plan, EXCHANGE).detect([ANSWER], [whole])
    ((near,),) = await engine.follow(plan, EXCHANGE).detect_ranges([ANSWER], [whole])
    for each in (verdict, followed.verdicts[0], followed.ranges[0][0], near):
        assert (each.status, each.reason, each.score) == (Status.PARTIAL, Reason.DETECTOR_ERROR, 0.2)
        failed = each.results[1]
        assert (failed.detector, failed.score, failed.floor, failed.explanation) == (
            "numbers",
            None,
            0.0,
            why,
        )
    signals = Metrics()
    outcome = Outcome(plan, verdict, (verdict,))
    signals.observe(outcome, request_s=0.0, response_s=0.0)
    labels = {"decision": "default", "reason": "detector-error"}
    assert signals.registry.get_sample_value("truthlens_unchecked_total", labels) == 1
    with capture_logs() as lines:
        log_exchange(
            outcome, endpoint=None, request_id="r", passages=1, stream=False, request_bytes=9, request_s=0.0,
            response_s=0.0, trace=ExchangeTrace(),
        )  # fmt: skip
    assert lines[0]["errors"] == [f"numbers: {why}"]
    await engine.aclose()


async def test_a_score_out_of_range_costs_its_own_answer_alone() -> None:
    """The detector's other results count."""

    class Uneven(FixedDetector):
        def detect_all(self, *args: object, **kwargs: object) -> list[DetectorResult]:
            return [scored(0.1), scored(math.nan)]

    engine = engine_of({None: Uneven(scored(0.1))})
    verdicts = await engine.detect(PLAN, EXCHANGE, [ANSWER, ANSWER])
    assert [(verdict.score, verdict.reason) for verdict in verdicts] == [
        (0.1, None),
        (None, Reason.DETECTOR_ERROR),
    ]
    await engine.aclose()


async def test_several_detectors_are_weighed_as_the_plan_says() -> None:
    """Weights come from the plan; a detector that fails leaves the verdict partial."""
    plan = Plan("two", detectors=(DetectorSpec("encoder", 1.0), DetectorSpec("numbers", 3.0)))
    engine = engine_of(
        {None: FixedDetector(scored(0.2))},
        detectors={"numbers": FixedDetector(scored(0.6, detector="numbers"))},
    )
    (verdict,) = await engine.detect(plan, EXCHANGE, [ANSWER])
    assert verdict.score == pytest.approx(1 - 0.8 ** (1 / 3) * 0.4)
    assert [result.weight for result in verdict.results] == [1.0, 3.0]
    await engine.aclose()
    engine = engine_of({None: FixedDetector(scored(0.2))})
    (verdict,) = await engine.detect(plan, EXCHANGE, [ANSWER])
    assert (verdict.status, verdict.reason, verdict.score) == (Status.PARTIAL, Reason.DETECTOR_ERROR, 0.2)
    await engine.aclose()


async def test_the_plan_names_the_model_and_models_can_be_exchanged() -> None:
    """Each plan is scored by its own model; after ``use`` by the new ones; an unknown model is an error."""
    named = Plan("named", model_id="large")
    engine = engine_of({None: FixedDetector(scored(0.1)), "large": FixedDetector(scored(0.3), model="L")})
    assert (await engine.detect(named, EXCHANGE, [ANSWER]))[0].score == 0.3
    assert engine.model_name(named) == "L"
    engine.use(GivenDetectors({None: FixedDetector(scored(0.2))}))
    assert (await engine.detect(PLAN, EXCHANGE, [ANSWER]))[0].score == 0.2
    assert (await engine.detect(named, EXCHANGE, [ANSWER]))[0].reason is Reason.DETECTOR_ERROR
    assert engine.model_name(named) == ""
    await engine.aclose()


async def test_a_missed_deadline_is_a_timeout_and_keeps_its_worker_counted() -> None:
    """The verdict comes at the deadline, the job is told to stop, and its place is free once it ends."""
    held = HeldDetector()
    engine = engine_of({None: held}, queue_limit=0)
    (verdict,) = await engine.detect(HASTY, EXCHANGE, [ANSWER])
    assert (verdict.status, verdict.reason) == (Status.UNCHECKED, Reason.TIMEOUT)
    assert (engine.inflight, engine.waiting) == (1, 0)
    (refused,) = await engine.detect(PLAN, EXCHANGE, [ANSWER])
    assert refused.reason is Reason.OVERLOADED
    held.release.set()
    await until(lambda: engine.inflight == 0)
    assert held.stopped == [True]
    (verdict,) = await engine.detect(PLAN, EXCHANGE, [ANSWER])
    assert verdict.status is Status.CHECKED
    await engine.aclose()


async def test_what_was_finished_before_the_deadline_counts() -> None:
    """A slow second detector leaves the first one's score, as partial."""
    plan = Plan("two", timeout_s=0.5, detectors=(DetectorSpec("encoder"), DetectorSpec("judge")))
    held = HeldDetector()
    engine = engine_of({None: FixedDetector(scored(0.4))}, detectors={"judge": held})
    (verdict,) = await engine.detect(plan, EXCHANGE, [ANSWER])
    assert (verdict.status, verdict.reason, verdict.score) == (Status.PARTIAL, Reason.TIMEOUT, 0.4)
    held.release.set()
    await engine.aclose()


async def test_a_full_queue_refuses_at_once() -> None:
    """With the worker busy and the queue full, one more is ``overloaded``; those before it are scored."""
    held = HeldDetector()
    waits: list[float] = []
    engine = engine_of({None: held}, queue_limit=1, queue_observer=waits.append)
    first = asyncio.create_task(engine.detect(PLAN, EXCHANGE, [ANSWER]))
    await entered(held)
    second = asyncio.create_task(engine.detect(PLAN, EXCHANGE, [ANSWER]))
    await until(lambda: engine.waiting == 1)
    (refused,) = await engine.detect(PLAN, EXCHANGE, [ANSWER])
    assert (refused.status, refused.reason, refused.score) == (Status.UNCHECKED, Reason.OVERLOADED, None)
    held.release.set()
    assert [(await task)[0].status for task in (first, second)] == [Status.CHECKED, Status.CHECKED]
    assert len(waits) == 2
    assert min(waits) >= 0.0
    await until(lambda: (engine.inflight, engine.waiting) == (0, 0))
    await engine.aclose()


@pytest.mark.parametrize("leave", [lambda task: task.cancel(), None], ids=["client gone", "deadline"])
async def test_a_job_that_nobody_waits_for_leaves_the_queue(
    leave: Callable[[asyncio.Task[object]], object] | None,
) -> None:
    """A waiting job whose client went away or whose deadline passed never runs."""
    held = HeldDetector()
    engine = engine_of({None: held}, queue_limit=1)
    first = asyncio.create_task(engine.detect(PLAN, EXCHANGE, [ANSWER]))
    await entered(held)
    second = asyncio.create_task(engine.detect(PLAN if leave else HASTY, EXCHANGE, [ANSWER]))
    await until(lambda: engine.waiting == 1)
    if leave:
        leave(second)
        with pytest.raises(asyncio.CancelledError):
            await second
    else:
        assert (await second)[0].reason is Reason.TIMEOUT
    assert engine.waiting == 0
    held.release.set()
    await first
    await engine.aclose()
    assert held.stopped == [False]


async def test_closing_finishes_what_was_begun_and_refuses_the_rest() -> None:
    """A drain lets running and waiting jobs end and takes no new ones."""
    held = HeldDetector()
    engine = engine_of({None: held}, queue_limit=4)
    begun = [asyncio.create_task(engine.detect(PLAN, EXCHANGE, [ANSWER])) for _ in range(2)]
    await entered(held)
    await until(lambda: engine.waiting == 1)
    closing: Awaitable[None] = asyncio.create_task(engine.aclose())
    await asyncio.sleep(0)
    (refused,) = await engine.detect(PLAN, EXCHANGE, [ANSWER])
    assert refused.reason is Reason.OVERLOADED
    held.release.set()
    assert [(await task)[0].status for task in begun] == [Status.CHECKED, Status.CHECKED]
    await closing


@pytest.mark.parametrize(
    ("evidence", "answer"), [("Tea is free.", "x" * LARGE_ANSWER_CHARS), ("x" * LARGE_EVIDENCE_CHARS, "Yes.")]
)
async def test_long_texts_do_not_take_the_workers_of_others(evidence: str, answer: str) -> None:
    """While one is scored, and another waits for it, short answers are scored as ever."""
    held = HeldDetector()
    engine = engine_of({None: held, "fixed": FixedDetector(scored(0.1))}, workers=1)
    long = Exchange(Endpoint.CHAT, "", "", (Passage(f"{evidence}.", Provenance.TOOL),))
    asked = [Answer(0, AnswerKind.TEXT, f"{answer}.")]
    waiting = [asyncio.create_task(engine.detect(Plan("a"), long, asked)) for _ in range(2)]
    assert await asyncio.to_thread(held.entered.acquire, timeout=30)
    short = Exchange(Endpoint.CHAT, "", "", (Passage("Tea is free.", Provenance.TOOL),))
    (verdict,) = await engine.detect(Plan("b", model_id="fixed"), short, [Answer(0, AnswerKind.TEXT, "Yes.")])
    assert verdict.score == 0.1
    assert (engine.inflight, engine.waiting) == (1, 1)
    held.release.set()
    await asyncio.gather(*waiting)
    await engine.aclose()


async def test_a_long_stream_does_not_take_the_workers_of_others() -> None:
    """Evidence decides: the answer is not known when a stream begins."""
    held = HeldDetector()
    engine = engine_of({None: held, "fixed": FixedDetector(scored(0.1))}, workers=1)
    long = replace(EXCHANGE, passages=(Passage("x" * (LARGE_EVIDENCE_CHARS + 1), Provenance.TOOL),))
    following = asyncio.create_task(engine.follow(PLAN, long).detect([ANSWER]))
    await entered(held)
    (verdict,) = await engine.detect(replace(HASTY, model_id="fixed"), EXCHANGE, [ANSWER])
    held.release.set()
    assert verdict.score == 0.1
    await following
    await engine.aclose()


async def test_a_verdict_knows_the_phrases_around_its_spans() -> None:
    """What is marked stays as the detector gave it; one that says what is to be shown keeps its word."""
    text = "The library opens at seven, and it closes at noon."
    seven, noon = text.index("seven"), text.index("noon")
    given = (Span(seven, seven + 5, 0.9), Span(noon, noon + 4, 0.6, shown=(noon, noon + 4)))
    engine = engine_of({None: FixedDetector(replace(scored(0.9), spans=given))})
    answer = Answer(0, AnswerKind.TEXT, text)
    (verdict,) = await engine.detect(PLAN, EXCHANGE, [answer])
    followed = await engine.follow(PLAN, EXCHANGE).detect([answer])
    for spans in (verdict.spans, followed.verdicts[0].spans):
        assert [(span.start, span.end) for span in spans] == [(seven, seven + 5), (noon, noon + 4)]
        assert [text[slice(*span.shown)] for span in spans if span.shown] == [
            "The library opens at seven",
            "noon",
        ]
    await engine.aclose()


async def test_an_explanation_that_fails_costs_no_verdict() -> None:
    """A detector of somebody else's may name a place that is none; the failure is told."""
    told: list[Exception] = []
    span = Span(0, 3.5, 0.9, shown=(0, 3))  # type: ignore[arg-type]
    detector = FixedDetector(replace(scored(0.9), spans=(span,)))
    engine = engine_of({None: detector}, unexplained=told.append)
    verdicts = await engine.detect(PLAN, EXCHANGE, [ANSWER])
    assert await engine.explain(EXCHANGE, [ANSWER], verdicts, time_s=30.0) == verdicts
    assert [type(error) for error in told] == [TypeError]
    await engine.aclose()


async def test_a_phrase_that_cannot_be_found_costs_no_verdict() -> None:
    """A detector of somebody else's may name a place that is none: its score and its spans stay, and the failure is told."""
    told: list[Exception] = []
    span = Span(0, 3.5, 0.9)  # type: ignore[arg-type]
    engine = engine_of({None: FixedDetector(replace(scored(0.9), spans=(span,)))}, unexplained=told.append)
    (verdict,) = await engine.detect(PLAN, EXCHANGE, [ANSWER])
    followed = await engine.follow(PLAN, EXCHANGE).detect([ANSWER])
    for each in (verdict, followed.verdicts[0]):
        assert (each.status, each.score, each.spans) == (Status.CHECKED, 0.9, (span,))
    assert [type(error) for error in told] == [TypeError] * 2
    await engine.aclose()


@pytest.mark.parametrize(("answer_chars", "evidence_chars"), [(400_000, 1_000), (1_000, 400_000)])
async def test_cutting_a_long_text_into_claims_lets_others_run(
    answer_chars: int, evidence_chars: int
) -> None:
    """How long it takes is up to who wrote the text, so it is done on the worker: the event loop turns meanwhile."""
    sentence = "The bank is open on Monday and on Tuesday. "
    exchange, answer = plain_exchange(
        "", [sentence * (evidence_chars // len(sentence))], sentence * (answer_chars // len(sentence))
    )
    engine = engine_of({None: FixedDetector(scored(0.1))}, workers=1, queue_limit=1)
    detecting = asyncio.create_task(engine.detect(Plan("p", timeout_s=600.0), exchange, [answer]))
    turns = 0
    while not detecting.done():
        await asyncio.sleep(0)
        turns += 1
    assert (await detecting)[0].claims
    assert turns > 100
    await engine.aclose()
