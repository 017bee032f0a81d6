"""Open the databases of a detector, checked; the only module of this package that a detector needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from truthlens.core.errors import DetectorError
from truthlens.core.records.queries import QueryRecord
from truthlens.detection.detectors.numbers.sql.options import Database

if TYPE_CHECKING:
    from truthlens.detection.detectors.numbers.sql.source import SqlSource


def open_databases(
    databases: Sequence[Database], *, observe: Callable[[QueryRecord], None] | None = None
) -> SqlSource:
    """Return the databases as a source of values, their mappings compared with what is there.

    Takes some seconds for a database that does not answer; that is reported to ``observe``, and no error.

    Raises:
        DetectorError: A library is missing, a URL cannot be used, or a mapping does not fit.
    """
    try:
        from truthlens.detection.detectors.numbers.sql.source import SqlSource

        source = SqlSource(databases, observe=observe)
    except ImportError as error:
        raise DetectorError(
            f"the option `databases` needs the library {error.name!r}; install it: pip install 'truthlens[sql]'"
        ) from error
    try:
        source.check()
    except DetectorError:
        source.close()
        raise
    return source
