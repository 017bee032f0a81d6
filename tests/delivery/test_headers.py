"""Headers say what was checked and nothing else, and the worst choice speaks for all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import Action, Mode, Reason, Risk, Status
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Coverage, Verdict, unchecked
from truthlens.core.risk import risk_of
from truthlens.delivery import HEADER_NAMES, format_score, headers, pending_headers, worst

PLAN = Plan(decision="careful", threshold=0.6)


def checked(score: float, threshold: float = 0.6) -> Verdict:
    return Verdict(Status.CHECKED, score=score, threshold=threshold)


def test_a_checked_exchange_has_these_headers() -> None:
    """The whole set, value by value."""
    outcome = Outcome(PLAN, checked(0.724), action=Action.WARN, latency_s=0.0126)
    assert headers(outcome) == {
        "x-truthlens-enabled": "true",
        "x-truthlens-mode": "lightweight",
        "x-truthlens-score": "0.72",
        "x-truthlens-detected": "true",
        "x-truthlens-iterations": "0",
        "x-truthlens-latency-ms": "13",
        "x-truthlens-status": "checked",
        "x-truthlens-decision": "careful",
        "x-truthlens-action": "warn",
        "x-truthlens-risk": "high",
    }


@pytest.mark.parametrize("reason", list(Reason))
def test_an_unchecked_exchange_claims_nothing(reason: Reason) -> None:
    """No score, no "detected", no risk; the reason is there and detection did not run."""
    fields = headers(Outcome(PLAN, unchecked(reason, threshold=0.6)))
    assert fields["x-truthlens-enabled"] == "false"
    assert fields["x-truthlens-status"] == "unchecked"
    assert fields["x-truthlens-reason"] == reason.value
    assert not {"x-truthlens-score", "x-truthlens-detected", "x-truthlens-risk"} & set(fields)


def test_a_partial_exchange_has_score_and_reason() -> None:
    """What was scored is told, and that it was not all."""
    fields = headers(Outcome(PLAN, Verdict(Status.PARTIAL, Reason.TIMEOUT, score=0.1, threshold=0.6)))
    assert (fields["x-truthlens-enabled"], fields["x-truthlens-score"]) == ("true", "0.10")
    assert (fields["x-truthlens-status"], fields["x-truthlens-reason"]) == ("partial", "timeout")


def test_a_changed_and_queued_answer_says_so() -> None:
    """Initial score and review id appear where they are set; the mode is the one that ran."""
    outcome = Outcome(
        PLAN,
        checked(0.2),
        mode=Mode.STANDARD,
        action=Action.REFINE,
        iterations=2,
        initial_score=0.91,
        review_id="r-1",
    )
    fields = headers(outcome)
    assert fields["x-truthlens-initial-score"] == "0.91"
    assert fields["x-truthlens-review-id"] == "r-1"
    assert fields["x-truthlens-mode"] == "standard"
    assert fields["x-truthlens-iterations"] == "2"


def test_every_header_is_named() -> None:
    """The list of names, which is stripped from traffic, covers all that is ever set."""
    outcome = Outcome(
        PLAN,
        Verdict(Status.PARTIAL, Reason.TIMEOUT, score=0.1),
        initial_score=0.2,
        review_id="r",
        shadow_action=Action.WARN,
    )
    assert set(headers(outcome)) == set(HEADER_NAMES)
    assert all(name == name.lower() for name in HEADER_NAMES)


@pytest.mark.parametrize(
    ("decision", "value"), [("医疗", "%E5%8C%BB%E7%96%97"), ("a\r\nx: y", "a%0D%0Ax: y"), ("a b_c", "a b_c")]
)
def test_names_of_any_script_are_safe_in_a_header(decision: str, value: str) -> None:
    """Decisions named in Chinese, or with line breaks, cannot break a header."""
    assert headers(Outcome(replace(PLAN, decision=decision), checked(0.1)))["x-truthlens-decision"] == value


def test_a_stream_begins_with_what_is_known() -> None:
    """Enabled, mode, decision and status pending, no more."""
    assert pending_headers(replace(PLAN, mode=Mode.STANDARD)) == {
        "x-truthlens-enabled": "true",
        "x-truthlens-mode": "standard",
        "x-truthlens-status": "pending",
        "x-truthlens-decision": "careful",
    }


@pytest.mark.parametrize(
    ("score", "risk"),
    [
        (0.0, Risk.LOW),
        (0.3, Risk.LOW),
        (0.301, Risk.MODERATE),
        (0.6, Risk.MODERATE),
        (0.601, Risk.HIGH),
        (1.0, Risk.HIGH),
    ],
)
def test_risk_levels_end_where_the_contract_says(score: float, risk: Risk) -> None:
    """The upper bound of each level belongs to it."""
    assert risk_of(score) is risk


@pytest.mark.parametrize(
    ("score", "threshold", "shown"),
    [
        (0.598, 0.6, "0.59"),
        (0.6, 0.6, "0.60"),
        (0.602, 0.6, "0.61"),
        (0.9999, 1.0, "0.99"),
        (0.0, 0.0, "0.00"),
        (1.0, 0.6, "1.00"),
        (0.3004, 0.6, "0.31"),
        (0.7249, 0.6, "0.72"),
        (0.6045, 0.604, "0.61"),
    ],
)
def test_a_shown_score_agrees_with_its_flag(score: float, threshold: float, shown: str) -> None:
    """Rounding never crosses the threshold, nor a risk level."""
    assert format_score(score, threshold) == shown


UNIT = st.floats(0, 1)


@given(score=UNIT, hundredths=st.integers(0, 100))
def test_no_rounding_contradicts_a_threshold(score: float, hundredths: int) -> None:
    """Comparing the header with the threshold gives the header ``Detected``."""
    threshold = hundredths / 100
    shown = float(format_score(score, threshold))
    assert (shown >= threshold) == (score >= threshold)
    assert abs(shown - score) < 0.0101


def test_the_highest_score_speaks_for_all() -> None:
    """All checked: the worst choice's verdict as it is."""
    assert worst([checked(0.1), checked(0.8), checked(0.3)]) == checked(0.8)


