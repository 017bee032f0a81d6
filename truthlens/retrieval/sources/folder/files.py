"""Find the files of a folder and read their bytes; nothing outside the folder is ever opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from truthlens.core.errors import StartError
from truthlens.retrieval.sources.folder.documents import UnreadableError

# Entries that are looked at for each file that may be read: a folder of millions of others is bounded.
_ENTRIES_PER_FILE = 100


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file by its path below the folder (with ``/``).

    ``size`` in bytes; ``changed_ns`` is when its contents, name or permissions changed last, in nanoseconds.
    """

    path: str
    size: int
    changed_ns: int

    @property
    def subfolder(self) -> str | None:
        """The first part of its path; ``None`` where it lies in the folder itself."""
        first, slash, _ = self.path.partition("/")
        return first if slash else None


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file or subfolder that was not read; ``reason`` is a sentence of ours without any of its text."""

    path: str
    reason: str


def find_files(
    root: Path, patterns: tuple[str, ...], max_files: int
) -> tuple[list[FolderFile], list[SkippedFile]]:
    """Return the files below ``root`` that match a pattern, by path, and what was skipped.

    Names that begin with a dot are left out. A link to a file counts where it ends within the folder; links
    to folders are not followed.

    Args:
        root: the folder, resolved.
        patterns: shell patterns of paths below it, in any case.
        max_files: how many are returned at most.

    Raises:
        StartError: the folder is not there, or it may not be read.
    """
    try:
        os.scandir(root).close()
    except OSError as error:
        raise StartError(f"the folder {root} cannot be read: {error.strerror}") from error
    lowered = tuple(pattern.lower() for pattern in patterns)
    found: list[FolderFile] = []
    skipped: list[SkippedFile] = []
    for looked, path in enumerate(_entries(root, skipped)):
        relative = path.relative_to(root).as_posix()
        if looked >= max_files * _ENTRIES_PER_FILE:
            skipped.append(SkippedFile(relative, "this and all after it: too many files that are not read"))
            break
        if not any(fnmatchcase(relative.lower(), pattern) for pattern in lowered):
            continue
        if len(found) >= max_files:
            skipped.append(SkippedFile(relative, "this and all after it: more files than max_files"))
            break
        try:
            relative.encode()
            found.append(_described(relative, _inside(root, relative).stat()))
        except UnicodeEncodeError:
            shown = os.fsencode(relative).decode("utf-8", "replace")
            skipped.append(SkippedFile(shown, "its name is not UTF-8"))
        except UnreadableError as error:
            skipped.append(SkippedFile(relative, str(error)))
        except OSError:
            skipped.append(SkippedFile(relative, "it cannot be opened"))
    return sorted(found, key=lambda file: file.path), skipped


def read_file(root: Path, relative: str, max_bytes: int) -> tuple[bytes, FolderFile]:
    """Return the bytes of a file below ``root``, and what it was when it was opened.

    Raises:
        UnreadableError: it is too large, is no regular file, or lies outside of the folder by now.
        OSError: it cannot be opened.
    """
    parts = _inside(root, relative).relative_to(root).parts
    with ExitStack() as stack:
        # From folder to folder without following links: nobody can put one in between after the check.
        at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, at)
        for part in parts[:-1]:
            at = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            stack.callback(os.close, at)
        # A pipe that lies there would wait for a writer.
        opened = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        with os.fdopen(opened, "rb") as file:
            opened_file = _described(relative, os.fstat(file.fileno()))
            data = b"" if opened_file.size > max_bytes else file.read(max_bytes + 1)
    if max(opened_file.size, len(data)) > max_bytes:
        raise UnreadableError("it is larger than max_file_bytes")
    return data, opened_file


def _entries(root: Path, skipped: list[SkippedFile]) -> Iterator[Path]:
    """Yield all files and links to files, folder by folder, without hidden ones."""

    def refused(error: OSError) -> None:
        relative = Path(error.filename).relative_to(root).as_posix()
        skipped.append(SkippedFile(relative, "the subfolder cannot be read"))

    for at, folders, names in os.walk(root, onerror=refused):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links = (path for name in folders if (path := Path(at, name)).is_symlink())
        skipped += (
            SkippedFile(path.relative_to(root).as_posix(), "a link to a folder is not followed")
            for path in links
        )
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(at, name)


def _described(relative: str, status: os.stat_result) -> FolderFile:
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError("no regular file")
    # A copy may keep the time of the contents, a file system may know no other.
    return FolderFile(relative, status.st_size, max(status.st_mtime_ns, status.st_ctime_ns))


def _inside(root: Path, relative: str) -> Path:
    """Return where a path below ``root`` leads to, without links.

    Raises:
        UnreadableError: outside of the folder.
        OSError: nowhere.
    """
    # Path.resolve has an error of its own for links that lead in a circle.
    real = Path(os.path.realpath(root / relative, strict=True))
    if not real.is_relative_to(root):
        raise UnreadableError("a link that leaves the folder")
    return real
