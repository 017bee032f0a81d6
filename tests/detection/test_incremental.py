"""Tests of ``truthlens.detection.incremental``: answers that grow, through the engine's bounds."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.context_model import WORDS, ContextModel, PartedContextModel, context_encoder
from tests.fakes.detectors import FailingDetector, FixedDetector, HeldDetector, WordDetector, scored
from tests.fakes.engines import GivenDetectors, engine_of
from truthlens.core.errors import DetectorError
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Reason, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import DetectorResult, Verdict
from truthlens.core.thresholds import at_rate
from truthlens.detection.detectors.encoder.detector import EncoderDetector
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.models.inputs.windows import Window
from truthlens.detection.models.runtime import State
from truthlens.process.settings import models_folder
from truthlens.text.sentences import sentences

PLAN = Plan("default", threshold=0.5, timeout_s=30.0)
EVIDENCE = "red lamp in the hall . nine boats on the river . the fee is nine euros . " * 5
EXCHANGE = Exchange(Endpoint.CHAT, "m", "where is the lamp", (Passage(EVIDENCE, Provenance.TOOL),))
TWO = Plan(
    "two", threshold=0.5, timeout_s=30.0, detectors=(DetectorSpec("encoder"), DetectorSpec("numbers", 3.0))
)


def answer(text: str, index: int = 0) -> Answer:
    return Answer(index, AnswerKind.TEXT, text)


def prose(count: int, *, seed: int = 5) -> str:
    """``count`` sentences of five words; those of fewer sentences are the beginning of those of more."""
    dice = random.Random(seed)
    return " ".join(" ".join(dice.choices(WORDS, k=5)) + "." for _ in range(count))


def timeless(verdict: Verdict) -> Verdict:
    """The verdict without how long its detectors took."""
    return replace(
        verdict, results=tuple(replace(result, duration_s=0.0, details={}) for result in verdict.results)
    )


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until ``condition`` holds."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


class SlowModel(PartedContextModel):
    """Waits within each window until the test lets it go on."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Semaphore(0)
        self.release = threading.Semaphore(0)

    def states(self, window: Window) -> State:
        self.entered.release()
        assert self.release.acquire(timeout=30)
        return super().states(window)

    async def reached(self) -> None:
        """Wait until a worker is inside of a window."""
        assert await asyncio.to_thread(self.entered.acquire, timeout=30)


async def test_a_followed_answer_gets_the_verdict_of_the_whole_at_once() -> None:
    """Scored ahead and sentence by sentence, several choices: the verdicts at the end are those of one look."""
    engine = engine_of(
        {None: context_encoder(PartedContextModel())}, detectors={"numbers": WordDetector({"fee": 0.9})}
    )
    texts = [prose(18), prose(11, seed=6)]
    following = engine.follow(TWO, EXCHANGE)
    for _, end in sentences(texts[0])[:-1]:
        answers = [answer(text[:end], place) for place, text in enumerate(texts)]
        if following.due(answers):
            await following.ahead(answers)
        await following.detect(answers[:1], [sentences(answers[0].text)[-1:]])
    answers = [answer(text, place) for place, text in enumerate(texts)]
    followed = await following.detect(answers)
    at_once = await engine.detect(TWO, EXCHANGE, answers)
    assert list(map(timeless, followed.verdicts)) == list(map(timeless, at_once))
    assert followed.ranges == ((), ())
    await engine.aclose()


