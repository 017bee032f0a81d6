"""Make the tables of entries, their contents and their audit trail."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "review_entries",
        sa.Column("number", _Number, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(32), nullable=False, unique=True),
        sa.Column("created", sa.Float(53), nullable=False),
        sa.Column("updated", sa.Float(53), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("decision", sa.Text, nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("policy_version", sa.String(32), nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("score", sa.Float(53), nullable=False),
        sa.Column("even_score", sa.Float(53), nullable=False),
        sa.Column("threshold", sa.Float(53), nullable=False),
        sa.Column("flagged", sa.Boolean, nullable=False),
        sa.Column("level", sa.String(16), nullable=False),
        sa.Column("rule", sa.String(64), nullable=False),
        sa.Column("sample", sa.Float(53), nullable=False),
        sa.Column("query_id", sa.String(64), nullable=False),
        sa.Column("trace_id", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("scope", sa.JSON, nullable=False),
        sa.Column("original_confidence", sa.Float(53), nullable=False),
        sa.Column("adjusted_confidence", sa.Float(53), nullable=False),
        sa.Column("total_claims", sa.Integer, nullable=False),
        sa.Column("verified_claims", sa.Integer, nullable=False),
        sa.Column("unverified_claims", sa.Integer, nullable=False),
        sa.Column("detectors", sa.JSON, nullable=False),
        sa.Column("kinds", sa.JSON, nullable=False),
        sa.Column("auto", sa.Boolean, nullable=False),
        sa.Column("latency_s", sa.Float(53), nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("has_text", sa.Boolean, nullable=False),
        sa.Column("excerpt", sa.Text, nullable=False),
        sa.Column("reviewer", sa.String(200), nullable=False),
        sa.Column("settled", sa.Float(53)),
        sa.Column("note", sa.Text, nullable=False),
        # Numbers of deleted entries are not given again: pages and audit trails refer to them.
        sqlite_autoincrement=True,
    )
    op.create_index("ix_review_entries_status", "review_entries", ["status", "number"])
    op.create_index("ix_review_entries_decision", "review_entries", ["decision", "status", "number"])
    op.create_index("ix_review_entries_level", "review_entries", ["level", "status", "number"])
    op.create_index("ix_review_entries_score", "review_entries", ["status", "score", "number"])
    op.create_index("ix_review_entries_created", "review_entries", ["created"])
    op.create_index("ix_review_entries_settled", "review_entries", ["settled"])
    op.create_index("ix_review_entries_query_id", "review_entries", ["query_id"])
    op.create_table(
        "review_contents",
        _entry(primary_key=True),
        sa.Column("content", sa.JSON, nullable=False),
        sa.Column("spans", sa.JSON),
    )
    op.create_table(
        "review_events",
        sa.Column("event", _Number, primary_key=True, autoincrement=True),
        _entry(),
        sa.Column("at", sa.Float(53), nullable=False),
        sa.Column("actor", sa.String(200), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.create_index("ix_review_events_number", "review_events", ["number", "event"])


def downgrade() -> None:
    """Drop them, with all entries."""
    for table in ("review_events", "review_contents", "review_entries"):
        op.drop_table(table)


def _entry(*, primary_key: bool = False) -> "sa.Column[int]":
    key = sa.ForeignKey("review_entries.number", ondelete="CASCADE")
    return sa.Column("number", _Number, key, primary_key=primary_key, nullable=False)
