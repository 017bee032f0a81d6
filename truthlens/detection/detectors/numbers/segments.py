"""Cut a text into what speaks of one thing: sentences, rows and cells of tables, ``key: value`` lines, leaves of JSON. Pure.

Works on marks and lines, not on trees, so that JSON which is broken or cut off is read as far as it goes, in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, takewhile

from truthlens.core.cancellation import checkpoint
from truthlens.text.sentences import sentences
from truthlens.text.spans import trimmed

_JSON = re.compile(
    r"(?:^|(?<=\n)|(?<=: ))[ \t]*[{\[]\s*(?:[{\[\"'\d\-]|\})|\{\s*[\"']\w|- \{\w+: ", re.MULTILINE
)
_PART = re.compile(
    r"\"(?P<double>(?:[^\"\\\n]|\\.)*+)\"|(?<![\w])'(?P<single>(?:[^'\\\n]|\\.)*+)'(?=\s*[:,}\]])|(?P<mark>[{}\[\],:])"
    r"|(?P<bare>(?:[^\s\"'{}\[\],:]|:(?=\d))+)"
)
_KEYED = re.compile(
    r"^(?P<indent>[ \t]*)(?P<item>- |[*•] )?(?P<key>[^\W\d][^:\n|{}\[\]\"]{0,40}?)[ \t]*[:=][ \t]+(?P<value>\S.*)$"
)
_OPENING = re.compile(r"^(?P<indent>[ \t]*)(?P<item>- )?(?P<key>[^\W\d][\w .\-/]{0,40}):[ \t]*$")
_RULE = re.compile(r"^[ \t]*\|?[ \t:|+-]*-[ \t:|+-]*\|?[ \t]*$")
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-./\s]+")
_SEPARATORS = ("\t", ";", ",")
_MOST_KEY_WORDS = 6
_MOST_COLUMNS = 60
_DEEPEST = 40
_WINDOW = 20_000


@dataclass(frozen=True, slots=True)
class Segment:
    """Characters ``start`` to ``end`` that state one thing.

    ``labels`` name what the value is of (keys, headings of columns, the label of a row), innermost first; ``record`` is a number
    that the segments of one row or object share, -1 for prose; ``row`` the cell that names the row.
    """

    start: int
    end: int
    labels: tuple[str, ...] = ()
    record: int = -1
    row: str = ""


@lru_cache(maxsize=4096)
def spaced(key: str) -> str:
    """Return a key as words: "unitPrice" and "unit_price" become "unit price"."""
    return " ".join(_CASE.sub(" ", key).lower().split())


@dataclass(slots=True)
class _Outline:
    """Where in an outline of keys a line stands: the open blocks, and the record of each indent."""

    parents: list[tuple[int, str]] = field(default_factory=list)
    records: dict[int, int] = field(default_factory=dict)

    def enter(self, indent: int) -> None:
        """Leave what is deeper than a line of this indent."""
        while self.parents and self.parents[-1][0] >= indent:
            self.parents.pop()
        self.records = {depth: record for depth, record in self.records.items() if depth <= indent}


class Cutter:
    """Cuts one text.

    Args:
        text: a passage or an answer.
        most: segments at which cutting ends.
    """

    def __init__(self, text: str, *, most: int) -> None:
        self._text, self._most = text, most
        self._record = 0

    def segments(self) -> list[Segment]:
        """Return the segments by position."""
        found: list[Segment] = []
        place = tried = 0
        for opening in _JSON.finditer(self._text):
            if opening.start() < tried:
                continue
            if len(found) >= self._most:
                return found
            first = opening.start() + (2 if opening[0].startswith("- ") else 0)
            inner = list(islice(self._json(first), self._most))
            tried = inner[-1][1]
            leaves = [segment for segment, _ in inner if segment is not None]
            if not any(segment.labels for segment in leaves):
                continue
            found += self._lines(place, opening.start())
            found += leaves
            place = tried
        return (found + self._lines(place, len(self._text)))[: self._most]

    def _json(self, start: int) -> Iterator[tuple[Segment | None, int]]:
        """Yield the leaves of what opens at ``start``, each with the place behind; the last place is the end."""
        text, at = self._text, start
        # Of what is open: its mark, its record, and the keys above it, innermost first.
        stack: list[tuple[str, int, tuple[str, ...]]] = [("", self._record, ())]
        key: str | None = None
        for part in _PART.finditer(text, start):
            checkpoint()
            name, mark, at = part.lastgroup or "", part["mark"], part.end()
            opened, record, path = stack[-1]
            if mark in ("{", "["):
                self._record += mark == "{"
                above = path if key is None else (spaced(key), *path)
                stack.append((mark, self._record if mark == "{" else record, above))
                key = None
            elif mark in ("}", "]"):
                stack.pop()
                key = None
            elif mark is not None:
                key = None if mark == "," else key
            elif opened == "{" and key is None and text[at : at + 3].lstrip().startswith(":"):
                key = part[name]
            elif part[name]:
                yield Segment(*part.span(name), (spaced(key), *path) if key else path, record), at
            if not 1 < len(stack) <= _DEEPEST + 1:
                break
        yield None, at

    def _lines(self, start: int, end: int) -> list[Segment]:
        """Return the segments of what is no JSON: tables, ``key: value`` lines, prose."""
        found: list[Segment] = []
        lines = _line_ranges(self._text, start, end)
        outline = _Outline()
        number = prose = 0
        while number < len(lines) and len(found) < self._most:
            checkpoint()
            first, last = lines[number]
            height = self._table_height(lines, number)
            match = None if height else _key_of(self._text[first:last])
            if not height and match is None:
                number += 1
                continue
            found += self._prose(lines, prose, number)
            if match is None:
                found += self._table(lines[number : number + min(height, self._most)])
            else:
                found += self._of_key(match, first, last, outline, is_first=not found)
            number += height or 1
            prose = number
        return found + self._prose(lines, prose, number)

    def _of_key(
        self, match: re.Match[str], first: int, last: int, outline: _Outline, *, is_first: bool
    ) -> list[Segment]:
        """Return what a line with a key holds, and keep the key of one that opens a block."""
        indent, key = len(match["indent"]) + 2 * bool(match["item"]), spaced(match["key"])
        outline.enter(indent)
        if match["item"] or is_first or indent not in outline.records:
            self._record += 1
            outline.records[indent] = self._record
        if match.re is _OPENING:
            outline.parents.append((indent, key))
            return []
        labels = (key, *(name for _, name in reversed(outline.parents)))
        return self._keyed(first + match.start("value"), last, labels, outline.records[indent])

    def _keyed(self, start: int, end: int, labels: tuple[str, ...], record: int) -> list[Segment]:
        """Return the value behind a key, in sentences; objects and lists within it by their own keys."""
        if self._text[start] in "{[":
            inner = [
                segment
                for segment, _ in islice(self._json(start), self._most)
                if segment is not None and segment.end <= end
            ]
            return [
                Segment(
                    each.start,
                    each.end,
                    (*each.labels, *labels),
                    each.record if each.labels else record,
                    each.row,
                )
                for each in inner
            ]
        pieces = sentences(self._text[start:end]) if end - start > 80 else [(0, end - start)]
        return [Segment(start + first, start + last, labels, record) for first, last in pieces]

    def _prose(self, lines: list[tuple[int, int]], first: int, behind: int) -> list[Segment]:
        if first >= behind:
            return []
        start, end = lines[first][0], lines[behind - 1][1]
        pieces = _sentences(self._text, start, end, most=self._most)
        return [Segment(low, high) for low, high in pieces]

    def _table_height(self, lines: list[tuple[int, int]], number: int) -> int:
        """Return how many lines from ``number`` on are a table, 0 for less than two rows."""
        first = self._text[slice(*lines[number])]
        separator = _separator_of(first)
        if not separator:
            return 0
        rows = (self._text[slice(*lines[at])] for at in range(number, len(lines)))
        if separator == "|":
            least = max(1, first.count("|") - 2)
            height = _run(row.count("|") >= least for row in rows)
            return height if height > 1 else 0
        count = _separators(first, separator)
        height = _run(_separators(row, separator) == count and not row.isspace() for row in rows)
        listed = separator == "," and first.count(", ") == count and height < 4
        return 0 if listed or height < 3 else height

    def _table(self, lines: list[tuple[int, int]]) -> list[Segment]:
        text = self._text
        first = text[slice(*lines[0])]
        separator = "|" if "|" in first else max(_SEPARATORS, key=first.count)
        rows = [
            _cells(text, start, end, separator)
            for start, end in lines
            if not (separator == "|" and _RULE.match(text[start:end]))
        ]
        if not rows:
            return []
        heads = [_bare(text[slice(*cell)]) for cell in rows[0]]
        headed = sum(any(map(str.isdigit, head)) for head in heads) * 2 <= len(heads)
        labels = [tuple(filter(None, [spaced(head)])) for head in heads if headed] + [()] * _MOST_COLUMNS
        found: list[Segment] = []
        for row in rows[headed:]:
            self._record += 1
            names = [_bare(text[slice(*cell)]) for cell in row]
            label = next((name for name in names[:2] if any(map(str.isalpha, name))), names[0])
            found += [
                Segment(start, end, head, self._record, label)
                for (start, end), head in zip(row[:_MOST_COLUMNS], labels, strict=False)
                if start < end
            ]
        return found + [Segment(start, end) for start, end in rows[0] if headed and start < end]


def _bare(cell: str) -> str:
    return cell.strip(" *\"'")


def _separator_of(line: str) -> str:
    """Return what parts the cells of a line, if it is one of a table; ``""`` for prose."""
    if line.count("|") >= 2 or " | " in line:
        return "|"
    found = next((each for each in _SEPARATORS if line.count(each) >= 2), "")
    return "" if len(line) > 120 and found != "\t" and f"{found} " in line else found


def _run(flags: Iterable[bool]) -> int:
    """Return how many of the first flags hold."""
    return sum(1 for _ in takewhile(bool, flags))


def _sentences(text: str, start: int, end: int, *, most: int) -> list[tuple[int, int]]:
    """Return the sentences of a part of a text, a few more than ``most`` at the most.

    It is cut in windows. The last sentence of a window is cut again with what follows, so that windows change no sentence.
    """
    found: list[tuple[int, int]] = []
    size = _WINDOW
    while start < end and len(found) < most:
        stop = min(end, start + size)
        pieces = sentences(text[start:stop])
        if stop < end and len(pieces) < 2:
            size *= 2
            continue
        found += [(start + low, start + high) for low, high in (pieces if stop == end else pieces[:-1])]
        start = end if stop == end else start + pieces[-1][0]
        size = _WINDOW
    return found


def _separators(line: str, separator: str) -> int:
    """Return how often a separator stands outside of quotes."""
    return (
        line.count(separator)
        if '"' not in line
        else sum(part.count(separator) for part in line.split('"')[::2])
    )


def _key_of(line: str) -> re.Match[str] | None:
    """Return the match of a line with a key, with its value behind it or with a block below it."""
    match = _KEYED.match(line)
    if match is None:
        return _OPENING.match(line)
    key = match["key"]
    return match if len(key.split()) <= _MOST_KEY_WORDS and "," not in key and ". " not in key else None


def _line_ranges(text: str, start: int, end: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        if stop > start:
            found.append((start, stop))
        start = stop + 1
    return found


def _cells(text: str, start: int, end: int, separator: str) -> list[tuple[int, int]]:
    low, high = trimmed(text, start, end)
    if separator == "|":
        low += text[low : low + 1] == "|"
        high -= text[high - 1 : high] == "|" and high > low
    found: list[tuple[int, int]] = []
    quoted = False
    first = low
    for at in range(low, high):
        each = text[at]
        if each == '"' and separator != "|":
            quoted = not quoted
        elif each == separator and not quoted:
            found.append(trimmed(text, first, at))
            first = at + 1
    found.append(trimmed(text, first, high))
    return found
