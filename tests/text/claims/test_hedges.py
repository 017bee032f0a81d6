"""A claim that is surer than its evidence, and the many that only look so."""

from __future__ import annotations

import time

import pytest

from truthlens.text.claims.hedges import overreach


@pytest.mark.parametrize(
    ("claim", "evidence", "mine", "theirs"),
    [
        ("All pairs raise a second brood.", "Most pairs raise a second brood.", "All", "Most"),
        ("The drug will cause drowsiness.", "The drug may cause drowsiness.", "will", "may"),
        ("First cases are always dealt with by a warning.", "First cases are normally dealt with by a warning.",
         "always", "normally"),
        ("The trial proves that the diet works.", "The trial suggests that the diet works.", "proves", "suggests"),
        ("Yearly service is required.", "Yearly service is recommended.", "required", "recommended"),
        ("Exactly 40 visitors came.", "About 40 visitors came.", "Exactly", "About"),
        ("Every one of the parishes grew.", "In some of the parishes it grew.", "Every one of", "some"),
    ],
)  # fmt: skip
def test_certainty_where_the_evidence_hedges_is_found(
    claim: str, evidence: str, mine: str, theirs: str
) -> None:
    """By the two words that differ, at their places."""
    found = overreach(claim, evidence)
    assert found is not None
    assert (claim[found.start : found.end], evidence[slice(*found.evidence)]) == (mine, theirs)


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Most pairs raise a second brood.", "Most pairs raise a second brood."),
        ("Not all pairs raise a brood.", "Most pairs raise a brood."),
        ("The drug may cause drowsiness in all patients.", "The drug may cause drowsiness in patients."),
        ("Copying maps requires the librarian's consent.", "Maps may be copied only with the librarian's consent."),
        ("Step 1 must not be skipped.", "Step 1 may not be skipped."),
        ("The mayor speaks of no more than three firms.", "The mayor says at most three firms have applied."),
        ("Phones don't have to be switched off.", "Phones may stay switched on."),
        ("The authority could require it to sell the lens business.", "The authority may ask it to sell the lens business."),
        ("All shops close at six.", "Some members of the board resigned."),
        ("The number has to change.", "The number can't be kept."),
        ("", ""),
    ],
)  # fmt: skip
def test_what_is_no_overreach_is_not_found(claim: str, evidence: str) -> None:
    """Hedges of the same kind, denials, conditions, bounds, and words of other things."""
    assert overreach(claim, evidence) is None


def test_a_text_that_repeats_itself_takes_no_longer_than_its_length() -> None:
    """What a model in a loop writes: thousands of certain words, and none of them speaks of what is hedged."""
    started = time.process_time()
    assert overreach("all q " * 2000, "some x " * 30) is None
    assert time.process_time() - started < 5.0
