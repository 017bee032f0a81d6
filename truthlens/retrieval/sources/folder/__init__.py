"""The source `folder`: Markdown, text, HTML and PDF files, searched by their words on this machine."""

from __future__ import annotations

from pathlib import Path

from truthlens.core.registry import SourceContext, SourceType
from truthlens.retrieval.interfaces import EvidenceSource
from truthlens.retrieval.sources.folder.options import FolderOptions


def build(context: SourceContext) -> EvidenceSource:
    """Return the source; a thread of its own makes the index where there is none, and follows the folder.

    Raises:
        StartError: The folder is not there, or a library for files that it holds is missing.
    """
    from truthlens.retrieval.sources.folder.source import FolderSource

    return FolderSource(context.name, context.options, base=context.folder)


def missing(options: FolderOptions, folder: Path) -> str:
    """Return that the folder is not there, ``""`` if it is."""
    return "" if options.root(folder).is_dir() else f"there is no folder {options.path!r}"


SOURCE = SourceType("folder", build, FolderOptions, filters=True, missing=missing)
"""The embedded default: SQLite's full-text search (FTS5) with bm25. No model, no service."""
