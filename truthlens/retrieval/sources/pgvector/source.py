"""Search a table of passages by the distance of their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.types import NullType, UserDefinedType

from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.retrieval.embeddings import Embedder
from truthlens.retrieval.filters import check_filter, check_hit
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.sources.pgvector import PgvectorOptions
from truthlens.retrieval.sources.pgvector.connection import Statements
from truthlens.retrieval.vector_search import (
    MOST_ID_CHARS,
    MOST_TEXT_CHARS,
    MOST_TITLE_CHARS,
    BlockingCalls,
    found_passage,
    in_time,
)

_OPERATORS = {"cosine": "<=>", "inner": "<#>", "l2": "<->"}
_TYPES = frozenset(("vector", "halfvec"))
_COLUMNS = sa.text(
    "SELECT a.attname, t.typname, a.atttypmod FROM pg_catalog.pg_attribute a"
    " JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
    " WHERE a.attrelid = pg_catalog.to_regclass(:table) AND a.attnum > 0 AND NOT a.attisdropped"
)


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """The table's vectors: the type of their column, and their dimension (``None``: there are none yet)."""

    type_name: str
    dimension: int | None


class PgvectorSource:
    """One table of passages.

    Args:
        options: of the source.
        engine: guarded (``connection.open_engine``); disposed of with the source.
        embedder: makes the vectors of questions; closed with the source.
    """

    def __init__(self, options: PgvectorOptions, engine: sa.Engine, embedder: Embedder) -> None:
        self._options, self._engine, self._embedder = options, engine, embedder
        self._threads = BlockingCalls(
            "truthlens-pgvector", threads=options.connections, waiting=options.max_concurrency
        )
        self._under_way: set[Statements] = set()
        self._stored: StoredVectors | None = None
        self._connections, self._closed = engine.pool, False
        columns = options.columns
        self._filter = tuple(options.filter)
        optional = (name for name in (columns.title, columns.parent_id) if name is not None)
        self._names = dict.fromkeys((columns.id, columns.text, columns.embedding, *optional, *self._filter))
        schema = None if options.schema_name is None else _quoted(options.schema_name)
        self._table = sa.table(
            _quoted(options.table), *(sa.column(_quoted(name)) for name in self._names), schema=schema
        )

    @property
    def revision(self) -> str:
        """Return ``""``: what a table holds has no version that costs nothing to ask for."""
        return ""

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> Sequence[FoundPassage]:
        """Return the ``k`` nearest passages (``EvidenceSource.search``); the first search checks the table."""
        check_filter(search, self._options.filter)
        statements = Statements()
        async with in_time(deadline):
            vector = (await self._embedder.embed([search.text], deadline=deadline))[0]
            self._under_way.add(statements)
            try:
                return await self._threads.run(partial(self._find, statements, vector, search.filter, k))
            finally:
                statements.give_up()
                self._under_way.discard(statements)

    async def aclose(self) -> None:
        """Give back connections and threads; searches that are under way fail."""
        self._closed = True
        await self._threads.aclose()
        for statements in tuple(self._under_way):
            statements.give_up()
        self._connections.dispose()
        await self._embedder.aclose()

    def _find(
        self, statements: Statements, vector: NDArray[np.float32], values: Mapping[str, str], k: int
    ) -> Sequence[FoundPassage]:
        try:
            try:
                rows = self._rows(statements, vector, values, k)
            except DBAPIError as error:
                # A connection that the server closed while it lay in the pool; a new one is tried, once.
                if not error.connection_invalidated or statements.given_up:
                    raise
                rows = self._rows(statements, vector, values, k)
        except SQLAlchemyError as error:
            failure = _failure(error)
            if failure.result is SearchResult.BAD_RESPONSE:
                self._stored = None  # the table may have changed
            raise failure from None
        except (UnicodeError, ValueError):
            raise SourceError(SearchResult.REFUSED, "a value of `filter` is no text") from None
        finally:
            if self._closed:  # what was under way has just given its connection back
                self._connections.dispose()
        found = (self._passage(row, values) for row in rows)
        return [passage for passage in found if passage is not None]

    def _rows(
        self, statements: Statements, vector: NDArray[np.float32], values: Mapping[str, str], k: int
    ) -> Sequence[Sequence[Any]]:
        connection = self._engine.connect()
        with statements.on(connection):
            stored = self._stored = self._stored or self._check_table(connection)
            if stored.dimension is None:
                self._stored = None
                return ()
            if stored.dimension != len(vector):
                raise SourceError(
                    SearchResult.BAD_RESPONSE,
                    f"the vectors in {self._table.fullname} have {stored.dimension} dimensions, those of questions"
                    f" {len(vector)}; name under `embeddings` the model that made them",
                )
            bound = {f"filter_{place}": values[name] for place, name in enumerate(self._filter)}
            written = f"[{','.join(map(str, vector))}]"
            statement, parameters = self._statement(stored, k), {"query": written, **bound}
            rows = connection.execute(statement, parameters).fetchall()
            if len(rows) < k:
                # An index of vectors is approximate, and may reach too few rows that the filter leaves. This setting
                # turns it off and spares those of other columns, which give bitmaps; it ends with the transaction.
                connection.exec_driver_sql("SET LOCAL enable_indexscan = off")
                rows = connection.execute(statement, parameters).fetchall()
            return rows

    def _check_table(self, connection: sa.Connection) -> StoredVectors:
        """Return what the table's vectors are.

        Raises:
            SourceError: the table or a column is not there, or of a type that cannot be used.
        """
        name = self._engine.dialect.identifier_preparer.format_table(self._table)
        rows = connection.execute(_COLUMNS, {"table": name}).fetchall()
        found = {column: (type_name, modifier) for column, type_name, modifier in rows}
        if not found:
            raise _mismatch(f"there is no table {self._table.fullname!r}; names are compared with their case")
        if missing := [column for column in self._names if column not in found]:
            known = ", ".join(sorted(found)[:40])
            raise _mismatch(f"{self._table.fullname!r} has no column {missing[0]!r}; it has: {known}")
        column = self._options.columns.embedding
        type_name, dimension = found[column]
        if type_name not in _TYPES:
            raise _mismatch(f"the column {column!r} is of type {type_name}; expected vector or halfvec")
        if dimension > 0:
            return StoredVectors(type_name, dimension)
        vectors = self._table.c[column]
        any_row = sa.select(sa.func.vector_dims(vectors)).where(vectors.is_not(None)).limit(1)
        return StoredVectors(type_name, connection.execute(any_row).scalar())

    def _statement(self, stored: StoredVectors, k: int) -> sa.Select[Any]:
        """Return the query; ``query``, ``filter_0`` ... are bound to it, ``_passage`` reads its rows."""
        named, columns = self._options.columns, self._table.c

        def text(name: str | None, longest: int) -> sa.ColumnElement[Any]:
            if name is None:
                return sa.literal_column("NULL")
            return sa.func.substr(sa.cast(columns[name], sa.Text), 1, longest)

        operator = _OPERATORS[self._options.distance]
        wanted = sa.cast(sa.bindparam("query", type_=NullType()), _VectorType(stored.type_name))
        distance: sa.ColumnElement[float] = columns[named.embedding].op(operator, return_type=sa.Double())(
            wanted
        )
        conditions: list[sa.ColumnElement[bool]] = [
            columns[name].is_not(None) for name in (named.id, named.text, named.embedding)
        ]
        # The values have no type of their own, so that PostgreSQL reads each as one of its column's.
        conditions += [
            columns[name] == sa.bindparam(f"filter_{place}", type_=NullType())
            for place, name in enumerate(self._filter)
        ]
        return (
            sa.select(
                text(named.text, MOST_TEXT_CHARS),
                text(named.id, MOST_ID_CHARS + 1),
                text(named.title, MOST_TITLE_CHARS),
                text(named.parent_id, MOST_ID_CHARS + 1),
                distance,
                *(sa.cast(columns[name], sa.Text) for name in self._filter),
            )
            .where(*conditions)
            .order_by(distance)
            .limit(k)
        )

    def _passage(self, row: Sequence[Any], values: Mapping[str, str]) -> FoundPassage | None:
        text, id_, title, parent_id, distance, *filtered = row
        held = dict(zip(self._filter, filtered, strict=True))
        check_hit(values, lambda name: (held[name],))
        score = 1.0 - distance if self._options.distance == "cosine" else -distance
        return found_passage(text, id_, title=title, parent_id=parent_id, score=score)


