"""The tokens and the money of one exchange."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Price, Usage
from truthlens.llm.budget import Budget

PRICE = Price(input=10, output=30)


def test_a_call_that_does_not_fit_into_the_tokens_left_is_refused() -> None:
    budget = Budget(100)
    budget.reserve(Usage(60, 30), None)
    with pytest.raises(CallError) as caught:
        budget.reserve(Usage(11, 0), None)
    assert caught.value.failure is CallFailure.BUDGET
    budget.reserve(Usage(10, 0), None)
    assert budget.tokens_left == 0


def test_a_call_that_does_not_fit_into_the_money_left_is_refused() -> None:
    budget = Budget(1_000_000, max_cost_usd=0.01)
    with pytest.raises(CallError) as caught:
        budget.reserve(Usage(1000, 1), PRICE)
    assert caught.value.failure is CallFailure.BUDGET
    assert budget.cost_left_usd == 0.01
    budget.reserve(Usage(1000, 1), None)  # no price, no cost


def test_settling_puts_what_was_used_in_the_place_of_the_estimate() -> None:
    budget = Budget(100, max_cost_usd=1.0)
    reservation = budget.reserve(Usage(50, 50), PRICE)
    reservation.settle(Usage(20, 10))
    assert budget.tokens_left == 70
    assert budget.cost_left_usd == pytest.approx(1.0 - 0.0005)


def test_a_reservation_is_settled_once() -> None:
    reservation = Budget(10).reserve(Usage(1, 1), None)
    reservation.settle(Usage())
    with pytest.raises(RuntimeError):
        reservation.settle(Usage())


def test_a_call_that_used_more_than_was_left_leaves_nothing_and_never_less() -> None:
    budget = Budget(100, max_cost_usd=0.001)
    budget.reserve(Usage(10, 10), PRICE).settle(Usage(500, 500))
    assert (budget.tokens_left, budget.cost_left_usd) == (0, 0.0)
    assert budget.max_completion_tokens_left(0, PRICE) == 0


def test_the_longest_completion_is_bounded_by_tokens_and_by_money() -> None:
    budget = Budget(1000, max_cost_usd=0.004)
    assert budget.max_completion_tokens_left(100, None) == 900
    assert (
        budget.max_completion_tokens_left(100, PRICE) == 100
    )  # 0.001 for the prompt, 0.003 at 30 per million
    assert budget.max_completion_tokens_left(2000, None) == 0


usages = st.builds(Usage, st.integers(0, 60), st.integers(0, 60))


@given(st.lists(st.tuples(st.booleans(), usages), max_size=40))
def test_reservations_in_any_order_never_hold_more_than_the_bound(steps: list[tuple[bool, Usage]]) -> None:
    budget = Budget(100)
    held: list[tuple[object, Usage]] = []
    used = 0
    for settles, usage in steps:
        if settles and held:
            reservation, estimate = held.pop(0)
            actual = Usage(min(usage.prompt_tokens, estimate.prompt_tokens), 0)
            reservation.settle(actual)  # type: ignore[attr-defined]
            used += actual.total_tokens
        else:
            try:
                held.append((budget.reserve(usage, None), usage))
            except CallError:
                assert usage.total_tokens > budget.tokens_left
        outstanding = sum(estimate.total_tokens for _, estimate in held)
        assert budget.tokens_left == 100 - used - outstanding
