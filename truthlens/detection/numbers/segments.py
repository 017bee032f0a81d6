"""Cut a text into what speaks of one thing: sentences, rows and cells of tables, ``key: value`` lines, leaves of JSON. Pure.

Works on marks and lines, not on trees, so that JSON which is broken or cut off is read as far as it goes, in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

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
        text = self._text
        keys: list[str] = []
        stack: list[tuple[str, int, int]] = []
        start += len(self._text[start : start + 80]) - len(self._text[start : start + 80].lstrip(" \t"))
        key: str | None = None
        at = start
        for part in _PART.finditer(text, start):
            checkpoint()
            mark = part["mark"]
            at = part.end()
            if mark in ("{", "["):
                self._record += mark == "{"
                stack.append((mark, self._record if mark == "{" or not stack else stack[-1][1], len(keys)))
                if key is not None:
                    keys.append(key)
                key = None
                if len(stack) > _DEEPEST:
                    break
            elif mark in ("}", "]"):
                if not stack:
                    break
                _, _, depth = stack.pop()
                del keys[depth:]
                key = None
                if not stack:
                    break
            elif mark in (",", ":"):
                key = None if mark == "," and stack and stack[-1][0] == "{" else key
            elif not stack:
                break
            elif stack[-1][0] == "{" and key is None and text[at : at + 3].lstrip().startswith(":"):
                key = next(
                    (each for each in (part["double"], part["single"], part["bare"]) if each is not None), ""
                )
            else:
                group = (
                    "double"
                    if part["double"] is not None
                    else "single"
                    if part["single"] is not None
                    else "bare"
                )
                first, last = part.span(group)
                if first < last:
                    path = tuple(spaced(each) for each in ([key] if key else []) + keys[::-1])
                    yield Segment(first, last, path, stack[-1][1]), at
        yield None, at

    def _lines(self, start: int, end: int) -> list[Segment]:
        """Return the segments of what is no JSON: tables, ``key: value`` lines, prose."""
        found: list[Segment] = []
        lines = _line_ranges(self._text, start, end)
        number = prose = 0
        parents: list[tuple[int, str]] = []
        own: dict[int, int] = {}
        while number < len(lines) and len(found) < self._most:
            checkpoint()
            first, last = lines[number]
            line = self._text[first:last]
            height = (
                self._table_height(lines, number)
                if "|" in line or "," in line or ";" in line or "\t" in line
                else 0
            )
            keyed = None if height else _KEYED.match(line)
            opening = None if height or keyed else _OPENING.match(line)
            if not height and (keyed is None or not _is_key(keyed)) and opening is None:
                number += 1
                continue
            found += self._prose(lines, prose, number)
            if height:
                found += self._table(lines[number : number + min(height, self._most)])
                number += height
                prose = number
                continue
            match = keyed if keyed is not None and _is_key(keyed) else opening
            assert match is not None  # one of the two, or the loop went on
            indent = len(match["indent"]) + 2 * bool(match["item"])
            while parents and parents[-1][0] >= indent:
                parents.pop()
            if match["item"] or indent not in own or not found:
                self._record += 1
                own = {depth: record for depth, record in own.items() if depth < indent} | {
                    indent: self._record
                }
            else:
                own = {depth: record for depth, record in own.items() if depth <= indent}
            if match.re is _OPENING:
                parents.append((indent, spaced(match["key"])))
            else:
                labels = (spaced(match["key"]), *(name for _, name in reversed(parents)))
                found += self._keyed(first + match.start("value"), last, labels, own[indent])
            number += 1
            prose = number
        return found + self._prose(lines, prose, number)

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
        return [Segment(low, high) for low, high in _sentences(self._text, start, end, most=self._most)]

    def _table_height(self, lines: list[tuple[int, int]], number: int) -> int:
        """Return how many lines from ``number`` on are a table, 0 for less than two rows."""
        first = self._text[slice(*lines[number])]
        separator = "|" if first.count("|") >= 2 or (first.count("|") == 1 and " | " in first) else ""
        if not separator:
            separator = next((each for each in _SEPARATORS if first.count(each) >= 2), "")
            if not separator or (
                separator != "\t" and re.search(rf"{separator} ", first) and len(first) > 120
            ):
                return 0
        if separator == "|" and number + 1 < len(lines):
            count = first.count("|")
            height = 0
            while number + height < len(lines) and self._text[slice(*lines[number + height])].count(
                "|"
            ) >= max(1, count - 2):
                height += 1
            return height if height > 1 else 0
        count = _separators(first, separator)
        height = 0
        while number + height < len(lines):
            line = self._text[slice(*lines[number + height])]
            if _separators(line, separator) != count or not line.strip():
                break
            height += 1
        spaces = first.count(f"{separator} ")
        return height if height > 2 and not (separator == "," and spaces == count and height < 4) else 0

    def _table(self, lines: list[tuple[int, int]]) -> list[Segment]:
        text = self._text
        first = text[slice(*lines[0])]
        separator = "|" if "|" in first else max(_SEPARATORS, key=first.count)
        rows = [
            _cells(text, start, end, separator)
            for start, end in lines
            if not (separator == "|" and _RULE.match(text[start:end]))
        ]
        heads = [text[slice(*cell)].strip(" *\"'") for cell in rows[0]] if rows else []
        headed = sum(any(each.isdigit() for each in head) for head in heads) * 2 <= len(heads)
        found: list[Segment] = []
        for row in rows[1:] if headed else rows:
            self._record += 1
            names = [text[slice(*cell)].strip(" *\"'") for cell in row]
            label = next(
                (name for name in names[:2] if any(each.isalpha() for each in name)),
                names[0] if names else "",
            )
            for column, (start, end) in enumerate(row[:_MOST_COLUMNS]):
                if start < end:
                    head = spaced(heads[column]) if headed and column < len(heads) else ""
                    found.append(Segment(start, end, (head,) if head else (), self._record, label))
        if headed:
            found += [Segment(start, end) for start, end in rows[0] if start < end]
        return found


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


def _is_key(match: re.Match[str]) -> bool:
    key = match["key"]
    return len(key.split()) <= _MOST_KEY_WORDS and "," not in key and ". " not in key


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
