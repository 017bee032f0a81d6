"""Find where evidence ends: at a mark of its own, or where the rest of the prompt reads as template again."""

from __future__ import annotations

import itertools
import re

from truthlens.evidence.language.label_words import Part
from truthlens.evidence.language.mood import is_asking
from truthlens.evidence.prompt_sections.other_parts import other_part
from truthlens.evidence.prompt_sections.prompt_state import EDGE, Draft
from truthlens.evidence.units.labels import form_of
from truthlens.evidence.units.unit import Kind, Unit

# A place to end is as good as the best one if it loses no more than this; less than one sentence to the model.
_SLACK = 0.9
_BESIDE = (Part.EVIDENCE, Part.METADATA, None)
# What the words of a label are compared without, to find the mark that ends what it opens.
_BEGIN_WORDS = frozenset(("begin", "begins", "start", "starts", "of", "the"))
_CLOSING = re.compile(
    r"^(?:the |these )?above\b.{0,100}$|^以上(?:是|为|就是).{0,40}$", re.IGNORECASE | re.MULTILINE
)


def delimited_end(draft: Draft, start: int, opener: Unit | None = None) -> int | None:
    """Return where evidence between marks of its own ends: elements side by side, or two rules; ``None`` without them."""
    if start >= len(draft.units):
        end: int | None = start
    elif draft.units[start].kind is Kind.RULE:
        end = _ruled_end(draft, start)
    else:
        end = start
        while (
            end < len(draft.units)
            and draft.units[end].kind is Kind.ELEMENT
            and draft.units[end].part in _BESIDE
        ):
            end += 1
        end = end if end > start else None
    return None if end is None else _carried_on(draft, end, opener)


def marked_end(draft: Draft, place: int) -> int | None:
    """Return the last mark that ends what the label at ``place`` opens: "[END SOURCES]" for "[BEGIN SOURCES]"."""
    unit = draft.units[place]
    if not unit.is_bare:
        return None
    words = {*unit.label.split(), *unit.number.split()} - _BEGIN_WORDS
    stop = min(len(draft.units), draft.question_at or len(draft.units))
    for at in range(stop - 1, place, -1):
        if draft.units[at].is_end_mark and words <= set(draft.units[at].label.split()):
            return at
    return None


def open_end(draft: Draft, start: int, begun: float = 0.0, opener: Unit | None = None) -> int:
    """Return the unit before which evidence without an end mark ends.

    Where the prompt ends in reference text, the evidence goes on to its end. Else it ends where the sum of scores is greatest, at the
    last of about equal places. ``begun`` is the score of text that stands on the line of the
    label, ``opener`` the label, for which another part of the prompt is an end.
    """
    limit = _limit(draft, start, opener)
    total = best = begun
    sums = [(start, total)]
    stopped = False
    for at in range(start, limit):
        talked = (draft.opens[at] and total < best - 3.0) or total < best - 12.0 or total < -4.0
        # So much talk to the model: the evidence ended before it, whatever comes behind.
        if talked or (at > start and _begins_anew(draft, start, at)):
            stopped = True
            break
        total += draft.scores[at]
        best = max(best, total)
        sums.append((at + 1, total))
    end = _without_orders(draft, start, max(at for at, value in sums if value >= best - _SLACK))
    limit = min(limit, _without_orders(draft, start, limit)) if draft.system else limit
    if end < limit and not (stopped and draft.system) and goes_on(draft, end, limit):
        return limit
    return end


def ends_all(draft: Draft, place: int) -> bool:
    """Return whether no evidence goes beyond a unit: the question of the template, an example, an element of talk."""
    unit = draft.units[place]
    talk = unit.kind is Kind.ELEMENT and unit.part in (Part.QUESTION, Part.INSTRUCTION, Part.HISTORY)
    return place == draft.question_at or draft.is_example(place) or talk


def goes_on(draft: Draft, start: int, end: int) -> bool:
    """Return whether a document goes on from ``start`` to ``end``: its last unit is no talk, and no label of talk stands between."""
    last, head = draft.units[end - 1], draft.heads[end - 1]
    if last.mood.is_half_talk or last.is_talk_label:
        return False
    if head is not None and (head.start in draft.guiding or head.part is not Part.INSTRUCTION):
        return False
    between = draft.units[start:end]
    return not any(
        unit.is_bare
        and (
            unit.part in (Part.HISTORY, Part.EXAMPLE)
            or (unit.part is Part.INSTRUCTION and unit.start in draft.guiding)
        )
        for unit in between
    ) and not any(unit.kind is Kind.TEXT and _CLOSING.match(unit.text.strip()[:200]) for unit in between)


def _ruled_end(draft: Draft, start: int) -> int | None:
    """Return where evidence ends that begins behind a rule: at one like it."""
    closes = [at for at in range(start + 1, len(draft.units)) if _is_same_rule(draft, start, at)]
    for at in closes:
        if _is_same_rule(draft, start, at + 2) and (
            draft.units[at + 1].kind is Kind.LABEL or _is_bare_form(draft.said(at + 1))
        ):
            # Behind it another labelled part begins between the same rules.
            return at + 1
    asked = draft.question_at
    stop = asked if asked is not None and asked > start else len(draft.units)
    totals = list(itertools.accumulate(draft.scores[start + 1 :], initial=0.0))
    sums = {at: totals[at - start - 1] for at in closes if at <= stop}
    return _last_close(draft, sums, stop) if sums else None


