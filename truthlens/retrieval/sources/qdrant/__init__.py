"""A collection of Qdrant as a source of evidence: on a server, or in a folder ("local mode")."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import pydantic
from pydantic import Field

from truthlens.core.records.agentic_settings import ToolName
from truthlens.core.registry import SourceContext, SourceType
from truthlens.retrieval.embeddings import EnvironmentName, http_url, key_in, open_embedder
from truthlens.retrieval.interfaces import EvidenceSource
from truthlens.retrieval.vector_search import VectorSourceOptions

DEFAULT_VECTOR = ""
"""The name that the vector without a name has here."""


class QdrantOptions(VectorSourceOptions):
    """Options of the source ``qdrant``.

    The fields of ``filter`` and the names of payload fields may have dots, for fields within fields (``metadata.tenant``).
    """

    url: str | None = Field(
        default=None,
        max_length=2048,
        description="The server, http(s)://host[:port][/prefix]; port 6333 where none is written.",
    )
    path: Path | None = Field(
        default=None,
        description="A folder of local mode, absolute or beside the policy. One process opens it at a time, and its files"
        " are trusted like programs (the library unpickles them).",
    )
    api_key_env: EnvironmentName | None = Field(
        default=None,
        description="The environment variable that holds the server's key; without it none is sent.",
    )
    collection: str = Field(min_length=1, max_length=255, description="The collection or its alias.")
    vector: str = Field(
        default=DEFAULT_VECTOR,
        max_length=255,
        description="The name of the vector that is compared; empty for the one without a name.",
    )
    text: str = Field(default="text", min_length=1, description="Payload field of the passage.")
    title: str | None = Field(
        default=None, min_length=1, description="Payload field of its document's title."
    )
    parent_id: str | None = Field(
        default=None, min_length=1, description="Payload field that names that document."
    )
    score_threshold: float | None = Field(
        default=None,
        allow_inf_nan=False,
        description="What Qdrant's score must reach; with Euclid or Manhattan, what it may be at most.",
    )

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if (self.url is None) == (self.path is None):
            raise ValueError("write one of `url` (a server) and `path` (a folder)")
        if self.url is not None:
            http_url(self.url)
        if self.path is not None and self.api_key_env is not None:
            raise ValueError("a folder has no key; remove `api_key_env`")
        return self


def _build(context: SourceContext) -> EvidenceSource:
    options: QdrantOptions = context.options
    key = key_in(context.environ, options.api_key_env)
    try:
        from truthlens.retrieval.sources.qdrant.clients import FolderClient, ServerClient
        from truthlens.retrieval.sources.qdrant.source import QdrantSource
    except ImportError as error:
        raise ValueError(
            f"the source {context.name!r} needs the library {error.name!r}; pip install 'truthlens[qdrant]'"
        ) from error
    client = ServerClient(options, key) if options.path is None else FolderClient(options, context.folder)
    return QdrantSource(options, client, open_embedder(options.embeddings, context))


SOURCE = SourceType("qdrant", _build, QdrantOptions, filters=True, tool=ToolName.VECTOR_SEARCH)
