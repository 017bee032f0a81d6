"""Find the question where a label or an element marks it: the template's own, not one in a document."""

from __future__ import annotations

import re
from collections.abc import Sequence

from truthlens.evidence.language.label_words import Part
from truthlens.evidence.language.mood import is_asking
from truthlens.evidence.prompt_sections.prompt_state import ASKED_CHARS, Draft
from truthlens.evidence.units.unit import Kind, Unit

_ANSWERED = re.compile(r"[?？]\s{1,4}(?:Answer|Antwort|Réponse|Respuesta|A|答|回答|Ответ)\s?[:：]\s?\S")
# So many units behind a label are looked at, and so many characters, to tell whether it is the template's.
_TAIL_UNITS = 40
_QUESTION_CHARS = 4000
# The sum of scores behind a question from which a document goes on there.
_TAIL_SCORE = 2.5
_MAX_PARAGRAPHS = 6
_PARAGRAPH_CHARS = 2000


def find_question(draft: Draft) -> int | None:
    """Return the unit that labels the template's own question, or ``None``."""
    asked = [
        place
        for place, unit in enumerate(draft.units)
        if unit.part is Part.QUESTION
        and not draft.is_example(place)
        and not _ANSWERED.search(unit.rest[-ASKED_CHARS:])
    ]
    if draft.system:
        return _known_question(draft, asked)
    if not asked:
        return _asking_input(draft)
    if draft.steps:
        return asked[-1]
    elements = [place for place in asked if draft.units[place].kind is Kind.ELEMENT]
    if elements:
        return elements[-1]
    opened = next(filter(draft.may_open, range(len(draft.units))), 0)
    before = [place for place in asked if place < opened]
    if before:
        return before[-1]
    if draft.asks_before(opened):
        # Asked without a label in front: the labels are those of a document.
        return None
    near = asked[-_TAIL_UNITS - 1 :]
    return next((place for place in reversed(near) if _is_tail_clean(draft, place)), None)


def take_question(draft: Draft) -> int:
    """Take the question that is marked; return the unit behind it."""
    place = draft.question_at
    assert place is not None
    unit = draft.units[place]
    at = place + 1
    if unit.kind is Kind.ELEMENT:
        draft.own(place, Part.QUESTION, "tag", (unit.body, unit.body_end))
        return at
    if unit.rest:
        draft.own(place, Part.QUESTION, "label", (unit.body, unit.end))
        # A question of several lines.
        while at < len(draft.units) and _is_question_still(draft, at):
            draft.own(at, Part.QUESTION, "label")
            at += 1
        return at
    draft.own(place, None, "label")
    taken = 0
    while at < len(draft.units) and taken < _MAX_PARAGRAPHS:
        each = draft.units[at]
        if each.kind is Kind.FENCED:
            draft.own(at, Part.QUESTION, "label", (each.body, each.body_end))
            taken += 1
        elif each.kind is Kind.TEXT and (taken == 0 or _is_question_still(draft, at)):
            draft.own(at, Part.QUESTION, "label")
            taken += 1
        elif each.kind is not Kind.RULE or (taken and each.style[:1] not in "\"'"):
            break
        at += 1
    return at


def _known_question(draft: Draft, asked: Sequence[int]) -> int | None:
    """Return the unit of a system message that repeats the question of the user's."""
    wanted = _squeezed(draft.asked)
    for place in reversed(asked if wanted else ()):
        said = _squeezed(_asked_text(draft, place))
        if said == wanted or (len(said) > 12 and said in wanted):
            return place
    return None


def _asking_input(draft: Draft) -> int | None:
    """Return the last element for an input, where it asks."""
    inputs = [
        place
        for place, unit in enumerate(draft.units)
        if unit.kind is Kind.ELEMENT and unit.part is Part.INPUT
    ]
    return inputs[-1] if inputs and is_asking(_asked_text(draft, inputs[-1])) else None


def _asked_text(draft: Draft, place: int) -> str:
    """Return what a label or an element marks: the text in it, behind it on its line, or below it."""
    unit, follows = draft.units[place], draft.following(place)
    if unit.kind is Kind.ELEMENT:
        return draft.text[unit.body : unit.body_end]
    if unit.rest:
        return unit.rest
    return draft.said(place + 1) if follows is not None and follows.kind is Kind.TEXT else ""


def _is_tail_clean(draft: Draft, place: int) -> bool:
    """Return whether no document goes on behind the question at ``place``."""
    unit = draft.units[place]
    if len(draft.units) - place > _TAIL_UNITS + 1 or len(_asked_text(draft, place)) > _QUESTION_CHARS:
        return False
    first = place + (2 if unit.is_bare else 1)
    total = 0.0
    for at in range(place + 1, len(draft.units)):
        each = draft.units[at]
        if each.kind is Kind.LABEL and each.part is Part.ANSWER and draft.is_filled(at):
            if _is_drafted(draft, place):
                return True
            if at <= first + 1 and each.rest:
                # Answered at once: an entry of a list of questions and answers, in a document.
                return False
        if at < first:
            continue
        if each.is_evidence_element:
            return False
        value = each.mood.reference_score if each.kind in (Kind.TEXT, Kind.FENCED) else 0.0
        total += value if draft.heads[at] is None else min(value, 0.0)
    return total <= _TAIL_SCORE


def _is_drafted(draft: Draft, place: int) -> bool:
    """Return whether what answers the question at ``place`` is a draft: no other label for an answer is filled in, and nothing else asks."""
    if len(draft.answers) != 1:
        return False
    asked = (
        at for at, unit in enumerate(draft.units) if unit.kind is Kind.LABEL and unit.part is Part.QUESTION
    )
    return next(asked) == place and next(asked, None) is None and not _asks_behind(draft, draft.answers[0])


def _asks_behind(draft: Draft, answer: Unit) -> bool:
    return any(draft.asks(at) for at, unit in enumerate(draft.units) if unit.start > answer.start)


def _is_question_still(draft: Draft, place: int) -> bool:
    """Return whether a paragraph behind a question still is what the user says: not talk about answering, no evidence."""
    unit = draft.units[place]
    return (
        unit.kind is Kind.TEXT
        and unit.end - unit.start <= _PARAGRAPH_CHARS
        and not any(draft.opens[place : place + _TAIL_UNITS])
        and not unit.mood.guides
    )


def _squeezed(text: str) -> str:
    return " ".join(text.split()).strip("\"'“” ").lower()
