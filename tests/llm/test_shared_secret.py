"""The secret that processes of one user share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from truthlens.llm.shared_secret import host_secret


def test_whoever_comes_later_finds_the_first_ones(tmp_path: Path) -> None:
    folder = tmp_path / "truthlens"
    first = host_secret(folder)
    assert first is not None
    assert len(first) == 32
    assert host_secret(folder) == first
    assert (folder / "mark-secret").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == ["mark-secret"]


def test_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    folder = tmp_path / "truthlens"
    code = f"from truthlens.llm.shared_secret import host_secret; from pathlib import Path; print(host_secret(Path({str(folder)!r})).hex())"
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    found = {process.communicate(timeout=60)[0].strip() for process in running}
    assert len(found) == 1
    assert len(found.pop()) == 64


def test_what_others_may_read_is_not_used(tmp_path: Path) -> None:
    """A folder, a file or a link that somebody else could have put there is no secret."""
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    assert host_secret(folder) is None
    folder.chmod(0o700)
    assert host_secret(folder) is not None
    (folder / "mark-secret").chmod(0o644)
    assert host_secret(folder) is None
    (folder / "mark-secret").unlink()
    other = tmp_path / "other"
    other.write_bytes(os.urandom(32))
    (folder / "mark-secret").symlink_to(other)
    assert host_secret(folder) is None


def test_a_damaged_one_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "truthlens"
    assert host_secret(folder) is not None
    (folder / "mark-secret").write_bytes(b"short")
    assert host_secret(folder) is None


def test_where_nothing_can_be_kept_there_is_none(tmp_path: Path) -> None:
    assert host_secret(tmp_path / "missing" / "truthlens") is None
