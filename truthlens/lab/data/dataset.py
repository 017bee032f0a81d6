"""Labelled grounding data: reading, splitting by source text, mixing. Knows no model and no tokenizer."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from truthlens.core.errors import TruthLensError

SplitName = Literal["train", "calibration", "test"]


class DataError(TruthLensError):
    """A data file cannot be used; the message names file and line."""


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled answer.

    ``label`` is 1 where the response holds something that ``context`` does not support. ``spans`` are the
    unsupported characters where people marked them (``()``: all supported), ``None`` where it was not done.
    Examples with one ``group`` share a source text and stay on one side of every split. Two with one ``pair``
    (not empty) differ in little and are trained against each other. Where ``spans`` is ``None`` and
    ``doubtful`` is not empty, whatever is unsupported lies within ``doubtful``, and the rest is supported.
    ``generator`` names the model that wrote the response, ``kind`` the kind of error or of answer (``type`` in
    the files) and ``style`` how near the response is to the wording, where a row tells.
    """

    id: str
    source: str
    task: str
    query: str
    context: tuple[str, ...]
    response: str
    label: int
    spans: tuple[tuple[int, int], ...] | None
    group: str
    quality: str = "good"
    pair: str = ""
    doubtful: tuple[tuple[int, int], ...] = ()
    generator: str = ""
    kind: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Shares:
    """Share of groups kept out of training."""

    calibration: float = 0.0
    test: float = 0.08


@dataclass(frozen=True, slots=True)
class Mixture:
    """How many rows of a source one epoch draws, and how much each counts in the loss."""

    rows: int
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """Splits and mixture by source; a source that is not named gets the defaults."""

    shares: Mapping[str, Shares] = field(default_factory=dict)
    mixture: Mapping[str, Mixture] = field(default_factory=dict)
    default_shares: Shares = Shares()
    default_mixture: Mixture = Mixture(rows=2_000)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file, gzip'd or not, that are not empty, with their numbers from 1."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        yield from ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def read_examples(path: Path) -> list[Example]:
    """Read all rows of a JSON-lines file, gzip'd or not.

    Raises:
        DataError: a line is not a row of the format.
    """
    examples: list[Example] = []
    for number, line in numbered_lines(path):
        try:
            examples.append(_example(json.loads(line), default_id=f"{path.name}:{number}"))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path}, line {number}: {type(error).__name__} {error}; expected an object with "
                "context (list of strings), response and label (0 or 1)"
            ) from error
    return examples


def data_files(folder: Path) -> list[Path]:
    """Return the ``*.jsonl`` and ``*.jsonl.gz`` files of ``folder``, in order of their names.

    Raises:
        DataError: there is none.
    """
    paths = sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")])
    if not paths:
        raise DataError(f"{folder} holds no *.jsonl or *.jsonl.gz file; give the folder of the labelled data")
    return paths


def read_folder(folder: Path) -> list[Example]:
    """Read all rows of the ``data_files`` of ``folder``.

    Raises:
        DataError: there is no such file, or one cannot be read.
    """
    return [example for path in data_files(folder) for example in read_examples(path)]


def _example(row: dict[str, Any], *, default_id: str) -> Example:
    context = row["context"]
    if not isinstance(context, list) or not all(isinstance(passage, str) for passage in context):
        raise ValueError("context is no list of strings")
    label = row["label"]
    if label not in (0, 1):
        raise ValueError("label is neither 0 nor 1")
    response, source = str(row["response"]), str(row.get("source", ""))
    return Example(
        id=str(row.get("id", default_id)),
        source=source,
        task=str(row.get("task", "")),
        query=str(row.get("query") or ""),
        context=tuple(context),
        response=response,
        label=int(label),
        spans=_spans(row.get("spans"), response),
        group=f"{source}:{row.get('group') or _digest(*context)}",
        quality=str(row.get("quality", "good")),
        generator=str(row.get("model") or row.get("generator") or ""),
        kind=str(row.get("type") or row.get("kind") or ""),
        style=str(row.get("style") or ""),
    )


def _spans(marked: Any, response: str) -> tuple[tuple[int, int], ...] | None:
    if marked is None:
        return None
    spans = tuple((int(span["start"]), int(span["end"])) for span in marked)
    if any(not 0 <= start <= end <= len(response) for start, end in spans):
        raise ValueError("a span lies outside the response")
    return spans


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def split_of(group: str, shares: Shares, *, salt: str = "truthlens-1") -> SplitName:
    """Return the side that a group is on: a pure function of its name, so that splits never drift."""
    place = int(_digest(salt, group), 16) / 16**16
    if place < shares.test:
        return "test"
    return "calibration" if place < shares.test + shares.calibration else "train"


def split(examples: Iterable[Example], recipe: Recipe) -> dict[SplitName, list[Example]]:
    """Return ``examples`` by side, in their order."""
    sides: dict[SplitName, list[Example]] = {"train": [], "calibration": [], "test": []}
    for example in examples:
        shares = recipe.shares.get(example.source, recipe.default_shares)
        sides[split_of(example.group, shares)].append(example)
    return sides


def draw(examples: Sequence[Example], recipe: Recipe, *, seed: int) -> list[Example]:
    """Draw one epoch's rows, shuffled: of each source as many as its mixture says, at most all of them."""
    dice = random.Random(seed)  # noqa: S311  # no secret: repeatable draws
    by_source: dict[str, list[Example]] = {}
    for example in examples:
        by_source.setdefault(example.source, []).append(example)
    drawn: list[Example] = []
    for source, rows in sorted(by_source.items()):
        wanted = recipe.mixture.get(source, recipe.default_mixture).rows
        drawn.extend(rows if wanted >= len(rows) else dice.sample(rows, wanted))
    dice.shuffle(drawn)
    return drawn


def each_source(rows: Sequence[Example], most: int) -> list[Example]:
    """Return at most ``most`` rows of each source."""
    sources = sorted({row.source for row in rows})
    return [row for name in sources for row in spread([r for r in rows if r.source == name], most)]


def spread(rows: Sequence[Example], most: int | None) -> list[Example]:
    """Return at most ``most`` rows, evenly over ``rows``: files are often sorted by label."""
    if most is None or len(rows) <= most:
        return list(rows)
    if most == 1:
        return [rows[0]]
    return [rows[place * (len(rows) - 1) // (most - 1)] for place in range(most)]
