"""What the scripts share: their command line, their machine, their results and their tables."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from truthlens.lab.evaluate.report import processor

RESULTS = Path(__file__).parents[1] / "results"


def command(doc: str, *, results: bool = True) -> argparse.ArgumentParser:
    """Return a parser whose help is ``doc``; with ``results`` it has ``--out``."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if results:
        parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    return parser


def write_result(folder: Path, name: str, result: Any, text: str = "") -> Path:
    """Write ``NAME.json``, and ``NAME.md`` where there is a ``text``, into ``folder``, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if text:
        path.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    return path


def machine(note: str = "") -> str:
    """Return the machine in words: processor, cores, what ``note`` says, Python."""
    return f"{processor()} ({os.cpu_count()} cores), {note}{', ' if note else ''}Python {platform.python_version()}"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that ``share`` of the values do not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def on_one_core() -> None:
    """Keep this process on one core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
