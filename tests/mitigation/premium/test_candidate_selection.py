"""A text wins only where it may stand in for the answer, scores lower and was checked as well."""

from dataclasses import replace

from tests.fakes.premium_panel import BUILDER, CITY, HEIGHT, WRONG_HEIGHT, Scorer, task_of
from truthlens.core.records.calls import Role
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.verdict import Verdict
from truthlens.mitigation.interfaces import Attempt, CandidateFate
from truthlens.mitigation.premium.candidate_selection import Contest

FIRST = f"{BUILDER} {CITY} {WRONG_HEIGHT}"
RIGHT = f"{BUILDER} {CITY} {HEIGHT}"


async def offered(text: str, *, known: Verdict | None = None, passing: tuple[str, ...] = ()) -> Contest:
    contest = Contest(task_of(FIRST), Scorer())
    await contest.offer(
        text, model="b", role=Role.VERIFIER, replaced=True, consensus=True, known=known, passing=passing
    )
    return contest


async def test_a_lower_score_wins() -> None:
    """The better text is the best one, with its verdict and what is said of it."""
    contest = await offered(RIGHT)
    assert (contest.best.text, contest.best.replaced) == (RIGHT, True)
    assert contest.best.verdict == Scorer().verdict(RIGHT)
    assert (contest.consensus, contest.decided, contest.scored) == (True, True, True)
    assert contest.attempts == [Attempt("b", Role.VERIFIER, CandidateFate.BETTER, 0.05)]


async def test_an_equal_score_does_not() -> None:
    """Another text with the same score changes nothing."""
    other = f"{CITY} {BUILDER} {WRONG_HEIGHT}"
    contest = await offered(other)
    assert contest.best.text == FIRST
    assert (contest.consensus, contest.decided, contest.scored) == (False, False, True)
    assert contest.attempts[0].fate is CandidateFate.WORSE


async def test_the_same_text_upholds_the_answer() -> None:
    """Who offers the best text again stands behind it; nothing is scored for that."""
    contest = await offered(FIRST)
    assert contest.best.replaced is False
    assert (contest.consensus, contest.decided, contest.scored) == (True, True, False)
    assert contest.attempts[0].fate is CandidateFate.UNCHANGED


async def test_less_checking_does_not_win() -> None:
    """A verdict on a part of the text is none to win with, nor is no verdict."""
    partial = replace(Scorer().verdict(RIGHT), status=Status.PARTIAL, reason=Reason.TIMEOUT)
    blind = Verdict(Status.UNCHECKED, reason=Reason.TIMEOUT)
    for known, reason in ((partial, "less-checked"), (blind, "unscored")):
        contest = await offered(RIGHT, known=known)
        assert contest.best.text == FIRST
        assert [(each.fate, each.reason) for each in contest.attempts] == [(CandidateFate.REJECTED, reason)]


async def test_lost_content_may_be_let_pass() -> None:
    """What hinders a mixed text does not hinder a whole answer of another model."""
    short = HEIGHT
    assert (await offered(short)).attempts[0].reason == "lost-content"
    assert (await offered(short, passing=("lost-content",))).best.text == short
