"""Score each unit of a prompt: above 0 where it reads as evidence, below where it reads as talk to the model."""

from __future__ import annotations

from truthlens.evidence.language.label_words import Part
from truthlens.evidence.prompt_sections.prompt_state import Draft
from truthlens.evidence.units.unit import TALK, Kind

# What a unit in the middle of a long prompt counts, where none is looked at.
_INNER = 0.5
_LAST_UNITS = 5


def score_units(draft: Draft) -> None:
    """Set the scores of all units."""
    draft.scores = [_score(draft, place) for place in range(len(draft.units))]


def _score(draft: Draft, place: int) -> float:
    if draft.is_inner(place):
        return _INNER
    unit = draft.units[place]
    match unit.kind:
        case Kind.RULE:
            return 0.0
        case Kind.ELEMENT:
            if unit.part is Part.QUESTION:
                return -4.0
            if unit.part in TALK:
                return -3.0
            value = 3.0 if unit.part is Part.EVIDENCE else unit.mood.reference_score
        case Kind.FENCED:
            value = 1.0 + 0.3 * unit.mood.reference_score
        case Kind.LABEL:
            value = _label_score(draft, place)
        case _:
            value = unit.mood.reference_score - (1.4 * unit.mood.addresses if draft.system else 0.0)
    head = draft.heads[place]
    if head is None or head is unit:
        return value
    if head.part in (Part.EXAMPLE, Part.HISTORY):
        return min(value, 0.0) - 1.0
    return min(value, 0.0) - 0.5 if head.start in draft.guiding else value - 0.7


def _label_score(draft: Draft, place: int) -> float:
    unit = draft.units[place]
    if place == draft.question_at:
        return -4.0
    said = unit.mood.reference_score if unit.rest else 0.0
    match unit.part:
        case Part.QUESTION:
            # In a document: a list of questions and answers.
            return 0.1
        case Part.ANSWER:
            return -3.0 if unit.is_bare and _is_last(draft, place) else 0.3
        case Part.HISTORY:
            return -3.0
        case Part.EXAMPLE:
            return -2.0
        case Part.INSTRUCTION:
            return said - (1.0 if unit.is_displayed else 0.3)
        case Part.EVIDENCE:
            return 0.3 + max(said, 0.0)
        case None:
            return 0.0
    return said


def _is_last(draft: Draft, place: int) -> bool:
    """Return whether nothing but rules and labels of answers stands behind a unit."""
    behind = draft.units[place + 1 : place + 2 + _LAST_UNITS]
    return len(behind) <= _LAST_UNITS and all(
        unit.kind is Kind.RULE or (unit.kind is Kind.LABEL and unit.part is Part.ANSWER) for unit in behind
    )
