"""Read a text without its citation marks and lists of sources, and tell where its characters stand with them. Pure.

Only what can hold no claim is left out: marks of known ids and files, or whose form has no room for words (``[S0]``, ``[doc-7]``,
numbers up to that of the passages), and lines of a list that name nothing but a known source. What else stands in a bracket is read.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from truthlens.text.citations import (
    GENERIC_WORDS,
    HEADS_LIST,
    SOURCE_WORDS,
    Citation,
    CitedText,
    Labels,
    fence_after,
    find_citations,
    has_words_behind,
    is_code,
    without_place,
    without_word,
)
from truthlens.text.scripts import CJK
from truthlens.text.spans import merge_ranges

_CANDIDATE = re.compile(r"[\[【［〔(（<†⁰¹²³⁴-⁹]|\{\{")
_HEADING = re.compile(rf"^(?:{HEADS_LIST.pattern})$", re.IGNORECASE | re.MULTILINE)
_RECORD = re.compile(r"\s*(?:\{(?!\{)|\[\s*[\[{\"])")
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"(\s*:)?")
_BETWEEN = re.compile(r"[ \t,;，；、]{0,4}(?:(?:and|und|et|y|&|和|及)[ \t]{1,3})?")
_AROUND = (("[", "]"), ("(", ")"), ("（", "）"), ("<sup>", "</sup>"), ("**", "**"), ("^", "^"))
_LEAD = re.compile(rf"(?:(?<=\W)|^)(?:{SOURCE_WORDS})[ \t]?[:：][ \t]{{0,3}}\Z", re.IGNORECASE)
_LEAD_CHARS = 24
_LINE_START = re.compile(r"[ \t]{0,12}(?:(?:[-*+•>]|\d{1,3}[.)])[ \t]{1,4})?")
_SOURCE = re.compile(GENERIC_WORDS, re.IGNORECASE)
_LINE_START_CHARS = 24
_CODED = re.compile(r"\S*\d\S*|.|.*\.[A-Za-z]{2,4}")
_NOTHING_OR_URL = re.compile(r"(?:<?https?://\S+>?)?")
_DEFINED = re.compile(r"[ \t]{0,3}\[\^?([^\[\]\n]{1,60})\]:[ \t]*")
_LINK = re.compile(r"\[([^\[\]\n]*)\]\(")
_WIDE = re.compile(f"[{CJK}]")
_TRIMMED = " \t\r.,;:*_\"'“”()–—-"


@dataclass(frozen=True, slots=True)
class Cut:
    """Characters ``start`` to ``end`` that are left out, with ``filler`` in their place: a space where words would grow together."""

    start: int
    end: int
    filler: str = ""


class Unmarked:
    """A text without some of its characters.

    Args:
        whole: the text with them.
        cuts: in order, not overlapping.
    """

    def __init__(self, whole: str, cuts: Sequence[Cut]) -> None:
        parts: list[str] = []
        self._starts, self._origins = [0], [0]
        length = at = 0
        for cut in cuts:
            parts += (whole[at : cut.start], cut.filler)
            length += cut.start - at + len(cut.filler)
            at = cut.end
            self._starts.append(length)
            self._origins.append(at)
        self.text = "".join((*parts, whole[at:])) if cuts else whole

    def start(self, place: int) -> int:
        """Return where a character of ``text`` stands in the whole text."""
        number = bisect_right(self._starts, place) - 1
        return self._origins[number] + place - self._starts[number]

    def end(self, place: int) -> int:
        """Return where a range of ``text`` that ends before ``place`` ends in the whole text: in front of a mark that follows."""
        return self.start(place - 1) + 1 if place else 0

    def place(self, origin: int) -> int:
        """Return where a character of the whole text stands in ``text``, one that is left out where the text goes on."""
        number = bisect_right(self._origins, origin) - 1
        place = self._starts[number] + origin - self._origins[number]
        return min(place, self._starts[number + 1]) if number + 1 < len(self._starts) else place


@dataclass(frozen=True, slots=True)
class Marks:
    """The ``cuts`` of a text from some line on; those before ``settled``, the start of a line, stay whatever text follows.

    ``fence`` began the block of code that this line is within, ``""`` where it is within none.
    """

    cuts: tuple[Cut, ...] = ()
    settled: int = 0
    fence: str = ""


def find_marks(text: str, labels: Labels, *, most: int, start: int = 0, fence: str = "") -> Marks:
    """Return what is left out of ``text`` from ``start``, the start of a line, on.

    Args:
        text: an answer, or what has come of it.
        labels: which labels there are.
        most: how many passages there are: a bare number that is no label is a mark up to it.
        start: where to begin.
        fence: what began the block of code that this is within, ``""`` where it is within none.
    """
    last = text.rfind("\n", start) + 1 or start
    if _CANDIDATE.search(text, start) is None and _HEADING.search(text, start) is None:
        return Marks((), last, fence_after(text, start, last, fence))
    if _RECORD.match(text):
        return Marks(tuple(_in_strings(text, labels, most)))
    cited = find_citations(text, labels, start=start, fence=fence)
    ranges = _marked(text, cited, labels, most)
    # A list of sources may go on.
    settled = start if any(behind >= last - 1 for _, behind in cited.listed) else last
    return Marks(tuple(_cuts(text, ranges)), settled, fence_after(text, start, settled, fence))


def _in_strings(text: str, labels: Labels, most: int) -> Iterator[Cut]:
    """Yield the cuts within the strings of JSON; lists of numbers are values there."""
    for string in _STRING.finditer(text):
        if string[2] is None and _CANDIDATE.search(string[1]) is not None:
            inner = find_marks(string[1], labels, most=most).cuts
            first = string.start(1)
            yield from (Cut(first + cut.start, first + cut.end, cut.filler) for cut in inner)


def _marked(text: str, cited: CitedText, labels: Labels, most: int) -> list[tuple[int, int]]:
    """Return the ranges of marks, those side by side as one with what surrounds them, and of lines that name sources alone."""
    found: list[tuple[int, int]] = []
    for each in cited.citations:
        if not each.mixed and all(_is_bare(text, each, label, labels, most) for label in _shown(text, each)):
            if found and _BETWEEN.fullmatch(text, found[-1][1], each.start):
                found[-1] = (found[-1][0], each.end)
            else:
                found.append((each.start, each.end))
    wide = [_with_surroundings(text, *each) for each in found]
    return merge_ranges((*wide, *_lines(text, cited, wide, labels, most)))


def _is_bare(text: str, citation: Citation, label: str, labels: Labels, most: int) -> bool:
    """Return whether a label of a citation says nothing beside what is cited."""
    if has_words_behind(label):
        return False
    if text[citation.start] not in "(（":
        return _holds_nothing(label, labels, most)
    # "(Source: …)" says what it is; "(Document 90)" counts what the passages do not.
    number = without_word(unicodedata.normalize("NFKC", label).strip())
    counted = not number.isdecimal() or int(number) <= most or not citation.free
    return labels.known(label) or (counted and _holds_nothing(label, labels, most))


def _shown(text: str, citation: Citation) -> tuple[str, ...]:
    """Return what a reader sees of a citation: its labels, of a link the text of it."""
    link = _LINK.match(text, citation.start, citation.end)
    _, dagger, name = text[citation.start + 1 : citation.end - 1].partition("†")
    return (link[1],) if link else (*citation.labels, name) if dagger else citation.labels


def _holds_nothing(label: str, labels: Labels, most: int) -> bool:
    """Return whether a label is a known id or file, or has no room for a word or a figure that says something."""
    bare = unicodedata.normalize("NFKC", label)
    named = without_place(bare)
    # Words that are a title say something: "The cheaper one is [Premium plan]", "[Premium plan, p. 3]".
    if labels.known(label) and (_CODED.fullmatch(named) or labels.is_id(named)):
        return True
    if is_code(bare) or _SOURCE.fullmatch(bare):
        return True
    if bare.isdecimal():
        return int(bare) <= most
    return labels.resembles(label)


def _lines(
    text: str, cited: CitedText, marked: Sequence[tuple[int, int]], labels: Labels, most: int
) -> Iterator[tuple[int, int]]:
    """Yield the lines of lists of sources that name a known source and nothing else, with the heading before them."""
    heading: tuple[int, int] | None = None
    for first, last in cited.listed:
        defined = _DEFINED.match(text, first, last)
        begins = defined.end() if defined else _LINE_START.match(text, first, last).end()  # type: ignore[union-attr]
        if defined is not None and not _holds_nothing(defined[1], labels, most):
            continue
        at = bisect_left(marked, (first, 0))
        while at < len(marked) and marked[at][1] <= last and not text[begins : marked[at][0]].strip(_TRIMMED):
            begins = max(begins, marked[at][1])
            at += 1
        rest = text[begins:last].strip(_TRIMMED)
        named = begins > first and (labels.known(rest) or _NOTHING_OR_URL.fullmatch(rest) is not None)
        if named and text[first:last].strip(_TRIMMED):
            if heading is not None:
                yield heading
                heading = None
            yield first, last
        elif HEADS_LIST.fullmatch(text, first, last):
            heading = (first, last)
        elif defined is not None:
            yield first, defined.end()


def _with_surroundings(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the range with brackets and tags that hold nothing else, and with the words "Source:" before it."""
    start, end = _with_brackets(text, start, end)
    lead = _LEAD.search(text[max(0, start - _LEAD_CHARS) : start])
    return _with_brackets(text, start - len(lead[0]), end) if lead else (start, end)


def _with_brackets(text: str, start: int, end: int) -> tuple[int, int]:
    for opening, closing in _AROUND:
        if text.startswith(closing, end) and text.endswith(opening, max(0, start - len(opening)), start):
            start, end = start - len(opening), end + len(closing)
    return start, end


def _cuts(text: str, ranges: Sequence[tuple[int, int]]) -> Iterator[Cut]:
    """Yield the cuts of ranges; white space between two of them goes with the first."""
    behind = 0
    for each in ranges:
        cut = _cut(text, *each)
        yield replace(cut, start=max(cut.start, behind))
        behind = cut.end


def _cut(text: str, start: int, end: int) -> Cut:
    """Return the cut with the white space before the range, or behind it at the start of a line."""
    near = max(0, start - _LINE_START_CHARS)
    line = text.rfind("\n", near, start) + 1
    if (line or not near) and _LINE_START.fullmatch(text, line, start):
        while text[end : end + 1] in (" ", "\t"):
            end += 1
        return Cut(start, end)
    while start and text[start - 1] in " \t":
        start -= 1
    behind = text[end : end + 1]
    return Cut(start, end, " " if behind.isalnum() and not _WIDE.match(behind) else "")
