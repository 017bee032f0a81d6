"""Read answers of real traffic, without labels: rows of JSON lines, or the text lines of the gateway's own log."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truthlens.lab.data.dataset import DataError, numbered_lines

_TEXT_EVENT = "exchange text"
_EXPECTED = (
    "an object with context (text or list of texts), response and, if there was one, query; or a log line of a gateway"
    " with telemetry: {log_text: true}"
)


@dataclass(frozen=True, slots=True)
class TrafficAnswer:
    """One answer with its evidence."""

    query: str
    context: tuple[str, ...]
    response: str


def read_traffic(path: Path) -> list[TrafficAnswer]:
    """Read all answers of a JSON-lines file, gzip'd or not.

    A line is a row ``{context, query, response}``, whose further keys are let be, or a line of the gateway's log:
    those with texts (``exchange text``) give an answer a choice, the others none.

    Raises:
        DataError: the file cannot be read, or a line is neither; the message names the line and quotes nothing.
    """
    answers: list[TrafficAnswer] = []
    try:
        for number, line in numbered_lines(path):
            answers.extend(_answers(line, f"{path}, line {number}"))
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} cannot be read ({type(error).__name__}); expected JSON lines in UTF-8, plain or .gz"
        ) from error
    return answers


def _answers(line: str, where: str) -> Iterator[TrafficAnswer]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is no JSON; expected {_EXPECTED}") from error
    if not isinstance(row, dict):
        raise DataError(f"{where} holds a {type(row).__name__}; expected {_EXPECTED}")
    if "event" in row and "response" not in row:
        if row["event"] == _TEXT_EVENT:
            query, passages = _text(row.get("query") or "", where), _texts(row.get("passages"), where)
            for answer in _texts(row.get("answers"), where):
                yield TrafficAnswer(query, passages, answer)
        return
    context = row.get("context")
    passages = (context,) if isinstance(context, str) else _texts(context, where)
    yield TrafficAnswer(_text(row.get("query") or "", where), passages, _text(row.get("response"), where))


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise DataError(f"{where} has no list of texts where one belongs; expected {_EXPECTED}")
    return tuple(_text(each, where) for each in value)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{where} has no text where one belongs; expected {_EXPECTED}")
    return value
