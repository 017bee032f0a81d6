"""Read twin files: passages with alternatives, and answers that are true of one of them and false of the other.

A file is a YAML list of groups. A group has one passage (or several) in which numbered facts stand in two
wordings, ``⟦1: 25 dollars // 30 dollars⟧``, and for each fact answers, whose own alternatives
``⟦25 dollars // thirty dollars⟧`` state the first or the second. Each answer becomes a row against both
readings of the passage, true of one and false of the other, so that the answer alone tells nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from truthlens.lab.data.dataset import DataError, Example

SOURCE = "twins"
PLAIN_SOURCE = "plain_twins"
"""Twins in plain words, in a folder ``plain`` of their own: the reader's recipe weighs them apart."""
KINDS = (
    "number", "money", "percent", "date", "time", "person", "place", "unit", "negation", "role", "quantifier",
    "comparison", "attribute", "detail", "citation", "cause", "condition", "order", "inference",
)  # fmt: skip
"""Kinds of facts: what an answer gets wrong when it stands against the other reading."""
STYLES = ("near", "free", "long")
"""How an answer is worded: close to the passage, in other words, or with true sentences around the fact."""
_FACT = re.compile(r"⟦(\d+):(.*?)//(.*?)⟧", re.DOTALL)
_CHOICE = re.compile(r"⟦(.*?)//(.*?)⟧", re.DOTALL)
_PART = re.compile(r"⟦((?:(?!//)[^⟦⟧])*)⟧", re.DOTALL)
_NOTHING = "\0"
# Where an empty alternative stood, one space is left between two words, and none before a stop or at a line's edge.
_EMPTY = re.compile(rf"(?<=\S)(?P<between>[ \t]+)(?:{_NOTHING}[ \t]*)+(?=[^\s.,;:!?])|[ \t]*{_NOTHING}[ \t]*")


@dataclass(frozen=True, slots=True)
class TwinAnswer:
    """One answer in one version.

    ``holds`` is the reading (0 or 1) that it is true of; ``spans`` are the characters that state the fact.
    """

    text: str
    holds: int
    spans: tuple[tuple[int, int], ...]
    style: str


@dataclass(frozen=True, slots=True)
class TwinFact:
    """A fact in two readings: ``contexts`` has the passages of each, ``answers`` those about it."""

    number: int
    kind: str
    contexts: tuple[tuple[str, ...], tuple[str, ...]]
    answers: tuple[TwinAnswer, ...]


@dataclass(frozen=True, slots=True)
class TwinGroup:
    """One passage with its facts."""

    id: str
    form: str
    question: str
    facts: tuple[TwinFact, ...] = field(default=())


def read_twins(path: Path) -> list[TwinGroup]:
    """Read the groups of a twin file.

    Raises:
        DataError: the file does not follow the format; the message names file, group and fact.
    """
    try:
        loaded = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise DataError(f"{path} is no YAML: {error}") from error
    if not isinstance(loaded, list):
        raise DataError(f"{path} holds no list of groups")
    groups = [_group(entry, f"{path.name}, group {place}") for place, entry in enumerate(loaded, start=1)]
    names = [group.id for group in groups]
    double = {name for name in names if names.count(name) > 1}
    if double:
        raise DataError(f"{path.name}: ids stand twice: {', '.join(sorted(double))}")
    return groups


def read_twin_folder(folder: Path) -> list[TwinGroup]:
    """Read the groups of all ``*.yaml`` files of ``folder``, in order of their names."""
    return [group for path in sorted(folder.glob("*.yaml")) for group in read_twins(path)]


def twin_examples(groups: Iterable[TwinGroup], *, source: str = SOURCE) -> list[Example]:
    """Return the rows of ``groups``: every version of every answer against both readings of its passage.

    All rows of a fact share ``pair``: a wrong answer is to score above every true one, however they are worded.
    ``source`` is theirs; ``kind`` and ``style`` say which fact it is, and how an answer is worded.
    """
    rows: list[Example] = []
    for group in groups:
        for fact in group.facts:
            for place, answer in enumerate(fact.answers):
                for reading in (0, 1):
                    false = reading != answer.holds
                    rows.append(
                        Example(
                            id=f"{group.id}:{fact.number}:{place}:{reading}",
                            source=source,
                            task="qa",
                            query=group.question,
                            context=fact.contexts[reading],
                            response=answer.text,
                            label=int(false),
                            spans=answer.spans if false else (),
                            group=f"{SOURCE}:{group.id}",
                            pair=f"{SOURCE}:{group.id}:{fact.number}",
                            kind=fact.kind,
                            style=answer.style,
                        )
                    )
    return rows


