"""Tests of ``truthlens.detection.cascade`` and ``Engine.examine``: who is asked, and what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.detectors import FixedDetector
from truthlens.core.errors import CallError
from truthlens.core.records.calls import Ask, CallFailure, Completion, ModelRequest, Role
from truthlens.core.records.enums import AnswerKind, AskWhen, Endpoint, Provenance, Reason, Stage, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.settings import CascadeSettings
from truthlens.core.records.verdict import DetectorResult, Span, Verdict
from truthlens.detection.cascade import failed_by_models, rejected_by_models, stage_of
from truthlens.detection.engine import Engine
from truthlens.detection.interfaces import AskingDetector, Detector

EXCHANGE = Exchange(Endpoint.CHAT, "m", "", (Passage("Tea costs two euros.", Provenance.TOOL),))
ANSWER = Answer(0, AnswerKind.TEXT, "Tea costs nine euros.")
ENCODER, JUDGE = DetectorSpec("encoder"), DetectorSpec("judge", models=("strong",))
PLAN = Plan("p", threshold=0.6, timeout_s=30.0, detectors=(ENCODER, JUDGE))


class Scripted:
    """An asking detector that makes one call and gives what a test wants."""

    def __init__(self, give: Callable[[], DetectorResult], *, reads: bool = True) -> None:
        self.give, self._reads, self.first = give, reads, ()

    def reads(self, _exchange: Exchange, _answer: Answer) -> bool:
        return self._reads

    async def examine(
        self, _exchange: Exchange, _answer: Answer, first: Sequence[DetectorResult], *, ask: Ask
    ) -> DetectorResult:
        self.first = tuple(first)
        await ask(ModelRequest("strong", Role.JUDGE_DETECTOR, {}))
        return self.give()


class Detectors:
    """One cheap detector, and one that asks."""

    def __init__(self, score: float | None, asking: AskingDetector | None) -> None:
        reason = None if score is not None else Reason.LANGUAGE
        self._cheap = FixedDetector(DetectorResult("encoder", score, reason=reason))
        self._asking = asking

    def of(self, plan: Plan) -> list[tuple[DetectorSpec, Detector | None]]:
        return [(spec, self._cheap) for spec in plan.detectors if not spec.models]

    def asking(self, plan: Plan) -> list[tuple[DetectorSpec, AskingDetector | None]]:
        return [(spec, self._asking) for spec in plan.asking]


class Asked:
    """Counts calls, and answers or fails."""

    def __init__(self, failure: CallFailure | None = None, *, hangs: bool = False) -> None:
        self.requests: list[ModelRequest] = []
        self._failure, self._hangs = failure, hangs

    async def __call__(self, request: ModelRequest) -> Completion:
        self.requests.append(request)
        if self._hangs:
            await asyncio.Event().wait()
        if self._failure is not None:
            raise CallError(self._failure, "scripted")
        return Completion("fine", request.model)


async def both(
    score: float | None,
    give: Callable[[], DetectorResult] | DetectorResult,
    *,
    plan: Plan = PLAN,
    ask: Asked | None = None,
    draw: float = 0.5,
    stage: Stage | None = None,
    answer: Answer = ANSWER,
    reads: bool = True,
) -> tuple[Verdict, Asked, Scripted]:
    """The verdict of both stages on one answer."""
    asked = ask or Asked()
    detector = Scripted(give if callable(give) else lambda: give, reads=reads)
    engine = Engine(Detectors(score, detector), draw=lambda: draw)
    verdicts = await engine.detect(plan, EXCHANGE, [answer])
    (verdict,) = await engine.examine(plan, EXCHANGE, [answer], verdicts, ask=asked, time_s=0.2, stage=stage)
    await engine.aclose()
    return verdict, asked, detector


def judged(score: float, **fields: object) -> DetectorResult:
    return DetectorResult("judge", score, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("score", "asks"),
    [(0.0, False), (0.29, False), (0.3, True), (0.45, True), (0.6, True), (0.61, False), (1.0, False)],
)
async def test_models_are_asked_where_the_first_score_lies_in_the_band(score: float, asks: bool) -> None:
    """Its ends are in it; elsewhere the first stage's verdict stays as it is."""
    verdict, asked, _ = await both(score, judged(0.9))
    assert bool(asked.requests) is asks
    assert verdict.stage is (Stage.BAND if asks else Stage.FIRST)
    assert verdict.first_score == (score if asks else None)
    assert verdict.score == pytest.approx(1 - (1 - score) * 0.1 if asks else score)


