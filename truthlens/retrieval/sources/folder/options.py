"""Options of the source `folder`."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Literal

import pydantic

from truthlens.core.registry import SourceOptions
from truthlens.store.state_folder import state_folder

FILTER_FIELDS = frozenset({"folder"})
"""What a search can be filtered by: ``folder`` is the first part of a file's path below ``path``."""
INDEX_VERSION = 1
"""Raised whenever the same files would give another index: other pieces, other words, other tables."""


class FolderOptions(SourceOptions):
    """A folder of files, and how they become passages."""

    auth: Literal["none"] = pydantic.Field(
        default="none", description="A folder has no login; filter tells tenants apart."
    )
    path: str = pydantic.Field(
        min_length=1, max_length=4096, description="The folder; a relative path starts at the policy file."
    )
    index: str | None = pydantic.Field(
        default=None,
        min_length=1,
        max_length=4096,
        description="File of the index; a relative path starts at the policy file. Default: one in the state "
        "folder.",
    )
    patterns: tuple[str, ...] = pydantic.Field(
        default=("*.md", "*.markdown", "*.txt", "*.html", "*.htm", "*.pdf"),
        min_length=1,
        max_length=50,
        description="Files that are read, by their path below the folder, in any case; * stands for any "
        "characters, / among them.",
    )
    piece_chars: int = pydantic.Field(
        default=1000, ge=200, le=10_000, description="Characters that a passage has at most, roughly."
    )
    max_file_bytes: int = pydantic.Field(
        default=20_000_000, ge=1, le=1_000_000_000, description="Larger files are skipped."
    )
    max_files: int = pydantic.Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="Files that are read at most; those of a folder come before those of its subfolders.",
    )

    @pydantic.field_validator("filter")
    @classmethod
    def _known_fields(cls, value: dict[str, str]) -> dict[str, str]:
        if unknown := sorted(value.keys() - FILTER_FIELDS):
            raise ValueError(
                f"a folder's passages have no field {unknown[0]!r} to filter by; the only one is 'folder', "
                "the first part of a file's path below `path`"
            )
        return value

    @property
    def fingerprint(self) -> str:
        """What two indexes of one folder must share to be the same."""
        told = (INDEX_VERSION, sorted(self.patterns), self.piece_chars, self.max_file_bytes, self.max_files)
        return hashlib.sha256(repr(told).encode()).hexdigest()[:16]

    def root(self, base: Path) -> Path:
        """Return the folder, without links; ``base`` is where a relative path starts."""
        return (base / Path(self.path).expanduser()).resolve()

    def index_file(self, base: Path) -> Path:
        """Return the file of the index; ``base`` is where a relative path starts."""
        if self.index is not None:
            return (base / Path(self.index).expanduser()).absolute()
        root = self.root(base)
        # One for each set of options: two processes with different ones do not undo each other's work.
        place = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
        return state_folder() / "folders" / f"{root.name or 'root'}-{place}-{self.fingerprint}.db"
