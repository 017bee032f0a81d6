"""Find where a quote stands in an answer: white space, case, style of quotes and what ends it do not count. Pure."""

from __future__ import annotations

import re
import unicodedata

_ELLIPSIS = re.compile(r"\[?(?:\.{3,}|…+)\]?")
_QUOTES = "\"'“”‘’„‚«»「」『』`"
_ENDS = " \t\r\n.,;:!?。，；：！？、" + _QUOTES
_LEAST_LETTERS = 2
_MOST_PARTS = 5


class QuotableAnswer:
    """An answer, folded once so that many quotes can be looked up in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._folded, self._places = _fold(text)

    def find(self, quote: str) -> tuple[int, int] | None:
        """Return the characters from the first to the last part of a quote, which may leave words out at an ellipsis."""
        parts = [part for each in _ELLIPSIS.split(quote) if (part := _fold(each.strip(_ENDS))[0])]
        if not parts or len(parts) > _MOST_PARTS or sum(map(str.isalnum, "".join(parts))) < _LEAST_LETTERS:
            return None
        start = end = -1
        at = 0
        for part in parts:
            place = self._place(part, at)
            if place < 0:
                return None
            at = place + len(part)
            start = self._places[place] if start < 0 else start
            end = self._places[at - 1] + 1
        return start, end

    def _place(self, part: str, at: int) -> int:
        while (place := self._folded.find(part, at)) >= 0:
            first, last = self._places[place], self._places[place + len(part) - 1] + 1
            if not (self._in_word(first) or self._in_word(last)):
                return place
            at = place + 1
        return -1

    def _in_word(self, border: int) -> bool:
        around = self._text[max(border - 1, 0) : border + 1]
        return border > 0 and len(around) == 2 and around.isascii() and around.isalnum()


def _fold(text: str) -> tuple[str, list[int]]:
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for letter in unicodedata.normalize("NFKC", character).casefold():
            if not letter.isspace() and letter not in _QUOTES:
                letters.append(letter)
                places.append(place)
    return "".join(letters), places
