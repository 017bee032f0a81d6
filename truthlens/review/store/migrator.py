"""Carry out the steps between versions of the tables, with Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Connection


class Migrator:
    """Migrates the tables on ``connection``, within its transaction."""

    def __init__(self, connection: Connection) -> None:
        self._config = Config()
        self._config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        self._config.attributes["connection"] = connection

    def upgrade(self, revision: str) -> None:
        """Bring the tables up to ``revision``; ``head`` is the newest."""
        command.upgrade(self._config, revision)

    def downgrade(self, revision: str) -> None:
        """Take the tables down to ``revision``; ``base`` drops them."""
        command.downgrade(self._config, revision)
