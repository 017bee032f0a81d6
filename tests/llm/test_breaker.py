"""The circuit breaker."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.fakes.llm_backends import Clock
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure
from truthlens.llm.breaker import Breaker, Permit, Result


def attempt(breaker: Breaker, result: Result) -> None:
    breaker.settle(breaker.admit(), result)


def refused(breaker: Breaker) -> bool:
    try:
        breaker.settle(breaker.admit(), Result.UNKNOWN)
    except CallError as error:
        return error.failure is CallFailure.CIRCUIT_OPEN
    return False


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(clock)
    for _ in range(5):
        attempt(breaker, Result.BAD)
    return breaker


def test_it_opens_after_five_failures_in_a_row() -> None:
    breaker = Breaker(Clock())
    for _ in range(4):
        attempt(breaker, Result.BAD)
    assert not refused(breaker)
    attempt(breaker, Result.BAD)
    assert refused(breaker)


def test_a_success_in_between_starts_the_count_anew_and_an_unknown_end_does_not() -> None:
    breaker = Breaker(Clock())
    for result in [Result.BAD] * 4 + [Result.GOOD] + [Result.BAD] * 4 + [Result.UNKNOWN]:
        attempt(breaker, result)
    assert not refused(breaker)
    attempt(breaker, Result.BAD)
    assert refused(breaker)


def test_after_the_cooldown_one_probe_is_let_through() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.advance(9.9)
    assert refused(breaker)
    clock.advance(0.1)
    probe = breaker.admit()
    assert refused(breaker)
    breaker.settle(probe, Result.GOOD)
    assert not refused(breaker)


def test_a_probe_that_tells_nothing_makes_room_for_the_next() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.advance(10)
    breaker.settle(breaker.admit(), Result.UNKNOWN)
    assert breaker.admit().probe


def test_failed_probes_double_the_cooldown_up_to_a_minute_and_a_success_resets_it() -> None:
    clock = Clock()
    breaker = opened(clock)
    for cooldown in (10, 20, 40, 60, 60):
        clock.advance(cooldown - 0.5)
        assert refused(breaker)
        clock.advance(0.5)
        attempt(breaker, Result.BAD)
    clock.advance(60)
    attempt(breaker, Result.GOOD)
    for _ in range(5):
        attempt(breaker, Result.BAD)
    clock.advance(10)
    assert not refused(breaker)


def test_an_attempt_that_began_before_the_state_changed_counts_for_nothing() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    late_good, late_bad = breaker.admit(), breaker.admit()
    for _ in range(5):
        attempt(breaker, Result.BAD)
    breaker.settle(late_good, Result.GOOD)
    assert refused(breaker)
    clock.advance(10)
    probe = breaker.admit()
    breaker.settle(late_bad, Result.BAD)
    breaker.settle(probe, Result.GOOD)
    assert not refused(breaker)


class BreakerModel(RuleBasedStateMachine):
    """Attempts that overlap in any order: one probe at most, none while it cools down."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.breaker = Breaker(self.clock, most_failures=2)
        self.running: list[Permit] = []

    @rule()
    def begin(self) -> None:
        cooling = self.breaker._open_until is not None and self.clock() < self.breaker._open_until
        probing = any(permit.probe and permit.era == self.breaker._era for permit in self.running)
        try:
            self.running.append(self.breaker.admit())
        except CallError:
            assert cooling or probing
        else:
            assert not cooling
            assert not (probing and self.running[-1].probe)

    @rule(seconds=st.sampled_from([1.0, 10.0, 60.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(index=st.integers(0, 20), result=st.sampled_from(Result))
    def end(self, index: int, result: Result) -> None:
        if self.running:
            self.breaker.settle(self.running.pop(index % len(self.running)), result)

    @invariant()
    def it_is_never_shut_for_more_than_a_minute_once_nothing_runs(self) -> None:
        if not self.running and self.breaker._open_until is not None:
            assert self.breaker._open_until - self.clock() <= 60.0
            assert not self.breaker._probing


TestBreakerModel = BreakerModel.TestCase
TestBreakerModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_permit_of_a_closed_breaker_is_no_probe() -> None:
    assert Breaker(Clock()).admit() == Permit(era=0)


@pytest.mark.parametrize("result", list(Result))
def test_with_one_failure_allowed_only_a_failure_opens_it(result: Result) -> None:
    breaker = Breaker(Clock(), most_failures=1)
    attempt(breaker, result)
    assert refused(breaker) == (result is Result.BAD)
