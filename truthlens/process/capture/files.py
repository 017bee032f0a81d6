"""The file of captured exchanges, and the thread that writes it: bounded, rotated, readable by its owner alone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import structlog

from truthlens.core.errors import StartError
from truthlens.process.settings import CaptureSettings

log = structlog.get_logger("truthlens.capture")

_STOP_S = 5.0
_TAIL = 1 << 16


class TooLongError(Exception):
    """A line is longer than a file may be."""


class CaptureFile:
    """Whole lines, in a file of mode 0600 that becomes ``FILE.1`` when it is full.

    A run begins with ``header``, and so does each of its files. What a killed process left unfinished at the end is cut off.

    Args:
        settings: where to, and how much.
        header: returns the first line.
        write: writes bytes to a file descriptor and returns how many, as ``os.write``.

    Raises:
        StartError: the file cannot be used.
    """

    def __init__(
        self,
        settings: CaptureSettings,
        header: Callable[[], str],
        *,
        write: Callable[[int, bytes], int] = os.write,
    ) -> None:
        self.path = Path(str(settings.file).replace("{pid}", str(os.getpid())))
        self._settings, self._header, self._write = settings, header, write
        self._begun = False
        try:
            self._file = _opened(self.path)
            self._cut_unfinished()
        except OSError as error:
            raise StartError(
                f"{self.path}: exchanges cannot be captured there ({error.strerror}); name a file that can be written and that"
                " no other process captures to: {pid} in its name becomes the id of the process"
            ) from error

    def add(self, line: str) -> None:
        """Write a line; where that fails, the file is as it was before.

        Raises:
            TooLongError: there is no file long enough for it.
            OSError: it cannot be written, for want of space for example.
        """
        data, header = _bytes(line), _bytes(self._header())
        if len(header) + len(data) > self._settings.most_bytes:
            raise TooLongError
        size, first = os.fstat(self._file).st_size, b"" if self._begun else header
        if size + len(first) + len(data) > self._settings.most_bytes:
            self._rotate()
            self._begun, size, first = False, 0, header
        self._put(first + data, size)
        self._begun = True

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _cut_unfinished(self) -> None:
        end = os.fstat(self._file).st_size
        while end:
            start = max(0, end - _TAIL)
            place = os.pread(self._file, end - start, start).rfind(b"\n")
            if place >= 0:
                end = start + place + 1
                break
            end = start
        os.ftruncate(self._file, end)

    def _put(self, data: bytes, size: int) -> None:
        try:
            while data:
                data = data[self._write(self._file, data) :]
        except OSError:
            # Half a line would make the next one unreadable, too.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
            raise

    def _rotate(self) -> None:
        """Begin a new file in the place of the full one; where there is no room for it, nothing has changed."""
        fresh = Path(f"{self.path}.new")
        file = _opened(fresh)
        os.ftruncate(file, 0)
        names = [self.path, *(Path(f"{self.path}.{number}") for number in range(1, self._settings.files))]
        for newer, older in reversed(list(pairwise(names))):
            if newer.exists():
                newer.replace(older)
        fresh.replace(self.path)
        before, self._file = self._file, file
        os.close(before)


def _opened(path: Path) -> int:
    """Return a file of mode 0600 that no other process has open like this."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(path, flags, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.fchmod(file, 0o600)
    except OSError:
        os.close(file)
        raise
    return file


def _bytes(text: str) -> bytes:
    # A lone surrogate of a client's JSON is written as the escape that it was.
    return text.encode("utf-8", "backslashreplace")


class CaptureWriter:
    """A thread that makes lines and writes them.

    Args:
        file: where to.
        done: told of each line, on the thread: the bytes that it held in memory, and why it was not written, ``""`` where it was.
    """

    def __init__(self, file: CaptureFile, done: Callable[[int, str], None]) -> None:
        self._file, self._done = file, done
        self._waiting: queue.SimpleQueue[tuple[Callable[[], str], int] | None] = queue.SimpleQueue()
        self._failing = False
        self._told: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="truthlens-capture", daemon=True)
        self._thread.start()

    def submit(self, make: Callable[[], str], size: int) -> None:
        """Take a line, made on the thread; returns at once. ``size``: bytes that it holds until then."""
        self._waiting.put((make, size))

    def close(self) -> None:
        """Write what waits, for some seconds, and end."""
        self._waiting.put(None)
        self._thread.join(_STOP_S)
        if self._thread.is_alive():
            log.warning("captured exchanges are lost at the stop", exchanges=self._waiting.qsize())
        else:
            self._file.close()

    def _run(self) -> None:
        while (job := self._waiting.get()) is not None:
            make, size = job
            self._done(size, self._lost(make))

    def _lost(self, make: Callable[[], str]) -> str:
        try:
            line = make()
        except Exception as error:  # noqa: BLE001 - whatever a text does to its cleaning costs that exchange alone
            # The type alone, once: a message may quote the text.
            if (kind := type(error).__name__) not in self._told:
                self._told.add(kind)
                log.warning("an exchange cannot be captured", error=kind)
            return "content"
        try:
            self._file.add(line)
        except TooLongError:
            return "large"
        except OSError as error:
            if not self._failing:
                log.error("exchanges are not captured", file=str(self._file.path), error=error.strerror)
            self._failing = True
            return "disk"
        if self._failing:
            log.info("exchanges are captured again", file=str(self._file.path))
        self._failing = False
        return ""
