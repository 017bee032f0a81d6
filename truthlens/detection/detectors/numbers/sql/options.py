"""The options of databases: where they are, which columns hold what, which record an exchange is about, and bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

import pydantic
from pydantic import AfterValidator, BeforeValidator, Field

from truthlens.text.values.units import CURRENCY_CODES

_SCOPE_METADATA = re.compile(r"truthlens-scope-[a-z0-9_.-]{1,64}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_LONGEST_IDENTIFIER = 63
_MOST_SCALE = Decimal(10) ** 12
_ANY_CURRENCY = "money"


class ValueType(StrEnum):
    """What the values of a column are."""

    CURRENCY = "currency"
    PERCENT = "percent"
    RATIO = "ratio"
    COUNT = "count"
    DATE = "date"


def _identifier(name: str) -> str:
    """Raise ``ValueError`` for what cannot be the name of a table or a column."""
    if not name.isprintable() or not name.strip() or len(name.encode()) > _LONGEST_IDENTIFIER:
        raise ValueError(f"a name of 1 to {_LONGEST_IDENTIFIER} bytes of printable characters is expected")
    return name


def _words(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("words are expected, on one line")
    return " ".join(text.split())


def no_switch(value: Any) -> Any:
    """Return the value; raise ``ValueError`` for a truth value, which pydantic takes for 0 or 1."""
    if isinstance(value, bool):
        raise ValueError("a number is expected")  # noqa: TRY004  # pydantic reports a ValueError at its place
    return value


Identifier = Annotated[str, Field(strict=True), AfterValidator(_identifier)]
Words = Annotated[str, Field(strict=True, max_length=80), AfterValidator(_words)]


class _Section(pydantic.BaseModel):
    """A part of the options: frozen, and hashed by its content, mappings included."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.model_dump_json()))


class ScopeKey(_Section):
    """Where the value of a scope key comes from: a trusted header, or metadata of the Envoy route; never a client's text."""

    header: str | None = None
    route: str | None = None
    type: Literal["integer", "text", "uuid"] = "text"

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if (self.header is None) == (self.route is None):
            raise ValueError(
                "write one of `header` (listed under trusted_headers) and `route` (metadata of the Envoy route)"
            )
        if self.header is not None and not _HEADER.fullmatch(self.header):
            raise ValueError(f"{self.header!r} is not the name of an HTTP header")
        if self.route is not None and not _SCOPE_METADATA.fullmatch(self.route):
            raise ValueError(
                f"{self.route!r} is not a name such as 'truthlens-scope-property' (a-z, 0-9, '_', '.', '-')"
            )
        return self

    @property
    def name(self) -> str:
        """The name under which an exchange's scope has the value."""
        return (self.header or self.route or "").lower()


class Column(_Section):
    """A column of values.

    ``scale`` is what a value is multiplied by to get its plain size: 100 for a percentage that is stored as 0.85, 1000 for sums in
    thousands. ``unit`` is the currency of a sum of money (``USD`` or ``dollar``). ``label`` are the words by which texts speak of it; the column's name in words where there are none.
    """

    column: Identifier
    type: ValueType
    unit: Annotated[str, Field(strict=True, max_length=40)] = ""
    scale: Annotated[Decimal, BeforeValidator(no_switch), Field(gt=0, le=_MOST_SCALE)] = Decimal(1)
    label: Annotated[tuple[Words, ...], Field(max_length=20)] = ()

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.type is ValueType.DATE and self.scale != 1:
            raise ValueError("a date has no scale; remove it")
        if self.unit and self.type is not ValueType.CURRENCY:
            raise ValueError(f"a {self.type} has no unit; remove it, and name what is counted under `label`")
        if self.unit and self.unit.lower() not in (*CURRENCY_CODES, *CURRENCY_CODES.values()):
            known = ", ".join(sorted(name.upper() for name in CURRENCY_CODES))
            raise ValueError(
                f"the currency {self.unit!r} is not known; known: {known}; without a unit it is compared with any"
            )
        return self

    @property
    def currency(self) -> str:
        """The name of the currency, or the word for any."""
        return CURRENCY_CODES.get(self.unit.lower(), self.unit.lower()) or _ANY_CURRENCY


