"""Build the SELECT of each table from the mapping, and read the values that are bound to it.

Names of tables and columns come from the configuration alone and are always quoted; values of a scope are bound, never written
into the text of a query.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from truthlens.detection.detectors.numbers.sql.options import Database, ScopeKey, Table

MOST_LABEL_CHARS = 200
_MOST_SCOPE_CHARS = 200
_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)

ScopeValue = int | str


class ScopeError(Exception):
    """The value of a scope key is not of its type; the message names the key and not the value."""


@dataclass(frozen=True, slots=True)
class TableQuery:
    """The SELECT of one table.

    Attributes:
        table: What it reads.
        statement: Gives the values of ``table.columns``, then those of its period (year, quarter, month, those there are), then the
            label of the row, if the table has one. At most one row more than ``limit``.
        keys: The scope keys that are bound, by parameter.
        limit: How many rows there may be.
    """

    table: Table
    statement: sa.Select[Any]
    keys: Mapping[str, str]
    limit: int


def table_query(database: Database, table: Table) -> TableQuery:
    """Return the query of one table of a database."""
    limit = table.row_limit or database.max_rows
    period = [] if table.period is None else [table.period.year, table.period.quarter, table.period.month]
    names = [each.column for each in table.columns] + [name for name in period if name is not None]
    named = {
        *names,
        *table.scope.values(),
        *((table.label_column,) if table.label_column is not None else ()),
    }
    schema = None if table.schema_name is None else _quoted(table.schema_name)
    # Each column is written with its table: SQLite reads a lone "name" that is no column as a text.
    source = sa.table(
        _quoted(table.table), *(sa.column(_quoted(name)) for name in sorted(named)), schema=schema
    )
    selected: list[sa.ColumnElement[Any]] = [
        source.c[name].label(f"v{place}") for place, name in enumerate(names)
    ]
    if table.label_column is not None:
        text = sa.cast(source.c[table.label_column], sa.String)
        selected.append(sa.func.substr(text, 1, MOST_LABEL_CHARS).label("row_label"))
    keys = {f"scope_{place}": key for place, key in enumerate(table.scope)}
    conditions = [
        source.c[table.scope[key]] == sa.bindparam(parameter, type_=_bound_type(database.scope[key]))
        for parameter, key in keys.items()
    ]
    statement = sa.select(*selected).select_from(source).where(*conditions).limit(limit + 1)
    return TableQuery(table, statement, keys, limit)


def scope_values(database: Database, scope: Mapping[str, str]) -> dict[str, ScopeValue]:
    """Return the values of the database's scope keys that an exchange's scope has, by key.

    Raises:
        ScopeError: A value is not of its key's type.
    """
    found: dict[str, ScopeValue] = {}
    for key, declared in database.scope.items():
        raw = scope.get(declared.name)
        if raw is not None:
            found[key] = _scope_value(key, declared, raw)
    return found


def _scope_value(key: str, declared: ScopeKey, raw: str) -> ScopeValue:
    # Nothing is done with a long text before it is refused.
    text = raw.strip() if len(raw) <= 2 * _MOST_SCOPE_CHARS else ""
    match declared.type:
        case "integer" if _INTEGER.fullmatch(text):
            return int(text)
        case "text" if 0 < len(text) <= _MOST_SCOPE_CHARS and text.isprintable():
            return text
        case "uuid":
            try:
                return str(uuid.UUID(text))
            except ValueError:
                pass
    raise ScopeError(f"the value of the scope key {key!r} is no {declared.type}")


def _quoted(name: str) -> sa.quoted_name:
    return sa.quoted_name(name, quote=True)


def _bound_type(key: ScopeKey) -> sa.types.TypeEngine[Any]:
    match key.type:
        case "integer":
            return sa.BigInteger()
        case "text":
            return sa.String()
        case "uuid":
            return sa.String().with_variant(postgresql.UUID(as_uuid=False), "postgresql")
