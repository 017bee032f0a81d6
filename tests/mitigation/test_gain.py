"""A text is better only where findings are gone and none came, or where its score fell by what means something there."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import LeftOut, Reason, Status
from truthlens.core.records.mitigation_result import CandidateFate
from truthlens.core.records.verdict import Coverage, Span, Verdict, unchecked
from truthlens.mitigation.gain import LEAST_LOGIT_GAIN, ScoredDraft, fate_of

FIRST = "The shop sells nails. It opens at nine on Sundays. The owner is Ada."
NAILS, SUNDAYS = "sells nails", "at nine on Sundays"


def draft(text: str, score: float, *flagged: str, threshold: float = 0.5) -> ScoredDraft:
    places = [(text.index(part), len(part)) for part in flagged]
    spans = tuple(Span(start, start + length, score) for start, length in places)
    return ScoredDraft(text, Verdict(Status.CHECKED, None, score, threshold, spans))


@pytest.mark.parametrize(
    ("text", "score", "flagged", "fate", "reason"),
    [
        # The first answer and an invention, wherever it stands and however little or much lower it scores.
        (f"{FIRST} It sells elephants.", 0.9999, [NAILS, SUNDAYS, "elephants"], CandidateFate.REJECTED, "nothing-removed"),
        (f"It sells elephants. {FIRST}", 0.6, [NAILS, SUNDAYS, "elephants"], CandidateFate.REJECTED, "nothing-removed"),
        (f"{FIRST} It sells elephants.", 0.6, ["elephants"], CandidateFate.REJECTED, "nothing-removed"),
        (f"{FIRST} It sells elephants.", 0.1, [], CandidateFate.REJECTED, "nothing-removed"),
        (FIRST.replace("nails", "nails and elephants"), 0.7, ["nails and elephants", SUNDAYS], CandidateFate.REJECTED,
         "nothing-removed"),
        (FIRST.replace(" It opens", " Elephants too. It opens"), 0.7, [NAILS, "Elephants", SUNDAYS], CandidateFate.REJECTED,
         "nothing-removed"),
        # The same in another order, and in other words.
        ("The owner is Ada. The shop sells nails. It opens at nine on Sundays.", 0.99, [NAILS, SUNDAYS],
         CandidateFate.REJECTED, "nothing-removed"),
        (FIRST.replace("opens at nine on", "is open from nine on"), 0.995, [NAILS, "from nine on Sundays"],
         CandidateFate.REJECTED, "small-gain"),
        # One invention in the place of another.
        (FIRST.replace("nails", "elephants"), 0.9999, ["sells elephants", SUNDAYS], CandidateFate.REJECTED, "small-gain"),
        (FIRST.replace("nails", "elephants"), 1.0, ["sells elephants", SUNDAYS], CandidateFate.WORSE, ""),
        # A finding is gone and nothing came: saturated scores do not hide it.
        (FIRST.replace(" It opens at nine on Sundays.", ""), 0.9999, [NAILS], CandidateFate.BETTER, ""),
        (FIRST.replace("nine on Sundays", "ten on Mondays"), 0.9999, [NAILS], CandidateFate.BETTER, ""),
        # A clear fall of the score.
        (FIRST.replace("nails", "screws").replace("nine", "eight"), 0.9, ["sells screws"], CandidateFate.BETTER, ""),
    ],
)  # fmt: skip
def test_what_a_flagged_answer_gives_way_to(
    text: str, score: float, flagged: list[str], fate: CandidateFate, reason: str
) -> None:
    best = draft(FIRST, 1.0, NAILS, SUNDAYS)
    assert fate_of(draft(text, score, *flagged), best, first=best.verdict) == (fate, reason)


@pytest.mark.parametrize(
    ("text", "score", "flagged", "fate"),
    [
        # One finding of two is gone: a score that cannot fall further says nothing against it.
        (FIRST.replace("nails", "screws"), 1.0, [SUNDAYS], CandidateFate.BETTER),
        (FIRST.replace("nails", "screws"), 0.9964, [SUNDAYS], CandidateFate.BETTER),
        # The same score and nothing gone, or something come, or no finding to show for it.
        (FIRST.replace("Ada", "Ada Lovelace"), 1.0, [NAILS, SUNDAYS], CandidateFate.WORSE),
        ("The shop sells screws. It opens at ten.", 1.0, ["at ten"], CandidateFate.WORSE),
        ("The shop sells screws.", 1.0, [], CandidateFate.WORSE),
    ],
)
def test_at_the_same_saturated_score_findings_decide(
    text: str, score: float, flagged: list[str], fate: CandidateFate
) -> None:
    for least in (1.0, 0.9961):
        best = draft(FIRST, min(score, least), NAILS, SUNDAYS)
        assert fate_of(draft(text, score, *flagged), best, first=best.verdict) == (fate, "")


def test_below_saturation_a_higher_score_is_worse_whatever_is_gone() -> None:
    best = draft(FIRST, 0.95, NAILS, SUNDAYS)
    fewer = draft(FIRST.replace("nails", "pens"), 0.96, SUNDAYS)
    assert fate_of(fewer, best, first=best.verdict) == (CandidateFate.WORSE, "")


def test_two_findings_less_and_a_new_one_are_a_gain_where_the_saturated_odds_fall() -> None:
    first = f"{FIRST} Bikes are lent."
    best = draft(first, 0.99999, NAILS, SUNDAYS, "Bikes are lent")
    fewer = draft("The shop sells screws. It opens at ten.", 0.9995, "at ten")
    as_many = draft(
        "It sells pens. It opens at ten. Cars are lent.", 0.9995, "sells pens", "at ten", "Cars are lent"
    )
    assert fate_of(fewer, best, first=best.verdict) == (CandidateFate.BETTER, "")
    assert fate_of(as_many, best, first=best.verdict) == (CandidateFate.REJECTED, "small-gain")


def test_one_of_two_findings_in_the_same_words_is_gone() -> None:
    text = "Adults pay 45 dollars. Children pay 45 dollars."
    spans = tuple(Span(match.start(), match.end(), 0.95) for match in re.finditer("45 dollars", text))
    best = ScoredDraft(text, Verdict(Status.CHECKED, None, 0.9975, 0.5, spans))
    mended = draft("Adults pay 45 dollars. Children pay 25 dollars.", 0.997, "45 dollars")
    assert fate_of(mended, best, first=best.verdict) == (CandidateFate.BETTER, "")


def test_what_two_detectors_mark_alike_is_one_finding() -> None:
    """Or a detector that falls silent would look like a finding that is gone."""
    text, other = "It costs 45 dollars.", "Today it costs 45 dollars."
    twice = tuple(Span(9, 19, 0.95, name) for name in ("encoder", "numbers"))
    best = ScoredDraft(text, Verdict(Status.CHECKED, None, 0.9975, 0.5, twice))
    assert fate_of(draft(other, 0.997, "45 dollars"), best, first=best.verdict)[0] is CandidateFate.REJECTED


@pytest.mark.parametrize(
    ("coverage", "score", "fate"),
    [
        (Coverage(6, 0, 9, 9, left_out=((LeftOut.PHRASES, 6),)), 0.9, CandidateFate.BETTER),
        (Coverage(6, 0, 9, 9, left_out=((LeftOut.PHRASES, 6),)), 0.3, CandidateFate.REJECTED),
        (Coverage(1, 0, 9, 9, left_out=((LeftOut.SIGNS, 1),)), 0.9, CandidateFate.REJECTED),
    ],
)
def test_to_decline_is_better_than_to_be_wrong(coverage: Coverage, score: float, fate: CandidateFate) -> None:
    """Although it has no score; where the answer was not flagged, or signs are left, it is not."""
    best = draft(FIRST, score, NAILS)
    declined = replace(unchecked(Reason.EMPTY_ANSWER, threshold=0.5), coverage=coverage)
    found, _ = fate_of(ScoredDraft("I don't know.", declined), best, first=best.verdict)
    assert found is fate


def test_chinese_findings_are_told_apart_as_well() -> None:
    best = draft("该店出售钉子。周日九点开门。", 0.99, "出售钉子", "九点开门")
    better = draft("该店出售螺丝。周日九点开门。", 0.985, "九点开门")
    added = draft("该店出售钉子。周日九点开门。还卖大象。", 0.6, "出售钉子", "九点开门", "大象")
    assert fate_of(better, best, first=best.verdict)[0] is CandidateFate.BETTER
    assert fate_of(added, best, first=best.verdict) == (CandidateFate.REJECTED, "nothing-removed")


def test_a_figure_within_another_one_is_not_that_figure() -> None:
    best = draft("It costs 9 dollars.", 0.9, "9 dollars")
    other = draft("It costs 19 dollars.", 0.89, "19 dollars")
    assert fate_of(other, best, first=best.verdict) == (CandidateFate.REJECTED, "small-gain")


@pytest.mark.parametrize(
    ("score", "fate"),
    [(0.29, CandidateFate.BETTER), (0.33, CandidateFate.REJECTED), (0.4, CandidateFate.WORSE)],
)
def test_an_answer_that_is_not_flagged_gives_way_to_a_clear_gain(score: float, fate: CandidateFate) -> None:
    best = draft(FIRST, 0.35)
    assert fate_of(draft("The shop sells screws.", score), best, first=best.verdict)[0] is fate


def test_an_answer_that_is_not_flagged_does_not_give_way_to_one_with_findings() -> None:
    best = draft(FIRST, 0.4)
    found = draft("The shop sells elephants.", 0.1, "elephants")
    assert fate_of(found, best, first=best.verdict) == (CandidateFate.REJECTED, "nothing-removed")


SENTENCES = (
    "It sells nails.",
    "It opens at nine.",
    "Ada owns it.",
    "Bikes are lent.",
    "Tea is free.",
    "Dogs may enter.",
)


@st.composite
def texts(draw: st.DrawFn) -> ScoredDraft:
    chosen = draw(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5, unique=True))
    flagged = draw(st.sets(st.sampled_from(chosen)))
    score = draw(st.one_of(st.floats(0.0, 1.0), st.sampled_from([1.0, 0.9999, 0.5])))
    return draft(" ".join(chosen), score, *sorted(flagged))


@given(best=texts(), candidate=texts())
def test_a_text_that_wins_has_a_gain_to_show(best: ScoredDraft, candidate: ScoredDraft) -> None:
    """Whatever the scores say, a winner scores no higher, where scores mean something, and not lower by adding alone, or by a hair with other findings."""
    fate, _ = fate_of(candidate, best, first=best.verdict)
    had, has = set(best.text.split(". ")), set(candidate.text.split(". "))
    old = {best.text[span.start : span.end] for span in best.verdict.spans}
    new = {candidate.text[span.start : span.end] for span in candidate.verdict.spans}
    if fate is not CandidateFate.BETTER:
        return
    assert candidate.verdict.score is not None
    assert best.verdict.score is not None
    assert candidate.verdict.score <= best.verdict.score or best.verdict.score > 0.99
    if candidate.verdict.score >= best.verdict.score:
        assert old - new
        assert not new - old
    assert old - new or not new - old
    if best.verdict.flagged:
        assert not {each.rstrip(".") for each in had} <= {each.rstrip(".") for each in has}
        least = 1e-9 if len(new) < len(old) else 0.01
        held = [
            min(max(score, least), 1.0 - least) for score in (best.verdict.score, candidate.verdict.score)
        ]
        before, after = (math.log(score / (1.0 - score)) for score in held)
        assert (old - new and not new - old) or before - after >= LEAST_LOGIT_GAIN
