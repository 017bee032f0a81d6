"""One choice of a gated stream: which of its text is to be scored, how far it is decided, and what leaves of it.

Positions are characters of the choice's text as the backend sent it. Deliberately not here: frames and their bytes
(``gate``, ``frame_edits``), verdicts and what they mean.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from unicodedata import category

from truthlens.api.sse.chunks import Choice
from truthlens.text.growing_sentences import SentenceSplitter

_ALL = 1 << 62
"""Beyond the end of any text."""
_STEP_CHARS = 8192
"""So much text is cut into sentences at once: some 20 ms at the very worst."""
_LEAD_CHARS = 16
_FENCE = re.compile(r"^```(?:json[5cl]?)?(?=[^jJ`])", re.IGNORECASE)
_BEGUN_FENCE = re.compile(r"`{1,3}|```(?:j|js|jso|json[5cl]?)", re.IGNORECASE)
_MOST_CLAIMED = 256
"""So many ranges are scored at once, however short they are."""


class SegmentDecision(StrEnum):
    """What becomes of a range of the text; with ``STOP`` everything behind it goes as well."""

    KEEP = "keep"
    MARK = "mark"
    WITHHOLD = "withhold"
    STOP = "stop"


@dataclass(slots=True)
class _Segment:
    """A sentence, or what there was of it, that waits for its fate; ``said`` is its mark or notice."""

    start: int
    end: int
    fate: SegmentDecision | None = None
    said: str = ""


@dataclass(frozen=True, slots=True)
class _Edit:
    """Characters ``start`` to ``end`` become ``text``, which leaves where the first of them would have.

    ``kept`` is what of ``text`` is the backend's own.
    """

    start: int
    end: int
    text: str
    kept: str = ""


class GatedChoice:
    """The text of one choice, decided from its beginning on.

    ``decided`` is how far; white space behind a sentence that is kept is decided with it, behind a withheld one with the
    next sentence: where that is withheld too it goes, and one notice stands for both. Text without letters, digits
    and symbols ("✅") needs no score. Reasoning before the answer is not held, scored or changed.

    Args:
        choice: The choice; it may be ahead of ``grow``.
        structured: Whether the answer is for a program: it is not cut at sentences then. An answer that begins like
            JSON is found out to be.
        echoed: What the backend may repeat before the answer; nothing of it is held or scored.
    """

    def __init__(self, choice: Choice, *, structured: bool, echoed: str) -> None:
        self.choice = choice
        self.structured = structured
        self.echo = 0
        """Where the answer begins, behind what the backend repeated, or behind reasoning."""
        self.decided = 0
        self.stopped_at: int | None = None
        self.unscored = False
        """Whether words passed that were not scored: taken for the echo, or let pass."""
        self.withheld = False
        self.marked = False
        self.left = False
        """Whether words of the answer are decided to leave."""
        self.insertions: list[tuple[int, str]] = []
        """Marks and notices, each with its place in ``delivered``."""
        self._asked_for_json = structured
        self._echoed = echoed
        self._fed = 0
        self._lead: str | None = None if structured else ""
        self._passing = False
        self._repeated = bool(echoed)
        # What is not known yet to be an answer: it may be a mark that opens reasoning.
        self._begun = ""
        self._splitter = SentenceSplitter()
        self._segments: deque[_Segment] = deque()
        self._unasked: list[_Segment] = []
        self._asked: dict[tuple[int, int], _Segment] = {}
        self._overtaken: set[tuple[int, int]] = set()
        self._arrivals: deque[tuple[int, float]] = deque()
        self._claimed = 0
        self._after_withheld = False
        self._edits: list[_Edit] = []
        self._gone = 0  # characters withheld so far

    @property
    def over(self) -> bool:
        """Whether no more of the text is to be scored."""
        return self._passing or self.stopped_at is not None

    @property
    def waiting_since(self) -> float | None:
        """When the oldest text came that is neither decided nor asked for, in the clock of ``grow``."""
        seen = max(self._claimed, self.decided)
        while self._arrivals and self._arrivals[0][0] <= seen:
            self._arrivals.popleft()
        return self._arrivals[0][1] if self._arrivals else None

    @property
    def delivered(self) -> str:
        """The answer as far as it is decided, without what was withheld, marks and notices."""
        text, place = self.choice.text, self.echo
        pieces: list[str] = []
        for edit in self._edits:
            pieces += (text[place : edit.start], edit.kept)
            place = edit.end
        return "".join([*pieces, text[place : self.decided]])

    @property
    def behind(self) -> bool:
        """Whether there is text that ``grow`` has not taken in."""
        return self._fed < self.choice.length

    @property
    def unasked(self) -> bool:
        """Whether ``claim`` has more to give."""
        return bool(self._unasked)

    def grow(self, now: float) -> None:
        """Take in what the choice has gained, or the first of it where that is much."""
        text = self.choice.piece(self._fed, min(self.choice.length, self._fed + _STEP_CHARS))
        self._fed += len(text)
        if self.over:
            self.unscored = self.unscored or (self._passing and _has_words(text))
            return
        if text:
            self._arrivals.append((self._fed, now))
        if self._echoed:
            text = self._behind_echo(text)
        elif not self._repeated:
            text = self._behind_reasoning(text)
            if self._begun:
                return
        self._split(text)
        self._advance()

    def _split(self, text: str) -> None:
        if self._lead is not None:
            self._read_lead(text)
        for start, end in self._splitter.feed(text, split=not self.structured and not self._lead):
            self._append(start, end)

    def close(self, *, words_since: float = math.inf) -> None:
        """Treat the text so far as if its last sentence ended with it, and no white space followed.

        Args:
            words_since: a last word that may go on is left out where it has come later than that.
        """
        if self.over or self._claimed == self._fed:
            return
        if self._begun:
            # Whatever it might have become, it is text so far.
            text, self._begun = self._begun, ""
            self._split(text)
        word = None if self.structured else self._splitter.open_word
        if word is not None and self._arrived_at(word) <= words_since:
            word = None
        if (found := self._splitter.close(at=word)) is not None:
            self._append(*found)
        self._claimed = self._fed if word is None else word
        self._advance()

    def claim(self) -> tuple[tuple[int, int], ...]:
        """The ranges that can be scored now, each given once."""
        claimed, self._unasked = self._unasked[:_MOST_CLAIMED], self._unasked[_MOST_CLAIMED:]
        for segment in claimed:
            self._asked[segment.start, segment.end] = segment
            self._claimed = max(self._claimed, segment.end)
        return tuple((segment.start, segment.end) for segment in claimed)

    def rule(self, start: int, end: int, fate: SegmentDecision, said: str) -> bool:
        """Settle a range that ``claim`` gave; false where that has been overtaken: by a stop, ``let_pass``, or reasoning.

        Args:
            start: Of the range.
            end: Of the range.
            fate: What becomes of it.
            said: Its mark or notice, ``""`` for none.

        Raises:
            ValueError: The range is not one that waits for its fate.
        """
        if (start, end) in self._overtaken:
            self._overtaken.remove((start, end))
            return False
        segment = self._asked.pop((start, end), None)
        if segment is None:
            raise ValueError(f"characters {start} to {end} were not asked for, or are decided already")
        if self.over:
            return False
        segment.fate, segment.said = fate, said
        self._advance()
        return True

    def let_pass(self) -> None:
        """Decide that all text without a fate, held and to come, leaves as it is."""
        for segment in self._segments:
            segment.fate = segment.fate or SegmentDecision.KEEP
        self._advance()
        if self.over:
            return
        self.unscored = self.unscored or _has_words(self.choice.text[self.decided : self._fed])
        self._passing = True
        self._end(_ALL)

    def touched(self, start: int, end: int) -> bool:
        """Whether any of these characters leave as something else."""
        place = self._edit_behind(start)
        return place < len(self._edits) and self._edits[place].start < end

    def rendered(self, start: int, end: int) -> str:
        """What leaves of these characters, which are decided, with marks and notices."""
        text, pieces, place = self.choice.text, [], start
        for number in range(self._edit_behind(start), len(self._edits)):
            edit = self._edits[number]
            if edit.start >= end:
                break
            pieces.append(text[place : max(place, edit.start)])
            if edit.start >= start:
                pieces.append(edit.text)
            place = min(edit.end, end)
        return "".join([*pieces, text[place:end]])

    def _arrived_at(self, place: int) -> float:
        """When the character came, which is not claimed yet."""
        return next(moment for end, moment in self._arrivals if end > place)

    def _behind_echo(self, text: str) -> str:
        """What of ``text`` is not an echo; as long as all of it may be one, it counts as one."""
        expected = self._echoed[self._fed - len(text) :]
        if text.startswith(expected):
            self.echo, rest = len(self._echoed), text[len(expected) :]
        elif expected.startswith(text):
            self.decided = self._claimed = self._fed
            return ""
        else:
            self.unscored = self.unscored or _has_words(self._echoed[: -len(expected)])
            rest = text
        self._echoed = ""
        self.decided = self._claimed = max(self.decided, self._fed - len(rest))
        self._splitter = SentenceSplitter(self._fed - len(rest))
        return rest

    def _behind_reasoning(self, text: str) -> str:
        """What of ``text``, and of what was kept back before it, is behind reasoning, which leaves as it is, unscored."""
        start = self.choice.answer_start
        if start > self.echo and not self._edits:
            self._start_at(start)
        begin = max(self.echo, self._fed - len(self._begun) - len(text))
        text, self._begun = self.choice.piece(begin, self._fed), ""
        if self.choice.begins and text.strip():
            text, self._begun = "", text
        return text

    def _start_at(self, start: int) -> None:
        """Take all text before ``start`` for reasoning, whatever it seemed to be, unless a mark or a notice has left."""
        self.echo = start
        self.decided = self._claimed = max(self.decided, min(start, self._fed))
        self._segments.clear()
        self._unasked.clear()
        self._overtaken.update(self._asked)
        self._asked.clear()
        self._splitter = SentenceSplitter(start)
        self._lead = None if self._asked_for_json else ""
        self.structured = self._asked_for_json

    def _read_lead(self, text: str) -> None:
        """Find out from its first characters whether the answer is JSON, by itself or as a block of code."""
        assert self._lead is not None
        self._lead = (self._lead + "".join(text.split()))[:_LEAD_CHARS]
        bare = _FENCE.sub("", self._lead)
        if bare in ("", "[") or _BEGUN_FENCE.fullmatch(bare):
            return
        self.structured = bare.startswith(("{", "[{", "[[", '["'))
        self._lead = None

    def _append(self, start: int, end: int) -> None:
        segment = _Segment(start, end)
        if _may_tell(self.choice.piece(start, end)):
            self._unasked.append(segment)
        else:
            segment.fate = SegmentDecision.KEEP
        self._segments.append(segment)

    def _advance(self) -> None:
        """Decide as much as can be."""
        while self._segments and self._segments[0].fate is not None:
            self._settle(self._segments.popleft())
            if self.over:
                return
        # White space before what comes next.
        if not self._after_withheld:
            first = self._segments[0].start if self._segments else self._splitter.first
            self.decided = max(self.decided, self._fed if first is None else first)
        elif not self._segments and self._splitter.first is None:
            ended = self.choice.finished and self._fed == self.choice.length
            self.decided = max(self.decided, self._fed if ended else self._claimed)

    def _settle(self, segment: _Segment) -> None:
        start, end = segment.start, segment.end
        if segment.fate is SegmentDecision.STOP:
            self.withheld = True
            self.stopped_at = start
            self._insert(start, segment.said)
            self._edits.append(_Edit(start, _ALL, segment.said))
            self._end(_ALL)
            return
        if segment.fate is SegmentDecision.WITHHOLD:
            self.withheld = True
            if self._after_withheld:
                start = self.decided
                self._edits.append(_Edit(start, end, ""))
            else:
                self._insert(start, segment.said)
                self._edits.append(_Edit(start, end, segment.said))
            self._gone += end - start
        elif segment.fate is SegmentDecision.KEEP:
            self.left = self.left or _has_words(self.choice.piece(start, end))
        elif segment.fate is SegmentDecision.MARK:
            self.marked = self.left = True
            self._insert(end, segment.said)
            last = self.choice.piece(end - 1, end)
            self._edits.append(_Edit(end - 1, end, last + segment.said, kept=last))
        self._after_withheld = segment.fate is SegmentDecision.WITHHOLD
        self.decided = end

    def _insert(self, place: int, said: str) -> None:
        if said:
            self.insertions.append((place - self.echo - self._gone, said))

    def _end(self, decided: int) -> None:
        self.decided = decided
        self._segments.clear()
        self._unasked.clear()
        self._arrivals.clear()

    def _edit_behind(self, place: int) -> int:
        return bisect_right(self._edits, place, key=lambda edit: edit.end)


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _may_tell(text: str) -> bool:
    """Return whether there are letters, digits or symbols; those of ASCII are layout."""
    return any(sign.isalnum() or (sign > "\x7f" and category(sign)[0] == "S") for sign in text)
