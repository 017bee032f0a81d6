"""``truthlens index``: the index of a folder of documents."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.cli.test_cli import run
from truthlens.retrieval.sources.folder.options import FolderOptions


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs[1]"
    folder.mkdir()
    (folder / "tea.md").write_text("# Tea\n\nTea is free.\n\n# Cups\n\nBring one.")
    (folder / "broken[bold].pdf").write_bytes(b"no")
    return folder


def test_it_says_what_was_read_and_where_the_index_is(docs: Path, tmp_path: Path) -> None:
    """The second time nothing is read; brackets in names are no markup."""
    file = tmp_path / "made" / "index.db"
    first = run("index", str(docs), "--out", str(file))
    assert first.returncode == 0
    assert first.stdout.splitlines() == [
        "1 files, 2 passages (2 read, 0 removed)",
        "1 skipped:",
        "  broken[bold].pdf: it is broken, or not what its name says",
        f"index: {file}",
    ]
    second = run("index", str(docs), "--out", str(file))
    assert second.stdout == first.stdout.replace("2 read", "0 read")
    assert "1 files, 2 passages" in run("index", str(docs), "--out", str(file), "--pattern", "*.md").stdout


def test_without_a_file_it_is_where_the_source_looks(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default place depends on the folder and on what is read of it."""
    monkeypatch.setattr(
        "truthlens.retrieval.sources.folder.options.state_folder", lambda: docs.parent / "state"
    )
    shown = run("index", str(docs), "--pattern", "*.md").stdout
    expected = FolderOptions(path=docs.name, patterns=("*.md",)).index_file(docs.parent)
    assert f"index: {expected}\n" in shown
    assert expected.is_file()
    assert expected.parent.stat().st_mode & 0o077 == 0


def test_what_cannot_be_indexed_is_one_line(docs: Path, tmp_path: Path) -> None:
    """Status 1, on standard error."""
    (tmp_path / "notes.txt").write_text("mine " * 500)
    with sqlite3.connect(tmp_path / "theirs.db") as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    for arguments, told in (
        ((str(tmp_path / "nowhere"),), "nowhere cannot be read"),
        ((str(docs / "tea.md"),), "tea.md cannot be read"),
        ((str(docs), "--out", str(tmp_path / "notes.txt")), "is no index"),
        ((str(docs), "--out", str(tmp_path / "theirs.db")), "is a database of something else"),
        ((str(docs), "--out", str(docs / "tea.md" / "x.db")), "tea.md"),
    ):
        result = run("index", *arguments)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
        assert result.stderr.startswith("error: ")
        assert told in result.stderr
    assert (tmp_path / "notes.txt").read_text() == "mine " * 500
