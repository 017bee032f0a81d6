"""The index of a folder: a SQLite file with its pieces and their words (FTS5).

Readers and one writer do not wait for each other (write-ahead log), and a change is seen as a
whole or not at all.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import StoppedError, TruthLensError
from truthlens.core.records.retrieval import FoundPassage
from truthlens.retrieval.sources.folder.options import INDEX_VERSION
from truthlens.retrieval.sources.folder.terms import TOKENIZER, match_expression

# "TLFX": tells our files from databases of others, which are never written to.
_APPLICATION = 0x544C4658
# How many steps of SQLite's machine lie between two questions whether anybody waits.
_STEPS = 2000
# How much a word counts in the title, the headings and the text of a passage.
_WEIGHTS = "0, 2, 2, 1"
_TABLES = f"""
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE folders (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL,
    changed_ns INTEGER NOT NULL,
    hash BLOB NOT NULL, title TEXT NOT NULL, skipped TEXT);
CREATE TABLE pieces (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, number INTEGER NOT NULL,
    text TEXT NOT NULL);
CREATE INDEX pieces_of_file ON pieces (file);
CREATE VIRTUAL TABLE words USING fts5(folder, title, headings, body, tokenize="{TOKENIZER}");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row);
CREATE TABLE frequent (stem TEXT PRIMARY KEY, pieces INTEGER NOT NULL) WITHOUT ROWID;
"""
_SEARCH = f"""
SELECT files.path, pieces.number, files.title, pieces.text, found.distance
FROM (SELECT rowid, bm25(words, {_WEIGHTS}) AS distance FROM words WHERE words MATCH ?
    ORDER BY distance, rowid LIMIT ?) AS found
JOIN pieces ON pieces.id = found.rowid JOIN files ON files.id = pieces.file
ORDER BY found.distance, found.rowid
"""  # noqa: S608 - the weights are ours


class IndexUnusableError(TruthLensError):
    """The file of an index cannot be used: missing, of another version, in use, damaged, or another's."""


@contextmanager
def reading(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a finished index, to read it.

    Raises:
        IndexUnusableError: it cannot be used.
    """
    # Where nobody can write, the files that SQLite keeps beside its own cannot be made.
    alone = not os.access(file.parent, os.W_OK) and not file.with_name(f"{file.name}-wal").exists()
    with _told(file), closing(_opened(file, "immutable=1" if alone else "mode=ro")) as connection:
        if not _is_ours(connection):
            raise IndexUnusableError(f"there is no index in {file}; make one with: truthlens index")
        yield connection


@contextmanager
def writing(file: Path, *, wait_s: float = 0.0) -> Iterator[sqlite3.Connection]:
    """Open an index to change it, made where there is none.

    What is changed in the block is written at its end, as a whole.

    Args:
        file: of the index; its folder is made.
        wait_s: seconds to wait for another process that is changing it.

    Raises:
        IndexUnusableError: it cannot be used.
        OSError: the folder cannot be made.
    """
    if not file.parent.is_dir():
        # What the index holds are the texts: for this user alone, where nobody says otherwise.
        file.parent.mkdir(parents=True, mode=0o700)
    with _told(file), closing(_opened(file, "mode=rwc", timeout=wait_s)) as connection:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables and application != _APPLICATION:
            raise IndexUnusableError(f"{file} is a database of something else; name another file")
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = normal")
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def empty(connection: sqlite3.Connection) -> None:
    """Take everything out of an index that is being changed, and make its tables anew."""
    # The virtual tables first: they take theirs with them.
    for which in ("sql LIKE 'CREATE VIRTUAL%'", "name NOT LIKE 'sqlite%'"):
        named = f"SELECT name FROM sqlite_schema WHERE type = 'table' AND {which} ORDER BY name"  # noqa: S608
        for (name,) in connection.execute(named).fetchall():
            connection.execute(f'DROP TABLE "{name}"')
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {INDEX_VERSION}")


def setting(connection: sqlite3.Connection, name: str) -> str:
    """Return the ``revision`` of an index or the ``fingerprint`` of its options; ``""`` where it has none."""
    if not _is_ours(connection):
        return ""
    row = connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
    return row[0] if row else ""


def search_index(
    file: Path, text: str, *, k: int, folder: str | None, stop: StopCheck
) -> Sequence[FoundPassage]:
    """Return the pieces that hold most of the words of ``text``, rare ones above all; nearest first.

    Args:
        file: of the index.
        text: a question or a claim.
        k: how many are returned at most.
        folder: the subfolder that they must come from; ``None`` for any.
        stop: asked now and then whether to give up; on any thread.

    Raises:
        IndexUnusableError: the file cannot be used.
        StoppedError: ``stop`` said so.
    """
    with reading(file) as connection:
        connection.set_progress_handler(stop, _STEPS)
        try:
            scope = ""
            if folder is not None:
                row = connection.execute("SELECT id FROM folders WHERE name = ?", (folder,)).fetchone()
                if row is None:
                    return ()
                scope = f'folder : "{row[0]}" AND '
            frequent = dict(connection.execute("SELECT stem, pieces FROM frequent"))
            words = match_expression(text, lambda stem: frequent.get(stem, 0))
            if not words:
                return ()
            rows = connection.execute(
                _SEARCH, (f"{scope}({{title headings body}} : ({words}))", k)
            ).fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                raise StoppedError("nobody waits for the search any more") from None
            raise
    return tuple(
        FoundPassage(text=text, id=f"{path}#{number}", title=title, parent_id=path, score=-distance)
        for path, number, title, text, distance in rows
    )


def _opened(file: Path, mode: str, *, timeout: float = 5.0) -> sqlite3.Connection:
    # None: transactions begin and end where it is written.
    return sqlite3.connect(
        f"file:{quote(os.fsencode(file))}?{mode}", uri=True, timeout=timeout, isolation_level=None
    )


def _is_ours(connection: sqlite3.Connection) -> bool:
    found = [
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    ]
    return found == [_APPLICATION, INDEX_VERSION]


@contextmanager
def _told(file: Path) -> Iterator[None]:
    """Say what is wrong with ``file`` where SQLite has an error."""
    try:
        yield
    except sqlite3.Error as error:
        reasons = {
            sqlite3.SQLITE_CANTOPEN: "cannot be opened; make an index with: truthlens index",
            sqlite3.SQLITE_READONLY: "cannot be written",
            sqlite3.SQLITE_BUSY: "is being changed by another process; try again when it is done",
            sqlite3.SQLITE_FULL: "has no room: the disk is full",
            sqlite3.SQLITE_NOTADB: "is no index; name another file, or remove it",
            sqlite3.SQLITE_CORRUPT: "is damaged; remove it, and make it again with: truthlens index",
        }
        # The lowest byte is the error, the others are its details.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        raise IndexUnusableError(f"the index {file} {reasons.get(code, 'cannot be used')}") from error