def _group(entry: Any, where: str) -> TwinGroup:
    if not isinstance(entry, Mapping):
        raise DataError(f"{where} is no mapping")
    name = str(entry.get("id") or "")
    where = f"{where} ({name})"
    passage = entry.get("passage")
    passages = [passage] if isinstance(passage, str) else passage
    if not name or not isinstance(passages, list) or not passages:
        raise DataError(f"{where} needs id and passage (a text, or a list of texts)")
    if not all(isinstance(text, str) for text in passages):
        raise DataError(f"{where}: a passage is no text")
    facts = entry.get("facts")
    if not isinstance(facts, Mapping) or not facts:
        raise DataError(f"{where} needs facts")
    stated = {int(number) for text in passages for number, _, _ in _FACT.findall(text)}
    if stated != set(facts):
        raise DataError(f"{where}: passage has facts {sorted(stated)}, facts lists {sorted(facts)}")
    read = tuple(_fact(number, fact, passages, where) for number, fact in facts.items())
    return TwinGroup(name, str(entry.get("form", "")), str(entry.get("question", "")), read)


def _fact(number: int, fact: Any, passages: list[str], where: str) -> TwinFact:
    where = f"{where}, fact {number}"
    kind = str(fact.get("kind"))
    if kind not in KINDS:
        raise DataError(f"{where}: kind {kind!r} is none of {', '.join(KINDS)}")
    listed = fact.get("answers")
    if not isinstance(listed, list) or not listed:
        raise DataError(f"{where} needs answers, a list")
    answers = tuple(answer for entry in listed for answer in _answers(entry, where))
    first, second = (tuple(_reading(text, number, reading) for text in passages) for reading in (0, 1))
    if first == second:
        raise DataError(f"{where}: both readings are the same")
    return TwinFact(number, kind, (first, second), answers)


def _reading(text: str, number: int, reading: int) -> str:
    """Return ``text`` with fact ``number`` in ``reading`` and all others in their first one."""

    def chosen(found: re.Match[str]) -> str:
        side = reading if int(found[1]) == number else 0
        return found[2 + side].strip() or _NOTHING

    filled = _FACT.sub(chosen, text)
    if "⟦" in filled or "⟧" in filled:
        raise DataError(f"a mark of the passage is not read: {filled[max(0, filled.find('⟦')) :][:60]!r}")
    return _EMPTY.sub(lambda found: " " if found["between"] else "", filled).strip()


def _answers(entry: Any, where: str) -> list[TwinAnswer]:
    if not isinstance(entry, Mapping):
        raise DataError(f"{where}: an answer is no mapping such as 'near: text'")
    styles = [style for style in STYLES if style in entry]
    if len(styles) != 1:
        raise DataError(f"{where}: an answer needs exactly one of {', '.join(STYLES)}, got {sorted(entry)}")
    text, holds = entry[styles[0]], entry.get("holds")
    if not isinstance(text, str):
        raise DataError(f"{where}: an answer is no text: {text!r}")
    text = text.strip()
    if _CHOICE.search(text):
        if holds is not None:
            raise DataError(f"{where}: an answer with alternatives needs no 'holds': {text[:60]!r}")
        return [_version(text, reading, styles[0], where) for reading in (0, 1)]
    if holds not in ("first", "second"):
        raise DataError(
            f"{where}: an answer without alternatives needs 'holds: first' or 'holds: second': {text[:60]!r}"
        )
    plain, spans = substituted(_PART, text, lambda found: found[1].strip())
    if not spans:
        raise DataError(f"{where}: the part that states the fact is not in ⟦ ⟧: {text[:60]!r}")
    return [TwinAnswer(plain, int(holds == "second"), tuple(spans), styles[0])]


def _version(text: str, reading: int, style: str, where: str) -> TwinAnswer:
    plain, spans = substituted(_CHOICE, text, lambda found: found[1 + reading].strip())
    if "⟦" in plain or "⟧" in plain:
        raise DataError(f"{where}: a mark of the answer is not read: {plain[:80]!r}")
    if any(start == end for start, end in spans):
        raise DataError(f"{where}: an alternative of an answer is empty; use 'holds' instead: {plain[:60]!r}")
    return TwinAnswer(plain, reading, tuple(spans), style)


def substituted(
    pattern: re.Pattern[str], text: str, new: Callable[[re.Match[str]], str]
) -> tuple[str, list[tuple[int, int]]]:
    """Return ``text`` with what ``pattern`` matches replaced by what ``new`` says, and where that stands."""
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    length = last = 0
    for found in pattern.finditer(text):
        before, chosen = text[last : found.start()], new(found)
        parts += [before, chosen]
        length += len(before)
        spans.append((length, length + len(chosen)))
        length += len(chosen)
        last = found.end()
    return "".join([*parts, text[last:]]), spans