async def test_the_bundled_model_says_the_same_of_an_answer_that_grew() -> None:
    """Int8 and features that look at all of the answer change nothing: score and spans are equal to the bit."""
    encoder = load_encoder(Path(models_folder() / "truthlens-minilm-en-v2"))
    facts = [
        f"The workshop number {n} in Eastmere opens at {6 + n % 5} and repairs {n * 3} clocks each week."
        for n in range(30)
    ]
    exchange = Exchange(
        Endpoint.CHAT, "m", "When do the workshops open?", (Passage(" ".join(facts), Provenance.DOCUMENTS),)
    )
    text = " ".join(fact.replace("repairs 3", "sells 4") for fact in facts[:20])
    engine = engine_of({None: encoder})
    following = engine.follow(PLAN, exchange)
    for cut in range(150, len(text), 150):
        if following.due([answer(text[:cut])]):
            await following.ahead([answer(text[:cut])])
    first = sentences(text)[0]
    part = (await following.detect([answer(text[: first[1]])], [[first]])).ranges[0][0]
    assert part.status is Status.CHECKED
    (followed,) = (await following.detect([answer(text)])).verdicts
    (at_once,) = await engine.detect(PLAN, exchange, [answer(text)])
    assert timeless(followed) == timeless(at_once)
    assert at_once.coverage is not None
    assert at_once.coverage.windows > 1
    await engine.aclose()


async def test_ranges_are_verdicts_of_their_own() -> None:
    """Each is fused over all detectors, with the plan's weights and threshold and spans of the whole text."""
    engine = engine_of(
        {None: WordDetector({"Zorblax": 0.8})},
        detectors={"numbers": WordDetector({"seven": 0.4}, otherwise=0.0)},
    )
    text = "The lamp is red. It costs Zorblax. Boats are seven."
    followed = await engine.follow(TWO, EXCHANGE).detect([answer(text)], [sentences(text)])
    (parts,) = followed.ranges
    assert [part.score for part in parts] == pytest.approx(
        [1 - 0.98 ** (1 / 3), 1 - 0.2 ** (1 / 3), 1 - 0.98 ** (1 / 3) * 0.6]
    )
    assert [part.flagged for part in parts] == [False] * 3
    assert [[text[span.start : span.end] for span in part.spans] for part in parts] == [
        [],
        ["Zorblax"],
        ["seven"],
    ]
    assert [result.weight for result in parts[0].results] == [1.0, 3.0]
    assert {part.threshold for part in parts} == {0.5}
    await engine.aclose()


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
async def test_every_verdict_is_at_the_expected_rate(rate: float) -> None:
    """At once, while an answer grows and of single sentences: all scores are shifted alike, and compared alike."""
    engine = engine_of({None: WordDetector({"Zorblax": 0.8})})
    plan, text = replace(PLAN, expected_rate=rate), "The lamp is red. It costs Zorblax."
    following = engine.follow(plan, EXCHANGE)
    followed = await following.detect([answer(text)], [sentences(text)])
    (apart,) = await following.detect_ranges([answer(text)], [sentences(text)])
    (at_once,) = await engine.detect(plan, EXCHANGE, [answer(text)])
    (even,) = await engine.detect(PLAN, EXCHANGE, [answer(text)])
    assert even.score is not None
    assert at_once.score == followed.verdicts[0].score == pytest.approx(at_rate(even.score, rate))
    for parts in (followed.ranges[0], apart):
        assert parts[1].score == at_rate(0.8, rate)
    assert at_once.flagged is (at_rate(even.score, rate) >= PLAN.threshold)
    assert [span.score for span in at_once.spans] == [span.score for span in even.spans]
    await engine.aclose()


async def test_only_the_flagged_sentence_is_flagged() -> None:
    """A sentence is flagged by what it says itself."""
    engine = engine_of({None: WordDetector({"Zorblax": 0.8})})
    text = "The lamp is red. It costs Zorblax."
    followed = await engine.follow(PLAN, EXCHANGE).detect([answer(text)], [sentences(text)])
    assert [part.flagged for part in followed.ranges[0]] == [False, True]
    assert followed.verdicts[0].flagged
    await engine.aclose()


