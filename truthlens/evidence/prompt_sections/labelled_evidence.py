"""Take the parts of a prompt that marks open: evidence, the question, and what an agent's tools said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from truthlens.core.cancellation import checkpoint
from truthlens.evidence.language.label_words import Part
from truthlens.evidence.language.mood import is_asking
from truthlens.evidence.prompt_sections.evidence_end import delimited_end, marked_end, open_end
from truthlens.evidence.prompt_sections.evidence_start import OBSERVATION
from truthlens.evidence.prompt_sections.labelled_question import take_question
from truthlens.evidence.prompt_sections.prompt_state import ASKED_CHARS, Draft
from truthlens.evidence.units.unit import TALK, Kind, Unit

_PERSONA_CHARS = 2500
_FRUITLESS_UNITS = 20_000
# Labels that templates put before retrieved text; what others ("Background", "Notes") open may as well be about the company.
_STRONG_LABELS = re.compile(
    r"contexts?\b|documents?\b|\bdocs\b|passages?\b|sources?\b|references?\b|evidence\b|knowledge\b|articles?\b|excerpts?\b|snippets?\b|chunks?\b|search|retriev|"
    r"\bhits?\b|\bmatch|results?\b"
    r"|kontext|dokument|quelle|auszüge|suchergebnis|wissen|fundstelle|treffer"
    r"|contexte|extrait|\bfiches?\b|contexto|fuente|fragmento|contesto|fonti|trecho"
    r"|контекст|документ|источник|фрагмент|выдерж|выписк"
    r"|上下文|资料|資料|文档|文檔|知识|知識|检索|已知|参考|參考|摘录|摘錄|コンテキスト|文脈|文書|検索|ドキュメント|ヒット|参照",
    re.IGNORECASE,
)
# Labels that name a source; with them the text behind becomes a passage with a title.
_NAMES = ("source", "sources", "file", "document", "title", "url", "link", "id")
_STEP = ("action", "action input", "thought", "final answer", *OBSERVATION)


def take_marked(draft: Draft) -> None:
    """Take the question and all evidence that a mark opens, in order.

    A mark that opens nothing costs a look at the rest of the prompt. As a hostile one may hold any number of them, so many units are
    looked at in vain and no more: the time stays linear.
    """
    place = spent = 0
    allowed = 4 * len(draft.units) + _FRUITLESS_UNITS
    while place < len(draft.units):
        checkpoint()
        unit = draft.units[place]
        tried = place
        if draft.is_example(place):
            place += 1
        elif place == draft.question_at:
            place = take_question(draft)
        elif spent <= allowed and _may_open(draft, place):
            is_input = unit.part is Part.INPUT
            place = (
                _take_evidence(draft, place)
                if not is_input or _is_input_evidence(draft, place)
                else place + 1
            )
            if draft.is_free(tried) and place == tried + 1:
                spent += len(draft.units) - tried
        elif (
            draft.steps
            and unit.label in OBSERVATION
            and draft.question_at is not None
            and place > draft.question_at
        ):
            place = _take_observation(draft, place)
        else:
            place += 1


def _may_open(draft: Draft, place: int) -> bool:
    unit = draft.units[place]
    is_input = unit.kind is Kind.LABEL and unit.part is Part.INPUT
    return is_input or draft.may_open(place)


def is_strong(draft: Draft, unit: Unit) -> bool:
    """Return whether a unit is a label behind which evidence is expected; in a system message only the words of templates are."""
    return unit.kind is Kind.LABEL and (not draft.system or _STRONG_LABELS.search(unit.label) is not None)


def _take_observation(draft: Draft, place: int) -> int:
    """Take what a tool of an agent said, up to the next step of the agent."""
    unit = draft.units[place]
    if unit.rest:
        draft.own(place, Part.EVIDENCE, "observation", (unit.body, unit.end))
    at = place + 1
    while at < len(draft.units) and not (
        draft.units[at].kind is Kind.LABEL and draft.units[at].label in _STEP
    ):
        draft.own(at, Part.EVIDENCE, "observation")
        at += 1
    return at


def _is_input_evidence(draft: Draft, place: int) -> bool:
    """Return whether a label for an input opens a text to work on: reference text, behind an order or a question."""
    unit = draft.units[place]
    end = open_end(draft, place + 1)
    begun = unit.mood.reference_score if unit.rest else 0.0
    return begun + draft.gain(place + 1, end) >= 1.5 and any(
        draft.units[at].part in (Part.INSTRUCTION, Part.QUESTION) or is_asking(draft.said(at)[:ASKED_CHARS])
        for at in range(place)
    )


def _take_evidence(draft: Draft, place: int) -> int:
    """Take the evidence that opens at ``place``; return the unit behind it."""
    unit = draft.units[place]
    if unit.kind is Kind.ELEMENT:
        if _is_persona(draft, unit):
            draft.own(place, None, "instruction")
        else:
            draft.own(place, Part.EVIDENCE, "tag", (unit.start, unit.end))
        return place + 1
    rule = draft.opens[place] or "label"
    delimited = None if unit.rest else delimited_end(draft, place + 1, unit)
    end = marked_end(draft, place)
    if end is None:
        end = delimited
    if end is None:
        begun = max(0.0, unit.mood.reference_score) + 0.5 if unit.rest else 0.0
        end = open_end(draft, place + 1, begun, unit)
    content = range(place + 1, end)
    if unit.rest:
        if not _says_evidence(draft, unit, content):
            return place + 1
    elif not _holds_evidence(draft, unit, content, delimited=delimited is not None):
        return place + 1
    if (
        rule == "label"
        and not is_strong(draft, unit)
        and all(draft.units[at].kind in (Kind.TEXT, Kind.LABEL, Kind.RULE) for at in content)
    ):
        draft.weak.update((place, *content))
    _own_opening(draft, place, rule)
    _own_content(draft, content, rule)
    return end


def _own_opening(draft: Draft, place: int, rule: str) -> None:
    """Take the unit that opens evidence, as far as it is evidence itself."""
    unit = draft.units[place]
    if unit.rest:
        # The name of a source stays with its text, for the passage to take it as title.
        named = unit.number or unit.style == "[]#" or unit.label in _NAMES
        draft.own(place, Part.EVIDENCE, rule, None if named else (unit.body, unit.end))
    elif unit.number:
        draft.own(place, Part.EVIDENCE, rule)
    elif rule != "announced":
        draft.own(place, None, "label")


def _own_content(draft: Draft, content: Sequence[int], rule: str) -> None:
    """Take the units that a mark opens, without marks of the template between them and rules around them."""
    for at in content:
        if _is_template_mark(draft, at):
            draft.own(at, None, "label")
        else:
            draft.own(at, Part.EVIDENCE, "tag" if draft.units[at].is_evidence_element else rule)
    inner = list(content)
    while inner and draft.units[inner[-1]].kind is Kind.RULE:
        draft.own(inner.pop(), None, "rule")
    if inner and draft.units[inner[0]].kind is Kind.RULE:
        draft.own(inner[0], None, "rule")


def _says_evidence(draft: Draft, unit: Unit, content: Iterable[int]) -> bool:
    """Return whether what stands on the line of a label can be evidence, and is neither asked nor talk to the model."""
    if unit.rest.endswith(("?", "？")) and not any(draft.scores[at] > 0 for at in content):
        return False
    return unit.mood.reference_score >= 0 or is_strong(draft, unit)


def _holds_evidence(draft: Draft, unit: Unit, content: Sequence[int], *, delimited: bool) -> bool:
    """Return whether what an opening is followed by can be evidence, and is not the prompt's talk going on."""
    if all(draft.units[at].kind is Kind.RULE for at in content):
        return False
    gained = sum(draft.scores[at] for at in content)
    strong = delimited or is_strong(draft, unit)
    return (strong and gained > 1.5) or ((strong or gained > 0.3) and _begins_evidence(draft, content))


