"""The options of databases, sound and not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pydantic
import pytest

from tests.detection.detectors.numbers.sql.conftest import example, one_table, parsed
from truthlens.detection.detectors.numbers.sql.options import scope_headers

TABLE: dict[str, Any] = {"table": "t", "columns": [{"column": "c", "type": "count"}]}


def test_the_example_is_sound_and_hashable() -> None:
    """Equal options have one hash, so that plans share a detector; the figures are those of the file."""
    (database,) = parsed(example())
    assert hash(database) == hash(parsed(example())[0])
    assert hash(database) != hash(parsed(example(timeout_ms=50))[0])
    assert database.timeout_s == 0.08
    assert database.tables[0].columns[6].scale == Decimal(100)
    assert scope_headers((database,)) == {"x-property-id"}


def test_defaults_are_bounds() -> None:
    """A database that names none has a time, rows, connections and a cache that are bounded."""
    given = example()
    for key in ("timeout_ms", "max_rows", "pool_size", "cache_ttl_s", "cache_entries"):
        del given[key]
    (database,) = parsed(given)
    assert (database.timeout_ms, database.max_rows, database.pool_size) == (80, 200, 4)
    assert (database.cache_ttl_s, database.cache_entries) == (60.0, 1000)


WRONG: list[tuple[dict[str, Any], str]] = [
    (example(url_env=None), "needs one of `url_env`"),
    (example(url_file="/x"), "needs one of `url_env`"),
    (example(url="sqlite:////x"), "Extra inputs"),
    (example(url_env="A B"), "should match pattern"),
    (example(name="Finance DB"), "should match pattern"),
    (example(timeout_ms=2), "greater than or equal to 5"),
    (example(timeout_ms=60_000), "less than or equal to 1000"),
    (example(timeout_ms=True), "valid integer"),
    (example(timeout_ms="80"), "valid integer"),
    (example(max_rows=0), "greater than or equal to 1"),
    (example(pool_size=500), "less than or equal to 32"),
    (example(cache_ttl_s=float("nan")), "finite"),
    (example(cache_ttl_s=True), "a number is expected"),
    (example(tables=[]), "at least 1 item"),
    (example(scope={}), "at least 1 item"),
    (example(scope={"property_id": {}}), "write one of `header`"),
    (example(scope={"property_id": {"header": "x-a", "route": "truthlens-scope-a"}}), "write one of `header`"),
    (example(scope={"property_id": {"header": "x a"}}), "not the name of an HTTP header"),
    (example(scope={"property_id": {"route": "user-text"}}), "is not a name such as"),
    (example(scope={"property_id": {"text": "the question"}}), "Extra inputs"),
    (example(scope={"property_id": {"header": "x-a", "type": "json"}}), "'integer', 'text' or 'uuid'"),
    (one_table({**TABLE, "scope": {"tenant": "t"}}), "known: period_id, property_id"),
    (one_table({**TABLE, "scope": {}}), "at least 1 item"),
    (one_table({"table": "t"}), "has no value"),
    (one_table({**TABLE, "table": "a\x00b"}), "printable characters"),
    (one_table({**TABLE, "table": "é" * 40}), "1 to 63 bytes"),
    (one_table({**TABLE, "table": " "}), "printable characters"),
    (one_table({**TABLE, "where": "1=1"}), "Extra inputs"),
    (one_table({**TABLE, "columns": [{"column": "a\nb", "type": "count"}]}), "printable characters"),
    (one_table({**TABLE, "columns": [{"column": "a", "type": "money"}]}), "'currency', 'percent', 'ratio', 'count' or 'date'"),
    (one_table({**TABLE, "columns": [{"column": "a", "type": "count"}] * 2}), "stands twice"),
    (one_table({**TABLE, "columns": [{"column": "a", "type": "date", "scale": 2}]}), "a date has no scale"),
    (one_table({**TABLE, "columns": [{"column": "a", "type": "percent", "unit": "USD"}]}), "has no unit"),
    (one_table({**TABLE, "columns": [{"column": "a", "type": "count", "unit": "flats"}]}), "name what is counted under `label`"),
    (one_table({**TABLE, "columns": [{"column": "a", "type": "currency", "unit": "gold"}]}), "the currency 'gold' is not known"),
    (one_table({**TABLE, "columns": [{"column": "a", "type": "count", "scale": 0}]}), "greater than 0"),
    (one_table({**TABLE, "columns": [{"column": "a", "type": "count", "scale": float("inf")}]}), "finite"),
    (one_table({**TABLE, "columns": [{"column": "a", "type": "count", "scale": True}]}), "a number is expected"),
    (one_table({**TABLE, "columns": [{"column": "a", "type": "count", "label": ["a\nb"]}]}), "on one line"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "message"), WRONG, ids=range(len(WRONG)))
def test_a_mistake_is_refused(written: dict[str, Any], message: str) -> None:
    """Each says what is expected."""
    with pytest.raises(pydantic.ValidationError, match=message.replace("(", r"\(")):
        parsed(written)


def test_two_databases_need_two_names() -> None:
    """A name is a label of metrics and of sources."""
    with pytest.raises(pydantic.ValidationError, match="'finance' stands twice"):
        parsed(example(), example())
