"""Sentences of a text that grows, each given once its end can no longer change.

What ends a sentence is for ``text.sentences.sentences`` to say; here its rules are applied to the few characters that they
look at, so that a token costs the same at the end of a long answer as at its beginning.
"""

from __future__ import annotations

import re
from itertools import pairwise
from unicodedata import east_asian_width

from truthlens.text.sentences import may_be_date, sentences

# More than the rules look back from a mark, and forward to the word that decides: see ``_is_within`` of the sentences.
_CONTEXT_CHARS = 96
_AHEAD_CHARS = 48
_WORD_AHEAD_CHARS = 24
_MARK = re.compile(r"[.!?…]")
# The window is cut down to what is needed of it once it is longer than this.
_WINDOW_CHARS = 120
# What is longer is no word that is still to come to its end.
_WORD_CHARS = 30
_WIDE = ("W", "F")
# Stands for text that is still to come, and belongs to no mark, quote or white space.
_NEXT = "x"


class SentenceSplitter:
    """Cuts a growing text at its sentences.

    ``end`` is the length of the text so far. Its characters from the last complete sentence on are *open*; ``first``
    is the first of them that is not white space, ``None`` where there is none.

    Args:
        start: position in the text at which the splitting begins.
    """

    def __init__(self, start: int = 0) -> None:
        self.end = start
        self.first: int | None = None
        self._start = start
        # The open text, from a little before its last letter or digit on: no mark before that can end a sentence.
        self._window = ""

    def feed(self, text: str, *, split: bool = True) -> list[tuple[int, int]]:
        """Return the ranges of the sentences that ``text``, which comes next, makes complete; no white space around them.

        With ``split`` false it stays open as a whole.
        """
        known, self.end = self.end, self.end + len(text)
        if self.first is None and (bare := text.lstrip()):
            self.first = self.end - len(bare)
        plain = self._is_plain(text)
        self._window += text
        complete = self._complete(known) if split and not plain else []
        if complete or len(self._window) > _WINDOW_CHARS:
            self._trim()
        return complete

    @property
    def open_word(self) -> int | None:
        """Return where the last word of the open text begins, if it may go on and is not all of it."""
        last = self._window[-1:]
        # Scripts with wide characters do not part words by spaces, and break anywhere.
        if not last.isalnum() or east_asian_width(last) in _WIDE:
            return None
        word = self._window.split()[-1]
        begin = self.end - len(word)
        apart = self.first is not None and self.first < begin and self._window[: -len(word)].strip()
        return begin if apart and len(word) <= _WORD_CHARS else None

    def close(self, *, at: int | None = None) -> tuple[int, int] | None:
        """Return the range of the open text, as if a sentence ended here; ``None`` where it is white space.

        Args:
            at: what ``open_word`` says, for that word to stay open.
        """
        word = "" if at is None else self._window[at - self.end :]
        bare = self._window[: len(self._window) - len(word)].rstrip()
        first, self.first = self.first, at
        found = None if first is None else (first, self.end - len(self._window) + len(bare))
        self._start, self._window = self.end - len(word), word
        return found

    def _is_plain(self, text: str) -> bool:
        """Return whether ``text`` can end no sentence: letters, digits and spaces, and no mark before them that waits."""
        last = self._window[-1:]
        if not text.replace(" ", "").isalnum() or not (last in ("", " ") or last.isalnum()):
            return False
        return not _MARK.search(self._window[-_AHEAD_CHARS:])

    def _complete(self, known: int) -> list[tuple[int, int]]:
        """Return the sentences that became complete by what follows position ``known``."""
        window, base = self._window, self.end - len(self._window)
        complete = []
        for (first, stop), (begin, _) in pairwise(sentences(window + _NEXT, ahead=len(_NEXT))):
            if base + stop == self.end:
                break  # a closing quote or another mark may follow
            # An end that could have been found before was refused then, with more of the text in view; unless the word
            # behind it was still to come, or to grow.
            seen = window[begin : max(begin, known - base)].rstrip()
            decided = base + stop < known and not (len(seen) < _WORD_AHEAD_CHARS and len(seen.split()) <= 1)
            decided = decided and not may_be_date(window, first, stop, known - base)
            if decided and "\n" not in window[max(stop, known - base) : begin]:
                continue
            assert self.first is not None
            complete.append((self.first, base + stop))
            self._start = base + stop
            self.first = base + begin if base + begin < self.end else None
        return complete

    def _trim(self) -> None:
        window, base = self._window, self.end - len(self._window)
        place = len(window) - 1
        while place >= 0 and not window[place].isalnum():
            place -= 1
        self._window = window[max(self._start - base, place - _CONTEXT_CHARS, 0) :]
