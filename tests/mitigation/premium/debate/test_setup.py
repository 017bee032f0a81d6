"""A debate opens with one position per claim, held by all who make it, and with the conflicts between positions."""

from dataclasses import replace

from truthlens.core.records.enums import Status
from truthlens.core.records.verdict import Verdict
from truthlens.mitigation.premium.consensus.comparison import ClaimView, Comparison, Stance, Voice
from truthlens.mitigation.premium.debate.argumentation import grounded_extension
from truthlens.mitigation.premium.debate.setup import MOST_CLAIMS, opening
from truthlens.text.claims.claims import Claim


def view(text: str, grounding: float, *stances: Stance) -> ClaimView:
    return ClaimView(Claim(0, len(text), text), grounding, stances)


def comparison(*views: list[ClaimView]) -> Comparison:
    verdict = Verdict(Status.CHECKED, score=0.5, threshold=0.6)
    voices = tuple(Voice(model, "", 0.5, verdict) for model, _ in zip("abcdef", views, strict=False))
    return Comparison(voices, tuple(map(tuple, views)))


def agrees(voice: int, partner: int | None = 0) -> Stance:
    return Stance(voice, partner, 0.9, 0.9)


def disputes(voice: int, partner: int = 0) -> Stance:
    return Stance(voice, partner, 0.9, 0.1)


def test_models_that_make_each_others_claim_hold_one_position() -> None:
    """Agreement both ways makes one position, with the first wording and the mean of the groundings."""
    start = opening(comparison([view("A.", 0.8, agrees(1))], [view("A, so to speak.", 0.4, agrees(0))]))
    (position,) = start.positions
    assert (position.text, position.holders, position.own) == ("A.", ((0, 0), (1, 0)), (0, 0))
    assert round(position.grounding, 6) == 0.6
    assert start.graph.arguments == ("A.",)


def test_who_says_more_holds_a_position_of_his_own_without_conflict() -> None:
    """Support one way only is neither one position nor a conflict."""
    start = opening(comparison([view("A.", 0.8, agrees(1))], [view("A and B.", 0.8, disputes(0))]))
    assert [position.text for position in start.positions] == ["A.", "A and B."]
    assert start.positions[1].own is None
    assert start.graph.attacks == frozenset()


def test_equal_opponents_attack_each_other() -> None:
    """Two claims that dispute each other and are grounded alike are both open."""
    start = opening(comparison([view("A.", 0.5, disputes(1))], [view("Not A.", 0.6, disputes(0))]))
    assert start.graph.attacks == {(0, 1), (1, 0)}
    assert grounded_extension(start.graph) == frozenset()


def test_the_clearly_better_grounded_claim_wins() -> None:
    """A claim that the evidence bears clearly better attacks without being attacked."""
    start = opening(comparison([view("A.", 0.1, disputes(1))], [view("Not A.", 0.9, disputes(0))]))
    assert start.graph.attacks == {(1, 0)}
    assert grounded_extension(start.graph) == {1}


def test_two_who_agree_oppose_the_third_together() -> None:
    """A conflict with one holder of a position is a conflict with the position, once."""
    start = opening(
        comparison(
            [view("A.", 0.5, disputes(1), disputes(2))],
            [view("B.", 0.5, disputes(0), agrees(2))],
            [view("B too.", 0.5, disputes(0), agrees(1))],
        )
    )
    assert [position.holders for position in start.positions] == [((0, 0),), ((1, 0), (2, 0))]
    assert start.graph.attacks == {(0, 1), (1, 0)}


def test_one_voice_never_holds_a_position_twice() -> None:
    """Two claims of one answer stay two positions, whatever a third claim agrees with."""
    start = opening(
        comparison(
            [view("A.", 0.5, agrees(1))], [view("A.", 0.5, agrees(0)), view("A again.", 0.5, agrees(0))]
        )
    )
    assert [position.holders for position in start.positions] == [((0, 0), (1, 0)), ((1, 1),)]


def test_there_are_so_many_positions_at_most() -> None:
    """The first answer's claims come first in a debate that cannot deal with all."""
    silent = Stance(0, None, 0.0, 0.0)
    mine = [view(f"A{n}.", 0.5) for n in range(40)]
    theirs = [view(f"B{n}.", 0.5, silent) for n in range(40)]
    start = opening(comparison(mine, theirs))
    assert len(start.positions) == len(start.graph.arguments) == MOST_CLAIMS
    assert sum(position.own is not None for position in start.positions) == 40


def test_nothing_said_is_nothing_to_debate() -> None:
    """Answers without claims open with an empty graph."""
    assert opening(comparison([], [])).positions == ()


def test_what_is_unknown_makes_neither_one_position_nor_a_conflict() -> None:
    """An aligned claim of which nobody could tell whether it is held stands for itself."""
    unknown = Stance(0, 0, 0.9, None)
    for first in (agrees(1), disputes(1)):
        start = opening(comparison([view("A.", 0.8, first)], [view("B.", 0.8, unknown)]))
        assert [position.text for position in start.positions] == ["A.", "B."]
        assert start.graph.attacks == frozenset()


def test_a_position_is_grounded_as_its_scored_wordings_are() -> None:
    """Wordings without a grounding count for nothing, and where none has one it is unknown."""
    unscored = replace(view("A, so to speak.", 0.5, agrees(0)), scored=False)
    (position,) = opening(comparison([view("A.", 0.8, agrees(1))], [unscored])).positions
    assert (position.grounding, position.is_grounded) == (0.8, True)
    (alone,) = opening(comparison([replace(view("A.", 0.5), scored=False)])).positions
    assert (alone.grounding, alone.is_grounded) == (0.5, False)
