"""Look up, in all databases of a policy, the values that an exchange is about."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import overload

from sqlalchemy.exc import SQLAlchemyError

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import DetectorError
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.queries import QueryOutcome, QueryRecord
from truthlens.detection.detectors.numbers.sources import KnownValue
from truthlens.detection.detectors.numbers.sql.connection import database_url, open_engine
from truthlens.detection.detectors.numbers.sql.lane import Lane, Observer, name_of
from truthlens.detection.detectors.numbers.sql.mapping_check import mapping_problems
from truthlens.detection.detectors.numbers.sql.options import Database
from truthlens.detection.detectors.numbers.sql.values import Record
from truthlens.text.values.typed import ValueKind

_CHECK_MS = 2000


@dataclass(frozen=True)
class Known(Sequence[KnownValue]):
    """What the databases know, a sequence of values.

    Attributes:
        records: The values of each row that was found.
        problems: Databases that gave nothing, or not all of it, each with why.
    """

    records: tuple[Record, ...] = ()
    problems: tuple[tuple[str, QueryOutcome], ...] = ()

    @cached_property
    def _values(self) -> tuple[KnownValue, ...]:
        return tuple(value for record in self.records for value in record)

    @overload
    def __getitem__(self, place: int) -> KnownValue: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[KnownValue, ...]: ...

    def __getitem__(self, place: int | slice) -> KnownValue | tuple[KnownValue, ...]:
        return self._values[place]

    def __len__(self) -> int:
        return len(self._values)

    def of_kinds(self, kinds: frozenset[ValueKind]) -> Known:
        """Return the values of these kinds alone, with the same problems."""
        kept = (tuple(value for value in record if value.kind in kinds) for record in self.records)
        return Known(tuple(record for record in kept if record), self.problems)

    @property
    def details(self) -> Mapping[str, float | str]:
        """What a verdict says of the look-up: how many values, and of each database with a problem why (``sql_NAME``)."""
        found: dict[str, float | str] = {"sql_values": float(len(self))}
        for name, outcome in self.problems:
            key = f"sql_{name}"
            found[key] = f"{found[key]} {outcome}" if key in found else outcome.value
        return MappingProxyType(found)


class SqlSource:
    """The databases of one policy; safe in several threads.

    Args:
        databases: their options.
        environ: where URLs come from.
        observe: told of every query, from any thread; it must not raise.
        clock: seconds, monotonic.

    Raises:
        DetectorError: A database cannot be used as it is configured.
    """

    def __init__(
        self,
        databases: Sequence[Database],
        *,
        environ: Mapping[str, str] = os.environ,
        observe: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observe = observe or _ignore
        urls = [database_url(each, environ) for each in databases]
        self._urls = dict(zip((each.name for each in databases), urls, strict=True))
        self._lanes = tuple(
            Lane(each, open_engine(each, url), self._observe, clock)
            for each, url in zip(databases, urls, strict=True)
        )
        # Detectors are dropped with the policy that they were built for, and nobody closes them.
        self._finalizer = weakref.finalize(self, _close, self._lanes, wait=False)

    def check(self) -> None:
        """Compare the mappings with the databases, and connect to them; one that cannot be reached now is reported to ``observe`` and not checked.

        Takes up to some seconds for each database that does not answer.

        Raises:
            DetectorError: A table or a column is not there, of another type, or may not be read.
        """
        problems: list[str] = []
        for lane in self._lanes:
            engine = open_engine(lane.database, self._urls[lane.database.name], timeout_ms=_CHECK_MS)
            try:
                with engine.connect() as connection:
                    problems += [
                        f"{each} (database {lane.database.name!r})"
                        for each in mapping_problems(connection, lane.database, lane.queries)
                    ]
                lane.warm_up()
            except SQLAlchemyError as error:
                self._observe(QueryRecord(lane.database.name, QueryOutcome.UNAVAILABLE, error=name_of(error)))
            finally:
                engine.dispose()
        if problems:
            raise DetectorError(f"the mapping of `databases` does not fit: {'; '.join(problems)}")

    def values(self, exchange: Exchange, kinds: frozenset[ValueKind], *, stop: StopCheck) -> Known:
        """Return the values of these kinds that are known of the exchange's scope; none where nobody waits for them."""
        return Known() if stop() else self.known(exchange.scope).of_kinds(kinds)

    def known(self, scope: Mapping[str, str]) -> Known:
        """Return what the databases know of a scope (``Exchange.scope``); they are asked in parallel.

        Never raises; waits as long as the slowest database's ``timeout_ms`` at most.
        """
        waiting = [(lane.database.name, lane.begin(scope)) for lane in self._lanes]
        records: list[Record] = []
        problems: list[tuple[str, QueryOutcome]] = []
        for name, collect in waiting:
            found = collect()
            records += found.records
            problems += [(name, outcome) for outcome in found.problems]
        return Known(tuple(records), tuple(problems))

    def close(self) -> None:
        """Let go of threads and connections."""
        if self._finalizer.detach() is not None:
            _close(self._lanes, wait=True)


def _close(lanes: Sequence[Lane], *, wait: bool) -> None:
    for lane in lanes:
        with suppress(Exception):
            lane.close(wait=wait)


def _ignore(_: QueryRecord) -> None:
    """Do nothing."""