@pytest.mark.parametrize(
    ("when", "sample", "draw", "stage"),
    [
        (AskWhen.ALWAYS, 0.0, 0.9, Stage.ALWAYS),
        (AskWhen.BAND, 0.02, 0.019, Stage.SAMPLE),
        (AskWhen.BAND, 0.02, 0.02, Stage.FIRST),
        (AskWhen.BAND, 1.0, 0.999, Stage.SAMPLE),
        (AskWhen.BAND, 0.0, 0.0, Stage.FIRST),
    ],
)
async def test_models_are_asked_always_or_on_a_sample(
    when: AskWhen, sample: float, draw: float, stage: Stage
) -> None:
    """As the plan's cascade says."""
    plan = replace(PLAN, cascade=CascadeSettings(when=when, sample=sample))
    verdict, asked, _ = await both(0.1, judged(0.0), plan=plan, draw=draw)
    assert verdict.stage is stage
    assert len(asked.requests) == (stage is not Stage.FIRST)


async def test_an_answer_that_the_first_stage_cannot_score_is_asked_about() -> None:
    """A model reads languages that the encoder does not; the verdict says that a part of the plan did not."""
    verdict, _, detector = await both(None, judged(0.8))
    assert (verdict.stage, verdict.status, verdict.reason) == (
        Stage.UNSCORED,
        Status.PARTIAL,
        Reason.LANGUAGE,
    )
    assert verdict.score == 0.8
    assert [result.reason for result in detector.first] == [Reason.LANGUAGE]


async def test_a_plan_of_asking_detectors_alone_is_scored_by_them() -> None:
    """Nothing is cheap there; where the model fails the answer is unchecked, never clean."""
    plan = replace(PLAN, detectors=(JUDGE,))
    verdict, _, _ = await both(None, judged(0.2), plan=plan)
    assert (verdict.score, verdict.status) == (0.2, Status.CHECKED)
    verdict, _, _ = await both(None, judged(0.2), plan=plan, ask=Asked(CallFailure.SERVER_ERROR))
    assert (verdict.score, verdict.status, verdict.reason) == (None, Status.UNCHECKED, Reason.DETECTOR_ERROR)


@pytest.mark.parametrize("text", ["", "  "])
async def test_nobody_is_asked_about_an_answer_without_a_claim(text: str) -> None:
    """Also not where every answer is asked about."""
    plan = replace(PLAN, cascade=CascadeSettings(when=AskWhen.ALWAYS))
    kind = AnswerKind.EMPTY
    verdict, asked, _ = await both(0.5, judged(1.0), plan=plan, answer=Answer(0, kind, text))
    assert (verdict.reason, asked.requests) == (Reason.EMPTY_ANSWER, [])


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (CallFailure.DEADLINE, Reason.TIMEOUT),
        (CallFailure.TIMEOUT, Reason.TIMEOUT),
        (CallFailure.BUSY, Reason.OVERLOADED),
        *[
            (failure, Reason.DETECTOR_ERROR)
            for failure in CallFailure
            if failure not in (CallFailure.DEADLINE, CallFailure.TIMEOUT, CallFailure.BUSY)
        ],
    ],
)
async def test_a_failed_call_costs_the_detector_alone(failure: CallFailure, reason: Reason) -> None:
    """The first stage's score stays, and the verdict says that it is not whole."""
    verdict, _, _ = await both(0.5, judged(0.0), ask=Asked(failure))
    assert (verdict.score, verdict.status, verdict.reason) == (0.5, Status.PARTIAL, reason)
    assert failed_by_models(PLAN, verdict)


async def test_a_silent_model_costs_its_time_and_no_more() -> None:
    """The call is cancelled at the end of the time."""
    verdict, _, _ = await both(0.5, judged(0.0), ask=Asked(hangs=True))
    assert (verdict.score, verdict.status, verdict.reason) == (0.5, Status.PARTIAL, Reason.TIMEOUT)


def _raise() -> DetectorResult:
    raise RuntimeError("the text of a user")


