"""The capture file: whole lines alone, bounded, rotated, for its owner alone, also where the disk is full."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog

from truthlens.core.errors import StartError
from truthlens.process.capture.files import CaptureFile, CaptureWriter, TooLongError
from truthlens.process.settings import CaptureSettings

HEADER = "header\n"


def _file(
    folder: Path, *, most_bytes: int = 1_000, files: int = 3, write: Callable[[int, bytes], int] = os.write
) -> CaptureFile:
    settings = CaptureSettings(folder / "c.jsonl", most_bytes=most_bytes, files=files)
    return CaptureFile(settings, lambda: HEADER, write=write)


def _texts(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in sorted(folder.iterdir())}


def test_files_rotate_and_the_oldest_goes(tmp_path: Path) -> None:
    """Each has the header and is within its size and readable by its owner alone."""
    file = _file(tmp_path, most_bytes=len(HEADER) + 8)
    for number in range(8):
        file.add(f"{number:03}\n")
    file.close()
    assert _texts(tmp_path) == {
        "c.jsonl": f"{HEADER}006\n007\n",
        "c.jsonl.1": f"{HEADER}004\n005\n",
        "c.jsonl.2": f"{HEADER}002\n003\n",
    }
    assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {0o600}


def test_one_file_begins_anew(tmp_path: Path) -> None:
    file = _file(tmp_path, most_bytes=len(HEADER) + 4, files=1)
    for number in range(3):
        file.add(f"{number:03}\n")
    file.close()
    assert _texts(tmp_path) == {"c.jsonl": f"{HEADER}002\n"}


def test_a_line_longer_than_a_file_is_refused(tmp_path: Path) -> None:
    file = _file(tmp_path, most_bytes=20)
    with pytest.raises(TooLongError):
        file.add("x" * 20 + "\n")
    file.add("short\n")
    file.close()
    assert _texts(tmp_path) == {"c.jsonl": f"{HEADER}short\n"}


def test_the_next_run_goes_on_behind_the_last_whole_line(tmp_path: Path) -> None:
    """A killed process may have left half a line; the file's mode becomes 0600 whatever it was."""
    path = tmp_path / "c.jsonl"
    path.write_text(HEADER + "one\n" + "half" * 50_000)
    path.chmod(0o644)
    file = _file(tmp_path, most_bytes=1 << 20)
    file.add("two\n")
    file.close()
    assert path.read_text() == f"{HEADER}one\n{HEADER}two\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_of_another_process_is_refused(tmp_path: Path) -> None:
    """Two would rotate it under each other's hands; a link or a folder is refused as well."""
    file = _file(tmp_path)
    with pytest.raises(StartError, match=r"\{pid\} in its name"):
        _file(tmp_path)
    file.close()
    (tmp_path / "link").symlink_to(tmp_path / "c.jsonl")
    with pytest.raises(StartError):
        CaptureFile(CaptureSettings(tmp_path / "link"), lambda: HEADER)
    with pytest.raises(StartError):
        CaptureFile(CaptureSettings(tmp_path / "no" / "folder"), lambda: HEADER)


def test_the_name_may_have_the_id_of_the_process(tmp_path: Path) -> None:
    file = CaptureFile(CaptureSettings(tmp_path / "c-{pid}.jsonl"), lambda: HEADER)
    file.close()
    assert [each.name for each in tmp_path.iterdir()] == [f"c-{os.getpid()}.jsonl"]


def test_a_full_disk_leaves_whole_lines_and_is_said_once(tmp_path: Path) -> None:
    """Half of a line is written before the disk is full; later there is room again."""
    full = threading.Event()

    def write(file: int, data: bytes) -> int:
        if not full.is_set():
            return os.write(file, data)
        if len(data) > 2:
            return os.write(file, data[:2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    lost: list[tuple[int, str]] = []
    with structlog.testing.capture_logs() as log:
        writer = CaptureWriter(_file(tmp_path, write=write), lambda size, why: lost.append((size, why)))

        def fail() -> str:
            full.set()
            return "lost\n"

        def recover() -> str:
            full.clear()
            return "two\n"

        writer.submit(lambda: "one\n", 1)
        writer.submit(fail, 2)
        writer.submit(lambda: "lost\n", 3)
        writer.submit(recover, 4)
        writer.submit(lambda: str(1 / 0), 5)
        writer.submit(lambda: str(1 / 0), 6)
        writer.close()
    assert lost == [(1, ""), (2, "disk"), (3, "disk"), (4, ""), (5, "content"), (6, "content")]
    assert _texts(tmp_path) == {"c.jsonl": f"{HEADER}one\ntwo\n"}
    assert [line["event"] for line in log] == [
        "exchanges are not captured",
        "exchanges are captured again",
        "an exchange cannot be captured",
    ]


def test_a_lone_surrogate_is_written_as_its_escape(tmp_path: Path) -> None:
    """A client's JSON may have one; the line stays JSON."""
    file = _file(tmp_path)
    file.add('"\ud800"\n')
    file.close()
    assert _texts(tmp_path) == {"c.jsonl": HEADER + '"\\ud800"\n'}