class Period(_Section):
    """The columns of a period: a year, and its quarter (1 to 4, or ``Q3``), its month (1 to 12), or both."""

    year: Identifier
    quarter: Identifier | None = None
    month: Identifier | None = None
    label: Annotated[tuple[Words, ...], Field(max_length=20)] = ("period",)


class Table(_Section):
    """A table or a view.

    ``scope`` has, by scope key, the column that must equal it. Under ``rows: one`` (the default) two rows for one scope are a
    contradiction, and none of them counts. ``label_column`` names what a row is about ("rent", "insurance").
    """

    table: Identifier
    schema_name: Identifier | None = Field(default=None, alias="schema")
    scope: Annotated[dict[str, Identifier], Field(min_length=1, max_length=8)]
    rows: Literal["one", "many"] = "one"
    label_column: Identifier | None = None
    columns: Annotated[tuple[Column, ...], Field(max_length=100)] = ()
    period: Period | None = None

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if not self.columns and self.period is None:
            raise ValueError(f"the table {self.table!r} has no value; write `columns`, `period` or both")
        _once([each.column for each in self.columns], "column", "columns")
        return self

    @property
    def row_limit(self) -> int | None:
        """How many rows a scope may have; ``None`` for as many as the database's ``max_rows``."""
        return 1 if self.rows == "one" else None


class Database(_Section):
    """A database whose values answers are compared with.

    Its URL stands in an environment variable or a file, because it may contain a password.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]
    url_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")] | None = None
    url_file: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    scope: Annotated[dict[str, ScopeKey], Field(min_length=1, max_length=8)]
    tables: Annotated[tuple[Table, ...], Field(min_length=1, max_length=20)]
    timeout_ms: Annotated[int, Field(strict=True, ge=5, le=1000)] = 80
    max_rows: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 200
    pool_size: Annotated[int, Field(strict=True, ge=1, le=32)] = 4
    cache_ttl_s: Annotated[float, BeforeValidator(no_switch), Field(ge=0, le=86_400)] = 60.0
    cache_entries: Annotated[int, Field(strict=True, ge=0, le=100_000)] = 1000

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if (self.url_env is None) == (self.url_file is None):
            raise ValueError(
                f"the database {self.name!r} needs one of `url_env` (an environment variable) and `url_file` that holds its URL"
            )
        for table in self.tables:
            for key in table.scope:
                if key not in self.scope:
                    known = ", ".join(sorted(self.scope))
                    raise ValueError(
                        f"the table {table.table!r} has the scope key {key!r}, which the database has not; known: {known}"
                    )
        return self

    @property
    def timeout_s(self) -> float:
        """The most seconds that an answer waits for the database."""
        return self.timeout_ms / 1000


def _once(names: Iterable[str], what: str, where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"the {what} {name!r} stands twice under `{where}`; keep one")
        seen.add(name)


def _named_once(databases: tuple[Database, ...]) -> tuple[Database, ...]:
    _once([each.name for each in databases], "database", "databases")
    return databases


Databases = Annotated[tuple[Database, ...], Field(max_length=8), AfterValidator(_named_once)]
"""The type of the option ``databases``."""


def scope_headers(databases: Iterable[Database]) -> frozenset[str]:
    """Return the headers (lower-case) that scopes are read from, all of which a policy has to trust."""
    keys: Iterable[Mapping[str, ScopeKey]] = (each.scope for each in databases)
    return frozenset(key.name for scope in keys for key in scope.values() if key.header is not None)


def table_scopes(databases: Iterable[Database]) -> tuple[frozenset[str], ...]:
    """Return for each table the names of an exchange's scope that it is asked by."""
    return tuple(
        frozenset(database.scope[key].name for key in table.scope)
        for database in databases
        for table in database.tables
    )
