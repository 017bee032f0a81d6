"""Run migrations on the connection that ``database`` gives; Alembic imports this by its place."""

from alembic import context

from truthlens.review.store.database import VERSION_TABLE
from truthlens.review.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    # SQLite cannot change a column in place.
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