def test_a_choice_that_was_not_checked_makes_the_whole_partial() -> None:
    """A clean score of one choice never hides that another was not looked at."""
    verdict = worst([checked(0.1), unchecked(Reason.TIMEOUT, threshold=0.6)])
    assert (verdict.status, verdict.reason, verdict.score) == (Status.PARTIAL, Reason.TIMEOUT, 0.1)


def test_nothing_checked_is_unchecked() -> None:
    """Without any score the whole is unchecked, and a failure says more than an empty choice."""
    assert worst([unchecked(Reason.TOOL_CALL), unchecked(Reason.TIMEOUT)]).reason is Reason.TIMEOUT
    assert worst([unchecked(Reason.TOOL_CALL)]).status is Status.UNCHECKED
    assert worst([]).status is Status.UNCHECKED


def test_the_coverage_of_a_partial_whole_counts_all_of_it() -> None:
    """The answer tokens of every choice, those of which nothing was scored too, and the evidence as seen least."""
    full, half = Coverage(10, 10, 10, 10), Coverage(10, 5, 10, 8)
    verdict = worst(
        [
            replace(checked(0.9), coverage=full),
            Verdict(Status.PARTIAL, Reason.TIMEOUT, score=0.1, threshold=0.6, coverage=half),
            replace(unchecked(Reason.LANGUAGE, threshold=0.6), coverage=Coverage(5, 0, 10, 0)),
        ]
    )
    assert (verdict.score, verdict.coverage) == (0.9, Coverage(25, 15, 10, 8))


VERDICTS = st.one_of(
    st.builds(checked, UNIT),
    st.builds(lambda score: Verdict(Status.PARTIAL, Reason.TIMEOUT, score=score, threshold=0.6), UNIT),
    st.sampled_from(Reason).map(unchecked),
)


@given(verdicts=st.lists(VERDICTS, min_size=1, max_size=5))
def test_the_worst_verdict_never_flatters(verdicts: list[Verdict]) -> None:
    """Status and score are never better than any choice's, and a reason is given exactly where it is owed."""
    whole = worst(verdicts)
    assert (whole.status is Status.CHECKED) == all(verdict.status is Status.CHECKED for verdict in verdicts)
    assert (whole.reason is None) == (whole.status is Status.CHECKED)
    assert whole.score == max(
        (verdict.score for verdict in verdicts if verdict.score is not None), default=None
    )
