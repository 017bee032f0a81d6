"""Findings: exit statuses, ids of diagnostics, and that no secret is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.setups import setup_of
from truthlens.policy import load_policy
from truthlens.process.doctor.findings import (
    CheckLevel,
    CheckResult,
    error,
    exit_status,
    of_diagnostics,
    ok,
    unknown,
    warning,
    without_secrets,
)
from truthlens.process.doctor.setup import secrets_of
from truthlens.yamlfile.diagnostics import Diagnostic, Severity

OK, WARNING = ok("a.b", "fine"), warning("a.b", "so", "so", "so")
ERROR, UNKNOWN = error("a.b", "bad", "so", "so"), unknown("a.b", "dark", "so", "so")


@pytest.mark.parametrize(
    ("found", "strict", "status"),
    [
        ([], False, 0),
        ([OK, WARNING], False, 0),
        ([OK, WARNING], True, 1),
        ([OK, UNKNOWN], False, 2),
        ([UNKNOWN, WARNING], True, 1),
        ([UNKNOWN, ERROR], False, 1),
    ],
)
def test_what_is_wrong_counts_before_what_was_not_seen(
    found: list[CheckResult], strict: bool, status: int
) -> None:
    """0 nothing wrong, 1 something wrong, 2 it could not look."""
    assert exit_status(found, strict=strict) == status


def test_a_diagnostic_keeps_place_and_remedy() -> None:
    """Its last key ends the id, so that ids do not depend on the names of decisions."""
    said = Diagnostic(
        Severity.WARNING, "p.yaml", 7, "decisions[3].plugins[0].configuration.threshold", "high", "lower it"
    )
    assert of_diagnostics("policy", [said]) == [
        CheckResult("policy.threshold", CheckLevel.WARNING, f"p.yaml:7: {said.key}", "high", "lower it")
    ]
    assert of_diagnostics("envoy", [said], lines=False)[0].what == f"p.yaml: {said.key}"


def test_secrets_of_options_and_of_the_policys_variables_are_hidden(tmp_path: Path) -> None:
    """Passwords of URLs, escaped or not, keys, and passwords within the URLs that variables hold."""
    setup = setup_of(
        tmp_path,
        """\
models:
- {name: critic, base_url: "http://127.0.0.1:1/v1", api_key_env: CRITIC}
sources:
- {name: pages, type: searxng, base_url: "http://127.0.0.1:1", api_key_env: PAGES}
- {name: facts, type: pgvector, url_env: FACTS, table: facts}
hallucination: {detectors: [encoder]}
""",
        redis="redis://ann:red%40is-pw@h:1/0",
        review_database="postgresql://ann:review-pw@h/n",
        admin="http://ann:admin-pw@127.0.0.1:1",
        environ={
            "CRITIC": "critic-key",
            "PAGES": "pages-key",
            "FACTS": "postgresql://a:facts-pw@h/n",
            "OTHER": "other",
        },
    )
    secrets = list(secrets_of(setup, load_policy(setup.settings.config)))
    words = ["red%40is-pw", "red@is-pw", "review-pw", "admin-pw", "critic-key", "pages-key", "facts-pw"]
    text = f"{' '.join(words)} other \x1b[31m"
    (shown,) = without_secrets([CheckResult("a.b", CheckLevel.ERROR, text, text, text)], secrets)
    for part in (shown.what, shown.why, shown.change):
        assert not any(word in part for word in words)
        assert "other" in part
        assert "\x1b" not in part
