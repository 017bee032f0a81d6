"""The index of a folder: what is found, what is read again, and what is never read."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.retrieval.folder.made_files import folder_of, pdf, update
from truthlens.core.errors import StartError, StoppedError
from truthlens.core.records.retrieval import FoundPassage
from truthlens.retrieval.sources.folder import updating
from truthlens.retrieval.sources.folder.index import IndexUnusableError, search_index, writing
from truthlens.retrieval.sources.folder.options import FolderOptions
from truthlens.retrieval.sources.folder.terms import match_expression

FILES = {
    "refunds.md": "# Refunds\n\n## Time\n\nA refund takes five days.\n\n## Where\n\nAsk at the desk.",
    "acme/tea.txt": "Tea is free in the Café of ACME.",
    "other/tea.txt": "Tea costs two euros at OTHER.",
    "other/deep/zh.md": "# 假期\n\n员工每年有二十天带薪年假，滞纳金为每天百分之一。",
    "other/ja.md": "# 返金\n\n返金には五営業日かかります。",
    "other/hi.md": "किताबें पुस्तकालय में हैं",
    "plan.pdf": pdf("The launch is in October."),
    "page.html": "<title>Page</title><p>Bells ring at noon.",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "docs", FILES)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "index.db"


def found(file: Path, text: str, folder: str | None = None, k: int = 5) -> list[FoundPassage]:
    return list(search_index(file, text, k=k, folder=folder, stop=lambda: False))


def test_a_question_finds_the_piece_that_answers_it(root: Path, file: Path) -> None:
    """By words in any case and number, without accents, in scripts without spaces, of every kind of file."""
    report = update(root, file)
    assert (report.files, report.pieces, report.read, report.skipped) == (8, 9, 8, ())
    for question, expected in {
        "How long do REFUNDS take?": "refunds.md#1",
        "is there free tea in the cafe": "acme/tea.txt#1",
        "员工有几天年假？": "other/deep/zh.md#1",
        "滞纳金多少": "other/deep/zh.md#1",
        "返金は何日かかりますか": "other/ja.md#1",
        "पुस्तकालय": "other/hi.md#1",
        "when is the launch?": "plan.pdf#1",
        "bell": "page.html#1",
    }.items():
        assert found(file, question)[0].id == expected
    first, *others = found(file, "How long does a refund take, days or weeks?")
    assert first == FoundPassage(
        "Refunds > Time\n\nA refund takes five days.", "refunds.md#1", "Refunds", "refunds.md", first.score
    )
    assert first.score is not None
    assert first.score > 0
    assert all(each.score is not None and each.score <= first.score for each in others)
    assert [len(found(file, "refund tea desk", k=k)) for k in (1, 2)] == [1, 2]


def test_a_filter_matches_one_subfolder_exactly(root: Path, file: Path) -> None:
    """No path, pattern or other case leads to the files of another."""
    update(root, file)
    for folder in ("", ".", "..", "../docs", "other/deep", "OTHER", "%", "acme*", '"', "tea", "1", "\0"):
        assert found(file, "tea", folder) == []
    assert [each.parent_id for each in found(file, "tea", "acme")] == ["acme/tea.txt"]


@given(st.text(max_size=80))
def test_no_text_is_an_operator(text: str) -> None:
    """Whatever a question holds, FTS5 reads words alone."""
    with sqlite3.connect(":memory:") as memory:
        memory.execute("CREATE VIRTUAL TABLE words USING fts5(folder, title, headings, body)")
        words = match_expression(text, lambda _: 0)
        assert words or not any(each.isascii() and each.isalnum() for each in text)
        if words:
            memory.execute("SELECT 1 FROM words WHERE words MATCH ?", (f"{{title body}} : ({words})",))
    memory.close()


def test_operators_and_quotes_are_words(root: Path, file: Path) -> None:
    """A column's name and a prefix mark do nothing."""
    update(root, file)
    for text in (
        'tea" OR folder : "1',
        "NOT tea",
        "tea AND nothing",
        "NEAR(tea)",
        "te*",
        "folder : 1",
        '"',
        "",
    ):
        ids = {each.parent_id for each in found(file, text)}
        assert ids == ({"acme/tea.txt", "other/tea.txt"} if "tea" in text else set()) | (
            {"plan.pdf", "page.html", "refunds.md"} & ids
        )


def test_frequent_words_are_left_out_where_rare_ones_decide() -> None:
    """One word always stays, and the rarest come first."""
    counts = {"the": 900_000, "tea": 9_000, "cup": 2_000}
    expression = match_expression("the tea in the Cups", lambda stem: counts.get(stem, 0))
    assert expression == '"in" OR "Cups"'
    assert match_expression("The the THE", lambda stem: counts[stem]) == '"The"'
    assert match_expression(" ".join(f"w{number}" for number in range(900)), lambda _: 0).count("OR") == 63


