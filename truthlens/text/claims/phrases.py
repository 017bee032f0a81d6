"""Grow ranges of a text to phrases that people can read: the clause, cell, line or value that a range stands in. Pure.

For showing alone: what a detector marked is often one word, or the half of two. No parser and no model: closed word
classes and punctuation, in English and, by their commas, Chinese and Japanese; other languages get whole sentences.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from truthlens.core.cancellation import checkpoint
from truthlens.text.claims.claims import units
from truthlens.text.claims.clauses import clauses
from truthlens.text.json_ranges import json_ranges
from truthlens.text.scripts import CJK, KANA
from truthlens.text.sentences import sentences
from truthlens.text.spans import trimmed

MOST_CHARS = 300
"""Of a phrase; a longer one is cut at the white space nearest to so many characters around its range."""

_LEAST_WORDS = 4
_LEAST_CJK = 4
_SHORT_WORDS = 12
_WORD = re.compile(r"\w[\w'’-]*")
_CJK = re.compile(f"[{CJK}]")
_LETTER = re.compile(r"[^\W\d_]")
# Where a long clause is cut; the next one begins behind the match.
_JOINT = re.compile(
    r"\s*;\s+|\s+[–—]\s+|:\s+(?=\w)"
    r"|,?\s+(?=(?:because|although|though|whereas|unless|even though|so that)\s)"
    r"|,\s+(?=(?:while|since|but|yet|so|if|when|after|before|until|provided|except)\s)",
    re.IGNORECASE,
)
# A relative clause is cut off only at the end of its sentence: within one, what follows it belongs to what was before.
_RELATIVE = re.compile(r",\s+(?=(?:which|who|whose|whom|where)\s[^,;:]*$)", re.IGNORECASE)
_JOINT_CJK = re.compile(r"[，；,;]\s*")
# In Chinese this mark separates the items of a list.
_JOINT_KANA = re.compile(r"[、，；,;]\s*")
_KANA = re.compile(f"[{KANA}]")
# Longer is no sentence of prose, and nothing here may take long over what is none.
_LONGEST = 1200
_NESTING = re.compile(r"[()\[\]{}（）【】「」『』《》“”\"]")
_OPENING, _CLOSING = "([{（【「『《“", ")]}）】」』》”"
_CELL = re.compile(r"(?<!\\)\|")
_LINE = re.compile(r"[^\n]+")


def phrases_around(text: str, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return for each of ``ranges`` the phrase of ``text`` around it, which holds all of it but white space at its ends.

    A phrase ends where its clause, sentence, list item, table cell, line of code or JSON value ends; a range that
    reaches over several of them grows to the edges of its first and its last one. Blank and empty ranges, and those that
    stand outside of all of them, stay as they are.
    """
    if not ranges:
        return []
    edges = _Edges(text)
    return [edges.grown(start, end) for start, end in ranges]


