"""Let events say which step they were a part of and what was before it, so that a step can be undone as one."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; what was decided before cannot be undone, only put back."""
    op.add_column("review_events", sa.Column("step", sa.String(32), nullable=False, server_default=""))
    op.add_column("review_events", sa.Column("before", sa.JSON))
    op.create_index("ix_review_events_actor", "review_events", ["actor", "event"])
    op.create_index("ix_review_events_step", "review_events", ["step"])


def downgrade() -> None:
    """Drop them."""
    for index in ("ix_review_events_actor", "ix_review_events_step"):
        op.drop_index(index, "review_events")
    for column in ("step", "before"):
        op.drop_column("review_events", column)
