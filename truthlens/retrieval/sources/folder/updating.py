"""Bring the index of a folder to what the folder holds: only files that changed are read."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from truthlens.core.cancellation import StopCheck, never
from truthlens.core.errors import StoppedError
from truthlens.retrieval.sources.folder.documents import TitledDocument, UnreadableError
from truthlens.retrieval.sources.folder.files import FolderFile, SkippedFile, find_files, read_file
from truthlens.retrieval.sources.folder.formats import kind_of, missing_library
from truthlens.retrieval.sources.folder.index import IndexUnusableError, empty, reading, setting, writing
from truthlens.retrieval.sources.folder.options import FolderOptions
from truthlens.retrieval.sources.folder.reading import DocumentReader
from truthlens.retrieval.sources.folder.terms import indexed

# A file may change again within the grain of its file system's clock, and show the same time.
_CLOCK_GRAIN_NS = 2_000_000_000
# Stems of more pieces than this are kept in `frequent`.
_FEW = 1000

Progress = Callable[[int, int], None]
"""Told how many of how many changed files have been read."""


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What an update came to; ``read`` and ``removed`` count files, the rest is what the index holds now.

    ``revision`` changes with what the passages say, and is the same wherever they are the same.
    """

    files: int
    pieces: int
    read: int
    removed: int
    skipped: tuple[SkippedFile, ...]
    revision: str


def update_index(
    root: Path,
    file: Path,
    options: FolderOptions,
    *,
    rebuild: bool = True,
    wait_s: float = 0.0,
    stop: StopCheck = never,
    progress: Progress = lambda _done, _all: None,
) -> UpdateReport:
    """Bring the index in ``file`` to what the folder ``root`` holds, and return what it holds then.

    Args:
        root: the folder, resolved.
        file: of the index, made where there is none.
        options: what is read and how.
        rebuild: whether an index of other options is made anew.
        wait_s: seconds to wait for another process that is changing it.
        stop: asked between files whether to give up; the index then stays as it was.
        progress: told before each file is read, and at the end.

    Raises:
        IndexUnusableError: the index cannot be used, or is one of other options and not to be made anew.
        StartError: the folder cannot be read.
        StoppedError: ``stop`` said so.
        OSError: the folder of ``file`` cannot be made.
    """
    found, skipped = readable_files(root, options)
    if file.exists() and (report := _as_it_is(file, options, found, skipped, rebuild=rebuild)):
        return report
    with writing(file, wait_s=wait_s) as connection, DocumentReader(options.piece_chars) as reader:
        is_new = setting(connection, "fingerprint") != options.fingerprint
        if is_new:
            empty(connection)
        # Another process may have changed it since.
        changed, removed = _changes(connection, found)
        read = 0
        for done, each in enumerate(changed):
            if stop():
                raise StoppedError("the index is not wanted any more")
            progress(done, len(changed))
            read += _take(connection, root, each, reader, options)
        for path in removed:
            _remove(connection, path)
        _finish(connection, options, is_new=is_new)
        progress(len(changed), len(changed))
        return _report(connection, skipped, read=read, removed=len(removed))


def outdated(root: Path, file: Path, options: FolderOptions) -> int:
    """Return how many files of ``root`` are new, gone, or of another size or time than in the index ``file``.

    Nothing is read of the files, and nothing is changed.

    Raises:
        IndexUnusableError: the index cannot be used, or is one of other options.
        StartError: the folder cannot be read.
    """
    found, _ = readable_files(root, options)
    with reading(file) as connection:
        if setting(connection, "fingerprint") != options.fingerprint:
            raise IndexUnusableError(f"the index {file} was made with other options")
        rows = connection.execute("SELECT path, size, changed_ns FROM files").fetchall()
    known = {path: (size, changed_ns) for path, size, changed_ns in rows}
    changed = 0
    for each in found:
        size, changed_ns = known.pop(each.path, (-1, -1))
        # 0 is kept for a file that had just changed when it was read.
        changed += size != each.size or changed_ns not in (0, each.changed_ns)
    return changed + len(known)


def readable_files(root: Path, options: FolderOptions) -> tuple[list[FolderFile], list[SkippedFile]]:
    """Return the files of a folder for which libraries are there, and what is skipped without being opened.

    Raises:
        StartError: the folder cannot be read.
    """
    found, skipped = find_files(root, options.patterns, options.max_files)
    lacking = {kind: missing_library(kind) for kind in {kind_of(each.path) for each in found}}
    readable = []
    for each in found:
        if (library := lacking[kind_of(each.path)]) is None:
            readable.append(each)
        else:
            reason = f"it needs {library}: pip install 'truthlens[documents]'"
            skipped.append(SkippedFile(each.path, reason))
    return readable, skipped


def _as_it_is(
    file: Path, options: FolderOptions, found: list[FolderFile], skipped: list[SkippedFile], *, rebuild: bool
) -> UpdateReport | None:
    """Return the report of an index that needs no change, ``None`` for one that does."""
    try:
        with reading(file) as connection:
            if setting(connection, "fingerprint") == options.fingerprint:
                return None if any(_changes(connection, found)) else _report(connection, skipped)
    except IndexUnusableError:
        if not rebuild:
            raise
        return None
    if not rebuild:
        raise IndexUnusableError(
            f"the index {file} was made anew with other options; it is not kept up to date"
        )
    return None


