"""The claims of an answer: sentences, and the clauses of a sentence where they can safely be told apart.

Works by layout and closed word classes, in English and Chinese; other languages get whole sentences. It resolves no
pronoun, rewrites nothing and does not check whether a claim is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from truthlens.text.claims.clauses import clauses
from truthlens.text.claims.non_claims import Query, is_claimless
from truthlens.text.sentences import sentences
from truthlens.text.spans import trimmed

_HAN = r"\u3400-\u4dbf\u4e00-\u9fff"
MARKER = re.compile(
    rf"[ \t]*(?:>|[-*+•·▪◦‣–—](?=[ \t])|#{{1,6}}(?=[ \t])|(?:\d{{1,3}}|[a-z])[.)](?=[ \t]|[{_HAN}])"
    rf"|\d{{1,3}}[、．]|[(（]\d{{1,3}}[)）]|[①-⑳]|[一二三四五六七八九十]{{1,3}}、|\[[ xX]\](?=[ \t]))[ \t]*"
)
"""One list, quote or heading marker at the start of a line, with the white space around it."""

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_RULE_CELL = re.compile(r":?-{2,}:?")
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

    ``factual`` is false where nothing is claimed: greetings, lead-ins, headings, questions, abstentions, code.
    ``sentence`` is the range of the sentence that a clause was cut from, ``None`` where the claim is one itself.
    ``row`` marks a row of a table.
    """

    start: int
    end: int
    text: str
    factual: bool = True
    sentence: tuple[int, int] | None = None
    row: bool = False


def claims(text: str, *, query: str = "") -> list[Claim]:
    """Return the claims of ``text``, in order, not overlapping.

    What stands outside of them is white space, markers of lists and headings, rules, and what joins two clauses of
    one sentence (", and "). A block of code is one claim that is not factual; a row of a table is one claim.

    Args:
        text: an answer.
        query: what the user asked: what a sentence may speak of without claiming anything.
    """
    asked = Query(query)
    found: list[Claim] = []
    for block in _blocks(text):
        if block.kind is _Kind.PROSE:
            found.extend(_prose(text, block, asked))
        else:
            start, end = trimmed(text, block.start, block.end)
            is_row = block.kind is _Kind.ROW
            found.append(Claim(start, end, text[start:end], factual=is_row, row=block.kind in _TABLE))
    return found


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a text that stands by itself: a sentence of prose or a heading, a row of a table, a block of code."""

    start: int
    end: int
    row: bool = False
    code: bool = False


def units(text: str) -> Iterator[Unit]:
    """Yield the units of ``text``, in order, not overlapping, whether they claim anything or not; without markers of lists."""
    for block in _blocks(text):
        if block.kind in _TABLE or block.kind is _Kind.CODE:
            yield Unit(
                *trimmed(text, block.start, block.end),
                row=block.kind in _TABLE,
                code=block.kind is _Kind.CODE,
            )
            continue
        for start, end in _sentences(text[block.start : block.end].replace("\n", " ")):
            yield Unit(block.start + start, block.start + end)


class _Kind(Enum):
    PROSE = auto()
    HEADING = auto()
    CODE = auto()
    ROW = auto()
    HEADER_ROW = auto()


_TABLE = frozenset({_Kind.ROW, _Kind.HEADER_ROW})


@dataclass(frozen=True, slots=True)
class _Block:
    """Characters of a text that are of one kind, without the markers before them."""

    kind: _Kind
    start: int
    end: int


def _blocks(text: str) -> Iterator[_Block]:
    lines = _lines(text)
    place = 0
    in_table = False
    while place < len(lines):
        start, end = lines[place]
        line = text[start:end]
        if fence := _FENCE.match(line):
            last = _closing(text, lines, place, fence[1])
            yield _Block(_Kind.CODE, start, lines[last][1])
            place = last + 1
            continue
        following = text[slice(*lines[place + 1])] if place + 1 < len(lines) else ""
        if "|" in line and "|" in following and _is_table_rule(following):
            yield _Block(_Kind.HEADER_ROW, start, end)
            place, in_table = place + 2, True
            continue
        in_table = in_table and "|" in line
        if in_table or _ROW.fullmatch(line):
            yield _Block(_Kind.ROW, start, end)
            place += 1
            continue
        last = _paragraph(text, lines, place)
        yield from _line_block(text, start, lines[last][1])
        place = last + 1


def _lines(text: str) -> list[tuple[int, int]]:
    """Return the ranges of the lines, without their line breaks."""
    found: list[tuple[int, int]] = []
    start = 0
    for line in text.split("\n"):
        found.append((start, start + len(line)))
        start += len(line) + 1
    return found


def _is_table_rule(line: str) -> bool:
    """Return whether ``line`` is the one between the head and the rows of a table: ``|---|:---:|``."""
    cells = line.strip(" \t").removeprefix("|").removesuffix("|").split("|")
    return all(_RULE_CELL.fullmatch(cell.strip(" \t")) for cell in cells)


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
    heading = False
    while marker := MARKER.match(text, start, end):
        heading = heading or "#" in marker[0]
        start = marker.end()
    start, end = trimmed(text, start, end)
    if not _WORD.search(text, start, end):
        return
    heading = heading or _BOLD_LINE.fullmatch(text, start, end) is not None
    yield _Block(_Kind.HEADING if heading else _Kind.PROSE, start, end)


def _prose(text: str, block: _Block, asked: Query) -> Iterator[Claim]:
    flat = text[block.start : block.end].replace("\n", " ")
    for first, last in _sentences(flat):
        start, end = block.start + first, block.start + last
        if is_claimless(flat[first:last], asked):
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
