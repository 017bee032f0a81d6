"""``truthlens review``: list, settle, export, import, count and migrate."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.fakes.other_users import another_user, let_in
from tests.fakes.review_entries import change, content, new_entry, with_texts
from tests.fakes.tiny_encoder import write_encoder
from truthlens.cli import main
from truthlens.lab.data.dataset import read_folder
from truthlens.review.records import ReviewStatus
from truthlens.review.store.database import ReviewDatabase, checked_url
from truthlens.review.store.queue import ReviewQueue

HOSTILE = "a\x1b[31mred\x07\u202ekcab\u2066\x9b1m\x00[bold]\nID  forged\r\x7f"
"""What a terminal would obey."""
DANGEROUS = ("\x1b", "\x07", "\u202e", "\u2066", "\x9b", "\x00", "\r", "\x7f")


@dataclass(frozen=True)
class Result:
    status: int
    stdout: str
    stderr: str


def run(*arguments: object, columns: int = 200) -> Result:
    """One command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("NO_COLOR", "1")
        try:
            main([str(each) for each in arguments])
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return Result(status, out.getvalue(), err.getvalue())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "reviews.db"


@pytest.fixture
def queue(file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReviewQueue]:
    """The queue that the commands use."""
    url = f"sqlite:///{file}"
    monkeypatch.setenv("TRUTHLENS_REVIEW_DATABASE", url)
    database = ReviewDatabase(checked_url(url))
    database.upgrade()
    yield ReviewQueue(database)
    database.dispose()


def rows(result: Result) -> list[dict[str, object]]:
    assert result.status == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_list_shows_what_fits_the_filters(queue: ReviewQueue) -> None:
    """As a table or as JSON lines, over as many pages as it takes."""
    queue.add(
        [new_entry(f"e{n}", score=0.5 + n / 1000, decision="d" if n % 2 else "default") for n in range(250)]
    )
    queue.change(change("e3", ReviewStatus.REJECTED), actor="ann")
    assert len(rows(run("review", "list", "--json", "--limit", 1000))) == 250
    table = run("review", "list", "--status", "rejected", "--status", "approved")
    assert ("e3" in table.stdout, "e4" in table.stdout, "1 rejected" in table.stdout) == (True, False, True)
    first = run("review", "list", "--json", "--order", "score", "--decision", "d", "--limit", 2)
    assert [each["id"] for each in rows(first)] == ["e249", "e247"]
    cursor = first.stderr.split()[-1]
    following = run(
        "review", "list", "--json", "--order", "score", "--decision", "d", "--limit", 1, "--cursor", cursor
    )
    assert [each["id"] for each in rows(following)] == ["e245"]
    assert rows(run("review", "list", "--json", "--since", "1d")) == []
    assert (
        len(rows(run("review", "list", "--json", "--reviewer", "ann", "--flagged", "--since", "2020-01-01")))
        == 0
    )
    assert len(rows(run("review", "list", "--json", "--reviewer", "ann", "--unflagged"))) == 1
    assert run("review", "list", "--since", "yesterday").status == 2
    assert run("review", "list", "--cursor", "x").status == 1


@pytest.mark.parametrize("command", [("list",), ("list", "--json"), ("show", "one"), ("show", "one", "--json"), ("stats",),
                                     ("stats", "--json"), ("export",), ("export", "--entries")], ids=" ".join)  # fmt: skip
