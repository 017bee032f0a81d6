"""A prompt while it is read: its units, what is known of each, and what each was found to be."""

from __future__ import annotations

from dataclasses import dataclass, field

from truthlens.api.evidence.language.label_words import Part
from truthlens.api.evidence.language.mood import is_asking
from truthlens.api.evidence.units.unit import Kind, Unit, text_unit

# So many units from the first and from the last are looked at; what is between them in a longer prompt is its documents.
EDGE = 80
# A question of the user is no longer.
ASKED_CHARS = 600
NO_OWNER: tuple[Part | None, str] = (None, "")


@dataclass(slots=True)
class Draft:
    """One message and its units; the lists have one entry a unit.

    ``owner`` is the part that a unit was found to be and the rule by which, ``spans`` the characters of it where not all are
    of that part, ``opens`` the rule by which it opens evidence, ``heads`` the heading of talk to the model under which it
    stands, ``scores`` how much it reads as evidence. ``guiding`` are the places of headings with talk below them, ``weak``
    the units that are evidence only where the question is about them, ``question_at`` the question of the template.
    ``steps`` says that an agent's thoughts, actions and observations stand in the prompt.
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

    def __post_init__(self) -> None:
        self.steps = any(unit.label == "action input" for unit in self.units)
        self.owner = [NO_OWNER] * len(self.units)
        self.spans = [None] * len(self.units)
        self.opens = [""] * len(self.units)
        self.heads = [None] * len(self.units)

    def said(self, place: int) -> str:
        """Return the text of a unit, its label included."""
        unit = self.units[place]
        return self.text[unit.start : unit.end]

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
