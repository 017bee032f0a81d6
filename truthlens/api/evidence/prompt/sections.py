"""Take the parts of a prompt between marks of any name that read as reference text."""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.api.evidence.language.label_words import Part
from truthlens.api.evidence.language.relation import is_about
from truthlens.api.evidence.prompt.draft import NO_OWNER, Draft
from truthlens.api.evidence.prompt.unmarked import is_code
from truthlens.api.evidence.units.unit import TALK, Kind

_MIN_SCORE = 0.9
# Units from the first up to the one behind the last.
_Section = tuple[int, int]


def take_sections(draft: Draft) -> None:
    """Take sections under marks of any name that read as reference text, beside talk or a question that stands elsewhere."""
    chosen = [section for section in _sections(draft) if _reads_as_reference(draft, *section)]
    if not chosen or draft.steps:
        return
    said = ["".join(f"{draft.said(at)}\n" for at in range(*section)) for section in chosen]
    if draft.system:
        if not is_about(draft.topics, "\n".join(said), least=2):
            return
        styles = {
            _mark_of(draft, section[0])
            for section, text in zip(chosen, said, strict=True)
            if is_about(draft.topics, text, least=1)
        }
        chosen = [section for section in chosen if _mark_of(draft, section[0]) in styles]
    elif not _is_asked_outside(draft, chosen) or is_code("\n".join(said)):
        return
    for at in (at for section in chosen for at in range(*section)):
        kind = draft.units[at].kind
        part = None if kind is Kind.RULE else Part.EVIDENCE
        draft.own(at, part, "tag" if kind is Kind.ELEMENT else "section")


def _sections(draft: Draft) -> list[_Section]:
    """Return the parts of the prompt under headings, between rules or fences, and in elements whose name says nothing."""
    found: list[_Section] = []
    place = 0
    while place < len(draft.units):
        unit = draft.units[place]
        if unit.kind is Kind.FENCED or (unit.kind is Kind.ELEMENT and unit.part is None):
            found.append((place, place + 1))
        elif unit.kind is Kind.RULE:
            end = _last_rule(draft, place)
            if end is not None:
                found.append((place + 1, end))
                place = end
        elif unit.is_heading and unit.part is None:
            end = _heading_end(draft, place)
            found.append((place + 1, end))
            place = end - 1
        place += 1
    return found


def _heading_end(draft: Draft, place: int) -> int:
    """Return where the text under a heading ends: at one of the same level, or at a label of the template."""
    head = draft.units[place]
    for at in range(place + 1, len(draft.units)):
        unit = draft.units[at]
        if unit.part is Part.QUESTION or unit.part in TALK or (unit.is_heading and not unit.is_below(head)):
            return at
    return len(draft.units)


def _last_rule(draft: Draft, place: int) -> int | None:
    """Return where the text ends that begins behind a rule: at the last one like it, or with the prompt where text goes on behind that."""
    units = draft.units
    rules = (
        at
        for at in range(len(units) - 1, place, -1)
        if units[at].kind is Kind.RULE and units[at].style == units[place].style
    )
    last = next(rules, None)
    if last is None:
        return None
    behind = range(last + 1, len(units))
    goes_on = not any(draft.asks(at) or units[at].mood.guides for at in behind) and any(
        draft.scores[at] > 0 for at in behind
    )
    return len(units) if goes_on else last


def _reads_as_reference(draft: Draft, start: int, end: int) -> bool:
    """Return whether a section that nothing was said of states facts, and mostly does not talk to the model."""
    if draft.gain(start, end) < _MIN_SCORE or (end - start == 1 and draft.asks(start)):
        return False
    if any(
        draft.owner[at] not in (NO_OWNER, (None, "unsure")) or at == draft.question_at
        for at in range(start, end)
    ):
        return False
    moods = [unit.mood for unit in draft.units[start:end] if unit.kind is not Kind.RULE]
    talk = sum(each.guides + (each.addresses if draft.system else 0) for each in moods)
    return talk * 3 <= max(1, sum(each.total for each in moods))


def _mark_of(draft: Draft, start: int) -> str:
    """Return the mark of a section, to tell which belong together: the name of an element, the style of a heading."""
    unit = draft.units[start]
    if unit.kind is Kind.ELEMENT:
        return unit.label
    return draft.units[start - 1].style if start else ""


def _is_asked_outside(draft: Draft, chosen: Sequence[_Section]) -> bool:
    inside = {at for section in chosen for at in range(*section)}
    return draft.question_at is not None or any(
        draft.asks(at) for at in range(len(draft.units)) if at not in inside
    )
