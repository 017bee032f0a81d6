"""One unit of a prompt and what its form alone says of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from truthlens.evidence.language.label_words import Part
from truthlens.evidence.language.mood import Mood, mood
from truthlens.evidence.units.elements import Element

# What is read of a text to tell its mood.
_MOOD_CHARS = 6000
# Parts that are talk to the model, for which a label or an element can stand.
TALK = (Part.INSTRUCTION, Part.HISTORY, Part.EXAMPLE)


class Kind(StrEnum):
    """The form of a unit."""

    LABEL = "label"
    ELEMENT = "element"
    FENCED = "fenced"
    RULE = "rule"
    TEXT = "text"


@dataclass(slots=True)
class Unit:
    """Characters ``start`` to ``end`` of a prompt, of one form.

    ``body`` is where the text behind a label or an opening mark begins. ``style`` is how a label is written (``#``,
    ``**``, ``:`` …), ``label`` its words in lower case, ``number`` the number in it ("Source 3:").
    """

    start: int
    end: int
    kind: Kind
    part: Part | None = None
    body: int = 0
    body_end: int = 0
    style: str = ""
    label: str = ""
    number: str = ""
    element: Element | None = None
    text: str = field(default="", repr=False)
    read: Mood | None = None

    @property
    def mood(self) -> Mood:
        """How its text reads."""
        if self.read is None:
            self.read = mood(self.text)
        return self.read

    @property
    def rest(self) -> str:
        """The text behind the label, on its line."""
        return self.text.strip() if self.kind is Kind.LABEL else ""

    @property
    def key(self) -> tuple[str, str]:
        """How a label is written and its words: the same for labels that repeat."""
        return self.style, self.label

    @property
    def is_bare(self) -> bool:
        """Whether it is a label with nothing behind it on its line."""
        return self.kind is Kind.LABEL and not self.rest

    @property
    def is_heading(self) -> bool:
        """Whether it is a label on a line of its own, written as a heading or between rules."""
        return self.is_bare and self.style[:1] in "#-"

    @property
    def is_displayed(self) -> bool:
        """Whether it is a label that is set off from text: by heading marks, stars, brackets or capitals."""
        return self.kind is Kind.LABEL and (self.style[:1] in "#*-[" or self.style.endswith("C"))

    @property
    def is_end_mark(self) -> bool:
        """Whether it is a label that only ends a part: "[END SOURCES]", a closing tag without its pair."""
        return self.kind is Kind.LABEL and self.style.endswith("end")

    @property
    def is_talk_label(self) -> bool:
        """Whether it is a label of talk to the model."""
        return self.kind is Kind.LABEL and self.part in TALK

    @property
    def is_talk(self) -> bool:
        """Whether it is a paragraph of talk to the model."""
        return self.kind is Kind.TEXT and self.mood.is_talk

    @property
    def is_evidence_element(self) -> bool:
        """Whether it is an element whose name is a word for evidence."""
        return self.kind is Kind.ELEMENT and self.part is Part.EVIDENCE

    def is_below(self, head: Unit) -> bool:
        """Return whether both are headings with number signs, this one of a lower level than ``head``."""
        return (
            self.style.startswith("#")
            and head.style.startswith("#")
            and len(self.style.rstrip("C")) > len(head.style.rstrip("C"))
        )


def text_unit(text: str, start: int, end: int, found: Mood | None = None) -> Unit:
    """Return characters ``start`` to ``end`` of ``text`` as a unit of text; ``found`` is its mood where that is known."""
    said = text[start : min(end, start + _MOOD_CHARS)]
    return Unit(start, end, Kind.TEXT, None, start, end, text=said, read=found)


def begins_data(text: str) -> bool:
    """Return whether a text begins as JSON or as a table."""
    return text.lstrip().startswith(("{", "[{", "|"))
