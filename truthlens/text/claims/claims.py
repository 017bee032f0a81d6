"""The claims of an answer: sentences, and the clauses of a sentence where they can safely be told apart.

Works by layout and closed word classes, in English and Chinese; other languages get whole sentences. JSON is cut into its
leaves. It resolves no pronoun, rewrites nothing and does not check whether a claim is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import count

from truthlens.text.claims.clauses import clauses
from truthlens.text.claims.non_claims import is_claimless
from truthlens.text.json_leaves import JsonBlock, JsonLeaf, json_block
from truthlens.text.json_ranges import BEGINS, unescaped
from truthlens.text.sentences import sentences
from truthlens.text.spans import trimmed

_HAN = r"\u3400-\u4dbf\u4e00-\u9fff"
# From two letters on: one capital letter is an initial, a small one is a marker whatever it counts.
_ROMAN = r"x{1,3}(?:ix|iv|v?i{0,3})(?<=..)|ix|iv|vi{1,3}|i{2,3}"
MARKER = re.compile(
    rf"[ \t]*(?:>|[-*+•·▪◦‣–—](?=[ \t])|#{{1,6}}(?=[ \t])"
    rf"|(?:\d{{1,3}}|[a-z]|{_ROMAN}|{_ROMAN.upper()})[.)](?=[ \t]|[{_HAN}])"
    rf"|\d{{1,3}}[、．]|[(（]\d{{1,3}}[)）]|[①-⑳]|[一二三四五六七八九十]{{1,3}}、|\[[ xX]\](?=[ \t]))[ \t]*"
)
"""One list, quote or heading marker at the start of a line, with the white space around it."""

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_JSON_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*(?:json[5cl]?|jsonlines)?[ \t]*\r?", re.IGNORECASE)
_OBJECT = re.compile(r"\{\s*+\"(?:[^\"\\\n]|\\.)*+\"\s*+:")
_RULE_CELL = re.compile(r":?-+:?")
_CELL_MARK = re.compile(r"(?<!\\)\|")
_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]")
_BOLD_LINE = re.compile(r"\*\*[^*\n]+?[^*\n.!?。！？][:：]?\*\*[:：]?|__[^_\n]+?[^_\n.!?。！？]__[:：]?")
_WORD = re.compile(r"[^\W_]")
_UNFINISHED = re.compile(r"[^\s.!?:;。！？：；]$")
# A reference in brackets behind the full stop belongs to what it is given for.
_ATTACHED = re.compile(r"[(\[（【][^()\[\]（）【】]{1,60}[)\]）】][.。]?")


@dataclass(frozen=True, slots=True)
class Claim:
    """Characters ``start`` (inclusive) to ``end`` (exclusive) of an answer, and what stands there.

    ``factual`` is false where nothing is claimed: phrases of a closed list, headings of what follows, code.
    ``sentence`` is the range of the sentence that a clause was cut from, ``None`` where the claim is one itself.
    ``row`` marks a row of a table. ``path`` is the JSON Pointer of what stands in JSON, ``""`` elsewhere; where a text holds several
    objects or lists, as JSON Lines do, its first step is the number of the one, from 0. ``context`` is the range without
    which the claim is not understood: the lead-in or heading of a list item, the head of a table row, the key around a leaf of JSON.
    """

    start: int
    end: int
    text: str
    factual: bool = True
    sentence: tuple[int, int] | None = None
    row: bool = False
    path: str = ""
    context: tuple[int, int] | None = None


def claims(text: str) -> list[Claim]:
    """Return the claims of ``text``, in order, not overlapping.

    What stands outside of them is white space, signs, markers of lists and headings, the marks of a block of JSON, and what
    joins two clauses of one sentence (", and "). A block of code is one claim that is not factual; a row of a table is one claim, and so
    is each leaf of JSON, from its key to its value; of a longer text in JSON each claim is one.
    """
    found: list[Claim] = []
    lead_ins = _LeadIns()
    blocks = list(_blocks(text))
    documents = len({block.document for block in blocks if block.leaf is not None})
    for number, block in enumerate(blocks, 1):
        context = block.head or lead_ins.of(block)
        first = len(found)
        if block.leaf is not None:
            leaf = block.leaf
            if documents > 1:
                leaf = replace(leaf, path=f"/{block.document}{leaf.path}")
            found.extend(_leaf(text, leaf))
            continue
        # A heading that nothing follows announces nothing.
        if block.kind is _Kind.PROSE or (block.kind is _Kind.HEADING and number == len(blocks)):
            found.extend(replace(each, context=context) for each in _prose(text, block))
        else:
            start, end = trimmed(text, block.start, block.end)
            is_row = block.kind is _Kind.ROW
            row = block.kind in _TABLE
            found.append(Claim(start, end, text[start:end], factual=is_row, row=row, context=context))
        if len(found) > first:
            lead_ins.add(block, found[-1].sentence or (found[-1].start, found[-1].end), text)
    return found


@dataclass(slots=True)
class _LeadIns:
    """What announces the items of the list that is being read: one for each indentation, the outermost first."""

    open: list[tuple[int, tuple[int, int]]] = field(default_factory=list)

    def of(self, block: _Block) -> tuple[int, int] | None:
        """Return what announces ``block``, ``None`` where it is no item of a list, or nothing does."""
        if block.indent is None:
            return None
        while self.open and self.open[-1][0] >= block.indent:
            self.open.pop()
        return self.open[-1][1] if self.open else None

    def add(self, block: _Block, last: tuple[int, int], text: str) -> None:
        """Take note of a block of ``text``, whose last sentence is ``last``."""
        if block.indent is None:
            self.open.clear()
        if block.kind is _Kind.HEADING or text[slice(*last)].rstrip(" *_").endswith((":", "：")):
            self.open.append((-1 if block.indent is None else block.indent, last))


def _leaf(text: str, leaf: JsonLeaf) -> Iterator[Claim]:
    """Yield the claims of one leaf: one, or those of the text that is its value; the first has the key as well."""
    whole = text[leaf.start : leaf.end]
    parts: list[Claim] = []
    if leaf.value is not None:
        inside = unescaped(text, *leaf.value)
        parts = claims(inside.text)
    if len(parts) < 2:
        if _WORD.search(whole):
            factual = not leaf.is_key and not is_claimless(whole)
            yield Claim(leaf.start, leaf.end, whole, factual, path=leaf.path, context=leaf.context)
        return

    def there(place: tuple[int, int] | None) -> tuple[int, int] | None:
        return None if place is None else (inside.places[place[0]], inside.places[place[1]])

    for number, part in enumerate(parts):
        start = leaf.start if number == 0 else inside.places[part.start]
        end = leaf.end if number == len(parts) - 1 else inside.places[part.end]
        yield replace(
            part,
            start=start,
            end=end,
            text=text[start:end],
            factual=part.factual or number == 0,
            sentence=_around(there(part.sentence), start, end),
            path=leaf.path + part.path,
            context=there(part.context) or leaf.context,
        )


def _around(sentence: tuple[int, int] | None, start: int, end: int) -> tuple[int, int] | None:
    return None if sentence is None else (min(start, sentence[0]), max(end, sentence[1]))


def scored_claims(text: str) -> list[Claim]:
    """Return the claims of ``text`` that count in its verdict: all but the phrases of the closed list; headings and code are read as well."""
    return [each for each in claims(text) if each.factual or not is_claimless(each.text)]


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a text that stands by itself: a sentence of prose or a heading, a row of a table, a block of code, a leaf of JSON.

    ``context`` is the range of what announces it, as of a claim.
    """

    start: int
    end: int
    row: bool = False
    code: bool = False
    context: tuple[int, int] | None = None


