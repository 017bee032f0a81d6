"""What follows from a plan: how long an answer may be held, and what Envoy is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from truthlens.core.records.enums import Mode
from truthlens.core.records.plan import MARGIN_S, Plan
from truthlens.core.records.settings import AutoSettings, MitigationSettings

CALLING = [mode for mode in Mode if mode is not Mode.LIGHTWEIGHT]


def test_lightweight_lives_on_one_detection() -> None:
    """A deadline for calls says nothing about a plan that makes none, and no more time is asked for."""
    plan = Plan("p", timeout_s=3.0, mitigation=MitigationSettings(deadline_s=90.0))
    assert (plan.hold_s, plan.override_s) == (3.0, None)


@pytest.mark.parametrize(
    ("mode", "seconds"), [(Mode.STANDARD, 30), (Mode.PREMIUM, 60), (Mode.AGENTIC, 300), (Mode.AUTO, 60)]
)
def test_each_mode_that_calls_models_has_a_default(mode: Mode, seconds: float) -> None:
    """Envoy is asked for the hold and a margin."""
    plan = Plan("p", mode=mode)
    assert (plan.hold_s, plan.override_s) == (seconds, seconds + MARGIN_S)


def test_auto_has_the_time_of_the_longest_mode_that_it_may_choose() -> None:
    """Listed, agentic is given its time."""
    plan = Plan("p", mode=Mode.AUTO, auto=AutoSettings(modes=(Mode.STANDARD, Mode.AGENTIC)))
    assert (plan.hold_s, plan.override_s) == (300, 302)


@pytest.mark.parametrize("mode", CALLING)
def test_the_plans_own_deadline_goes_before_the_default(mode: Mode) -> None:
    """It may be shorter or longer."""
    plan = Plan("p", mode=mode)
    for seconds in (0.5, 300.0):
        own = replace(plan, mitigation=MitigationSettings(deadline_s=seconds))
        assert (own.hold_s, own.override_s) == (seconds, seconds + MARGIN_S)