def _begins_evidence(draft: Draft, content: Iterable[int]) -> bool:
    """Return whether what a label opens is neither talk to the model nor the end of the prompt."""
    units = (draft.units[at] for at in content)
    first = next(
        (
            unit
            for unit in units
            if unit.kind is not Kind.RULE and not (unit.is_heading and unit.part is None)
        ),
        None,
    )
    if first is None:
        return False
    if (
        first.kind is Kind.LABEL
        and first.part is not Part.EVIDENCE
        and (first.part in TALK or not first.rest)
    ):
        return False
    return first.kind is Kind.ELEMENT or not first.mood.is_half_talk


def _is_template_mark(draft: Draft, place: int) -> bool:
    """Return whether a unit inside evidence only is a mark of the template: an end mark, a label before a fenced block."""
    unit, follows = draft.units[place], draft.following(place)
    if unit.kind is Kind.TEXT and draft.opens[place] and "\n" not in unit.text:
        return follows is not None and follows.kind is Kind.FENCED
    if not unit.is_bare or unit.number:
        return False
    fenced = follows is not None and follows.kind in (Kind.FENCED, Kind.ELEMENT, Kind.RULE)
    return unit.is_end_mark or (fenced and unit.part is Part.EVIDENCE)


def _is_persona(draft: Draft, unit: Unit) -> bool:
    """Return whether an element with a name for evidence holds talk to the model, as ``<context>`` does in personas."""
    return draft.system and unit.body_end - unit.body < _PERSONA_CHARS and unit.mood.is_talk
