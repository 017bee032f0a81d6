"""Take text that no mark opens: where the prompt announces it, or where it reads as reference text and the question is about it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from truthlens.evidence.language.announcing import is_rewording, speaks_of_evidence
from truthlens.evidence.language.label_words import Part, is_others_label, part_of_label
from truthlens.evidence.language.relation import is_about
from truthlens.evidence.prompt_sections.evidence_end import ends_all, goes_on, open_end
from truthlens.evidence.prompt_sections.labelled_evidence import is_strong
from truthlens.evidence.prompt_sections.prompt_state import ASKED_CHARS, EDGE, Draft
from truthlens.evidence.units.labels import form_of
from truthlens.evidence.units.unit import Kind, Unit

# The least sums of scores: of text that is announced, and of other text.
_ANNOUNCED_SCORE = 0.8
_REFERENCE_SCORE = 2.0
_HEADING_CHARS = 80
# Labels in a text from which on it is written in them.
_MANY_LABELS = 3
_LINE_CHARS = 200
_REST_CHARS = 2000
_SUMMARY = re.compile(
    r"\bsummar|\btl;?dr|zusammen|résum|resum|总结|總結|概括|摘要|要約|кратк|riassum", re.IGNORECASE
)
_POINTS = re.compile(
    r"\b(?:this|that|these|above|below|following|attached|pasted|here|it say|according to|article|e-?mail|letter|text|passage|document|contract|transcript|"
    r"dies\w*|oben|folgend\w*|artikel|ce|cet|cette|texte|este|esta|texto|этот|этом|текст\w*)\b|这|這|上面|下面|以下|以上|文章|本文|この",
    re.IGNORECASE,
)
_CODE_LINE = re.compile(
    r"[;{}]\s*$|^\s*(?:def|class|import|from|return|if|for|while|var|let|const|function|public|private|SELECT|CREATE|INSERT|#include)\b.*[:({;,]?\s*$|=>|==|\)\s*:$|^\s*(?://|#!|</?\w+)|^\s*\w+\s*=\s*\S"
)
_CODE_LINES = 200
# Units from the first up to the one behind the last, and the sum of their scores.
_Stretch = tuple[int, int, float]
_NOTHING: _Stretch = (0, 0, 0.0)


def _announcing_unit(draft: Draft) -> int | None:
    """Return the last unit of talk that speaks of evidence which the prompt holds: "use the following context"."""
    found = None
    for place, unit in enumerate(draft.units[:EDGE]):
        if unit.kind is Kind.TEXT and unit.mood.guides and speaks_of_evidence(unit.text):
            found = place
    return found


def take_announced(draft: Draft) -> bool:
    """Take the text behind an announcement of a system message where it begins before any mark; return whether there is one.

    Marks in it are then a document's own.
    """
    announcing = _announcing_unit(draft) if draft.system else None
    if announcing is None:
        return False
    start, end, total = _behind(draft, announcing, set())
    if start >= end or not _is_enough_announced(draft, start, end, total):
        return False
    if draft.units[start].part is Part.EVIDENCE or draft.opens[start]:
        return False
    if any(_is_mark(draft, at) for at in range(start, len(draft.units))):
        return False
    if not _is_announced_reference(draft, start, end):
        return False
    for place in range(start, end):
        draft.own(place, Part.EVIDENCE, "announced-text")
    return True


def take_unmarked(draft: Draft) -> None:
    """Take text without a mark, where the prompt announces it or where it reads as reference text; the question has to be about it."""
    free = [place for place in range(len(draft.units)) if draft.is_free(place)]
    if not free or draft.steps:
        return
    ends = _asking_units(draft, free) if not draft.system else set()
    announcing = _announcing_unit(draft)
    announced = announcing is not None
    start, end, total = _unmarked_stretch(draft, announcing, ends)
    if announced:
        enough = _is_enough_announced(draft, start, end, total)
    else:
        enough = total >= _REFERENCE_SCORE and len(draft.stretch(start, end)) >= draft.min_chars
        enough = enough and (draft.system or end - start < len(draft.units))
    if enough:
        rule = _rule_of(draft, start, end, announced=announced)
        for place in range(start, end):
            if draft.units[place].kind is Kind.RULE and place in (start, end - 1):
                draft.own(place, None, "rule")
            else:
                draft.own(place, Part.EVIDENCE if rule else None, rule or "unsure")


def _unmarked_stretch(draft: Draft, announcing: int | None, ends: set[int]) -> _Stretch:
    """Return the text behind an announcement where it scores enough or beside the question, else the best."""
    if announcing is not None:
        behind = _behind(draft, announcing, ends)
        if _is_enough_announced(draft, *behind):
            return behind
    elif ends:
        return _between(draft, ends)
    return _best_stretch(draft, ends)


def is_code(text: str) -> bool:
    """Return whether most lines of a text are code, which an answer changes and does not report."""
    lines = [line for line in text.split("\n")[:_CODE_LINES] if line.strip()]
    return sum(_CODE_LINE.search(line) is not None for line in lines) * 2 > len(lines)


def _rule_of(draft: Draft, start: int, end: int, *, announced: bool) -> str:
    """Return by which rule a stretch is evidence, ``""`` where it is unsure that it is."""
    if not announced and _is_labelled(draft, start, end):
        return ""
    question = draft.topics or _rest_text(draft, start, end)
    if not draft.system:
        taken = _is_reference_for_user(question, draft.stretch(start, end), announced=announced)
    elif announced:
        taken = _is_announced_reference(draft, start, end)
    else:
        taken = _is_reference_for_system(draft, question, start, end)
    if not taken:
        return ""
    return "announced-text" if announced else "reference-text" if draft.system else "pasted-text"


def _is_labelled(draft: Draft, start: int, end: int) -> bool:
    """Return whether a label that is none for evidence stands above a stretch, or in it: whose words are behind it is unsure.

    A text that is written in labels throughout has them of its own.
    """
    above = draft.text[: draft.units[start].start].rstrip().rpartition("\n")[2]
    first = draft.said(start).partition("\n")[0]
    heads = [form for at in range(start, end) if (form := _head(draft, at)) is not None]
    bare = [words for style, words, is_bare in heads if is_bare and style == ":"]
    for line in (above, first):
        form = form_of(line[:_LINE_CHARS])
        if form is None:
            continue
        _, words, is_bare = form
        if is_others_label(words) or (is_bare and len(bare) <= 1 and not part_of_label(words)):
            return True
    return len(heads) < _MANY_LABELS and any(
        is_bare and is_others_label(words) for _, words, is_bare in heads
    )


def _head(draft: Draft, place: int) -> tuple[str, str, bool] | None:
    """Return the label that a unit begins with, in the form of ``form_of``."""
    unit = draft.units[place]
    if unit.kind is Kind.ELEMENT:
        return "<>", draft.text[unit.start : unit.body].strip("<> \n"), True
    return form_of(draft.said(place).partition("\n")[0][:_LINE_CHARS])


def _is_reference_for_user(question: str, stretch: str, *, announced: bool) -> bool:
    """Return whether the text of a user's message is what the question in it is about."""
    if is_rewording(question) or (not announced and is_code(stretch)):
        return False
    if announced or stretch.lstrip().startswith(("{", "[{")):
        return True
    return _points_at(question) or is_about(question, stretch)