async def test_ranges_of_a_growing_answer_are_verdicts_of_their_own() -> None:
    """Each is fused as ``detect`` does it, with spans of the whole text; of the answer itself nothing is asked."""
    texts: list[str] = []

    class Asked(WordDetector):
        def detect_all(
            self, exchange: Exchange, answers: Sequence[Answer], **kwargs: Any
        ) -> list[DetectorResult]:
            texts.extend(each.text for each in answers)
            return super().detect_all(exchange, answers, **kwargs)

    engine = engine_of(
        {None: context_encoder(PartedContextModel())}, detectors={"numbers": Asked({"Zorblax": 0.9})}
    )
    text = prose(30) + " The fee is Zorblax."
    last = sentences(text)[-1]
    following = engine.follow(TWO, EXCHANGE)
    ((found,),) = await following.detect_ranges([answer(text)], [[last]])
    assert texts == [text[slice(*last)]]
    assert [result.weight for result in found.results] == [1.0, 3.0]
    assert found.threshold == 0.5
    assert found.status is Status.CHECKED
    assert all(last[0] <= span.start < span.end <= last[1] for span in found.spans)
    assert text.index("Zorblax") in {span.start for span in found.spans}
    at_once = await following.detect([answer(text)], [[last]])
    assert timeless(at_once.ranges[0][0]).results[1] == timeless(found).results[1]
    await engine.aclose()


async def test_what_cannot_be_scored_has_its_reason_in_all_parts() -> None:
    """Tool calls, empty text and blank parts need no detector; the choices beside them are scored."""
    detector = FixedDetector(scored(0.9))
    engine = engine_of({None: detector})
    answers = [Answer(0, AnswerKind.TOOL_CALL, "Thanks"), answer("  ", 1), answer("red lamp. ", 2)]
    followed = await engine.follow(PLAN, EXCHANGE).detect(
        answers, [[(0, 4)], [(0, 1), (1, 2)], [(0, 9), (9, 10)]]
    )
    assert [verdict.reason for verdict in followed.verdicts] == [Reason.TOOL_CALL, Reason.EMPTY_ANSWER, None]
    assert [[part.reason for part in parts] for parts in followed.ranges] == [
        [Reason.TOOL_CALL],
        [Reason.EMPTY_ANSWER] * 2,
        [None, Reason.EMPTY_ANSWER],
    ]
    assert detector.calls == 1
    growing = await engine.follow(PLAN, EXCHANGE).detect_ranges(
        answers, [[(0, 4)], [(0, 1), (1, 2)], [(0, 9), (9, 10)]]
    )
    assert [[part.reason for part in parts] for parts in growing] == [
        [part.reason for part in parts] for parts in followed.ranges
    ]
    assert await engine.follow(PLAN, EXCHANGE).detect_ranges(answers, [(), (), ()]) == ((), (), ())
    assert detector.calls == 2
    following = engine.follow(replace(PLAN, enabled=False), EXCHANGE)
    (verdict,) = (await following.detect([answer("red")])).verdicts
    assert (verdict.status, verdict.reason) == (Status.UNCHECKED, Reason.DISABLED)
    assert detector.calls == 2
    await engine.aclose()


@pytest.mark.parametrize("ranges", [[], [[(0, 99)]], [[(3, 2)]], [[(-1, 2)]]])
async def test_ranges_must_lie_within_their_answers(ranges: Sequence[Sequence[tuple[int, int]]]) -> None:
    """A part that is no part is a fault of the caller, and its message holds no text."""
    engine = engine_of({None: FixedDetector(scored(0.1))})
    following = engine.follow(PLAN, EXCHANGE)
    for detect in (following.detect, following.detect_ranges):
        with pytest.raises(ValueError, match=r"^(range|\d+ lists)") as raised:
            await detect([answer("red lamp")], ranges)
        assert "lamp" not in str(raised.value)
    await engine.aclose()


async def test_a_following_keeps_the_model_that_it_began_with() -> None:
    """Models that are exchanged in mid-stream score the next exchange."""
    engine = engine_of({None: FixedDetector(scored(0.1))})
    following = engine.follow(PLAN, EXCHANGE)
    engine.use(GivenDetectors({None: FixedDetector(scored(0.9))}))
    assert (await following.detect([answer("red")])).verdicts[0].score == 0.1
    assert (await engine.follow(PLAN, EXCHANGE).detect([answer("red")])).verdicts[0].score == 0.9
    await engine.aclose()