def test_hostile_texts_do_nothing_to_a_terminal(queue: ReviewQueue, command: tuple[str, ...]) -> None:
    """Escape sequences, marks that turn the direction, and lines that pass for the program's own."""
    texts = content([HOSTILE], passages=[HOSTILE], query=HOSTILE)
    texts["texts"]["passages"][0]["title"] = HOSTILE
    texts["choices"][0]["spans"][0] |= {"kind": HOSTILE, "detector": HOSTILE}
    texts["choices"][0]["detectors"][0]["explanation"] = HOSTILE
    clean = HOSTILE.replace("\x00", "")  # which no writer lets through
    queue.add([new_entry("one", excerpt=clean, has_text=True, user_id=clean, kinds=(clean[:60],), detectors={clean[:60]: 0.9},
                         decision=clean, model=clean, content=json.loads(json.dumps(texts).replace("\\u0000", "")))])  # fmt: skip
    queue.change(change("one", ReviewStatus.APPROVED, note=clean), actor=clean)
    result = run("review", *command)
    assert result.status == 0, result.stderr
    for each in DANGEROUS:
        assert each not in result.stdout + result.stderr, repr(each)
    assert not [line for line in result.stdout.splitlines() if line.startswith("ID  forged")]


def test_show_has_all_that_is_kept(queue: ReviewQueue) -> None:
    """Texts, marks and the audit trail."""
    queue.add([with_texts("one", answer="Tea is wrong.")])
    queue.change(change("one", ReviewStatus.REJECTED, note="my note"), actor="ann")
    shown = run("review", "show", "one").stdout
    for each in ("What of tea?", "Tea is free.", "Tea is wrong.", "my note", "ann", "rejected", "encoder"):
        assert each in shown
    (entry,) = rows(run("review", "show", "one", "--json"))
    assert entry["content"]["texts"]["answers"] == ["Tea is wrong."]  # type: ignore[index]
    missing = run("review", "show", "none")
    assert (missing.status, missing.stderr.count("\n")) == (1, 1)


def test_resolve_settles_many_and_says_which_failed(queue: ReviewQueue) -> None:
    """Exit status 1 where some could not be changed; the others are."""
    queue.add([new_entry(each) for each in "abc"])
    result = run("review", "resolve", "a", "b", "none", "a", "--reject", "--note", "no", "--reviewer", "ann")
    assert (result.status, result.stdout) == (1, "2 now rejected, 1 failed\n")
    assert result.stderr.startswith("none: ")
    entry = queue.get("a")
    assert (entry.summary.status.value, entry.summary.reviewer, entry.summary.note) == (
        "rejected",
        "ann",
        "no",
    )
    assert len(entry.events) == 1
    assert run("review", "resolve", "a", "--put-back").status == 0
    assert run("review", "resolve", "a", "--take-up", "--version", 2).status == 1
    assert run("review", "resolve", "a", "--take-up", "--version", 3).status == 0
    assert queue.get("a").events[-1].action == "took up"
    assert queue.get("a").summary.reviewer != ""


@pytest.mark.parametrize("options", [(), ("--approve", "--reject"), ("b", "--approve", "--version", "1")])
def test_resolve_wants_one_verdict(queue: ReviewQueue, options: tuple[str, ...]) -> None:
    queue.add([new_entry("a"), new_entry("b")])
    assert run("review", "resolve", "a", *options).status == 2
    assert queue.counts()[ReviewStatus.PENDING] == 2


def test_many_ids_are_settled(queue: ReviewQueue) -> None:
    """More than one call of the queue takes."""
    names = [f"e{n}" for n in range(600)]
    queue.add([new_entry(each) for each in names])
    assert run("review", "resolve", *names, "--approve").stdout == "600 now approved\n"


