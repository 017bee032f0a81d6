"""Read a prompt: decide which of its units are evidence, which the question, and which talk to the model.

Evidence begins at something that says so: an element or label whose name is a word for it, a sentence that announces
it, the first of several numbered sources. It ends where the rest of the prompt reads as template again. As a document may hold
every mark that a template has, no single mark ends it: of all places where it could end, the one is taken that leaves
the most reference text before it and the most talk to the model behind it (``Unit.mood``), the last of about equal ones.
Without any mark, text counts only where the prompt announces it, or where it reads as reference text and the question is about it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from truthlens.api.evidence.language.label_words import Part
from truthlens.api.evidence.language.mood import sentence_kind
from truthlens.api.evidence.prompt.asked import find_question
from truthlens.api.evidence.prompt.draft import Draft
from truthlens.api.evidence.prompt.examples import mark_examples
from truthlens.api.evidence.prompt.fallback import find_unmarked_question
from truthlens.api.evidence.prompt.openings import find_openings
from truthlens.api.evidence.prompt.question_text import bare_question
from truthlens.api.evidence.prompt.scores import score_units
from truthlens.api.evidence.prompt.sections import take_sections
from truthlens.api.evidence.prompt.taking import take_marked
from truthlens.api.evidence.prompt.unmarked import announcing_unit, take_announced, take_unmarked
from truthlens.api.evidence.units.cutting import cut
from truthlens.api.evidence.units.unit import TALK, Kind

_MIN_UNMARKED_CHARS = 120


@dataclass(frozen=True, slots=True)
class Block:
    """Characters ``start`` to ``end`` of a prompt: evidence, the question, or what is left.

    ``rule`` is the code of what decided. ``weak`` evidence counts only where the question is about it.
    """

    start: int
    end: int
    part: Part | None
    rule: str
    weak: bool = False


@dataclass(slots=True)
class Prompt:
    """A prompt that was read: its blocks in order."""

    text: str
    blocks: list[Block] = field(default_factory=list)

    @property
    def evidence(self) -> list[Block]:
        """The blocks of evidence."""
        return [block for block in self.blocks if block.part is Part.EVIDENCE]

    @property
    def question(self) -> str:
        """What the prompt asks, without the template around it; ``""`` where it asks nothing."""
        if self.blocks and all(block.rule in ("message", "rule") for block in self.blocks):
            return self.text.strip()
        asked = [self.text[block.start : block.end] for block in self.blocks if block.part is Part.QUESTION]
        return "\n".join(
            line.strip() for part in asked for line in bare_question(part).split("\n") if line.strip()
        )


def read_prompt(
    text: str,
    *,
    system: bool,
    asked: str = "",
    topics: str = "",
    unmarked: bool = True,
    min_chars: int = _MIN_UNMARKED_CHARS,
    marks: frozenset[str] = frozenset(),
) -> Prompt:
    """Read one message.

    Args:
        text: Of the message.
        system: Whether it is the operator's and holds no question, as another message does.
        asked: The question, where it is known from another message.
        topics: All that the user asked in the conversation.
        unmarked: Whether text without a mark may be evidence.
        min_chars: Characters that text needs which nothing announces.
        marks: Labels and names of tags that mean evidence besides the built-in ones, in lower case.
    """
    units = cut(text, marks)
    if not units:
        return Prompt(text)
    draft = Draft(text, units, system, asked, topics or asked, min_chars)
    find_openings(draft)
    mark_examples(draft)
    draft.question_at = find_question(draft)
    score_units(draft)
    _take_evidence(draft, unmarked=unmarked)
    if not system and not draft.has(Part.QUESTION):
        find_unmarked_question(draft)
    return Prompt(text, _blocks(draft))


def _take_evidence(draft: Draft, *, unmarked: bool) -> None:
    if not unmarked:
        take_marked(draft)
        return
    if not take_announced(draft):
        take_marked(draft)
    steps = [take_sections, take_unmarked]
    if not draft.system and announcing_unit(draft) is not None:
        # What the prompt announces is taken as a whole, headings of a document included.
        steps.reverse()
    for take in steps:
        if not draft.has(Part.EVIDENCE):
            take(draft)


def _blocks(draft: Draft) -> list[Block]:
    """Return what the units were found to be, with the label of a unit apart where only the rest is taken."""
    blocks: list[Block] = []
    for place, unit in enumerate(draft.units):
        part, rule = draft.owner[place]
        start, end = draft.spans[place] or (unit.start, unit.end)
        if part is None:
            rule = rule or _left_rule(draft, place)
        if draft.text[unit.start : start].strip():
            blocks.append(Block(unit.start, start, None, "label"))
        if start < end:
            blocks.append(Block(start, end, part, rule, place in draft.weak))
    return blocks


def _left_rule(draft: Draft, place: int) -> str:
    """Return the code of what a unit that is not taken was taken for."""
    unit, head = draft.units[place], draft.heads[place]
    if unit.kind is Kind.RULE:
        return "rule"
    part = unit.part if unit.part is not None else head.part if head is not None else None
    if part in TALK:
        return str(part)
    if unit.kind is Kind.LABEL and part in (Part.ANSWER, Part.EVIDENCE, Part.QUESTION):
        return "label"
    if not draft.is_inner(place) and (unit.mood.guides or sentence_kind(unit.text[:400].strip()) == "orders"):
        return "instruction"
    return "unmarked"