class _Edges:
    """The pieces of one text; each unit is cut into its phrases once, and only where a range touches it."""

    def __init__(self, text: str) -> None:
        self._text = text
        found = json_ranges(text)
        pieces: list[tuple[int, int, bool, bool]] = []
        for unit in units(text):
            # What is JSON is cut by its values; a unit that only touches some keeps what is before and behind.
            outside = _outside(unit.start, unit.end, found.blocks)
            pieces += ((start, end, unit.row, unit.code) for start, end in outside)
        pieces += ((start, end, False, False) for start, end in found.words)
        for first, last in found.strings:
            within = sentences(text[first:last])
            pieces += ((first + start, first + end, False, False) for start, end in within)
        self._units = sorted(pieces)
        self._starts = [start for start, *_ in self._units]
        self._phrases: dict[int, list[tuple[int, int]]] = {}

    def grown(self, start: int, end: int) -> tuple[int, int]:
        """Return the range from the first phrase that it touches to the end of the last one."""
        checkpoint()
        start, end = max(start, 0), min(end, len(self._text))
        first, last = trimmed(self._text, start, end)
        if first >= last:
            return start, end
        left, right = self._phrase(first), self._phrase(last - 1)
        return (
            first if left is None else self._near(left[0], first, last)[0],
            last if right is None else self._near(right[1], first, last)[1],
        )

    def _near(self, edge: int, start: int, end: int) -> tuple[int, int]:
        """Return the range with ``edge`` in it, or with so much of the way there as a phrase may have."""
        spare = max(0, MOST_CHARS - (end - start)) // 2
        if edge < start:
            if start - edge > max(spare, MOST_CHARS // 2):
                cut = self._text.find(" ", start - max(spare, 1), start)
                edge = cut + 1 if cut >= 0 else start
            return edge, end
        if edge > end:
            if edge - end > max(spare, MOST_CHARS // 2):
                cut = self._text.rfind(" ", end, end + max(spare, 1))
                edge = cut if cut >= 0 else end
            return start, edge
        return start, end

    def _phrase(self, place: int) -> tuple[int, int] | None:
        """Return the phrase that a character stands in; of what joins two of them, the one before."""
        number = bisect_right(self._starts, place) - 1
        if number < 0 or place >= self._units[number][1]:
            return None
        if number not in self._phrases:
            self._phrases[number] = self._cut(*self._units[number])
        phrases = self._phrases[number]
        return phrases[max(bisect_right(phrases, place, key=lambda each: each[0]) - 1, 0)]

    def _cut(self, start: int, end: int, row: bool, code: bool) -> list[tuple[int, int]]:
        if row:
            found = _between(self._text, start, end, _CELL)
        elif code:
            found = [match.span() for match in _LINE.finditer(self._text, start, end)]
        else:
            sentence = self._text[start:end].replace("\n", " ")
            found = [(start + first, start + last) for first, last in _phrases(sentence)]
        kept = [trimmed(self._text, *each) for each in found]
        return [each for each in kept if each[0] < each[1]] or [(start, end)]


def _outside(start: int, end: int, blocks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return what of a range lies outside of ``blocks``."""
    found: list[tuple[int, int]] = []
    begun = bisect_right(blocks, start, key=lambda each: each[1])
    for first, last in blocks[begun : bisect_left(blocks, (end, end))]:
        if first > start:
            found.append((start, first))
        start = max(start, last)
    return [*found, (start, end)] if start < end else found


def _between(text: str, start: int, end: int, mark: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return what stands between the matches of ``mark``."""
    found: list[tuple[int, int]] = []
    for match in mark.finditer(text, start, end):
        found.append((start, match.start()))
        start = match.end()
    return [*found, (start, end)]


def _phrases(sentence: str) -> list[tuple[int, int]]:
    """Return the phrases of a sentence: its clauses, long ones cut where a further one begins."""
    found: list[tuple[int, int]] = []
    for start, end in clauses(sentence):
        clause = sentence[start:end]
        if len(clause) > _LONGEST:
            found.append((start, end))
        elif 5 * len(_CJK.findall(clause)) >= len(_LETTER.findall(clause)) > 0:
            found += _pieces(
                sentence, start, end, [_JOINT_KANA if _KANA.search(clause) else _JOINT_CJK], _holds_cjk
            )
        elif len(_WORD.findall(clause)) > _SHORT_WORDS:
            found += _pieces(sentence, start, end, [_JOINT, _RELATIVE], _holds_words)
        else:
            found.append((start, end))
    return found


def _pieces(
    sentence: str,
    start: int,
    end: int,
    joints: Sequence[re.Pattern[str]],
    holds: Callable[[str, int, int], bool],
) -> list[tuple[int, int]]:
    marks = [(match.start(), match[0]) for match in _NESTING.finditer(sentence, start, end)]
    cuts = sorted({match.span() for joint in joints for match in joint.finditer(sentence, start, end)})
    found: list[tuple[int, int]] = []
    for first, last in cuts:
        if first >= start and not _is_nested(marks, first) and holds(sentence, start, first):
            if not holds(sentence, last, end):
                break
            found.append((start, first))
            start = last
    return [*found, (start, end)]


def _holds_words(text: str, start: int, end: int) -> bool:
    return len(_WORD.findall(text, start, end)) >= _LEAST_WORDS


def _holds_cjk(text: str, start: int, end: int) -> bool:
    return len(_CJK.findall(text, start, end)) >= _LEAST_CJK


def _is_nested(marks: Sequence[tuple[int, str]], place: int) -> bool:
    """Return whether a place stands in brackets or quotation marks."""
    depth = 0
    quoted = False
    for at, mark in marks:
        if at >= place:
            break
        depth += (mark in _OPENING) - (mark in _CLOSING)
        quoted ^= mark == '"'
    return depth > 0 or quoted