def test_exported_rows_are_evaluated_and_calibrated(queue: ReviewQueue, tmp_path: Path) -> None:
    """As they are; entries without texts are counted."""
    shelf = tmp_path / "models"
    words = {f"wrong{n}": -3.0 + 0.25 * n for n in range(24)}
    write_encoder(
        shelf / "truthlens-minilm-en-v2", odds=words, manifest={"aggregation": "noisy_or", "tau_token": 0.0}
    )
    for number, word in enumerate(words):
        for name, answer in ((f"w{number}", f"Tea is {word}."), (f"r{number}", "Tea is free.")):
            texts = content([answer], passages=[f"Room {number} opens at nine."])
            queue.add([new_entry(name, content=texts, has_text=True)])
            queue.change(
                change(name, ReviewStatus.REJECTED if name[0] == "w" else ReviewStatus.APPROVED), actor="ann"
            )
    queue.add([new_entry("bare"), with_texts("open")])
    queue.change(change("bare", ReviewStatus.APPROVED), actor="ann")
    path = tmp_path / "labelled.jsonl"
    exported = run("review", "export", "--to", path)
    assert (exported.status, exported.stdout) == (0, "")
    assert exported.stderr.splitlines() == [
        f"48 labelled rows in {path}",
        "1 settled entries left out: no texts are kept of it",
    ]
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(read_folder(path.parent)) == 48  # as `train` does
    found = rows(run("eval", path, "--models", shelf, "--json", "--resamples", 0))[0]
    assert found["pooled"]["rows"] == 48  # type: ignore[index]
    (record,) = rows(run("calibrate", path, "--max-miss-rate", "0.2", "--models", shelf, "--json"))
    assert record["answers"] == {
        "unsupported": 24,
        "unsupported_texts": 24,
        "supported": 24,
        "unscored": 0,
        "unlabelled": None,
    }


def test_a_failed_export_leaves_the_file(queue: ReviewQueue, tmp_path: Path, file: Path) -> None:
    """It is written in one step."""
    queue.add([with_texts("a")])
    queue.change(change("a", ReviewStatus.APPROVED), actor="ann")
    path = tmp_path / "out" / "rows.jsonl"
    path.parent.mkdir()
    path.write_text("before")
    with queue.database.writing() as connection:
        connection.execute(sa.text("""UPDATE review_contents SET content = '{"texts": {"answers": 1}}'"""))
    with pytest.raises(TypeError):
        run("review", "export", "--to", path)
    assert [each.read_text() for each in path.parent.iterdir()] == ["before"]
    assert run("review", "export", "--to", tmp_path / "none" / "rows.jsonl").status == 1


def test_entries_go_to_another_queue_and_verdicts_come_back(queue: ReviewQueue, tmp_path: Path) -> None:
    """By files and by standard input."""
    queue.add([with_texts("a"), new_entry("b")])
    exported = tmp_path / "entries.jsonl"
    assert run("review", "export", "--entries", "--to", exported).status == 0
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert run("review", "import", exported, "--database", other).status == 2
    assert run("review", "migrate", "--database", other).status == 0
    taken = run("review", "import", exported, "--database", other)
    assert taken.stdout.startswith("2 entries added, 0 there already")
    verdicts = tmp_path / "verdicts.jsonl"
    verdicts.write_text('{"id": "a", "label": 1}\n{"id": "none", "label": 0}\nno json\n')
    settled = run("review", "import", verdicts, "--reviewer", "ann")
    assert (settled.status, settled.stdout.split(", ")[2:]) == (1, ["1 settled", "0 unchanged", "2 failed\n"])
    assert [line[:6] for line in settled.stderr.splitlines()] == ["line 2", "line 3"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO('{"id": "b", "status": "approved"}\n'))
        assert run("review", "import", "-").status == 0
    assert queue.get("b").summary.status is ReviewStatus.APPROVED
    assert queue.get("a").summary.reviewer == "ann"
    verdicts.write_bytes(b"\xff\xfe")
    assert run("review", "import", verdicts).status == 2
    absent = run("review", "import", tmp_path / "absent.jsonl")
    assert (absent.status, absent.stderr.count("\n")) == (1, 1)


