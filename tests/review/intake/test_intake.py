"""The first rule that applies decides, and what was not scored or not delivered is never queued."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.reviewed import outcome, with_claims
from truthlens.core.records.enums import Action, Risk
from truthlens.core.review_settings import ReviewRule, ReviewSettings
from truthlens.review.intake.intake import Selection, new_id, selected


def rules(*given: ReviewRule, enabled: bool = True) -> ReviewSettings:
    return ReviewSettings(enabled=enabled, rules=given)


def never() -> float:
    return 0.0


def test_a_flagged_answer_is_queued_by_default_and_no_other() -> None:
    """What a policy that says nothing does."""
    assert selected(outcome(0.9), ReviewSettings(), draw=never) == Selection("flagged", 1.0)
    assert selected(outcome(0.1), ReviewSettings(), draw=never) is None


def test_a_detector_that_wants_a_person_gets_one() -> None:
    """A wrong value is queued as flagged although the whole stays below the threshold."""
    assert selected(with_claims(outcome(0.1)), ReviewSettings(), draw=never) == Selection("flagged", 1.0)


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        (outcome(None), ReviewSettings()),
        (outcome(0.9, action=Action.BLOCK), ReviewSettings()),
        (outcome(0.9), rules(ReviewRule(name="all", flagged=None), enabled=False)),
        (outcome(0.9), rules()),
    ],
    ids=["not checked", "withheld", "switched off", "no rules"],
)
def test_these_are_never_queued(given: object, settings: ReviewSettings) -> None:
    """Nothing to review, nothing delivered, or nothing wanted."""
    assert selected(given, settings, draw=never) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "applies"),
    [
        (ReviewRule(name="r", decisions=("careful",)), True),
        (ReviewRule(name="r", decisions=("other",)), False),
        (ReviewRule(name="r", levels=(Risk.HIGH,)), True),
        (ReviewRule(name="r", levels=(Risk.LOW, Risk.MODERATE)), False),
        (ReviewRule(name="r", detectors=("encoder",)), True),
        (ReviewRule(name="r", detectors=("numbers",)), False),
        (ReviewRule(name="r", flagged=False), False),
        (ReviewRule(name="r", flagged=None), True),
    ],
)
def test_every_condition_of_a_rule_counts(rule: ReviewRule, *, applies: bool) -> None:
    """Decision, level, detector, flagged."""
    assert (selected(outcome(0.9), rules(rule), draw=never) is not None) == applies


def test_the_first_rule_that_applies_decides_alone() -> None:
    """A later one does not get what the sample of an earlier one left out: rates would be wrong."""
    sampled = ReviewRule(name="few", sample=0.1)
    settings = rules(ReviewRule(name="none", decisions=("other",)), sampled, ReviewRule(name="all"))
    assert selected(outcome(0.9), settings, draw=lambda: 0.5) is None
    assert selected(outcome(0.9), settings, draw=lambda: 0.05) == Selection("few", 0.1)


@given(st.floats(0, 1), st.floats(0, 1, exclude_max=True))
def test_a_sample_is_a_share(sample: float, drawn: float) -> None:
    """Of uniform draws just the share is queued: none at 0, all at 1."""
    settings = rules(ReviewRule(name="r", flagged=None, sample=sample))
    assert (selected(outcome(0.1), settings, draw=lambda: drawn) is not None) == (drawn < sample)


def test_ids_are_not_guessed() -> None:
    """Eighty random bits, and fit for a header and a URL."""
    made = {new_id() for _ in range(1000)}
    assert len(made) == 1000
    assert all(each.startswith("rv_") and each.isascii() and len(each) == 23 for each in made)
