"""Answers side by side: what is asked of the tools, and what is made of their figures."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.consensus_voices import THRESHOLD, compared, voice
from truthlens.core.deadline import Deadline
from truthlens.core.records.calls import Completion, ModelRequest
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.verdict import DetectorResult, Span, Verdict, unchecked
from truthlens.core.thresholds import at_rate
from truthlens.mitigation.interfaces import Tools
from truthlens.mitigation.premium.consensus import answer_diff as module
from truthlens.mitigation.premium.consensus.answer_diff import (
    MOST_CLAIMS,
    MOST_VOICES,
    AnswerDifferenceKind,
    compare,
    differences,
)
from truthlens.mitigation.premium.consensus.comparison import Voice


class Scripted:
    """Tools that score by what a claim says and count how often they are asked."""

    def __init__(self) -> None:
        self.rescored: list[list[str]] = []
        self.pairs: list[tuple[int, int]] = []
        self.supports: list[tuple[list[str], str]] = []
        self.running = 0
        self.gate: asyncio.Event | None = None

    @property
    def tools(self) -> Tools:
        return Tools(self.ask, self.rescore, self, Deadline(1e9, lambda: 0.0))

    async def ask(self, request: ModelRequest) -> Completion:
        raise AssertionError("comparing asks no model")

    async def rescore(self, texts: Sequence[str]) -> Sequence[Verdict]:
        await self.wait()
        self.rescored.append(list(texts))
        return [
            unchecked(Reason.TIMEOUT)
            if "unknown" in text
            else Verdict(Status.CHECKED, score=0.9 if "dragon" in text else 0.1, threshold=THRESHOLD)
            for text in texts
        ]

    async def similar(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Sequence[float]]:
        await self.wait()
        self.pairs.append((len(left), len(right)))
        return [[0.9 if one.split()[1] == other.split()[1] else 0.1 for other in right] for one in left]

    async def support(self, claims: Sequence[str], text: str) -> Sequence[float]:
        await self.wait()
        self.supports.append((list(claims), text))
        return [0.9 if claim.split()[-1] in text else 0.1 for claim in claims]

    async def wait(self) -> None:
        if self.gate is not None:
            self.running += 1
            try:
                await self.gate.wait()
            finally:
                self.running -= 1


async def test_one_scoring_one_table_per_pair_and_one_support_call_per_ordered_pair() -> None:
    script = Scripted()
    voices = [
        voice("The hall is red. The roof is old."),
        voice("The hall is blue."),
        voice("The door is open."),
    ]
    comparison = await compare(voices, script.tools)
    assert script.rescored == [
        ["The hall is red.", "The roof is old.", "The hall is blue.", "The door is open."]
    ]
    assert sorted(script.pairs) == [(1, 1), (2, 1), (2, 1)]
    assert len(script.supports) == 6
    assert [len(views) for views in comparison.views] == [2, 1, 1]
    assert [stance.voice for stance in comparison.views[1][0].stances] == [0, 2]


async def test_a_similar_claim_that_does_not_support_it_disputes_and_no_similar_claim_is_silence() -> None:
    comparison = await compare(
        [voice("The hall is red. The roof is old."), voice("The hall is blue.")], Scripted().tools
    )
    hall, roof = comparison.views[0]
    assert hall.stances[0].disputes
    assert hall.stances[0].partner == 0
    assert roof.stances[0].silent
    assert roof.stances[0].partner is None
    assert comparison.contested() == [0]
    assert comparison.significance == 0.5


async def test_support_makes_a_voice_agree_unless_a_figure_differs() -> None:
    first = voice("The hall has 300 seats. The roof is of copper.")
    same = voice("The hall offers 300 seats. The roof, I think, is of copper.")
    other = voice("The hall has 200 seats. The roof is of copper.")
    comparison = await compare([first, same, other], Scripted().tools)
    seats = comparison.views[0][0]
    assert seats.stances[0].agrees
    assert seats.stances[1].support == 0.9
    assert seats.stances[1].conflict
    assert seats.stances[1].disputes


async def test_who_says_the_very_same_agrees_whatever_the_detector_says() -> None:
    script = Scripted()

    async def never(claims: Sequence[str], text: str) -> Sequence[float]:
        return [0.0 for _ in claims]

    script.support = never  # type: ignore[method-assign]
    comparison = await compare([voice("The hall is red."), voice("the hall is red")], script.tools)
    assert comparison.views[0][0].stances[0].agrees


async def test_grounding_is_the_worse_of_the_claims_score_and_a_span_of_its_answer() -> None:
    text = "The hall is red. A dragon lives here. The unknown is unknown. The roof is old."
    start = text.index("roof")
    spans = (Span(start, start + 4, 0.7),)
    first = Voice("m", text, 0.5, Verdict(Status.CHECKED, score=0.7, threshold=THRESHOLD, spans=spans))
    comparison = await compare([first, voice("Hello!")], Scripted().tools)
    assert [round(view.grounding, 2) for view in comparison.views[0]] == [0.9, 0.1, 0.5, 0.3]
    assert [view.scored for view in comparison.views[0]] == [True, True, False, True]


async def test_spans_are_weighed_on_the_scale_of_the_threshold_and_facts_keep_their_floor() -> None:
    """Spans' scores are at even odds; where errors are rare, only a fact is as much as it was."""
    text = "The hall is red. The roof is old."
    hall, roof = text.index("hall"), text.index("roof")
    spans = (Span(hall, hall + 4, 0.7), Span(roof, roof + 4, 0.7, "numbers"))
    results = (
        DetectorResult("encoder", 0.7, spans[:1]),
        DetectorResult("numbers", 0.7, spans[1:], floor=0.7),
    )
    verdict = Verdict(
        Status.CHECKED, score=0.7, threshold=THRESHOLD, spans=spans, results=results, expected_rate=0.1
    )
    comparison = await compare([Voice("m", text, 0.5, verdict), voice("Hello!")], Scripted().tools)
    assert [round(view.grounding, 2) for view in comparison.views[0]] == [
        round(1 - at_rate(0.7, 0.1), 2),
        0.3,
    ]