def test_stats_have_the_report_of_accuracy(queue: ReviewQueue) -> None:
    """In the layout of `truthlens accuracy`, with the rates of flags and of what passed."""
    queue.add([new_entry(f"f{n}", total_claims=2, unverified_claims=1, kinds=("value",)) for n in range(4)])
    queue.add([new_entry(f"u{n}", score=0.1, sample=0.1) for n in range(2)])
    for name, status in (("f0", "rejected"), ("f1", "approved"), ("u0", "rejected"), ("u1", "approved")):
        queue.change(change(name, ReviewStatus(status)), actor="ann")
    shown = run("review", "stats").stdout
    for each in (
        "Hallucination Detection Accuracy Report",
        "True Positives (TP):  1",
        "False Negatives (FN): 1",
        "backlog 2",
        "kind value",
    ):
        assert each in shown
    (found,) = rows(run("review", "stats", "--json"))
    assert found["accuracy"]["hallucination_rate"] == 0.5  # type: ignore[index]
    assert found["precision"]["share"] == 0.5  # type: ignore[index]
    assert found["unflagged"]["count"] == 2  # type: ignore[index]
    assert found["recall"]["share"] == pytest.approx(1 / 11)  # type: ignore[index]
    assert run("review", "stats", "--status", "pending").status == 0


def test_migrate_says_the_versions(file: Path) -> None:
    """Going back wants to be said; an unknown version is refused."""
    url = f"sqlite:///{file}"

    def migrate(*options: str) -> Result:
        return run("review", "migrate", "--database", url, *options)

    assert migrate("--to", "base", "--down").status == 2
    assert "none -> 0003 (newest: 0003)" in migrate().stdout
    assert "0003 already" in migrate().stdout
    assert migrate("--to", "0001").status == 2
    assert migrate("--to", "7").status == 2
    assert migrate("--down").status == 2
    assert "0003 -> 0001" in migrate("--to", "0001", "--down").stdout
    old = run("review", "list", "--database", url)
    assert (old.status, "truthlens review migrate" in old.stderr) == (2, True)
    assert "0001 -> 0003" in migrate().stdout
    assert "0003 -> none" in migrate("--to", "base", "--down").stdout


def missing(file: Path) -> str:
    return f"sqlite:///{file}"


def empty(file: Path) -> str:
    file.touch()
    return f"sqlite:///{file}"


def newer(file: Path) -> str:
    database = ReviewDatabase(checked_url(f"sqlite:///{file}"))
    database.upgrade()
    with database.writing() as connection:
        connection.execute(sa.text("UPDATE review_schema SET version_num = '9999'"))
    database.dispose()
    return f"sqlite:///{file}"


def no_database(file: Path) -> str:
    file.write_text("This is a letter, and no database at all. " * 100)
    return f"sqlite:///{file}"


def nobody_there(file: Path) -> str:
    return "postgresql://owner:secret@127.0.0.1:9/none"


def no_url(file: Path) -> str:
    return "reviews"


@pytest.mark.parametrize("make", [missing, empty, newer, no_database, nobody_there, no_url])
@pytest.mark.parametrize(
    "command",
    [("list",), ("show", "a"), ("resolve", "a", "--approve"), ("export",), ("stats",), ("import", "{file}")],
    ids=lambda command: command[0],
)
def test_a_database_that_cannot_be_used_is_one_plain_line(
    file: Path, tmp_path: Path, make: Callable[[Path], str], command: tuple[str, ...]
) -> None:
    """Exit status 2, no traceback, no password, and nothing is made."""
    url = make(file)
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"id": "a", "label": 1}\n')
    before = sorted(each.name for each in tmp_path.iterdir())
    result = run("review", *(each.format(file=lines) for each in command), "--database", url)
    assert (result.status, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.stderr
    assert result.stderr.startswith("error: ")
    assert "secret" not in result.stderr
    if make is missing:
        assert sorted(each.name for each in tmp_path.iterdir()) == before


def test_a_read_only_database_is_one_plain_line(queue: ReviewQueue, file: Path, tmp_path: Path) -> None:
    """It can be listed; what would change it says why not."""
    queue.add([new_entry("a")])
    queue.database.dispose()
    let_in(tmp_path)
    file.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        with another_user():
            listed = run("review", "list", "--json")
            refused = run("review", "resolve", "a", "--approve", "--reviewer", "ann")
    finally:
        tmp_path.chmod(0o755)
    assert [each["id"] for each in rows(listed)] == ["a"]
    assert (refused.status, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert queue.get("a").summary.version == 1
