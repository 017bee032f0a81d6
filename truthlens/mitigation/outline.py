"""The lines of an answer as a reader sees them: items, headings, lead-ins, and what belongs below each. Pure.

Knows layout only: markers, indents, blank lines. Sentences inside a line are the business of ``seams``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from truthlens.mitigation.claims import MARKER

_NUMBER = re.compile(r"[ \t>]*[(（]?(?P<number>\d{1,3})[.)、．）]")
_LEVEL = re.compile(r"[ \t]*(#{1,6})[ \t]")
_BOLD = re.compile(r"[ \t]*(?:\*\*[^*]+\*\*|__[^_]+__)[:：]?[ \t]*")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_LEADS = re.compile(r"[:：][*_\"'”)\]]*[ \t]*$")
_BOLD_LEVEL = 7  # below every "#" heading


@dataclass(frozen=True, slots=True)
class Line:
    """Characters ``start`` to ``end`` (line break excluded) of a text; its words begin at ``content``.

    ``number`` is that of a numbered item, with its digits at ``digits``; ``level`` is 1 to 6 for a heading, 7 for a
    line in bold, 0 otherwise.
    """

    start: int
    content: int
    end: int
    indent: int
    item: bool = False
    number: int | None = None
    digits: tuple[int, int] = (0, 0)
    level: int = 0
    leads: bool = False

    @property
    def blank(self) -> bool:
        """Whether nothing stands in it, not even a marker."""
        return self.start + self.indent >= self.end


def outline(text: str) -> list[Line]:
    """The lines of ``text``, in order; inside a block of code none is an item, a heading or a lead-in."""
    lines: list[Line] = []
    start = 0
    fence = ""
    for raw in text.split("\n"):
        opened = _FENCE.match(raw)
        if fence or opened:
            indent = len(raw) - len(raw.lstrip(" \t"))
            lines.append(Line(start, start + indent, start + len(raw), indent))
        else:
            lines.append(_line(raw, start))
        if opened and not fence:
            fence = opened[1]
        elif fence and raw.strip().startswith(fence):
            fence = ""
        start += len(raw) + 1
    return lines


def vacated(lines: Sequence[Line], gone: Collection[int]) -> set[int]:
    """``gone`` (numbers of lines) with the lead-ins and headings that are left with nothing below them.

    A line that had nothing below it before stays.
    """
    found = set(gone)
    for place in range(len(lines) - 1, -1, -1):
        line = lines[place]
        if place in found or line.blank or not (line.level or line.leads):
            continue
        below = [number for number in _below(lines, place) if not lines[number].blank]
        if below and all(number in found for number in below):
            found.add(place)
    return found


def renumbered(
    lines: Sequence[Line], gone: Collection[int], added: Sequence[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """New numbers of the items that need one, by line; and the numbers of the first new item behind each of ``added``.

    A list that did not count one by one keeps its numbers.
    """
    changed: dict[int, int] = {}
    new: dict[int, int] = {}
    for run in _lists(lines):
        numbers = [lines[place].number or 0 for place in run]
        counts = all(after == before + 1 for before, after in pairwise(numbers))
        following = numbers[0]
        for place, number in zip(run, numbers, strict=True):
            if not counts:
                following = number
            if place not in gone:
                if number != following:
                    changed[place] = following
                following += 1
            if place in added:
                new[place] = following
                following += added.count(place)
    return changed, new


def last_below(lines: Sequence[Line], place: int) -> int:
    """Number of the last line that belongs to item ``place``: its own where nothing is nested in it."""
    last = place
    for number in range(place + 1, len(lines)):
        if lines[number].blank:
            continue
        if lines[number].indent <= lines[place].indent:
            break
        last = number
    return last


def _line(raw: str, start: int) -> Line:
    indent = len(raw) - len(raw.lstrip(" \t"))
    content = 0
    while marker := MARKER.match(raw, content):
        content = marker.end()
    number = _NUMBER.match(raw) if content else None
    level = _LEVEL.match(raw)
    bold = _BOLD.fullmatch(raw)
    return Line(
        start,
        start + max(content, indent),
        start + len(raw),
        indent,
        item=content > 0 and level is None and raw.lstrip(" \t")[:1] != ">",
        number=int(number["number"]) if number else None,
        digits=(start + number.start("number"), start + number.end("number")) if number else (0, 0),
        level=len(level[1]) if level else _BOLD_LEVEL if bold else 0,
        leads=_LEADS.search(raw) is not None,
    )


def _below(lines: Sequence[Line], place: int) -> Iterator[int]:
    """Numbers of the lines that a heading, or a line that leads in, stands over."""
    head = lines[place]
    if head.level:
        for number in range(place + 1, len(lines)):
            if 0 < lines[number].level <= head.level:
                return
            yield number
        return
    number = place + 1
    while number < len(lines) and lines[number].blank:
        number += 1
    if number == len(lines) or lines[number].level:
        return
    first = lines[number]
    if head.item and first.indent <= head.indent:
        return
    for following in range(number, len(lines)):
        line = lines[following]
        if first.item:
            if not line.blank and (
                line.indent < first.indent or not (line.item or line.indent > first.indent)
            ):
                return
        elif line.blank or line.item:
            return
        yield following


def _lists(lines: Sequence[Line]) -> Iterator[list[int]]:
    """Numbered lists, each as the numbers of its items' lines; what is nested in an item does not end its list."""
    runs: dict[int, list[int]] = {}
    for place, line in enumerate(lines):
        if line.blank:
            continue
        for indent in [indent for indent in runs if indent > line.indent]:
            yield runs.pop(indent)
        if line.number is not None:
            run = runs.setdefault(line.indent, [])
            if run and line.number == 1:
                yield run
                run = runs[line.indent] = []
            run.append(place)
        elif line.indent in runs:
            yield runs.pop(line.indent)
    yield from runs.values()
