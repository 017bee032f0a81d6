"""Small made-up files in the form of the labelled data, so that benchmarks can be tried where there are none.

No text of any data set is in them, and no figure that comes of them means anything.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.detection.similarity import READ

_THINGS = ("harbour", "museum", "ferry", "library", "archive", "garden", "market", "tower", "mill", "quay")
_FORMS = (
    "The old {thing} of the northern town was opened to visitors in {year} by the keeper Maud Sillery.",
    "It holds {count} letters that sailors wrote home during the long winters on the open sea.",
    "A ticket for the {thing} costs {price} euros, and children under six come in free of charge.",
    "The {thing} closes at {hour} on weekdays, and guests may stay an hour longer at weekends.",
)
_GROUPS = 60
_MODELS = ("first", "second", "third", "fourth")
_KINDS = ("Evident Conflict", "Subtle Baseless Info", "Evident Baseless Info")


def write_data(folder: Path) -> Path:
    """Write a file for each data set that a benchmark reads by name."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {
        "ragtruth_qa.train": [*_answered(), *_read()],
        "bump": list(_edited("bump")),
        "summedits": list(_edited("summedits")),
        "wice_tokens.train": list(_edited("wice")),
        "fever_symmetric": list(_edited("fever_symmetric")),
        "begin": list(_edited("begin")),
        "snli": list(_edited("snli")),
        "written": list(_edited("written")),
        "factcg_doc": list(_edited("factcg_doc")),
        "infotabs.train": list(_edited("infotabs")),
    }
    for name, listed in rows.items():
        text = "\n".join(json.dumps(row) for row in listed)
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def _text(number: int, sentences: int = 4) -> str:
    return " ".join(
        _FORMS[place % 4].format(
            thing=_THINGS[(number + place // 4) % 10],
            year=1850 + number,
            count=number * 7 + place + 30,
            price=number % 9 + 2,
            hour=number % 5 + 16,
        )
        for place in range(sentences)
    )


def _row(source: str, number: int, response: str, wrong: bool, *, kind: str, **more: Any) -> dict[str, Any]:
    start = response.index(" in ") + 4
    return {
        "id": f"{source}-{number}",
        "source": source,
        "task": "qa",
        "query": "What is known of the place, and when was it opened?",
        "context": [_text(number), _text(number + 100)],
        "response": response,
        "label": int(wrong),
        "spans": [{"start": start, "end": start + 4, "kind": kind}] if wrong else [],
        "group": str(number),
        **more,
    }


def _edited(source: str) -> Iterator[dict[str, Any]]:
    """Two answers to each source text: as it says, and with another year."""
    for number in range(_GROUPS):
        right = _text(number, 2)
        for wrong in (False, True):
            response = right.replace(str(1850 + number), str(1990 - number)) if wrong else right
            passages = [_text(number)]  # some benchmarks want rows with one passage
            yield {
                **_row(source, number, response, wrong, kind="unsupported"),
                "id": f"{source}-{number}-{wrong}",
                "context": passages,
            }


def _answered() -> Iterator[dict[str, Any]]:
    """Four models' answers to each prompt, two of them wrong."""
    for number in range(_GROUPS):
        for place, model in enumerate(_MODELS):
            right, wrong = _text(number, 3), place % 2 == 1
            response = right.replace(str(1850 + number), str(1990 - number)) if wrong else right
            yield {
                **_row("ragtruth", number, response, wrong, kind=_KINDS[number % 3], model=model),
                "id": f"ragtruth-made-{number}-{model}",
                "prompt": f"Answer by these passages:\n{_text(number)}\n\nWhat is known of the place?",
            }


def _read() -> Iterator[dict[str, Any]]:
    """The pairs of answers that somebody compared for ``bench.detection.similarity``, as long as they must be."""
    pairs = {row: place for place, pair in enumerate(READ) for row in pair}
    for row, place in pairs.items():
        text = _text(place + 200, 12)
        yield {
            **_row("ragtruth", row, text, False, kind="", model="fifth"),
            "group": f"read-{place}",
            "prompt": text,
        }
