"""The lines of an answer as a reader sees them: items, headings, lead-ins, and what belongs below each. Pure.

Knows layout only: markers, indents, blank lines. Sentences inside a line are the business of ``seams``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from truthlens.text.claims.claims import MARKER

_NUMBER = re.compile(r"[ \t>]*[(（]?(?P<number>\d{1,3})[.)、．）]")
_LEVEL = re.compile(r"[ \t]*(#{1,6})[ \t]")
_BOLD = re.compile(r"[ \t]*(?:\*\*[^*]+\*\*|__[^_]+__)[:：]?[ \t]*")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_LEADS = re.compile(r"[:：][*_\"'”)\]]*[ \t]*$")
_BOLD_LEVEL = 7  # below every "#" heading


@dataclass(frozen=True, slots=True)
class Line:
    """Characters ``start`` to ``end`` (line break excluded) of a text; its words begin at ``content``.

    ``number`` is that of a numbered item, with its digits at ``digits``; ``level`` is 1 to 6 for a heading, 7
    for a line in bold, 0 otherwise.
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
        """Whether the line is empty, without even a marker."""
        return self.start + self.indent >= self.end


def outline(text: str) -> list[Line]:
    """Return the lines of ``text``, in order; no line of a code block is an item, a heading or a lead-in."""
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
    """Return ``gone`` (line numbers) plus the lead-ins and headings that are left with nothing below.

    A line that had nothing below it before stays.
    """
    found = set(gone)
    kept = len(lines)
    # From the end: what stands below a line is settled when its turn comes, and ``kept`` is the first that
    # stays there.
    following = _Following(lines)
    for place in range(len(lines) - 1, -1, -1):
        line = lines[place]
        if line.blank:
            following.pass_blank(place)
            continue
        if place not in found and following.first < following.end_below(line) <= kept:
            found.add(place)
        if place not in found:
            kept = place
        following.pass_words(place)
    return found


def renumbered(
    lines: Sequence[Line], gone: Collection[int], added: Sequence[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return new numbers for items that need one, by line, and the first new number after each of ``added``.

    A list that did not count one by one keeps its numbers.
    """
    changed: dict[int, int] = {}
    behind = Counter(added)
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
            if place in behind:
                new[place] = following
                following += behind[place]
    return changed, new


def last_below(lines: Sequence[Line], place: int) -> int:
    """Return the number of the last line that belongs to item ``place``, nested lines included."""
    last = place
    for number in range(place + 1, len(lines)):
        if lines[number].blank:
            continue
        if lines[number].indent <= lines[place].indent:
            break
        last = number
    return last


def _line(raw: str, start: int) -> Line:
    bare = raw.lstrip(" \t")
    indent = len(raw) - len(bare)
    content = 0
    while marker := MARKER.match(raw, content):
        content = marker.end()
    number = _NUMBER.match(raw) if content else None
    level = _LEVEL.match(raw) if bare.startswith("#") else None
    bold = bare.startswith(("**", "__")) and _BOLD.fullmatch(raw)
    return Line(
        start,
        start + max(content, indent),
        start + len(raw),
        indent,
        item=content > 0 and level is None and not bare.startswith(">"),
        number=int(number["number"]) if number else None,
        digits=(start + number.start("number"), start + number.end("number")) if number else (0, 0),
        level=len(level[1]) if level else _BOLD_LEVEL if bold else 0,
        leads=(":" in raw or "：" in raw) and _LEADS.search(raw) is not None,
    )


class _Following:
    """What follows the lines that were passed so far, from the last one back.

    Line numbers, their count for none.

    ``first`` is the next line that is not blank.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        none = len(lines)
        self.first = none
        self._end_of_first = none
        self._headings = [none] * (_BOLD_LEVEL + 1)
        self._break = none
        self._outer: list[int] = []

    def end_below(self, head: Line) -> int:
        """Return the line after the last one that ``head``, a heading or a lead-in, introduces.

        ``first`` is that of them which it begins with; the two are equal where there is none.
        """
        if head.level:
            return min(self._headings[1 : head.level + 1])
        if not head.leads or self.first == len(self._lines):
            return self.first
        first = self._lines[self.first]
        if first.level or (head.item and first.indent <= head.indent):
            return self.first
        return self._end_of_first

    def pass_blank(self, place: int) -> None:
        """Note a line without words; it ends a paragraph."""
        self._break = place

    def pass_words(self, place: int) -> None:
        """Note a line with words."""
        line = self._lines[place]
        while self._outer and _depth(self._lines[self._outer[-1]]) >= _depth(line):
            self._outer.pop()
        if line.item:
            # A list ends at what stands further out, and at what is no item beside it.
            self._end_of_first = self._outer[-1] if self._outer else len(self._lines)
            self._break = place
        else:
            self._end_of_first = self._break
        self._outer.append(place)
        if line.level:
            self._headings[line.level] = place
        self.first = place


def _depth(line: Line) -> int:
    """Return how far a line is indented; an item counts as deeper than another line of the same indent."""
    return 2 * line.indent + line.item


def _lists(lines: Sequence[Line]) -> Iterator[list[int]]:
    """Yield the numbered lists, each as its items' line numbers; nested text does not end a list."""
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