async def test_an_ungrounded_claim_that_most_do_not_hold_is_contested_and_a_grounded_one_is_not() -> None:
    texts = ["A dragon is here. The roof is old.", "The hall is red.", "The hall is red."]
    comparison = await compare([voice(text) for text in texts], Scripted().tools)
    assert comparison.contested() == [0]


async def test_work_is_bounded_and_what_detection_flagged_is_compared_first() -> None:
    sentences = [f"Room number{number} is red." for number in range(MOST_CLAIMS + 5)]
    text = " ".join(sentences)
    spans = (Span(len(text) - 4, len(text), 0.9),)
    long = Voice("m", text, 0.5, Verdict(Status.CHECKED, score=0.9, threshold=THRESHOLD, spans=spans))
    comparison = await compare([long, *[voice("The hall is red.")] * MOST_VOICES], Scripted().tools)
    kept = [view.claim.text for view in comparison.views[0]]
    assert kept == [*sentences[: MOST_CLAIMS - 1], sentences[-1]]
    assert len(comparison.voices) == MOST_VOICES
    assert comparison.notes == ("voices-cut", "claims-cut")


async def test_answers_without_claims_are_compared_without_a_call_about_them() -> None:
    script = Scripted()
    comparison = await compare(
        [voice("Hello!"), voice("Unable to answer based on given passages.")], script.tools
    )
    assert comparison.views == ((), ())
    assert comparison.significance == 0.0
    assert (script.rescored, script.pairs, script.supports) == ([], [], [])


def unscored(script: Scripted) -> Tools:
    """Tools whose detector is overloaded once the answers are scored."""

    async def none(claims: Sequence[str], text: str) -> Sequence[None]:
        return [None for _ in claims]

    script.support = none  # type: ignore[method-assign, assignment]
    return script.tools


async def test_without_a_known_support_a_voice_neither_agrees_nor_disputes_nor_is_silent() -> None:
    comparison = await compare(
        [voice("The hall is red. The roof is old."), voice("The hall is blue.")], unscored(Scripted())
    )
    for view in comparison.views[0]:
        (stance,) = view.stances
        assert (stance.agrees, stance.disputes, stance.silent) == (False, False, False)
    assert (comparison.contested(), differences(comparison)) == ([], [])
    assert comparison.notes == ("comparison-incomplete",)


async def test_figures_that_conflict_dispute_a_claim_whatever_is_known_of_its_support() -> None:
    comparison = await compare(
        [voice("The hall has 300 seats."), voice("The hall has 200 seats.")], unscored(Scripted())
    )
    assert comparison.views[0][0].stances[0].disputes
    assert comparison.notes == ()


async def test_an_answer_that_says_the_very_same_needs_no_detector_but_its_claims_do() -> None:
    same = [voice("The hall is red."), voice("The hall is red.")]
    assert (await compare(same, unscored(Scripted()))).notes == ()
    unknown = [voice("The unknown is red."), voice("The unknown is red.")]
    comparison = await compare(unknown, Scripted().tools)
    assert comparison.notes == ("comparison-incomplete",)
    assert not comparison.is_held(0, comparison.views[0][0])


