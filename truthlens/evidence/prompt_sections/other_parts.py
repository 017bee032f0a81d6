"""Find where another part of the prompt begins behind evidence that a label opened: a draft, a scratchpad, notes of an agent.

A label need not have a known name to part the prompt. It does where it is written as the label that opened the evidence, and so stands
beside it. A document may be written in such labels too: one that repeats is a field of records, and many of them, or headings
behind one another, are a document's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from operator import attrgetter

from truthlens.evidence.language.label_words import THOUGHTS, Part
from truthlens.evidence.prompt_sections.prompt_state import Draft, LabelLine
from truthlens.evidence.units.labels import form_of
from truthlens.evidence.units.unit import Kind, Unit

# Unknown labels in one part from which on they are the document's.
_MANY = 3


def other_part(draft: Draft, opener: Unit, start: int, limit: int) -> int:
    """Return the unit before ``limit`` with which another part than the evidence of ``opener`` begins, else the limit.

    A paragraph is parted where the label stands within it.
    """
    lines = _beside(draft, opener, start, limit)
    headed = False
    styles = Counter(_group(unit.style) for unit in draft.units[start:limit] if unit.kind is Kind.LABEL)
    styles.update(_group(line.style) for line in _lines(draft, start, limit))
    for place in range(start, limit):
        unit = draft.units[place]
        if unit.kind is Kind.LABEL:
            if _is_models(draft, place, opener, written=styles[_group(unit.style)]) or _is_order(
                unit, opener
            ):
                return place
            if _is_level(unit, opener):
                if not headed and unit.part is None and _is_before_template(draft, place, opener):
                    return place
                headed = True
        while lines and lines[0] < unit.end and unit.kind is Kind.TEXT:
            at = lines.pop(0)
            if at <= unit.start:
                return place
            draft.split(place, at)
            draft.scores[place + 1] = draft.units[place + 1].mood.reference_score
            unit.read = None
            return place + 1
    return limit


def _beside(draft: Draft, opener: Unit, start: int, limit: int) -> list[int]:
    """Return where lines begin that are unknown labels written as ``opener`` is."""
    if start >= limit or opener.kind is not Kind.LABEL or opener.part is not Part.EVIDENCE:
        return []
    style = opener.style.rstrip("C")
    if not opener.is_bare and (form_of(opener.rest) is not None or draft.filled[opener.key] > 1):
        # A record: its fields are the document's own.
        return []
    found = [
        line for line in _lines(draft, start, limit) if line.style == style and line.bare == opener.is_bare
    ]
    return [line.start for line in found if not _is_title(draft, opener, line)] if len(found) < _MANY else []


def _lines(draft: Draft, start: int, limit: int) -> list[LabelLine]:
    """Return the lines from the unit at ``start`` up to the one at ``limit`` that are written as labels of unknown words."""
    if start >= limit:
        return []
    lines = draft.label_lines()
    first = bisect_left(lines, draft.units[start].start, key=attrgetter("start"))
    last = bisect_left(lines, draft.units[limit - 1].end, key=attrgetter("start"))
    return lines[first:last]


def _is_title(draft: Draft, opener: Unit, line: LabelLine) -> bool:
    """Return whether a line stands right below a label for evidence: the document's title."""
    return opener.is_bare and draft.text.count("\n", opener.end, line.start) < 2


def _is_models(draft: Draft, place: int, opener: Unit, *, written: int) -> bool:
    """Return whether a label is for what a model said or thought, and none of a document: in a list of questions, or of a form."""
    unit, before = draft.units[place], draft.units[place - 1]
    # Many labels of another form are the document's own.
    parts = unit.style[:1] in ":()" or _style(unit) == _style(opener) or written < _MANY
    if unit.part is not Part.ANSWER:
        return parts and (unit.label.lstrip("- ") in THOUGHTS or unit.part is Part.HISTORY)
    if len(unit.label) == 1 or not parts:
        return False
    if before.part is Part.QUESTION or draft.said(place - 1).rstrip().endswith(("?", "？")):
        # An answer in a document, where something else is asked behind it; else a draft behind the question itself.
        return len(draft.answers) == 1 and not draft.system and not _is_asked_elsewhere(draft, place)
    if unit.rest:
        # What the template asks to be filled in has the same label and nothing behind it.
        return draft.filled[unit.key] == 1 and any(map(str.isalnum, unit.rest))
    return True


def _is_asked_elsewhere(draft: Draft, place: int) -> bool:
    """Return whether anything else of a prompt asks than the paragraph before ``place``."""
    return any(
        (draft.asks(at) or unit.part is Part.QUESTION) and at != place - 1
        for at, unit in enumerate(draft.units)
    )


def _style(unit: Unit) -> str:
    return unit.style[:1] if unit.style[:1] in "#-" else unit.style.rstrip("C")


def _group(style: str) -> str:
    """Return the style of a label, the same for all headings."""
    return "#" if style[:1] in "#-" else style.rstrip("C")


def _is_order(unit: Unit, opener: Unit) -> bool:
    """Return whether a label of talk to the model is written as ``opener`` is."""
    alike = unit.style.rstrip("C") == opener.style.rstrip("C") and unit.is_bare == opener.is_bare
    return alike and unit.part is Part.INSTRUCTION


def _is_level(unit: Unit, opener: Unit) -> bool:
    """Return whether both are headings, this one not below the other."""
    return (
        unit.is_heading
        and opener.part is Part.EVIDENCE
        and opener.style[:1] == unit.style[:1]
        and not unit.is_below(opener)
    )


def _is_before_template(draft: Draft, place: int, opener: Unit) -> bool:
    """Return whether the next heading of this level is one of the template."""
    for unit in draft.units[place + 1 :]:
        if _is_level(unit, opener):
            return unit.part in (Part.QUESTION, Part.ANSWER, Part.INSTRUCTION)
    return False
