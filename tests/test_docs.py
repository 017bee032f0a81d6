"""Paths that the documents name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# In backticks, with a folder and an ending; what commands write is under these folders.
PATH = re.compile(r"`(?!runs/|bench/results/)((?:[\w.-]+/)+[\w.-]+\.(?:py|md|ya?ml|json|html|j2|proto|sh))`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_path_exists(document: Path) -> None:
    """As it stands there, or below the package, as the codemap writes it."""
    text = document.read_text(encoding="utf-8")
    named = [
        path
        for path in PATH.findall(text)
        if not any((at / path).exists() for at in (ROOT, ROOT / "truthlens"))
    ]
    linked = [path for path in LINK.findall(text) if not (document.parent / path).exists()]
    assert (named, linked) == ([], [])
