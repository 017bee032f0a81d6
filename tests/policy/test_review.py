"""The section `review`: its defaults, the two environment variables of the source, and what cannot work."""

from __future__ import annotations

import pytest

from truthlens.core.records.enums import Risk
from truthlens.core.review_settings import FLAGGED, Redaction, ReviewRule, ReviewSettings
from truthlens.policy.compile import compile_policy
from truthlens.yamlfile.diagnostics import InvalidPolicyError


def settings(text: str) -> ReviewSettings:
    return compile_policy(text, file="policy.yaml").review


def test_flagged_answers_are_queued_without_text_by_default() -> None:
    """Nothing has to be written for a queue, and no text is kept unless somebody writes so."""
    found = settings("hallucination: {}\n")
    assert found == ReviewSettings()
    assert (found.enabled, found.rules, found.keep_text) == (True, (FLAGGED,), False)


def test_everything_that_is_written_counts() -> None:
    """Key by key."""
    found = settings(
        """
trusted_headers: [X-User]
review:
  keep_text: true
  redact: [email, iban]
  redact_patterns: ["ACCT-[0-9]+"]
  retention_days: 7
  text_retention_days: 1.5
  max_entries: 10
  user_header: X-User
  rules:
    - {name: high, levels: [high], decisions: [default], detectors: [encoder], sample: 0.5}
    - {name: clean, flagged: false, sample: 0.01}
    - {name: rest, flagged: null}
"""
    )
    assert found == ReviewSettings(
        enabled=True,
        rules=(
            ReviewRule(
                name="high", levels=(Risk.HIGH,), decisions=("default",), detectors=("encoder",), sample=0.5
            ),
            ReviewRule(name="clean", flagged=False, sample=0.01),
            ReviewRule(name="rest", flagged=None),
        ),
        keep_text=True,
        redact=(Redaction.EMAIL, Redaction.IBAN),
        redact_patterns=("ACCT-[0-9]+",),
        retention_days=7,
        text_retention_days=1.5,
        max_entries=10,
        user_header="x-user",
    )


def test_the_environment_speaks_where_the_file_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """HALLUCINATION_REVIEW_QUEUE and HALLUCINATION_AUTO_FLAG; a written key goes before them."""
    monkeypatch.setenv("HALLUCINATION_REVIEW_QUEUE", "false")
    monkeypatch.setenv("HALLUCINATION_AUTO_FLAG", "no")
    assert not settings("hallucination: {}\n").enabled
    assert settings("hallucination: {}\n").rules == ()
    written = settings("review: {enabled: true, rules: [{name: all}]}\n")
    assert (written.enabled, len(written.rules)) == (True, 1)


@pytest.mark.parametrize(
    "text",
    [
        "review: {user_header: X-User}",
        "review: {redact_patterns: ['(']}",
        "review: {rules: [{name: a}, {name: a, decisions: [default]}]}",
        "review: {rules: [{name: a, sample: 1.5}]}",
        "review: {rules: [{name: a, levels: [terrible]}]}",
        "review: {redact: [names]}",
        "review: {retention_days: 0}",
        "review: {max_entries: 0}",
        "review: {keep_texts: true}",
        "review: true",
    ],
)
def test_these_are_refused_at_their_place(text: str) -> None:
    """With the line and the key."""
    with pytest.raises(InvalidPolicyError, match=r"policy.yaml:1: review"):
        settings(text)
