"""Tests of ``truthlens.detection.models.inputs.selection``."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from truthlens.detection.models.inputs.lexical import EvidenceIndex, evidence_words, index_evidence
from truthlens.detection.models.inputs.selection import (
    context_scores,
    held_shares,
    overlap_scores,
    select_units,
)


def _index(text: str) -> EvidenceIndex:
    return index_evidence(evidence_words(text))


def test_every_answer_sentence_gets_its_best_match_first() -> None:
    """Two sentences with one match each both find it, though one alone could fill the window."""
    index = _index("river ice boat snow. river ice boat fog. river ice mud. red lamp.")
    claims = [["river", "ice", "boat", "snow"], ["red", "lamp"]]
    chosen = select_units(overlap_scores(index, claims), sizes=np.array([5, 5, 5, 5]), budget=10)
    assert chosen.tolist() == [0, 3]


def test_selection_keeps_to_its_budget_and_fills_it() -> None:
    """Chosen units fit; leftover room goes to neighbours of what was chosen."""
    scores = overlap_scores(_index("w1 w2. zorblax fee. w3 w4. w5 w6."), [["zorblax"]])
    assert select_units(scores, sizes=np.array([4, 4, 4, 4]), budget=12).tolist() == [0, 1, 2]


def test_taken_units_are_left_alone() -> None:
    """What another window holds is neither a match nor a filler."""
    scores = overlap_scores(_index("zorblax fee. zorblax. red. green."), [["zorblax", "fee"]])
    taken = np.array([True, False, True, False])
    assert select_units(scores, sizes=np.array([4, 4, 4, 4]), budget=100, taken=taken).tolist() == [1, 3]


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    budget=st.integers(0, 200),
    seed=st.integers(0, 1000),
)
def test_the_budget_always_holds(sizes: list[int], budget: int, seed: int) -> None:
    """Whatever the scores, chosen units ascend, are distinct and fit; nothing is left out that would all fit."""
    scores = np.random.default_rng(seed).random((3, len(sizes))).round(1)
    chosen = select_units(scores, sizes=np.array(sizes), budget=budget)
    assert np.array(sizes)[chosen].sum() <= budget
    assert (np.diff(chosen) > 0).all()
    if budget >= sum(sizes) + 4:
        assert len(chosen) == len(sizes)


def test_surroundings_raise_a_score_only_within_their_passage() -> None:
    """The neighbour that shares the claim's other word counts where it is of the same passage, else not."""
    index = _index("zorblax lamp. river bridge. zorblax lamp. snow ice.")
    claims = [["zorblax", "river"]]
    plain = overlap_scores(index, claims)
    together = context_scores(index, claims, query=[], owners=np.array([0, 0, 1, 1]))
    apart = context_scores(index, claims, query=[], owners=np.array([0, 1, 2, 2]))
    assert plain[0, 0] == plain[0, 2]
    assert together[0, 0] > together[0, 2]
    assert apart[0, 0] == apart[0, 2]


def test_the_query_raises_the_passage_that_it_asks_about() -> None:
    """A claim with one common word goes to the passage that holds the question's words."""
    index = _index("snow lamp. ice mud. fee lamp. harbour.")
    owners = np.array([0, 0, 1, 1])
    claims = [["lamp"]]
    assert np.ptp(context_scores(index, claims, query=[], owners=owners)[0, [0, 2]]) == 0.0
    asked = context_scores(index, claims, query=["harbour"], owners=owners)
    assert asked[0, 2] > asked[0, 0]


def test_context_never_lends_a_score_to_a_unit_without_one() -> None:
    """A unit that shares no word with the claim stays at 0, however fitting its surroundings."""
    index = _index("zorblax. river. lamp.")
    scores = context_scores(index, [["zorblax"]], query=["river"], owners=np.zeros(3, dtype=np.int64))
    assert (scores[0] > 0).tolist() == [True, False, False]


def test_nothing_to_compare_gives_empty_scores() -> None:
    """Without claims, or without evidence, there are scores of that shape and nothing is preferred."""
    index = _index("red lamp. snow.")
    assert context_scores(index, [], query=["red"], owners=np.array([0, 0])).shape == (0, 2)
    assert overlap_scores(index_evidence([]), [["red"]]).shape == (1, 0)
    assert select_units(np.zeros((0, 2)), sizes=np.array([2, 2]), budget=9).tolist() == [0, 1]


def test_held_shares_weigh_words_by_rarity() -> None:
    """All words held gives 1, none 0; of two words the rarer one counts more; no words count 0."""
    index = _index("zorblax. fee. fee. fee.")
    claims = [["zorblax", "fee"], ["snow"], []]
    assert held_shares(index, claims, np.array([0, 1])).tolist() == [1.0, 0.0, 0.0]
    only_rare, only_common = (held_shares(index, claims, np.array([unit]))[0] for unit in (0, 1))
    assert 0.0 < only_common < 0.5 < only_rare < 1.0
