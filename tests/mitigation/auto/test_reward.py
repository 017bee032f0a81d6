"""What the result of a mode is worth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import Mode
from truthlens.core.records.settings import AutoSettings
from truthlens.mitigation.auto.reward import AWARENESS, expected_reward, priced, review_reward, reward

FREE = AutoSettings(latency_weight=0.0, token_weight=0.0)
PRICED = AutoSettings(latency_weight=0.2, token_weight=0.3)
SHARES = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("first", "final", "expected"),
    [
        (0.9, 0.59, 1.0),  # mended
        (0.9, 0.0, 1.0),
        (0.9, 0.9, AWARENESS),  # as it was, but the client was told
        # Three of four findings of 0.95 are gone, and half of two of 0.8; Noisy-OR shows little of it.
        (1 - 0.05**4, 0.95, AWARENESS + (1 - AWARENESS) * 0.75),
        (1 - 0.2**2, 0.8, AWARENESS + (1 - AWARENESS) * 0.5),
        (1.0, 1.0, AWARENESS),
        (0.7, 0.9, AWARENESS),  # worse is no less than unmended: modes do not deliver it
    ],
)
def test_quality_is_full_below_the_threshold_and_else_follows_the_fall(
    first: float, final: float, expected: float
) -> None:
    found = reward(first=first, final=final, threshold=0.6, latency_s=0.0, tokens=0, settings=FREE)
    assert found == pytest.approx(expected)


def test_a_score_of_zero_at_a_threshold_of_zero_is_flagged_and_has_nothing_to_fall_by() -> None:
    found = reward(first=0.0, final=0.0, threshold=0.0, latency_s=0.0, tokens=0, settings=FREE)
    assert found == AWARENESS


def test_ten_seconds_and_ten_thousand_tokens_cost_their_weights() -> None:
    kwargs = {"first": 0.9, "final": 0.1, "threshold": 0.6, "settings": PRICED}
    assert reward(**kwargs, latency_s=10.0, tokens=0) == pytest.approx(0.8)
    assert reward(**kwargs, latency_s=0.0, tokens=10_000) == pytest.approx(0.7)
    assert reward(**kwargs, latency_s=5.0, tokens=5_000) == pytest.approx(0.75)


def test_a_mode_that_corrects_nothing_is_worth_less_than_the_warning_alone() -> None:
    warned = reward(first=0.9, final=0.9, threshold=0.6, latency_s=0.0, tokens=0, settings=AutoSettings())
    failed = reward(first=0.9, final=0.9, threshold=0.6, latency_s=1.0, tokens=900, settings=AutoSettings())
    assert failed < warned


@given(
    first=SHARES, final=SHARES, threshold=SHARES, latency_s=st.floats(-1.0, 1e6), tokens=st.integers(0, 10**9)
)
def test_a_reward_is_always_between_0_and_1(
    first: float, final: float, threshold: float, latency_s: float, tokens: int
) -> None:
    found = reward(
        first=first,
        final=final,
        threshold=threshold,
        latency_s=latency_s,
        tokens=tokens,
        settings=PRICED,
    )
    assert 0.0 <= found <= 1.0


@given(first=SHARES, low=SHARES, high=SHARES, threshold=SHARES)
def test_a_lower_final_score_is_never_worth_less(
    first: float, low: float, high: float, threshold: float
) -> None:
    low, high = min(low, high), max(low, high)
    kwargs = {"first": first, "threshold": threshold, "latency_s": 1.0, "tokens": 100, "settings": PRICED}
    assert reward(final=low, **kwargs) >= reward(final=high, **kwargs)


@pytest.mark.parametrize(
    ("flagged", "upheld", "quality"),
    [
        (False, True, 1.0),  # clean, and it is
        (True, False, 1.0),  # flagged for nothing: the mode's answer was good
        (True, True, AWARENESS),  # unsupported, and the client was told
        (False, False, 0.0),  # unsupported, delivered as clean
    ],
)
def test_a_review_overrules_the_verdict_but_not_the_price(
    flagged: bool, upheld: bool, quality: float
) -> None:
    free = review_reward(flagged=flagged, upheld=upheld, latency_s=5.0, tokens=1_000, settings=FREE)
    assert free == pytest.approx(quality)
    found = review_reward(flagged=flagged, upheld=upheld, latency_s=5.0, tokens=1_000, settings=PRICED)
    assert found == priced(quality, latency_s=5.0, tokens=1_000, settings=PRICED)


def test_the_mode_table_promises_more_of_dearer_modes() -> None:
    expected = [expected_reward(mode, AutoSettings()) for mode in AutoSettings().modes]
    assert None not in expected
    assert expected == sorted(expected)  # lightweight, standard, premium


def test_at_high_prices_the_mode_table_speaks_for_the_cheap_modes() -> None:
    dear = AutoSettings(token_weight=1.5)
    standard, premium = (expected_reward(mode, dear) for mode in (Mode.STANDARD, Mode.PREMIUM))
    assert standard > premium  # type: ignore[operator]
    dearest = AutoSettings(token_weight=10.0)
    assert max(dearest.modes, key=lambda mode: expected_reward(mode, dearest) or 0.0) is Mode.LIGHTWEIGHT


def test_the_mode_table_says_nothing_of_the_agentic_mode() -> None:
    assert expected_reward(Mode.AGENTIC, AutoSettings()) is None