@pytest.mark.parametrize(
    "give",
    [
        _raise,
        lambda: judged(float("nan")),
        lambda: judged(1.5),
        lambda: judged(-0.1),
        lambda: judged(0.5, floor=2.0),
        lambda: judged(0.5, spans=(Span(0, 9_999, 0.5),)),
        lambda: judged(0.5, spans=(Span(5, 2, 0.5),)),
        lambda: judged(0.5, spans=(Span(0, 2, float("inf")),)),
    ],
)
async def test_nonsense_costs_the_detector_alone(give: Callable[[], DetectorResult]) -> None:
    """Nothing of the exception's words is kept."""
    verdict, _, _ = await both(0.5, give)
    assert (verdict.score, verdict.status, verdict.reason) == (0.5, Status.PARTIAL, Reason.DETECTOR_ERROR)
    assert "user" not in "".join(result.explanation for result in verdict.results)


async def test_a_detector_that_does_not_read_the_language_is_not_asked() -> None:
    """The first verdict stays."""
    verdict, asked, _ = await both(0.5, judged(0.9), reads=False)
    assert (verdict.score, verdict.stage, asked.requests) == (0.5, Stage.FIRST, [])


async def test_weights_names_and_order_are_the_plans() -> None:
    """Whatever the detector calls itself."""
    plan = replace(PLAN, detectors=(replace(JUDGE, weight=2.0), ENCODER))
    verdict, _, _ = await both(0.5, DetectorResult("other", 0.4, spans=(Span(10, 14, 0.4),)), plan=plan)
    assert [(result.detector, result.weight) for result in verdict.results] == [
        ("judge", 2.0),
        ("encoder", 1.0),
    ]
    assert verdict.results[0].duration_s > 0.0
    assert verdict.spans[0].shown is not None


@given(first=st.floats(0, 1), second=st.floats(0, 1), draw=st.floats(0, 1, exclude_max=True))
def test_asking_never_lowers_a_score(first: float, second: float, draw: float) -> None:
    """A model that finds nothing does not outweigh what was found."""
    plan = replace(PLAN, cascade=CascadeSettings(sample=0.5))
    verdict, _, _ = asyncio.run(both(first, judged(second), plan=plan, draw=draw))
    assert verdict.score is not None
    assert verdict.score >= first - 1e-12


async def test_what_models_reject_is_known_as_such() -> None:
    """By their own score at the plan's threshold, or by a floor."""
    flagged, _, _ = await both(0.5, judged(0.7))
    floored, _, _ = await both(0.5, judged(0.1, floor=0.61))
    clean, _, _ = await both(0.5, judged(0.1))
    assert [rejected_by_models(PLAN, each) for each in (flagged, floored, clean)] == [True, True, False]
    assert not failed_by_models(PLAN, flagged)


async def test_what_models_reject_by_a_quotation_is_known_as_such() -> None:
    """What they say of single claims takes nothing from what they say of the answer."""
    quoted, _, _ = await both(0.5, judged(0.9, spans=(Span(10, 14, 0.9, "judge"),)))
    assert quoted.results[1].findings
    assert rejected_by_models(PLAN, quoted)


def test_a_plan_without_asking_detectors_has_one_stage() -> None:
    """Whatever its cascade says."""
    plan = Plan("p", cascade=CascadeSettings(when=AskWhen.ALWAYS))
    assert stage_of(plan, EXCHANGE, ANSWER, Verdict(Status.CHECKED, score=0.5), draw=0.0) is Stage.FIRST
    assert (plan.calls_models, plan.override_s, plan.hold_s) == (False, None, plan.timeout_s)


def test_a_plan_that_asks_needs_more_of_envoys_clock() -> None:
    """In mode lightweight too, and at the end of streams."""
    assert (PLAN.calls_models, PLAN.corrects) == (True, False)
    assert PLAN.hold_s == PLAN.timeout_s + PLAN.cascade.timeout_s
    assert PLAN.override_s is not None
    assert PLAN.override_s > PLAN.hold_s
    assert not replace(PLAN, enabled=False).calls_models


@pytest.mark.parametrize(("said", "fused"), [(0.0, 0.5), (0.2, 0.5), (0.3, 0.5), (0.31, 0.655), (0.5, 0.75)])
async def test_a_low_risk_raises_nothing(said: float, fused: float) -> None:
    """A model that found nothing does not push a doubtful answer over the threshold; its figure is shown all the same."""
    verdict, _, _ = await both(0.5, judged(said))
    assert verdict.score == pytest.approx(fused)
    assert verdict.results[1].score == said
