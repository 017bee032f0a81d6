"""``truthlens doctor``: a list for programs, lines for people, and the exit status."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.ports import free_port
from tests.fakes.setups import setup_of
from truthlens.cli import main
from truthlens.process.doctor.examination import GROUPS, examine
from truthlens.process.doctor.findings import CheckLevel

Doctor = Callable[..., tuple[int, str]]
ENVOY = Path(__file__).parents[2] / "envoy" / "truthlens.yaml"


@pytest.fixture
def doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """``truthlens doctor`` in this process, on a small set-up with free addresses: its exit status and output."""
    settings = setup_of(tmp_path).settings
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdin", None)

    def run(*words: str) -> tuple[int, str]:
        own = ["--config", settings.config, "--models", settings.models, "--extproc", settings.extproc]
        own += ["--console", settings.console, "--review-database", "none"]
        with pytest.raises(SystemExit) as ended:
            main(["doctor", *map(str, own), *words])
        assert isinstance(ended.value.code, int)
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        return ended.value.code, told.out

    return run


def test_a_planned_set_up_without_faults_is_right(doctor: Doctor) -> None:
    """Exit status 0, a heading a group, a line a check, and a sum."""
    status, text = doctor()
    assert status == 0, text
    assert text.splitlines()[0] == GROUPS["policy"]
    assert "error" not in text
    assert text.splitlines()[-1].endswith(" ok")


def test_programs_get_a_list(doctor: Doctor) -> None:
    """Of objects with the same members, in the order of the groups."""
    status, text = doctor("--json", "--envoy", str(ENVOY))
    found = json.loads(text)
    assert status == 1
    assert {frozenset(each) for each in found} == {
        frozenset(("id", "group", "severity", "what", "why", "change"))
    }
    assert {each["severity"] for each in found} <= {level.value for level in CheckLevel}
    order = [list(GROUPS).index(each["group"]) for each in found]
    assert order == sorted(order)
    assert all(each["id"].startswith(f"{each['group']}.") for each in found)
    assert [each["id"] for each in found if each["severity"] == "error"] == ["envoy.endpoint"]


def test_what_is_wrong_says_why_and_what_to_change(doctor: Doctor) -> None:
    """Below the line that names it."""
    status, text = doctor("--envoy", str(ENVOY))
    assert status == 1
    lines = [line.strip() for line in text.splitlines()]
    place = next(number for number, line in enumerate(lines) if line.startswith("error"))
    assert lines[place + 1].startswith("why:")
    assert lines[place + 2].startswith("change:")


def test_where_it_cannot_look_it_says_so(doctor: Doctor) -> None:
    """An Envoy that does not answer, with a sidecar that does not run, is wrong; a word that is no address is misuse."""
    status, text = doctor("--envoy-admin", f"127.0.0.1:{free_port()}")
    assert status == 1
    assert "unknown" in text
    for words in (("--envoy-admin", "ftp://x"), ("--extproc", "nonsense"), ("--upstream", "nonsense")):
        assert doctor(*words)[0] == 2


async def test_a_group_that_breaks_costs_no_other(tmp_path: Path) -> None:
    """It says so by the kind of its error alone, whose words may hold a secret."""

    def broken() -> int:
        raise KeyError("sk-secret")

    found = await examine(setup_of(tmp_path, free_memory=broken))
    (told,) = [each for each in found if each.severity is not CheckLevel.OK]
    assert (told.id, told.severity) == ("policy.broken", CheckLevel.UNKNOWN)
    assert "KeyError" in told.what
    assert "sk-secret" not in str(found)
