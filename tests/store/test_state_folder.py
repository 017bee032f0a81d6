"""Where a user's TruthLens keeps its files."""

from pathlib import Path

import pytest

from truthlens.store.state_folder import state_folder


def test_each_checkout_has_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    assert state_folder(tmp_path) == tmp_path / ".truthlens"
    assert state_folder() == Path(__file__).parents[2] / ".truthlens"


def test_what_is_installed_has_one_in_the_users_state_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert state_folder(tmp_path) == tmp_path / "state" / "truthlens"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder(tmp_path) == tmp_path / ".local" / "state" / "truthlens"
