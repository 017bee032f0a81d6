"""Find the worked examples of a prompt: labelled rounds that end in an answer, before the same labels begin again."""

from __future__ import annotations

from bisect import bisect_left

from truthlens.core.cancellation import checkpoint
from truthlens.evidence.language.label_words import Part
from truthlens.evidence.prompt_sections.prompt_state import EDGE, Draft
from truthlens.evidence.units.unit import Kind, Unit


def mark_examples(draft: Draft) -> None:
    """Take worked examples out, so that none of their labels opens evidence or asks."""
    rounds = _answered_rounds(draft)
    if rounds is None:
        return
    begin, end, answered = rounds
    if draft.system and answered is not None and answered > end:
        # No question of the template stands in a system message: its last round is an example as well.
        end = min(answered + (1 if draft.units[answered].rest else 2), len(draft.units))
    else:
        end = _without_question(draft, begin, end)
    for place in range(begin, end):
        draft.own(place, None, "example")


def _answered_rounds(draft: Draft) -> tuple[int, int, int | None] | None:
    """Return the first unit of the examples, the one behind them, and the last answer behind that; ``None`` without examples."""
    sources = [place for place, unit in enumerate(draft.units) if unit.part is Part.EVIDENCE]
    first: dict[tuple[str, str, str], int] = {}
    answered: int | None = None
    begin: int | None = None
    end = 0
    for place, unit in enumerate(draft.units):
        checkpoint()
        if unit.kind is not Kind.LABEL or unit.part is None:
            continue
        if unit.part is Part.ANSWER and (unit.rest or _text_follows(draft, place)):
            answered = place
            continue
        key = (*unit.key, unit.number)
        known = first.setdefault(key, place)
        if (
            answered is not None
            and known < answered
            and _begins_again(draft, sources, known, answered, place)
        ):
            begin, end = known if begin is None else begin, place
            first = {key: place}
            answered = None
    return None if begin is None else (begin, end, answered)


def _begins_again(draft: Draft, sources: list[int], known: int, answered: int, place: int) -> bool:
    """Return whether the label at ``place`` begins another round, as it did at ``known`` the answered one."""
    part = draft.units[place].part
    return _asks_again(draft, known, answered, place) and (
        part in (Part.EVIDENCE, Part.INPUT)
        or (part is Part.QUESTION and _has_evidence_again(draft.units, sources, known, answered, place))
    )


def _without_question(draft: Draft, begin: int, end: int) -> int:
    """Return the end of the examples before the question of the last round, which may begin with it."""
    for place in range(end - 1, begin, -1):
        unit = draft.units[place]
        if unit.kind is Kind.LABEL and unit.part is Part.ANSWER:
            break
        if unit.part is Part.QUESTION:
            return place
    return end


def _asks_again(draft: Draft, known: int, answered: int, place: int) -> bool:
    """Return whether the labels of a round that was answered come again: its question's, or its answer's without an answer.

    Questions and answers within one document do not.
    """
    answer = draft.units[answered].key
    asked = {
        unit.key
        for unit in draft.units[max(known - 2, answered - EDGE, 0) : answered]
        if unit.part is Part.QUESTION and unit.kind is Kind.LABEL
    }
    begun = draft.units[place].start
    return any(
        (unit.key == answer and (draft.system or not unit.rest))
        or (unit.part is Part.QUESTION and unit.key in asked and len(unit.label) > 1 and unit.start > begun)
        for unit in draft.units[max(place, len(draft.units) - EDGE) :]
        if unit.kind is Kind.LABEL
    )


def _text_follows(draft: Draft, place: int) -> bool:
    follows = draft.following(place)
    return follows is not None and follows.kind is Kind.TEXT


def _has_evidence_again(units: list[Unit], sources: list[int], known: int, answered: int, place: int) -> bool:
    """Return whether each of two rounds that begin with a question has evidence of its own under the same label."""
    first = sources[bisect_left(sources, known) : bisect_left(sources, answered)]
    labels = {units[at].key for at in first[:EDGE]}
    later = sources[bisect_left(sources, place) :][:EDGE] if labels else []
    return any(units[at].key in labels for at in later)
