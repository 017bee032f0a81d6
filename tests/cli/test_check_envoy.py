"""``check --envoy``: a policy against the Envoy that it will run behind."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from truthlens.cli import main

ROOT = Path(__file__).parents[2]
ENVOY = ROOT / "envoy" / "truthlens.yaml"
CLOSED = ROOT / "envoy" / "truthlens-fail-closed.yaml"
LOOP = """\
hallucination:
  default_mode: standard
  mitigation:
    deadline_s: 45
"""


@dataclass(frozen=True)
class Result:
    status: int
    lines: list[str]


def check(*arguments: str | Path) -> Result:
    """``truthlens check`` in this process."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "stdin", io.StringIO())
        patch.setenv("NO_COLOR", "1")
        try:
            main(["check", *map(str, arguments)])
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    assert "Traceback" not in err.getvalue()
    return Result(status, out.getvalue().splitlines())


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A loop of 45 s for everything."""
    path = tmp_path / "policy.yaml"
    path.write_text(LOOP)
    return path


def test_what_fits_is_said_to_fit(policy: Path) -> None:
    """One line a file, with the longest hold, below what the policy's decisions score with, and exit status 0."""
    result = check(policy, "--envoy", ENVOY, "--envoy", CLOSED)
    assert result.status == 0
    assert result.lines[0].startswith(f"{policy}: ok")
    assert result.lines[1].startswith("  default: encoder, numbers, contradictions, reader; threshold 0.6")
    assert result.lines[2:] == [
        f"{path}: ok, answers of {policy} are held for up to 45 s" for path in (ENVOY, CLOSED)
    ]


def test_a_rate_of_its_own_is_told_on_both_scales(policy: Path) -> None:
    """A plan whose expected_rate is not one half is named, with its threshold at even odds."""
    policy.write_text("hallucination: {threshold: 0.5, expected_rate: 0.2}\n")
    result = check(policy)
    assert result.status == 0
    (told,) = result.lines[1:]
    assert told.endswith("; threshold 0.5 at expected_rate 0.2, which is 0.8000 at even odds")


def test_the_longest_hold_is_that_of_a_stream_where_it_is(policy: Path) -> None:
    """Under gate text waits for the end of its sentence, and then for its scoring."""
    policy.write_text(
        "hallucination: {default_mode: lightweight, streaming: gate, stream: {max_hold_s: 4}}\n"
    )
    result = check(policy, "--envoy", ENVOY)
    assert result.status == 0
    assert result.lines[-1] == f"{ENVOY}: ok, answers of {policy} are held for up to 8 s"


def test_a_loop_that_cannot_fit_names_the_values_to_change(policy: Path, tmp_path: Path) -> None:
    """Envoy's with its line, the policy's with its line; exit status 1, the other file being sound or not."""
    short = tmp_path / "envoy.yaml"
    short.write_text(ENVOY.read_text().replace("max_message_timeout: 310s", "max_message_timeout: 30s"))
    line = next(
        n for n, text in enumerate(short.read_text().splitlines(), 1) if "max_message_timeout" in text
    )
    result = check(policy, "--envoy", short, "--envoy", ENVOY)
    assert result.status == 1
    (found,) = [text for text in result.lines if text.startswith(f"{short}:{line}: ")]
    assert "asks Envoy for 47 s, but max_message_timeout is 30 s" in found
    assert "write max_message_timeout: 47s or more" in found
    assert f"or in the policy mitigation.deadline_s: 28 or less for 'default' ({policy}:4)" in found
    assert f"{short}: 1 error(s), 0 warning(s)" in result.lines
    assert result.lines[-1].startswith(f"{ENVOY}: ok")


def test_warnings_fail_only_where_asked(policy: Path) -> None:
    """Failing open with a plan that blocks is a warning, and --strict makes it count."""
    policy.write_text(LOOP + "  on_unchecked: block\n")
    plain = check(policy, "--envoy", ENVOY)
    assert plain.status == 0
    assert any(": warning: " in text and "failure_mode_allow" in text for text in plain.lines)
    assert plain.lines[-1].startswith(f"{ENVOY}: ok, 1 warning(s)")
    strict = check(policy, "--envoy", ENVOY, "--strict")
    assert (strict.status, strict.lines[-1]) == (1, f"{ENVOY}: 0 error(s), 1 warning(s)")


def test_a_stop_that_cuts_answers_is_a_warning(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the drain's grace is shorter than the longest hold; with the value to start with."""
    policy.write_text(LOOP.replace("45", "300"))
    told = check(policy, "--envoy", ENVOY)
    assert (told.status, len(told.lines)) == (0, 4)
    assert told.lines[-1].startswith("warning: a stop cuts answers")
    assert "of 65 s; start truthlens serve with --drain-grace 300 or more" in told.lines[-1]
    assert check(policy, "--envoy", ENVOY, "--strict").status == 1
    assert len(check(policy, "--envoy", ENVOY, "--drain-grace", "300").lines) == 3
    monkeypatch.setenv("TRUTHLENS_DRAIN_GRACE", "299")
    assert "--drain-grace of 299 s" in check(policy, "--envoy", ENVOY).lines[-1]


def test_a_policy_with_mistakes_is_compared_with_nothing(policy: Path) -> None:
    """Its times are not known; the command says that it did not look."""
    policy.write_text(LOOP + "  treshold: 0.5\n")
    result = check(policy, "--envoy", ENVOY)
    assert result.status == 1
    assert result.lines[-1] == f"{ENVOY}: not checked, for {policy} cannot be used"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"static_resources: [", "not valid YAML"),
        (b"", "the file is empty"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"admin: {}\n", "has an ext_proc filter"),
    ],
)
def test_a_file_that_is_no_bootstrap_is_an_error(
    policy: Path, tmp_path: Path, content: bytes, said: str
) -> None:
    """One line with the place, no traceback."""
    envoy = tmp_path / "envoy.yaml"
    envoy.write_bytes(content)
    result = check(policy, "--envoy", envoy)
    assert result.status == 1
    assert any(text.startswith(f"{envoy}:1: ") and said in text for text in result.lines)


def test_help_says_what_the_option_is_for() -> None:
    """With its name, and that it can be repeated."""
    result = check("--help")
    assert result.status == 0
    text = " ".join("".join(result.lines).replace("│", " ").split())
    assert "--envoy" in text
    assert "Repeat for several" in text
