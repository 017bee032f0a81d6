"""Which claims are partners."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from truthlens.mitigation.premium.consensus.alignment import ALIGNED, aligned


def test_the_nearest_pair_comes_first_even_where_another_claim_loses_its_partner() -> None:
    assert aligned([[0.9, 0.8], [0.95, 0.1]]) == {0: 1, 1: 0}
    assert aligned([[0.95, 0.3], [0.9, 0.1]]) == {0: 0}


def test_nothing_below_the_floor_is_a_partner() -> None:
    assert aligned([[ALIGNED - 0.01, 0.0]]) == {}
    assert aligned([]) == {}
    assert aligned([[], []]) == {}


@given(
    st.integers(1, 5).flatmap(
        lambda width: st.lists(st.lists(st.floats(0, 1), min_size=width, max_size=width))
    )
)
def test_partners_are_one_to_one_and_no_pair_of_free_claims_is_left(table: list[list[float]]) -> None:
    chosen = aligned(table)
    assert len(set(chosen.values())) == len(chosen)
    for left, row in enumerate(table):
        for right, value in enumerate(row):
            if left in chosen and chosen[left] == right:
                assert value >= ALIGNED
            elif left not in chosen and right not in chosen.values():
                assert value < ALIGNED
