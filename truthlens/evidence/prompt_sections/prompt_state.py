"""A prompt while it is read: its units, what is known of each, and what each was found to be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from truthlens.evidence.language.label_words import Part
from truthlens.evidence.language.mood import is_asking
from truthlens.evidence.units.labels import form_of
from truthlens.evidence.units.unit import Kind, Unit, text_unit

# So many units from the first and from the last are looked at; what is between them in a longer prompt is its documents.
EDGE = 80
# A question of the user is no longer.
ASKED_CHARS = 600
_LINE_CHARS = 200
NO_OWNER: tuple[Part | None, str] = (None, "")


class LabelLine(NamedTuple):
    """A line at ``start`` that is written as a label: its style, its words in lower case, whether nothing stands behind them."""

    start: int
    style: str
    words: str
    bare: bool


@dataclass(slots=True)
class Draft:
    """One message and its units; the lists have one entry a unit.

    ``owner`` is the part that a unit was found to be and the rule by which, ``spans`` the characters of it where not all are
    of that part, ``opens`` the rule by which it opens evidence, ``heads`` the heading of talk to the model under which it
    stands, ``scores`` how much it reads as evidence. ``guiding`` are the places of headings with talk below them, ``weak``
    the units that are evidence only where the question is about them, ``question_at`` the question of the template.
    ``steps`` says that an agent's thoughts, actions and observations stand in the prompt, ``filled`` counts the
    labels with text behind them on their line, ``answers`` are the labels for an answer with text behind them or below.
    """

    text: str
    units: list[Unit]
    system: bool
    asked: str
    topics: str
    min_chars: int
    steps: bool = field(init=False)
    owner: list[tuple[Part | None, str]] = field(init=False)
    spans: list[tuple[int, int] | None] = field(init=False)
    opens: list[str] = field(init=False)
    heads: list[Unit | None] = field(init=False)
    guiding: set[int] = field(default_factory=set)
    scores: list[float] = field(default_factory=list)
    weak: set[int] = field(default_factory=set)
    question_at: int | None = None
    lines: list[LabelLine] | None = None
    filled: Counter[tuple[str, str]] = field(init=False)
    answers: list[Unit] = field(init=False)

    def __post_init__(self) -> None:
        self.steps = any(unit.label == "action input" for unit in self.units)
        self.filled = Counter(unit.key for unit in self.units if unit.rest)
        self.answers = [
            unit
            for at, unit in enumerate(self.units)
            if unit.kind is Kind.LABEL and unit.part is Part.ANSWER and self.is_filled(at)
        ]
        self.owner = [NO_OWNER] * len(self.units)
        self.spans = [None] * len(self.units)
        self.opens = [""] * len(self.units)
        self.heads = [None] * len(self.units)

    def said(self, place: int) -> str:
        """Return the text of a unit, its label included."""
        unit = self.units[place]
        return self.text[unit.start : unit.end]

    def kept(self, place: int) -> tuple[int, int]:
        """Return the characters of a unit that are of the part that it was found to be."""
        return self.spans[place] or (self.units[place].start, self.units[place].end)

    def stretch(self, start: int, end: int) -> str:
        """Return the text from the unit at ``start`` up to the one at ``end``."""
        return self.text[self.units[start].start : self.units[end - 1].end] if start < end else ""

    def following(self, place: int) -> Unit | None:
        """Return the unit behind the one at ``place``."""
        return self.units[place + 1] if place + 1 < len(self.units) else None

    def gain(self, start: int, end: int) -> float:
        """Return the sum of the scores from the unit at ``start`` up to the one at ``end``."""
        return sum(self.scores[start:end])

    def is_inner(self, place: int) -> bool:
        """Return whether a unit is so far from both ends of a long prompt that it is not looked at."""
        return EDGE <= place < len(self.units) - EDGE

    def own(self, place: int, part: Part | None, rule: str, span: tuple[int, int] | None = None) -> None:
        """Say what a unit is: a part or, with ``None``, nothing that is kept; ``span`` where only some of its characters are."""
        self.owner[place] = (part, rule)
        self.spans[place] = span

    def is_free(self, place: int) -> bool:
        """Return whether nothing was said of a unit."""
        return self.owner[place] == NO_OWNER

    def has(self, part: Part) -> bool:
        """Return whether any unit was found to be such a part."""
        return any(owned is part for owned, _ in self.owner)

    def is_example(self, place: int) -> bool:
        """Return whether a unit was found to belong to a worked example."""
        return self.owner[place][1] == "example"

    def is_under_example(self, place: int) -> bool:
        """Return whether a unit stands under a heading for examples or for the conversation so far."""
        head = self.heads[place]
        return head is not None and head.part in (Part.EXAMPLE, Part.HISTORY)

    def asks(self, place: int) -> bool:
        """Return whether a unit is a paragraph with which the user asks: short, and no talk about answering."""
        unit = self.units[place]
        return (
            unit.kind is Kind.TEXT
            and unit.end - unit.start <= ASKED_CHARS
            and is_asking(self.said(place))
            and unit.mood.guides == 0
        )

    def asks_before(self, place: int) -> bool:
        """Return whether the user asks before a unit, with another than one that opens evidence."""
        return any(self.asks(at) and not self.opens[at] for at in range(place))

    def may_open(self, place: int) -> bool:
        """Return whether a unit opens evidence, and not that of an example or of the conversation so far."""
        return bool(self.opens[place]) and not self.is_example(place) and not self.is_under_example(place)

    def trimmed(self, start: int, end: int, drops: Callable[[int], bool]) -> int:
        """Return ``end`` without the units before it, from ``start`` on, that ``drops`` says are to go."""
        while end > start and drops(end - 1):
            end -= 1
        return end

    def is_filled(self, place: int) -> bool:
        """Return whether text stands behind a label, on its line or below it."""
        follows = self.following(place)
        return bool(self.units[place].rest) or (
            follows is not None and follows.kind in (Kind.TEXT, Kind.FENCED)
        )

    def label_lines(self) -> list[LabelLine]:
        """Return the lines of its text that are written as labels, once and with words that say nothing, in order."""
        if self.lines is None:
            found = [
                line
                for unit in self.units
                if unit.kind is Kind.TEXT
                for line in _label_lines(self.text, unit)
            ]
            known = Counter(line.words for line in found)
            self.lines = [line for line in found if known[line.words] == 1]
        return self.lines

    def insert(self, place: int, start: int, end: int) -> None:
        """Insert characters ``start`` to ``end`` as a unit of text of its own at ``place``."""
        self.units.insert(place, text_unit(self.text, start, end))
        self.owner.insert(place, NO_OWNER)
        self.spans.insert(place, None)
        self.opens.insert(place, "")
        self.heads.insert(place, None)
        self.scores.insert(place, -0.3)
        if self.question_at is not None and self.question_at >= place:
            self.question_at += 1

    def split(self, place: int, at: int) -> None:
        """Part the unit at ``place`` before character ``at``; what is behind becomes a unit of text."""
        unit = self.units[place]
        self.insert(place + 1, at, unit.end)
        unit.text = unit.text[: at - unit.start]
        unit.end = unit.body_end = at


def _label_lines(text: str, unit: Unit) -> Iterator[LabelLine]:
    at = unit.start
    while at < unit.end:
        stop = text.find("\n", at, unit.end)
        stop = unit.end if stop < 0 else stop
        head = text[at : min(stop, at + _LINE_CHARS)]
        # Most lines of a document are none: a look at their signs is cheaper than the patterns.
        if ":" in head or "：" in head or not head.lstrip()[:1].isalnum() or head.isupper():
            form = form_of(head)
            if form is not None:
                yield LabelLine(at, *form)
        at = stop + 1