def _is_announced_reference(draft: Draft, start: int, end: int) -> bool:
    """Return whether announced text of a system message has a word in common with what the user asks, or states facts."""
    return is_about(draft.topics, draft.stretch(start, end), least=1) or _tells(draft.units[start:end])


def _is_reference_for_system(draft: Draft, question: str, start: int, end: int) -> bool:
    """Return whether text of a system message that nothing announces is about the question, and hardly talks to the model."""
    moods = [unit.mood for unit in draft.units[start:end]]
    talk = sum(each.guides + each.addresses for each in moods)
    return talk / max(1, sum(each.total for each in moods)) < 0.25 and is_about(
        question, draft.stretch(start, end), least=2
    )


def _tells(units: Sequence[Unit]) -> bool:
    """Return whether text states facts throughout: it may answer a question in other words than it is asked in."""
    moods = [unit.mood for unit in units if unit.kind is not Kind.RULE]
    return (
        not any(each.guides + each.addresses for each in moods)
        and sum(each.states for each in moods) >= 2
        and any(each.specifics for each in moods)
    )


def _is_mark(draft: Draft, place: int) -> bool:
    """Return whether a unit is a mark of the template, behind which evidence may begin of its own."""
    if draft.opens[place] == "label":
        return draft.units[place].is_bare and is_strong(draft, draft.units[place])
    return draft.opens[place] in ("announced", "tag")