class _VectorType(UserDefinedType[Any]):
    """A type of the extension, by its name."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        return self.name


def _quoted(name: str) -> sa.quoted_name:
    return sa.quoted_name(name, quote=True)


def _mismatch(message: str) -> SourceError:
    return SourceError(SearchResult.BAD_RESPONSE, message)


def _failure(error: SQLAlchemyError) -> SourceError:
    """Return a failure of the driver as one of the search; the error's own message may quote values."""
    if not isinstance(error, DBAPIError):
        return SourceError(SearchResult.UNAVAILABLE, type(error).__name__)
    code, name = getattr(error.orig, "sqlstate", None) or "", type(error.orig).__name__
    if code in ("57014", "55P03"):  # query_canceled, lock_not_available
        return SourceError(SearchResult.TIMEOUT, name)
    if code == "42501" or code[:2] in ("25", "28"):  # rights, a view that writes, authorization
        return SourceError(SearchResult.REFUSED, f"PostgreSQL refuses the query ({name})")
    if code[:2] == "53":  # insufficient resources, too many connections among them
        return SourceError(SearchResult.OVERLOADED, name)
    if code[:2] in ("0A", "22", "42") or name == "DataError":
        return _mismatch(f"PostgreSQL cannot run the query ({name}); see the table's columns and `filter`")
    return SourceError(SearchResult.UNAVAILABLE, name)
