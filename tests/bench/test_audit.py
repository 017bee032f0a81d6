"""``make audit`` finds what is wrong, and says what it could not look at."""

from __future__ import annotations

import base64
import hashlib
from importlib import metadata
from pathlib import Path

import pytest

from bench.audit import ALLOWED, changed_files, closure, licences


def installed(folder: Path, name: str, *headers: str, record: str = "") -> metadata.Distribution:
    """A package in ``folder``."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *headers, ""])
    )
    (info / "RECORD").write_text(record)
    return metadata.PathDistribution(info)


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        (["License-Expression: MIT OR Apache-2.0"], True),
        (["License-Expression: AGPL-3.0-only AND MIT"], False),
        (["Classifier: License :: OSI Approved :: BSD License"], True),
        (["License: Proprietary"], False),
        ([], False),
    ],
    ids=str,
)
def test_licences_are_told_in_three_ways(tmp_path: Path, headers: list[str], allowed: bool) -> None:
    """A package that tells none is not allowed."""
    assert (licences(installed(tmp_path, "one", *headers)) <= ALLOWED) is allowed


def test_a_file_that_was_changed_after_the_installation_is_found(tmp_path: Path) -> None:
    """And one that is gone."""
    whole, changed = tmp_path / "whole.py", tmp_path / "changed.py"
    whole.write_text("1")
    changed.write_text("2")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"1").digest()).rstrip(b"=").decode()
    record = "".join(f"{name}.py,sha256={digest},1\n" for name in ("whole", "changed", "missing"))
    told = list(changed_files(installed(tmp_path, "one", record=record)))
    assert told == ["changed.py has been changed since it was installed", "missing.py is gone"]


def test_requirements_that_are_not_met_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of an extra where it is asked for alone."""
    monkeypatch.syspath_prepend(tmp_path)
    needs = ["audited-b>=2", "nowhere; extra == 'more'"]
    installed(tmp_path, "audited_a", *(f"Requires-Dist: {each}" for each in needs), "Provides-Extra: more")
    installed(tmp_path, "audited_b")
    found, wrong = closure("audited_a", frozenset())
    assert sorted(found) == ["audited-a", "audited-b"]
    assert wrong == ["audited_a needs audited-b>=2, and 1.0 is installed"]
    _, wrong = closure("audited_a", frozenset({"more"}))
    assert "audited_a needs nowhere, which is not installed" in wrong
