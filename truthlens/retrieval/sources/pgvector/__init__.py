"""PostgreSQL with the extension ``vector`` as a source of evidence."""

from __future__ import annotations

from typing import Annotated, Literal

import pydantic
from pydantic import AfterValidator, Field

from truthlens.core.records.agentic_settings import ToolName
from truthlens.core.registry import SourceContext, SourceType
from truthlens.retrieval.embeddings import EnvironmentName, open_embedder
from truthlens.retrieval.interfaces import EvidenceSource
from truthlens.retrieval.vector_search import VectorSourceOptions

_LONGEST_IDENTIFIER = 63


def _identifier(name: str) -> str:
    """Raise ``ValueError`` for what cannot be the name of a table or a column."""
    if not name.isprintable() or not name.strip() or len(name.encode()) > _LONGEST_IDENTIFIER:
        raise ValueError(f"a name of 1 to {_LONGEST_IDENTIFIER} bytes of printable characters is expected")
    return name


SqlName = Annotated[str, Field(strict=True), AfterValidator(_identifier)]


class PassageColumns(pydantic.BaseModel):
    """The columns of a table of passages; ``title`` and ``parent_id`` may be left out."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    id: SqlName = Field(default="id", description="What names a passage; of any type.")
    text: SqlName = Field(default="text", description="The passage.")
    embedding: SqlName = Field(default="embedding", description="Its vector, of type vector or halfvec.")
    title: SqlName | None = Field(default=None, description="The title of the document that it is from.")
    parent_id: SqlName | None = Field(default=None, description="What names that document; of any type.")


class PgvectorOptions(VectorSourceOptions):
    """Options of the source ``pgvector``; the fields of ``filter`` are columns of the table."""

    url_env: EnvironmentName = Field(
        description="The environment variable that holds the URL: postgresql://user:password@host/database."
    )
    table: SqlName = Field(description="The table or view of passages; its name with its case.")
    schema_name: SqlName | None = Field(
        default=None,
        alias="schema",
        description="The table's schema; without it the first of the search path.",
    )
    columns: PassageColumns = PassageColumns()
    distance: Literal["cosine", "inner", "l2"] = Field(
        default="cosine", description="What nearness is: the operator <=>, <#> or <->; the one of the index."
    )
    connections: int = Field(
        default=4, ge=1, le=32, description="Connections of one process to the database, at most."
    )

    @pydantic.field_validator("filter")
    @classmethod
    def _check_columns(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            _identifier(name)
        return value


def _build(context: SourceContext) -> EvidenceSource:
    options: PgvectorOptions = context.options
    try:
        import psycopg  # noqa: F401 - missing, it is named before a search needs it

        from truthlens.retrieval.sources.pgvector.connection import database_url, open_engine
        from truthlens.retrieval.sources.pgvector.source import PgvectorSource
    except ImportError as error:
        raise ValueError(
            f"the source {context.name!r} needs the library {error.name!r}; pip install 'truthlens[sql]'"
        ) from error
    engine = open_engine(
        database_url(options.url_env, context.environ),
        connections=options.connections,
        timeout_ms=max(1, round(options.timeout_s * 1000)),
    )
    return PgvectorSource(options, engine, open_embedder(options.embeddings, context))


SOURCE = SourceType("pgvector", _build, PgvectorOptions, filters=True, tool=ToolName.VECTOR_SEARCH)