def units(text: str) -> Iterator[Unit]:
    """Yield the units of ``text``, in order, not overlapping, whether they claim anything or not; without markers of lists."""
    lead_ins = _LeadIns()
    for block in _blocks(text):
        if block.leaf is not None:
            yield Unit(block.start, block.end, context=block.leaf.context)
            continue
        context = block.head or lead_ins.of(block)
        if block.kind in _TABLE or block.kind is _Kind.CODE:
            place = trimmed(text, block.start, block.end)
            row, code = block.kind in _TABLE, block.kind is _Kind.CODE
            yield Unit(*place, row=row, code=code, context=context)
            lead_ins.add(block, place, text)
            continue
        last: tuple[int, int] | None = None
        for start, end in _sentences(text[block.start : block.end].replace("\n", " ")):
            last = block.start + start, block.start + end
            yield Unit(*last, context=context)
        if last is not None:
            lead_ins.add(block, last, text)


class _Kind(Enum):
    PROSE = auto()
    HEADING = auto()
    CODE = auto()
    ROW = auto()
    HEADER_ROW = auto()
    JSON = auto()


_TABLE = frozenset({_Kind.ROW, _Kind.HEADER_ROW})


@dataclass(frozen=True, slots=True)
class _Block:
    """Characters of a text that are of one kind, without the markers before them.

    ``indent`` is that of an item of a list, ``head`` the head of a table's row, ``leaf`` what stands in JSON, in the object or list
    number ``document`` of the text.
    """

    kind: _Kind
    start: int
    end: int
    indent: int | None = None
    head: tuple[int, int] | None = None
    leaf: JsonLeaf | None = None
    document: int = 0


