"""Make the table by which entries are found by detector and kind, and fill it from the entries."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_AT_ONCE = 5_000


def upgrade() -> None:
    """Make and fill it."""
    op.create_table(
        "review_facets",
        sa.Column("facet", sa.String(16), primary_key=True),
        sa.Column("value", sa.String(64), primary_key=True),
        sa.Column(
            "number", _Number, sa.ForeignKey("review_entries.number", ondelete="CASCADE"), primary_key=True
        ),
    )
    connection, last = op.get_bind(), 0
    read = sa.text(
        "SELECT number, detectors, kinds FROM review_entries WHERE number > :last ORDER BY number LIMIT :most"
    )
    write = sa.text("INSERT INTO review_facets (facet, value, number) VALUES (:facet, :value, :number)")
    while rows := connection.execute(read, {"last": last, "most": _AT_ONCE}).all():
        last = rows[-1].number
        found = [
            {"facet": facet, "value": value[:64], "number": row.number}
            for row in rows
            for facet, values in (("detector", _parsed(row.detectors)), ("kind", _parsed(row.kinds)))
            for value in dict.fromkeys(values)
        ]
        if found:
            connection.execute(write, found)
    op.create_index("ix_review_facets_number", "review_facets", ["number"])


def downgrade() -> None:
    """Drop it; it can be filled again."""
    op.drop_table("review_facets")


def _parsed(value: Any) -> list[str]:
    # PostgreSQL gives JSON as it is, SQLite its text.
    return list(json.loads(value) if isinstance(value, str) else value)