def _changes(connection: sqlite3.Connection, found: list[FolderFile]) -> tuple[list[FolderFile], list[str]]:
    """Return the files that are new or may have changed, and the paths of those that are gone."""
    known = {
        path: (size, changed_ns)
        for path, size, changed_ns in connection.execute("SELECT path, size, changed_ns FROM files")
    }
    changed = [each for each in found if known.pop(each.path, None) != (each.size, each.changed_ns)]
    return changed, list(known)


def _take(
    connection: sqlite3.Connection,
    root: Path,
    file: FolderFile,
    reader: DocumentReader,
    options: FolderOptions,
) -> bool:
    """Take a file into the index, in the place of what it was; return whether it was another."""
    digest, document, reason = b"", None, None
    known = connection.execute("SELECT hash FROM files WHERE path = ?", (file.path,)).fetchone()
    try:
        data, file = read_file(root, file.path, options.max_file_bytes)
        digest = hashlib.sha256(data).digest()
        if known != (digest,):
            document = reader.read(kind_of(file.path), data)
    except UnreadableError as error:
        reason = str(error)
    except OSError:
        reason = "it cannot be opened"
    # 0 is the time of no file: it is looked at again.
    changed_ns = file.changed_ns if time.time_ns() - file.changed_ns > _CLOCK_GRAIN_NS else 0
    if known == (digest,) and digest:
        connection.execute(
            "UPDATE files SET size = ?, changed_ns = ? WHERE path = ?", (file.size, changed_ns, file.path)
        )
        return False
    _remove(connection, file.path)
    title = document.title if document else ""
    row = (file.path, file.size, changed_ns, digest, title or PurePosixPath(file.path).stem, reason)
    number = connection.execute(
        "INSERT INTO files (path, size, changed_ns, hash, title, skipped) VALUES (?, ?, ?, ?, ?, ?)", row
    ).lastrowid
    if document is not None and number is not None:
        _add_pieces(connection, number, document, row[4], _folder_of(connection, file))
    return True


def _folder_of(connection: sqlite3.Connection, file: FolderFile) -> str:
    """Return the number of a file's subfolder as a word of the index."""
    if file.subfolder is None:
        return ""
    connection.execute("INSERT OR IGNORE INTO folders (name) VALUES (?)", (file.subfolder,))
    row = connection.execute("SELECT id FROM folders WHERE name = ?", (file.subfolder,)).fetchone()
    return str(row[0])


def _add_pieces(
    connection: sqlite3.Connection, number: int, document: TitledDocument, title: str, folder: str
) -> None:
    for place, piece in enumerate(document.pieces, 1):
        headings = " > ".join(piece.headings)
        text = f"{headings}\n\n{piece.text}" if headings else piece.text
        at = connection.execute(
            "INSERT INTO pieces (file, number, text) VALUES (?, ?, ?)", (number, place, text)
        ).lastrowid
        connection.execute(
            "INSERT INTO words (rowid, folder, title, headings, body) VALUES (?, ?, ?, ?, ?)",
            (at, folder, indexed(title), indexed(headings), indexed(piece.text)),
        )


def _remove(connection: sqlite3.Connection, path: str) -> None:
    row = connection.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
    if row is None:
        return
    connection.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM pieces WHERE file = ?)", row)
    connection.execute("DELETE FROM pieces WHERE file = ?", row)
    connection.execute("DELETE FROM files WHERE id = ?", row)


def _finish(connection: sqlite3.Connection, options: FolderOptions, *, is_new: bool) -> None:
    if is_new:
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
    connection.execute("DELETE FROM frequent")
    connection.execute("INSERT INTO frequent SELECT term, doc FROM vocabulary WHERE doc > ?", (_FEW,))
    revision = hashlib.sha256(options.fingerprint.encode())
    for path, digest in connection.execute(
        "SELECT path, hash FROM files WHERE skipped IS NULL ORDER BY path"
    ):
        revision.update(f"\n{path}\n".encode() + digest)
    settings = {"fingerprint": options.fingerprint, "revision": revision.hexdigest()[:16]}
    connection.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", settings.items())


def _report(
    connection: sqlite3.Connection, skipped: list[SkippedFile], *, read: int = 0, removed: int = 0
) -> UpdateReport:
    (files,) = connection.execute("SELECT count(*) FROM files WHERE skipped IS NULL").fetchone()
    (pieces,) = connection.execute("SELECT count(*) FROM pieces").fetchone()
    unreadable = connection.execute("SELECT path, skipped FROM files WHERE skipped IS NOT NULL")
    told = sorted(
        (*skipped, *(SkippedFile(path, reason) for path, reason in unreadable)), key=lambda each: each.path
    )
    return UpdateReport(files, pieces, read, removed, tuple(told), setting(connection, "revision"))
