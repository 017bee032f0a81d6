"""Compare a mapping with the tables that a database really has, before a policy is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, NoSuchTableError

from truthlens.detection.detectors.numbers.sql.options import Database, Table, ValueType
from truthlens.detection.detectors.numbers.sql.query import TableQuery

_NUMBERS: tuple[type[sa.types.TypeEngine[Any]], ...] = (sa.Integer, sa.Numeric, sa.Float)
_DATES: tuple[type[sa.types.TypeEngine[Any]], ...] = (sa.Date, sa.DateTime)
_TEXTS: tuple[type[sa.types.TypeEngine[Any]], ...] = (sa.String,)
_SCOPES: dict[str, tuple[type[sa.types.TypeEngine[Any]], ...]] = {
    "integer": _NUMBERS,
    "text": _TEXTS,
    "uuid": (sa.Uuid,),
}
_HARMLESS: dict[str, int | str] = {"integer": 0, "text": "", "uuid": "00000000-0000-0000-0000-000000000000"}


def mapping_problems(
    connection: sa.Connection, database: Database, queries: Sequence[TableQuery]
) -> list[str]:
    """Return what of the mapping the database contradicts, a sentence each.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: The database is slow or down.
    """
    problems: list[str] = []
    inspector = sa.inspect(connection)
    typed = connection.dialect.name == "postgresql"
    for query in queries:
        table = query.table
        try:
            found = {
                str(each["name"]): each["type"]
                for each in inspector.get_columns(table.table, schema=table.schema_name)
            }
        except NoSuchTableError:
            problems.append(f"there is no table {_full(table)!r}; names are compared with their case")
            continue
        own = list(_of_table(database, table, found, typed=typed))
        problems += own or _refusals(connection, database, query)
    return problems


def _wanted(
    database: Database, table: Table, *, typed: bool
) -> Iterator[tuple[str, str, tuple[type[sa.types.TypeEngine[Any]], ...]]]:
    """Yield the columns that a table is to have: each one's name, what it holds, its possible types."""
    dates = _DATES if typed else (*_DATES, *_TEXTS)
    for column in table.columns:
        yield column.column, column.type, dates if column.type is ValueType.DATE else _NUMBERS
    if (period := table.period) is not None:
        named = (("year", period.year), ("quarter", period.quarter), ("month", period.month))
        for what, name in named:
            if name is not None:
                yield name, what, (*_NUMBERS, *_TEXTS) if what == "quarter" else _NUMBERS
    for key, name in table.scope.items():
        kind = database.scope[key].type
        yield name, f"{kind} scope key", _SCOPES[kind] if typed else ()
    if table.label_column is not None:
        yield table.label_column, "label", ()


def _of_table(
    database: Database, table: Table, found: dict[str, sa.types.TypeEngine[Any]], *, typed: bool
) -> Iterator[str]:
    """Yield the columns that are missing or of a wrong type; without ``typed``, types are what the database declares, if anything."""
    for name, what, types in _wanted(database, table, typed=typed):
        if name not in found:
            yield f"the table {_full(table)!r} has no column {name!r}; it has: {', '.join(sorted(found)[:40])}"
        elif types and not isinstance(found[name], (*types, sa.types.NullType)):
            yield f"the column {name!r} of {_full(table)!r} is of type {found[name]}, which cannot be a {what}"
        elif typed and types and isinstance(found[name], sa.types.NullType):
            yield f"the column {name!r} of {_full(table)!r} is of a type that is not known, which cannot be a {what}"


def _refusals(connection: sa.Connection, database: Database, query: TableQuery) -> list[str]:
    """Return what the database says to the query itself, asked for a record that hardly exists."""
    try:
        ask_for_nothing(connection, database, query)
    except DBAPIError as error:
        if not is_refusal(error):
            raise
        connection.rollback()
        return [f"the database refuses to read {_full(query.table)!r} ({type(error.orig).__name__})"]
    return []


def ask_for_nothing(connection: sa.Connection, database: Database, query: TableQuery) -> None:
    """Send a query for a record that hardly exists.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: The database refuses it, is slow or down.
    """
    values = {parameter: _HARMLESS[database.scope[key].type] for parameter, key in query.keys.items()}
    connection.execute(query.statement, values).fetchall()


def is_refusal(error: DBAPIError) -> bool:
    """Return whether an error is about the query (a table, a type, a right), and not about the database's state."""
    code = getattr(error.orig, "sqlstate", None)
    if isinstance(code, str):
        # Syntax and rights; data that cannot be had in this form; a feature that is not there; a view that writes.
        return code[:2] in ("42", "22", "0A") or code == "25006"
    name, message = type(error.orig).__name__, str(error.orig)
    if type(error.orig).__module__ == "sqlite3":
        return name == "DataError" or message.startswith(("no such", "ambiguous", "unsafe use", "malformed"))
    return name in ("DataError", "ProgrammingError", "NotSupportedError")


def _full(table: Table) -> str:
    return table.table if table.schema_name is None else f"{table.schema_name}.{table.table}"
