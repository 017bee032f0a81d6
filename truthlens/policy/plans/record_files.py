"""Read the files that a policy names: threshold records, and weights of the verdict.

Their contents are for ``threshold_record`` and ``fusion_record``, imported where a policy names some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truthlens.core.records.verdict import ModelIdentity
from truthlens.policy.files import UnfitFileError, read_start

SHIPPED = "default"
"""What ``fusion`` says in a policy for the coefficients of this version."""

MAX_BYTES = 64 * 1024
"""A record is far smaller; what is larger is another kind of file and is not read to its end."""

Identify = Callable[[str | None], ModelIdentity]
"""From a plan's ``model_id`` to the model that will score for it; may raise ``ModelError``."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a record could not be read."""

    problem: str


Contents = Mapping[str, bytes | Unread]
"""Contents of the records that a policy names, by the name that it gives them."""


def record_contents(data: Mapping[str, Any], folder: Path) -> dict[str, bytes | Unread]:
    """Read the records that the YAML ``data`` names, each once; names are relative to ``folder``."""
    return {name: _read(folder / name) for name in dict.fromkeys(_names(data))}


def _names(data: object) -> Iterator[str]:
    """Yield the names under ``threshold.calibration`` and ``fusion`` anywhere in the file."""
    if isinstance(data, Mapping):
        if isinstance(fusion := data.get("fusion"), str) and fusion != SHIPPED:
            yield fusion
        threshold = data.get("threshold")
        if isinstance(threshold, Mapping) and isinstance(name := threshold.get("calibration"), str):
            yield name
        for value in data.values():
            yield from _names(value)
    elif isinstance(data, list):
        for value in data:
            yield from _names(value)


def _read(path: Path) -> bytes | Unread:
    try:
        return read_start(path, MAX_BYTES + 1)
    except UnfitFileError as error:
        return Unread(str(error))
    except OSError as error:
        return Unread(error.strerror or "there is no such file")