async def test_failures_are_verdicts() -> None:
    """A detector that fails, or is not there, costs all verdicts and raises nothing; so does a failing run ahead."""

    class Broken(ContextModel):
        def states(self, window: Window) -> State:
            raise DetectorError("no")

    for engine in (
        engine_of({None: FailingDetector(RuntimeError("red"))}),
        engine_of({}),
        engine_of({None: context_encoder(Broken())}),
    ):
        following = engine.follow(PLAN, EXCHANGE)
        await following.ahead([answer(prose(20))])
        followed = await following.detect([answer("red lamp")], [[(0, 3), (3, 8)]])
        (growing,) = await following.detect_ranges([answer("red lamp")], [[(0, 3), (3, 8)]])
        verdicts = [*followed.verdicts, *followed.ranges[0], *growing]
        assert [verdict.reason for verdict in verdicts] == [Reason.DETECTOR_ERROR] * 5
        await engine.aclose()


async def test_nothing_is_due_for_detectors_that_do_not_follow() -> None:
    """They are asked for whole answers alone."""
    detector = FixedDetector(scored(0.1))
    engine = engine_of({None: detector})
    following = engine.follow(PLAN, EXCHANGE)
    assert not following.due([answer(prose(40))])
    await following.ahead([answer(prose(40))])
    assert detector.calls == 0
    await engine.aclose()


async def test_a_missed_deadline_and_a_closed_engine_are_verdicts() -> None:
    """A stream's scoring waits for a worker as long as it may, whatever waits already; the deadline may be the caller's own."""
    held = HeldDetector()
    engine = engine_of({None: held}, queue_limit=0)
    following = engine.follow(PLAN, EXCHANGE)
    followed = await following.detect([answer("red lamp")], [[(0, 3)]], timeout_s=0.2)
    assert [followed.verdicts[0].reason, followed.ranges[0][0].reason] == [Reason.TIMEOUT] * 2
    ((late,),) = await following.detect_ranges([answer("red lamp")], [[(0, 3)]], timeout_s=0.2)
    assert late.reason is Reason.TIMEOUT
    held.release.set()
    await engine.aclose()
    assert held.stopped == [True]
    followed = await following.detect([answer("red lamp")], [[(0, 3)]])
    assert [followed.verdicts[0].reason, followed.ranges[0][0].reason] == [Reason.OVERLOADED] * 2


async def test_running_ahead_takes_no_place_that_a_detection_could_need() -> None:
    """While the only worker is busy nothing is run ahead, and nothing is queued for it."""
    held, model = HeldDetector(), PartedContextModel()
    engine = engine_of({None: held, "followed": context_encoder(model)}, queue_limit=4)
    busy = asyncio.create_task(engine.detect(PLAN, EXCHANGE, [answer("red")]))
    assert await asyncio.to_thread(held.entered.acquire, timeout=30)
    following = engine.follow(replace(PLAN, model_id="followed"), EXCHANGE)
    await following.ahead([answer(prose(20))])
    assert (engine.inflight, engine.waiting, len(model.windows)) == (1, 0, 0)
    assert following.due([answer(prose(20))])
    held.release.set()
    await busy
    await until(lambda: engine.inflight == 0)
    await following.ahead([answer(prose(20))])
    assert model.windows
    await engine.aclose()


async def test_running_ahead_gives_way_to_a_job_that_waits() -> None:
    """With a detection in the queue, no window is begun any more; what was run stays."""
    model = SlowModel()
    engine = engine_of({None: context_encoder(model), "other": FixedDetector(scored(0.3))})
    following = engine.follow(PLAN, EXCHANGE)
    ahead = asyncio.create_task(following.ahead([answer(prose(20))]))
    await model.reached()
    other = asyncio.create_task(engine.detect(replace(PLAN, model_id="other"), EXCHANGE, [answer("red")]))
    await until(lambda: engine.waiting == 1)
    model.release.release()
    await ahead
    assert (await other)[0].score == 0.3
    assert len(model.windows) == 1
    await engine.aclose()