def _blocks(text: str) -> Iterator[_Block]:
    lines = _lines(text)
    place = 0
    head: tuple[int, int] | None = None
    in_table = False
    json = _Json(text)
    documents = count()
    while place < len(lines):
        start, end = lines[place]
        line = text[start:end]
        if fence := _FENCE.match(line):
            last = _closing(text, lines, place, fence[1])
            yield from _fenced(text, lines, place, last, documents)
            place = last + 1
            continue
        following = text[slice(*lines[place + 1])] if place + 1 < len(lines) else ""
        if not in_table and _is_table_rule(line, following):
            yield _Block(_Kind.HEADER_ROW, start, end)
            place, in_table, head = place + 2, True, trimmed(text, start, end)
            continue
        in_table = in_table and "|" in line
        if in_table or _ROW.fullmatch(line):
            yield _Block(_Kind.ROW, start, end, head=head if in_table else None)
            place += 1
            continue
        if (found := json.find(start, end)) is not None:
            begins, block = found
            yield from _line_block(text, start, begins)
            yield from _leaf_blocks(block, documents)
            while place < len(lines) and lines[place][1] <= block.end:
                place += 1
            if place < len(lines) and lines[place][0] < block.end:
                lines[place] = block.end, lines[place][1]
            continue
        last = _paragraph(text, lines, place)
        yield from _line_block(text, start, lines[last][1])
        place = last + 1