def test_only_what_changed_is_read_again(root: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the same contents keeps its passages and the revision, whatever its times say."""
    monkeypatch.setattr(updating, "_CLOCK_GRAIN_NS", -(10**12))
    first = update(root, file)
    monkeypatch.setattr(updating, "read_file", None)
    assert update(root, file) == updating.UpdateReport(8, 9, 0, 0, (), first.revision)
    monkeypatch.undo()

    os.utime(root / "refunds.md", ns=(1, 1))
    assert update(root, file) == updating.UpdateReport(8, 9, 0, 0, (), first.revision)
    folder_of(root, {"acme/tea.txt": "Tea is paid in the Café of ACME.", "new.md": "A new page on bells."})
    (root / "refunds.md").unlink()
    second = update(root, file)
    assert (second.files, second.read, second.removed) == (8, 2, 1)
    assert second.revision != first.revision
    assert "paid" in found(file, "tea", "acme")[0].text
    assert found(file, "refund desk") == []

    shutil.copytree(root, root.parent / "copy")
    elsewhere = update(root.parent / "copy", file.with_name("copy.db"))
    assert elsewhere.revision == second.revision


def test_other_options_make_the_index_anew(root: Path, file: Path) -> None:
    """Files that match no pattern any more are gone from it."""
    update(root, file)
    report = update(root, file, patterns=["*.MD", "acme/*"])
    assert (report.files, report.read) == (5, 5)
    assert found(file, "launch") == []
    with pytest.raises(IndexUnusableError, match="other options"):
        updating.update_index(root, file, FolderOptions(path=str(root)), rebuild=False)


def test_what_cannot_be_read_is_skipped_and_told(root: Path, file: Path) -> None:
    """The others are read; a file is told of each time, and read once it can be."""
    folder_of(
        root, {"a/huge.txt": "x" * 200, "a/bad.pdf": "no", "a/.hidden.md": "bells", "fine.txt": "bells"}
    )
    os.mkfifo(root / "a" / "pipe.md")
    for _ in range(2):
        report = update(root, file, max_file_bytes=199, patterns=["a/*", "fine.*"])
        assert {(each.path, each.reason) for each in report.skipped} == {
            ("a/huge.txt", "it is larger than max_file_bytes"),
            ("a/bad.pdf", "it is broken, or not what its name says"),
            ("a/pipe.md", "no regular file"),
        }
    (root / "a" / "bad.pdf").write_bytes(pdf("Now it is fine."))
    report = update(root, file, max_file_bytes=100_000, patterns=["a/*", "fine.*"], max_files=2)
    assert [each.path for each in report.skipped if "max_files" in each.reason] == ["a/huge.txt"]


def test_links_do_not_lead_out_of_the_folder(root: Path, file: Path) -> None:
    """A link to a file within it counts (a mounted ConfigMap is made of them), one to a folder does not."""
    folder_of(root.parent, {"secret.md": "The secret password.", "private/secret.md": "The secret password."})
    folder_of(root, {"..2026/map.md": "The mounted page."})
    for link, target in {
        "out.md": root.parent / "secret.md",
        "up.md": "../secret.md",
        "dir": root.parent / "private",
        "loop.md": "loop.md",
        "..data": "..2026",
        "map.md": "..data/map.md",
    }.items():
        (root / link).symlink_to(target)
    report = update(root, file)
    assert found(file, "secret password") == []
    assert [each.id for each in found(file, "mounted")] == ["map.md#1"]
    assert {(each.path, each.reason) for each in report.skipped} == {
        ("out.md", "a link that leaves the folder"),
        ("up.md", "a link that leaves the folder"),
        ("dir", "a link to a folder is not followed"),
        ("loop.md", "it cannot be opened"),
    }


def test_a_change_is_seen_as_a_whole_or_not_at_all(root: Path, file: Path) -> None:
    """Readers do not wait for a writer; one that is stopped or fails leaves what was."""
    before = update(root, file)
    folder_of(root, {f"more/{number}.txt": f"Bells {number}." for number in range(20)})
    options = FolderOptions(path=str(root))
    seen: list[int] = []
    stops = iter([False] * 5)
    with pytest.raises(StoppedError):
        updating.update_index(
            root,
            file,
            options,
            stop=lambda: next(stops, True),
            progress=lambda done, total: seen.append(len(found(file, "bells", k=50))),
        )
    assert seen == [1] * 5
    after = update(root, file)
    assert (before.files, after.files, len(found(file, "bells", k=50))) == (8, 28, 21)


def test_two_writers_do_not_break_it(root: Path, file: Path) -> None:
    """One waits for the other or says that it does not, and both come to the same."""
    options = FolderOptions(path=str(root))
    revisions: list[str] = []

    def write() -> None:
        revisions.append(updating.update_index(root, file, options, wait_s=30).revision)

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(revisions) == 3
    assert len(set(revisions)) == 1
    folder_of(root, {"new.txt": "new"})
    with writing(file), pytest.raises(IndexUnusableError, match="by another process"):
        updating.update_index(root, file, options)


@pytest.mark.parametrize("damage", ["missing", "text", "foreign", "torn"])
def test_an_unusable_file_is_told_and_never_overwritten(root: Path, file: Path, damage: str) -> None:
    """A database of another program keeps its tables."""
    if damage == "missing":
        with pytest.raises(IndexUnusableError, match="truthlens index"):
            found(file, "tea")
        return
    file.parent.mkdir()
    if damage == "foreign":
        with sqlite3.connect(file) as other:
            other.execute("CREATE TABLE theirs (x)")
        other.close()
    elif damage == "text":
        file.write_text("my notes " * 500)
    else:
        update(root, file)
        file.write_bytes(file.read_bytes()[:9000])
    before = file.read_bytes()
    with pytest.raises(IndexUnusableError):
        found(file, "tea")
    with pytest.raises(IndexUnusableError):
        update(root, file, piece_chars=500)
    assert file.read_bytes() == before


def test_a_folder_that_is_gone_leaves_the_index(root: Path, file: Path) -> None:
    """It is an error, and not a folder without files."""
    update(root, file)
    shutil.rmtree(root)
    with pytest.raises(StartError, match="cannot be read"):
        update(root, file)
    assert found(file, "tea")


def test_a_search_can_be_stopped(root: Path, file: Path) -> None:
    """SQLite asks while it ranks."""
    folder_of(root, {f"many/{number}.txt": "tea and bells " * 20 for number in range(300)})
    update(root, file)
    asked: list[bool] = []
    with pytest.raises(StoppedError):
        search_index(file, "tea bells", k=5, folder=None, stop=lambda: not asked.append(True))
    assert len(asked) == 1
