"""Define the tables of the review queue; ``migrations`` makes them."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

# SQLite numbers rows of itself only where the type is INTEGER.
_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

entries = sa.Table(
    "review_entries",
    metadata,
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
    sa.Index("ix_review_entries_status", "status", "number"),
    sa.Index("ix_review_entries_decision", "decision", "status", "number"),
    sa.Index("ix_review_entries_level", "level", "status", "number"),
    sa.Index("ix_review_entries_score", "status", "score", "number"),
    sa.Index("ix_review_entries_created", "created"),
    sa.Index("ix_review_entries_settled", "settled"),
    sa.Index("ix_review_entries_query_id", "query_id"),
)

contents = sa.Table(
    "review_contents",
    metadata,
    sa.Column(
        "number", _Number, sa.ForeignKey("review_entries.number", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("content", sa.JSON, nullable=False),
    sa.Column("spans", sa.JSON),
)

# What an entry can be filtered by that it may have several of: facet is "detector" or "kind".
facets = sa.Table(
    "review_facets",
    metadata,
    sa.Column("facet", sa.String(16), primary_key=True),
    sa.Column("value", sa.String(64), primary_key=True),
    sa.Column(
        "number", _Number, sa.ForeignKey("review_entries.number", ondelete="CASCADE"), primary_key=True
    ),
    sa.Index("ix_review_facets_number", "number"),
)

events = sa.Table(
    "review_events",
    metadata,
    sa.Column("event", _Number, primary_key=True, autoincrement=True),
    sa.Column("number", _Number, sa.ForeignKey("review_entries.number", ondelete="CASCADE"), nullable=False),
    sa.Column("at", sa.Float(53), nullable=False),
    sa.Column("actor", sa.String(200), nullable=False),
    sa.Column("action", sa.String(32), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    # The step that it was a part of, "" where it cannot be undone, and what the entry was before it.
    sa.Column("step", sa.String(32), nullable=False, server_default=""),
    sa.Column("before", sa.JSON(none_as_null=True)),
    sa.Index("ix_review_events_number", "number", "event"),
    sa.Index("ix_review_events_actor", "actor", "event"),
    sa.Index("ix_review_events_step", "step"),
)