class _Json:
    """Finds JSON in the lines of one text: at the start of a line, or behind prose on one; not where a word follows it on its line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._all = trimmed(text, 0, len(text))
        # What was looked at in vain is not looked at again, so that time stays linear.
        self._plain_until = 0
        self._unclosed = False

    def find(self, start: int, end: int) -> tuple[int, JsonBlock] | None:
        """Return where JSON begins in the line from ``start`` to ``end``, with its leaves."""
        if start < self._plain_until:
            return None
        if BEGINS.match(self._text, start):
            block = json_block(self._text, start)
            if block.is_plain and not (start <= self._all[0] and block.end >= self._all[1]):
                # Numbers in brackets may be citations.
                self._plain_until = block.end
                return None
            fits = block.end > end or not block.is_closed or self._ends_line(block.end, end)
            return (start, block) if fits else None
        begins = -1 if self._unclosed else self._text.find("{", start, end)
        if begins < 0 or not _OBJECT.match(self._text, begins):
            return None
        block = json_block(self._text, begins)
        self._unclosed = not block.is_closed
        fits = block.is_closed and (block.end > end or self._ends_line(block.end, end))
        return (begins, block) if fits else None

    def _ends_line(self, place: int, end: int) -> bool:
        return not _WORD.search(self._text, place, end)


def _leaf_blocks(block: JsonBlock, documents: Iterator[int]) -> Iterator[_Block]:
    document = next(documents) if block.leaves else 0
    for leaf in block.leaves:
        yield _Block(_Kind.JSON, leaf.start, leaf.end, leaf=leaf, document=document)


def _fenced(
    text: str, lines: list[tuple[int, int]], place: int, last: int, documents: Iterator[int]
) -> Iterator[_Block]:
    """Yield a block of code, from line ``place`` to ``last``: the leaves of JSON that it holds, else one block."""
    start, end = lines[place][0], lines[last][1]
    fence = text[start:end].lstrip(" \t")[0]
    closed = last > place and not text[slice(*lines[last])].strip().strip(fence)
    limit = lines[last][0] if closed else end
    begins = lines[place][1]
    match = BEGINS.search(text, begins, limit) if _JSON_FENCE.fullmatch(text, start, begins) else None
    if match is None or text[begins : match.start()].strip():
        yield _Block(_Kind.CODE, start, end)
        return
    while match is not None and not text[begins : match.start()].strip():
        block = json_block(text, match.start(), limit)
        yield from _leaf_blocks(block, documents)
        begins = block.end
        match = BEGINS.search(text, begins, limit)
    if _WORD.search(text, begins, limit):
        yield _Block(_Kind.CODE, begins, limit)


def _lines(text: str) -> list[tuple[int, int]]:
    """Return the ranges of the lines, without their line breaks."""
    found: list[tuple[int, int]] = []
    start = 0
    for line in text.split("\n"):
        found.append((start, start + len(line)))
        start += len(line) + 1
    return found


def _is_table_rule(head: str, line: str) -> bool:
    """Return whether ``line`` is the one between the head and the rows of a table, with as many cells: ``|-|:---:|``.

    Source: GitHub Flavored Markdown, tables.
    """
    if "|" not in head or "|" not in line:
        return False
    cells = _cells(line)
    return all(_RULE_CELL.fullmatch(cell.strip(" \t")) for cell in cells) and len(cells) == len(_cells(head))


def _cells(line: str) -> list[str]:
    return _CELL_MARK.split(line.strip(" \t\r").removeprefix("|").removesuffix("|"))


def _closing(text: str, lines: list[tuple[int, int]], place: int, fence: str) -> int:
    """Return the number of the line that closes a block of code; the last line where none does."""
    for number in range(place + 1, len(lines)):
        if text[slice(*lines[number])].strip().startswith(fence):
            return number
    return len(lines) - 1


def _paragraph(text: str, lines: list[tuple[int, int]], place: int) -> int:
    """Return the number of the last line that goes on with the sentence of line ``place``: text wrapped by hand."""
    while place + 1 < len(lines):
        line, following = text[slice(*lines[place])], text[slice(*lines[place + 1])]
        if (
            not _UNFINISHED.search(line.rstrip())
            or not following.lstrip()[:1].islower()
            or MARKER.match(following)
            or _HEADING.match(line)
            or "|" in following
        ):
            break
        place += 1
    return place


def _line_block(text: str, start: int, end: int) -> Iterator[_Block]:
    heading, before, indent = False, start, None
    word = _WORD.search(text, start, end)
    while marker := MARKER.match(text, start, end):
        heading = heading or "#" in marker[0]
        if not marker[0].strip().startswith((">", "#")):
            indent = start - before + len(marker[0]) - len(marker[0].lstrip())
        if word is not None and word.start() < marker.end():
            word = _WORD.search(text, marker.end(), end)
            if word is None:
                # A number with nothing behind it is what the line says.
                break
        start = marker.end()
    start, end = trimmed(text, start, end)
    if not _WORD.search(text, start, end):
        return
    heading = heading or _BOLD_LINE.fullmatch(text, start, end) is not None
    yield _Block(_Kind.HEADING if heading else _Kind.PROSE, start, end, indent)


def _prose(text: str, block: _Block) -> Iterator[Claim]:
    flat = text[block.start : block.end].replace("\n", " ")
    for first, last in _sentences(flat):
        start, end = block.start + first, block.start + last
        if is_claimless(flat[first:last]):
            yield Claim(start, end, text[start:end], factual=False)
            continue
        parts = clauses(flat[first:last])
        whole = (start, end) if len(parts) > 1 else None
        for left, right in parts:
            yield Claim(start + left, start + right, text[start + left : start + right], sentence=whole)


def _sentences(flat: str) -> list[tuple[int, int]]:
    """Return the sentences of one paragraph; a reference that was cut off is put back."""
    found: list[tuple[int, int]] = []
    for start, end in sentences(flat):
        if found:
            first, last = found[-1]
            attached = _ATTACHED.fullmatch(flat, start, end) or not _WORD.search(flat, start, end)
            if attached or not _WORD.search(flat, first, last):
                found[-1] = (first, end)
                continue
        found.append((start, end))
    return found
