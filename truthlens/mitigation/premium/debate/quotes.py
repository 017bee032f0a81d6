"""Find whether and where a quote occurs in the evidence.

It compares characters and words. Whether a quote has anything to do with what it is quoted for is not asked
here.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from truthlens.core.records.exchange import Passage
from truthlens.text.negations import HAN_NEGATIONS, NEGATION_WORDS
from truthlens.text.scripts import UNSPACED
from truthlens.text.sentences import sentences

_LEAST_RATIO = 0.9
_LEAST_SHARED = 0.8  # of a part's words; with fewer no window comes near the ratio, so none is compared
_LEAST_WORDS = 3  # one or two words are in any evidence and show nothing
_MOST_WORDS = 150
_MOST_PARTS = 5
_MOST_SEARCHED = 20_000  # words of a passage that are searched for what is nearly the quote
_MOST_WINDOWS = 20  # that are compared by character, for one part in one passage
_WORD = re.compile(rf"[{UNSPACED}]|\d+(?:[.,]\d+)*|[^\W\d{UNSPACED}]+")
_ELLIPSIS = re.compile(r"\[?(?:\.{3,}|…+)\]?")
_NEGATIONS = NEGATION_WORDS | {"t"} | set(HAN_NEGATIONS + "否别勿")  # "t" is what is left of "isn't"


@dataclass(frozen=True, slots=True)
class FoundQuote:
    """Where a quote was found: the passage's index, and the whole sentences there that hold it."""

    passage: int
    text: str


class QuotableEvidence:
    """Passages, read once so that many quotes can be looked up in them."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = [_Words.of(passage.text) for passage in passages]
        self._texts = [passage.text for passage in passages]

    def find(self, quote: str) -> FoundQuote | None:
        """Return the place of ``quote`` in the first passage that holds it, or ``None``.

        Case, white space, punctuation and width do not count. A quote may leave words out at an ellipsis (at
        most four times); all parts must be in the same passage. A part may differ in spelling (similarity of
        characters at least 0.9; in the first 20,000 words of a passage), but not in a number or a negation,
        for those decide what a sentence says. Less than three words (or Han characters) are no quote; of a
        very long one the first 150 words count.
        """
        parts = _parts(quote)
        if not parts:
            return None
        for index, words in enumerate(self._passages):
            places = [words.place(part) for part in parts]
            if all(places):
                start = min(place[0] for place in places if place)
                end = max(place[1] for place in places if place)
                return FoundQuote(index, _sentences_around(self._texts[index], start, end))
        return None


def normalised(text: str) -> str:
    """Return ``text`` as words in one case and width, one space between them; equal quotes become equal."""
    return _Words.of(text).joined


def _parts(quote: str) -> list[list[str]]:
    """Return the words between ellipses; empty where this is no quote."""
    parts = [words for part in _ELLIPSIS.split(quote) if (words := _Words.of(part).words[:_MOST_WORDS])]
    enough = sum(len(part) for part in parts) >= _LEAST_WORDS
    return parts if enough and len(parts) <= _MOST_PARTS else []


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a text, their places in it, and all of them joined in one string with their places."""

    words: list[str]
    ranges: list[tuple[int, int]]
    joined: str
    starts: list[int]

    @classmethod
    def of(cls, text: str) -> _Words:
        matches = list(_WORD.finditer(text))
        words = [_folded(match.group()) for match in matches]
        starts, position = [], 0
        for word in words:
            starts.append(position)
            position += len(word) + 1
        return cls(words, [match.span() for match in matches], " ".join(words), starts)

    def place(self, part: Sequence[str]) -> tuple[int, int] | None:
        """Return the characters of the text that hold ``part``, word for word or nearly, or ``None``."""
        at = f" {self.joined} ".find(f" {' '.join(part)} ")
        first = bisect_left(self.starts, at) if at >= 0 else self._nearly(part)
        if first is None:
            return None
        return self.ranges[first][0], self.ranges[first + len(part) - 1][1]

    def _nearly(self, part: Sequence[str]) -> int | None:
        """Return the first word of the most likely window that is similar enough to ``part``, or ``None``."""
        size = len(part)
        decisive, wanted = _decisive(part), " ".join(part)
        for start in self._windows(part):
            there = self.words[start : start + size]
            if _decisive(there) == decisive and _alike(wanted, " ".join(there)):
                return start
        return None

    def _windows(self, part: Sequence[str]) -> list[int]:
        """Return the starts of the windows of the part's length that share most of its words, best first."""
        size, wanted = len(part), Counter(part)
        window: Counter[str] = Counter()
        shared = 0
        near: list[tuple[int, int]] = []
        for end, word in enumerate(self.words[:_MOST_SEARCHED], 1):
            shared += window[word] < wanted[word]
            window[word] += 1
            if end > size:
                leaving = self.words[end - size - 1]
                window[leaving] -= 1
                shared -= window[leaving] < wanted[leaving]
            if end >= size and shared >= _LEAST_SHARED * size:
                near.append((-shared, end - size))
        return [start for _, start in sorted(near)[:_MOST_WINDOWS]]


def _folded(word: str) -> str:
    # Some ligatures become several words; here one word stays one.
    return "".join(unicodedata.normalize("NFKC", word).casefold().split())


def _decisive(words: Sequence[str]) -> Counter[str]:
    return Counter(
        word for word in words if word in _NEGATIONS or any(character.isdigit() for character in word)
    )


def _alike(left: str, right: str) -> bool:
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    # The two quick ones are upper bounds, and cheap.
    return (
        matcher.real_quick_ratio() >= _LEAST_RATIO
        and matcher.quick_ratio() >= _LEAST_RATIO
        and matcher.ratio() >= _LEAST_RATIO
    )


def _sentences_around(text: str, start: int, end: int) -> str:
    touched = [(first, last) for first, last in sentences(text) if first < end and last > start]
    return text[touched[0][0] : touched[-1][1]]