async def test_the_end_takes_over_from_a_run_ahead() -> None:
    """``detect`` while the run ahead is under way: that one stops after its window, and no window runs twice."""
    model = SlowModel()
    engine = engine_of({None: context_encoder(model)}, workers=2)
    text = prose(20)
    following = engine.follow(PLAN, EXCHANGE)
    ahead = asyncio.create_task(following.ahead([answer(text)]))
    await model.reached()
    end = asyncio.create_task(following.detect([answer(text)]))
    await until(lambda: engine.inflight == 2)
    for _ in range(200):
        model.release.release()
    followed = await end
    await ahead
    windows = len(model.windows)
    (at_once,) = await engine.detect(PLAN, EXCHANGE, [answer(text)])
    assert timeless(followed.verdicts[0]) == timeless(at_once)
    assert len(model.windows) == 2 * windows
    await engine.aclose()


async def test_a_sentence_takes_over_from_a_run_ahead() -> None:
    """``detect_ranges`` while the run ahead is under way: that one stops after its window, and its windows are kept."""
    model = SlowModel()
    engine = engine_of({None: context_encoder(model)}, workers=1)
    text = prose(20)
    following = engine.follow(PLAN, EXCHANGE)
    ahead = asyncio.create_task(following.ahead([answer(text)]))
    await model.reached()
    part = asyncio.create_task(following.detect_ranges([answer(text)], [sentences(text)[-1:]]))
    await until(lambda: engine.waiting == 1)
    for _ in range(200):
        model.release.release()
    ((verdict,),) = await part
    await ahead
    assert verdict.status is Status.CHECKED
    kept = len(model.windows)
    (at_once,) = await engine.detect(PLAN, EXCHANGE, [answer(text)])
    windows = len(model.windows) - kept
    followed = await following.detect([answer(text)])
    assert timeless(followed.verdicts[0]) == timeless(at_once)
    assert len(model.windows) == kept + 2 * windows - 1
    await engine.aclose()


async def test_a_client_that_goes_away_ends_the_work() -> None:
    """Cancelling whoever waits stops the job after the window that it is in."""
    for work, asked in (("ahead", ()), ("detect", ()), ("detect_ranges", ([[(0, 900)]],))):
        model = SlowModel()
        engine = engine_of({None: context_encoder(model)})
        following = engine.follow(PLAN, EXCHANGE)
        answers = [answer(prose(40))]
        task: asyncio.Task[object] = asyncio.create_task(getattr(following, work)(answers, *asked))
        await model.reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        model.release.release()
        await engine.aclose()
        assert len(model.windows) == 1


async def test_a_run_ahead_that_is_late_is_given_up() -> None:
    """It returns at the plan's deadline and tells nothing."""
    model = SlowModel()
    engine = engine_of({None: context_encoder(model)})
    following = engine.follow(replace(PLAN, timeout_s=0.2), EXCHANGE)
    await following.ahead([answer(prose(20))])
    model.release.release()
    await engine.aclose()
    assert len(model.windows) == 1


async def test_nothing_is_kept_once_a_following_is_dropped() -> None:
    """Neither the engine nor its workers hold on to an exchange that is over."""
    encoder: EncoderDetector = context_encoder(PartedContextModel())
    engine = engine_of({None: encoder})
    following = engine.follow(PLAN, EXCHANGE)
    await following.ahead([answer(prose(20))])
    await following.detect([answer(prose(20))], [[(0, 9)]])
    gone = weakref.ref(following)
    del following
    for _ in range(500):  # until the worker's thread has let go of its last job
        gc.collect()
        if gone() is None:
            break
        await asyncio.sleep(0.02)
    assert gone() is None
    await engine.aclose()