def _asking_units(draft: Draft, free: Sequence[int]) -> set[int]:
    """Return the units with which the user asks: at the ends of his message, else a single one within."""
    ends = {place for place in (free[0], free[-1]) if draft.asks(place)}
    if ends or len(free) > EDGE:
        return ends
    asked = {at for at in free if draft.asks(at) and draft.said(at).rstrip().endswith(("?", "？"))}
    return asked if len(asked) == 1 else set()


def _behind(draft: Draft, announcing: int, ends: set[int]) -> _Stretch:
    """Return the text behind an announcement, without the talk that follows it at once."""
    start = announcing + 1
    while start < len(draft.units) and (
        start in ends
        or _is_rule_or_talk(draft, start)
        or draft.scores[start] < -1.0
        or not draft.is_free(start)
    ):
        start += 1
    end = open_end(draft, start) if start < len(draft.units) else start
    limit = next((at for at in range(start, len(draft.units)) if ends_all(draft, at)), len(draft.units))
    if start < end < limit and draft.scores[start] > 0 and not ends and goes_on(draft, end, limit):
        end = limit
    end = draft.trimmed(start, end, lambda at: at in ends or _is_rule_or_talk(draft, at))
    return start, end, draft.gain(start, end)


def _is_enough_announced(draft: Draft, start: int, end: int, total: float) -> bool:
    """Return whether an announced stretch scores enough, or begins and ends with reference text."""
    framed = end - start > 1 and draft.scores[start] > 0 and draft.scores[end - 1] > 0
    return framed or total >= _ANNOUNCED_SCORE


def _is_rule_or_talk(draft: Draft, place: int) -> bool:
    unit = draft.units[place]
    talk = unit.mood.guides + (unit.mood.addresses if draft.system else 0)
    return unit.kind is Kind.RULE or unit.is_talk_label or talk * 2 > max(1, unit.mood.total)


def _between(draft: Draft, ends: set[int]) -> _Stretch:
    """Return the run of units beside a question with the greatest sum, without rules and talk to the model at its ends."""

    def outer(place: int) -> bool:
        unit = draft.units[place]
        addressed = unit.mood.addresses * 2 > unit.mood.total
        return unit.kind is Kind.RULE or unit.mood.is_talk or addressed or not draft.is_free(place)

    best = _NOTHING
    for before, behind in itertools.pairwise([-1, *sorted(ends), len(draft.units)]):
        start, end = before + 1, behind
        while start < end and outer(start):
            start += 1
        end = draft.trimmed(start, end, outer)
        total = draft.gain(start, end)
        if total > best[2]:
            best = (start, end, total)
    return best


def _best_stretch(draft: Draft, ends: set[int]) -> _Stretch:
    """Return the units between which the sum of scores is greatest."""
    best = _NOTHING
    begin, total = 0, 0.0
    for place in range(len(draft.units)):
        value = _stretch_score(draft, place, ends)
        if total <= 0 or total + value <= 0:
            begin, total = (place, value) if value > 0 else (place + 1, 0.0)
        else:
            total += value
        if total >= best[2] and total > 0:
            best = (begin, place + 1, total)
    return best


def _stretch_score(draft: Draft, place: int, ends: set[int]) -> float:
    unit, value = draft.units[place], draft.scores[place]
    if place in ends or place == draft.question_at or not draft.is_free(place):
        return -50.0
    if unit.kind is Kind.LABEL and unit.part is Part.ANSWER:
        return min(value, -1.0)
    heading = unit.kind is Kind.TEXT and len(unit.text) < _HEADING_CHARS and unit.mood.total <= 1
    # A heading or a short line joins what is around it.
    return max(value, 0.0) if heading and unit.mood.guides == 0 else value


def _rest_text(draft: Draft, start: int, end: int) -> str:
    """Return the end of the text around a stretch."""
    places = (*range(start), *range(end, len(draft.units)))
    return "\n".join(draft.said(at) for at in places if draft.units[at].kind is not Kind.RULE)[-_REST_CHARS:]


def _points_at(question: str) -> bool:
    head = question[:ASKED_CHARS]
    return _POINTS.search(head) is not None or _SUMMARY.search(head) is not None
