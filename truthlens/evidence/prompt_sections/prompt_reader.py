"""Read a prompt: decide which of its units are evidence, which the question, and which talk to the model.

Evidence begins at something that says so: an element or label whose name is a word for it, a sentence that announces
it, the first of several numbered sources. It ends where the rest of the prompt reads as template again. As a document may hold
every mark that a template has, no single mark ends it: of all places where it could end, the one is taken that leaves
the most reference text before it and the most talk to the model behind it (``Unit.mood``), the last of about equal ones.
Without any mark, text counts only where the prompt announces it, or where it reads as reference text and the question is about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import regex

from truthlens.evidence.language.label_words import Part
from truthlens.evidence.language.mood import is_asking, sentence_kind
from truthlens.evidence.prompt_sections.evidence_start import find_openings
from truthlens.evidence.prompt_sections.labelled_evidence import take_marked
from truthlens.evidence.prompt_sections.labelled_question import find_question
from truthlens.evidence.prompt_sections.prompt_state import ASKED_CHARS, Draft
from truthlens.evidence.prompt_sections.unit_scores import score_units
from truthlens.evidence.prompt_sections.unlabelled_evidence import take_announced, take_unmarked
from truthlens.evidence.prompt_sections.unlabelled_question import find_unmarked_question
from truthlens.evidence.prompt_sections.worked_examples import mark_examples
from truthlens.evidence.units.cutting import cut
from truthlens.evidence.units.unit import TALK, Kind, Unit
from truthlens.text.sentences import sentences

_MIN_UNMARKED_CHARS = 120
_SENTENCE_ENDS = regex.compile(r"\p{STerm}[\p{Pe}\p{Pf}\"'*_]*$")
# What leads to a question: "Here is the query: …".
_LED_QUESTION = re.compile(
    r"^(?:[^\n:：?？]{0,80}\b(?:query|question|request|frage|pregunta|вопрос)\b[^\n:：?？]{0,30}|[^\n:：?？]{0,20}(?:问题|質問)[^\n:：?？]{0,6}|follow[- ]?up(?: \w+)?)[:：][ \t]*(?=\S)",
    re.IGNORECASE,
)
# A colleague wants to know: …?
_LED = re.compile(r"^[^\n:：?？]{2,60}[:：][ \t]*(?=[^\n]{3,400}[?？]\s*$)")
# "… this query: 'And at night?' with this context".
_QUOTED = re.compile(r"^(['\"“])([^'\"”\n]{3,400}[?？.!])(['\"”])(?=\s+\w)")
_QUOTES = {'"""': '"""', "'''": "'''", "```": "```", '"': '"', "“": "”", "«": "»", "「": "」"}


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
class ReadPrompt:
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
            line.strip() for part in asked for line in _bare_question(part).split("\n") if line.strip()
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
    continued: bool = False,
) -> ReadPrompt:
    """Read one message.

    Args:
        text: Of the message.
        system: Whether it is the operator's and holds no question, as another message does.
        asked: The question, where it is known from another message.
        topics: All that the user asked in the conversation.
        unmarked: Whether text without a mark may be evidence.
        min_chars: Characters that text needs which nothing announces.
        marks: Labels and names of tags that mean evidence besides the built-in ones, in lower case.
        continued: Whether the answer goes on where the text ends.
    """
    units = cut(text, marks)
    begun = _answer_begun(units) if continued else None
    if begun is not None:
        return _with_left(read_prompt(text[:begun], system=system, marks=marks), text, begun)
    if not units:
        return ReadPrompt(text)
    draft = Draft(text, units, system, asked, topics or asked, min_chars)
    find_openings(draft)
    mark_examples(draft)
    draft.question_at = find_question(draft)
    score_units(draft)
    _take_evidence(draft, unmarked=unmarked)
    if continued:
        _leave_continued(draft)
    if not system and not draft.has(Part.QUESTION):
        find_unmarked_question(draft)
    return ReadPrompt(text, _blocks(draft))


def _with_left(prompt: ReadPrompt, text: str, end: int) -> ReadPrompt:
    """Return a prompt that was read up to ``end`` with the rest of its text, which the answer continues."""
    rest = [Block(end, len(text), None, "continued")] if text[end:].strip() else []
    return ReadPrompt(text[:end] if not rest else text, [*prompt.blocks, *rest])


def _take_evidence(draft: Draft, *, unmarked: bool) -> None:
    if not unmarked:
        take_marked(draft)
        return
    if not take_announced(draft):
        take_marked(draft)
    if not draft.has(Part.EVIDENCE):
        take_unmarked(draft)


def _blocks(draft: Draft) -> list[Block]:
    """Return what the units were found to be, with the label of a unit apart where only the rest is taken."""
    blocks: list[Block] = []
    for place, unit in enumerate(draft.units):
        part, rule = draft.owner[place]
        start, end = draft.kept(place)
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


def _answer_begun(units: Sequence[Unit]) -> int | None:
    """Return where an answer begins behind the last label for one; ``None`` where anything asks behind it."""
    for unit in reversed(units):
        if unit.kind is Kind.LABEL and unit.part is Part.ANSWER:
            return unit.body
        asks = unit.kind is Kind.TEXT and unit.text.rstrip().endswith(("?", "？"))
        if asks or unit.part in (Part.QUESTION, Part.EVIDENCE):
            return None
    return None


def _leave_continued(draft: Draft) -> None:
    """Take back the text at the end of the prompt where it was taken as evidence and nothing closes it.

    It stays where the prompt asks elsewhere, and the text is one that ends, or all that there is.
    """
    last = len(draft.units) - 1
    if draft.owner[last][0] is not Part.EVIDENCE or draft.units[last].kind not in (Kind.TEXT, Kind.LABEL):
        return
    said = draft.said(last).rstrip()
    places = [at for at in range(len(draft.units)) if draft.owner[at][0] is Part.EVIDENCE]
    asked = draft.question_at is not None or any(_asks(draft, at) for at in range(last + 1))
    if asked and (_SENTENCE_ENDS.search(said[-20:]) or places == [last]):
        return
    draft.own(last, None, "continued")


def _asks(draft: Draft, place: int) -> bool:
    """Return whether a unit asks with what of it is no evidence: a paragraph, or the words of a label."""
    unit = draft.units[place]
    if draft.owner[place][0] is not Part.EVIDENCE:
        return is_asking(draft.said(place)[:ASKED_CHARS])
    return unit.kind is Kind.LABEL and is_asking(draft.text[unit.start : unit.body])


def _bare_question(text: str) -> str:
    """Return what is asked without the words that introduce it, and without talk about answering behind it."""
    plain = _unquoted(text)
    led = _LED_QUESTION.match(plain) or _LED.match(plain)
    if led is not None:
        plain = _unquoted(plain[led.end() :])
    quoted = _QUOTED.match(plain)
    if quoted is not None:
        return quoted[2].strip()
    if "?" not in plain and "？" not in plain:
        return plain
    kept = len(plain)
    for start, end in reversed(sentences(plain[:ASKED_CHARS])):
        said = plain[start:end].strip()
        if said.endswith(("?", "？")) or sentence_kind(said) != "guides":
            break
        kept = start
    return plain[:kept].strip() or plain


def _unquoted(text: str) -> str:
    plain = text.strip()
    for opens, closes in _QUOTES.items():
        if plain.startswith(opens) and plain.endswith(closes) and len(plain) > 2 * len(opens):
            inside = plain[len(opens) : -len(closes)]
            if closes not in inside:
                return inside.strip()
    return plain