async def test_what_is_unknown_of_other_answers_leaves_the_comparison_complete() -> None:
    comparison = await compare(
        [voice("The hall is red."), voice("The hall is red. The unknown is old.")], Scripted().tools
    )
    assert comparison.notes == ()


@pytest.mark.parametrize("tool", ["rescore", "similar", "support"])
async def test_the_exception_of_a_tool_comes_out_as_it_is(tool: str) -> None:
    script = Scripted()

    async def broken(*_: object) -> Sequence[Verdict]:
        raise OverflowError

    setattr(script, tool, broken)
    with pytest.raises(OverflowError):
        await compare([voice("The hall is red."), voice("The hall is blue.")], script.tools)


async def test_long_answers_are_read_and_set_side_by_side_off_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[int] = []

    def watched(work: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any, **settings: Any) -> Any:
            threads.append(threading.get_ident())
            return work(*args, **settings)

        return noting

    for name in ("claims", "assembled"):
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    await compare([voice("The hall is red."), voice("The hall is blue.")], Scripted().tools)
    assert set(threads) == {threading.get_ident()}
    threads.clear()
    text = " ".join(f"Room number{number} is red." for number in range(1000))
    await compare([voice(text), voice("The hall is blue.")], Scripted().tools)
    assert len(threads) == 3
    assert threading.get_ident() not in threads


async def test_cancelling_ends_every_call() -> None:
    script = Scripted()
    script.gate = asyncio.Event()
    task = asyncio.create_task(compare([voice("The hall is red."), voice("The hall is blue.")], script.tools))
    while script.running < 3:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert script.running == 0


def test_differences_name_what_is_contradicted_missing_and_added_once() -> None:
    first = voice("The hall is red. The roof is old.")
    second = voice("The hall is blue. The door is open.")
    third = voice("The roof is old. The door is open.")
    comparison = compared(
        [first, second, third],
        pairs=[("The hall is red.", "The hall is blue.")],
        groundings={"The hall is blue.": 0.3},
    )
    listed = [(each.kind, each.voice, each.first, each.other) for each in differences(comparison)]
    assert listed == [
        (AnswerDifferenceKind.CONTRADICTED, 1, "The hall is red.", "The hall is blue."),
        (AnswerDifferenceKind.MISSING, 2, "The hall is red.", None),
        (AnswerDifferenceKind.MISSING, 1, "The roof is old.", None),
        (AnswerDifferenceKind.ADDED, 1, None, "The door is open."),
    ]
    contradicted = differences(comparison)[0]
    assert (contradicted.first_grounding, contradicted.other_grounding) == (0.9, 0.3)


def test_weight_decides_what_is_held_and_counts_where_no_model_has_any() -> None:
    texts = ["The hall is red.", "The hall is red.", "The hall is blue."]
    heavy = compared(
        [voice(text, weight=weight) for text, weight in zip(texts, (0.1, 0.1, 0.9), strict=True)]
    )
    assert heavy.held(0, heavy.views[0][0]) == pytest.approx(0.2 / 1.1)
    assert heavy.votes(heavy.views[0][0]) == pytest.approx(2 / 3)
    none = compared([voice(text, weight=0.0) for text in texts])
    assert none.held(0, none.views[0][0]) == pytest.approx(2 / 3)


_PROVED = JudgedClaim(0, 22, ClaimOutcome.PROVED, 0.05)


@pytest.mark.parametrize(
    ("claims", "floor", "grounding"),
    [
        ((), 0.0, 0.05),
        ((_PROVED,), 0.0, 0.95),
        ((replace(_PROVED, outcome=ClaimOutcome.SUPPORTED, risk=0.2),), 0.0, 0.8),
        ((replace(_PROVED, outcome=ClaimOutcome.NOT_STATED, risk=0.7),), 0.0, 0.3),
        # A fact holds whatever the claim came to.
        ((replace(_PROVED, outcome=ClaimOutcome.SUPPORTED, risk=0.2),), 0.9, 0.1),
        ((JudgedClaim(0, 22, ClaimOutcome.UNJUDGED, None),), 0.0, 0.05),
    ],
)
async def test_a_claim_is_grounded_as_it_was_judged(
    claims: tuple[JudgedClaim, ...], floor: float, grounding: float
) -> None:
    """What a detector suspects of a claim that is verified all the same does not count against it."""
    text = "The castle has 7 rooms"
    verdict = Verdict(
        Status.CHECKED,
        score=0.9,
        threshold=THRESHOLD,
        spans=(Span(15, 16, 0.95),),
        results=(DetectorResult("encoder", 0.95, floor=floor),),
        claims=claims,
    )
    comparison = await compare((Voice("a", text, 0.5, verdict), voice("The castle is old")), Scripted().tools)
    assert comparison.views[0][0].grounding == pytest.approx(grounding)