def _is_same_rule(draft: Draft, rule: int, place: int) -> bool:
    """Return whether a rule like the one at ``rule`` stands at ``place``."""
    unit = draft.units[place] if place < len(draft.units) else None
    return unit is not None and unit.kind is Kind.RULE and unit.style == draft.units[rule].style


def _is_bare_form(line: str) -> bool:
    """Return whether a text is a line with a label of any name and nothing behind it."""
    form = form_of(line) if "\n" not in line else None
    return form is not None and form[2]


def _last_close(draft: Draft, sums: dict[int, float], stop: int) -> int:
    """Return which of the rules ends a text, by the sums of scores before each."""
    best = max(sums.values())
    for at in sorted(sums, reverse=True):
        if sum(max(0.0, score) for score in draft.scores[at + 1 : stop]) > 1.0:
            break
        if sums[at] >= best - 6.0:
            # Behind it nothing but talk, whatever the document says before it.
            return at
    return max(at for at, value in sums.items() if value >= best - 1.5)


def _limit(draft: Draft, start: int, opener: Unit | None = None) -> int:
    """Return the unit that evidence from ``start`` on reaches at most: before the question and the cue for the answer."""
    limit = start
    while limit < len(draft.units) and not ends_all(draft, limit):
        limit += 1
    if opener is not None:
        limit = other_part(draft, opener, start, limit)
    limit = _without_question(draft, start, limit)
    return draft.trimmed(start, limit, lambda at: _is_cue(draft.units[at]))


def _carried_on(draft: Draft, end: int, opener: Unit | None) -> int:
    """Return the end of evidence whose closing mark may be the document's own: further where reference text goes on behind it."""
    if end >= len(draft.units) or ends_all(draft, end):
        return end
    limit = _limit(draft, end, opener)
    behind = draft.units[end:limit]
    if not behind or any(unit.mood.guides for unit in behind) or not goes_on(draft, end, limit):
        return end
    return limit if draft.gain(end, limit) > 0.8 else end


def _without_orders(draft: Draft, start: int, end: int) -> int:
    """Give back paragraphs of orders at the end of a text that orders nothing else: they are the prompt's."""
    moods = [unit.mood for unit in draft.units[max(start, end - EDGE) : end]]
    if sum(each.orders for each in moods) * 3 > sum(each.total for each in moods):
        return end
    return draft.trimmed(start + 1, end, lambda at: _orders_alone(draft.units[at]))


def _orders_alone(unit: Unit) -> bool:
    """Return whether a paragraph orders and states nothing."""
    return unit.kind is Kind.TEXT and not unit.mood.states and unit.mood.orders + unit.mood.guides > 0


def _begins_anew(draft: Draft, start: int, place: int) -> bool:
    """Return whether a bare heading for evidence stands at ``place``, with talk to the model under a heading before it."""
    unit = draft.units[place]
    return (
        draft.opens[place] == "label"
        and unit.is_bare
        and unit.style[:1] in "#-*"
        and not unit.number
        and any(
            each.kind is Kind.LABEL and each.part is Part.INSTRUCTION
            for each in draft.units[max(start, place - EDGE) : place]
        )
    )


def _is_cue(unit: Unit) -> bool:
    """Return whether a unit only asks for the answer: "Answer:" at the end."""
    return unit.kind is Kind.RULE or (unit.is_bare and unit.part is Part.ANSWER)


def _without_question(draft: Draft, start: int, end: int) -> int:
    """Give the last paragraph of open evidence back where it is the question, which stands nowhere else."""
    if draft.system or draft.question_at is not None or draft.asks_before(start - 1):
        return end
    talk = draft.trimmed(start, end, lambda at: draft.units[at].is_talk)
    if start < talk < end and draft.asks(talk - 1):
        return talk - 1
    tail = [at for at in range(start, end) if draft.units[at].kind is not Kind.RULE]
    if not tail or any(draft.asks(at) for at in range(end, len(draft.units))):
        return end
    last = tail[-1]
    one_line = draft.units[last].kind is not Kind.TEXT or "\n" not in draft.said(last)
    if last == tail[0] and one_line and not draft.units[start - 1].rest:
        return end
    return last if draft.asks(last) else _without_last_line(draft, last, end)


def _without_last_line(draft: Draft, place: int, end: int) -> int:
    """Part the last line from its paragraph where it alone asks: "Context: …" and the question on the next line."""
    unit = draft.units[place]
    if unit.kind is not Kind.TEXT:
        return end
    said = draft.said(place)
    line = said[said.rfind("\n") + 1 :]
    if line == said or not line.rstrip().endswith(("?", "？")) or not is_asking(line):
        return end
    draft.split(place, unit.end - len(line))
    return place + 1
