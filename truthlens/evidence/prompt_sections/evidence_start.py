"""What opens evidence in a prompt, and which units stand under a heading of talk to the model."""

from __future__ import annotations

import re

from truthlens.evidence.language.announcing import announces_text
from truthlens.evidence.language.label_words import Part
from truthlens.evidence.prompt_sections.prompt_state import Draft
from truthlens.evidence.units.unit import TALK, Kind, Unit, begins_data

OBSERVATION = ("observation", "observations")
_LEAD_CHARS = 500
_DATA_CHARS = 2000
_FORMAT = re.compile(
    r"\bformat|schema|structure|template|example|as follows|like this|格式|形式|exempel|beispiel|exemple|ejemplo|пример",
    re.IGNORECASE,
)
# Who speaks in a conversation that a heading announces.
_TURNS = ("user", "human", "assistant", "ai", "bot", "customer")


def find_openings(draft: Draft) -> None:
    """Set what of the units opens evidence, and the headings above them."""
    draft.opens = [_opening(draft, place) for place in range(len(draft.units))]
    draft.heads = _headings(draft.units)
    # A document has headings such as "Rules" too: there no talk to the model stands below.
    draft.guiding = {
        head.start
        for unit, head in zip(draft.units, draft.heads, strict=True)
        if head is not None and unit is not head and unit.kind is Kind.TEXT and unit.mood.guides
    }


def _opening(draft: Draft, place: int) -> str:
    """Return by which rule a unit opens evidence, ``""`` where it does not."""
    unit = draft.units[place]
    if unit.kind is Kind.TEXT:
        return "announced" if _is_lead(draft, place) else ""
    if unit.part is not Part.EVIDENCE:
        return ""
    if unit.kind is Kind.ELEMENT:
        return "tag"
    if unit.label in OBSERVATION or unit.is_end_mark:
        return ""
    return "numbered" if unit.style == "[]#" else "label"


def _is_lead(draft: Draft, place: int) -> bool:
    """Return whether the last line of a paragraph announces what stands behind it as evidence."""
    unit, follows = draft.units[place], draft.following(place)
    last = draft.text[max(unit.start, unit.end - _LEAD_CHARS) : unit.end].rstrip()
    line = last[last.rfind("\n") + 1 :]
    colon = line.rstrip("*_ ").endswith((":", "："))
    if colon and follows is not None and _is_data(draft.text, follows) and not _FORMAT.search(line):
        return True
    opens = follows is not None and (
        follows.kind in (Kind.RULE, Kind.FENCED)
        or (follows.kind is Kind.ELEMENT and follows.part is not Part.QUESTION)
    )
    return announces_text(line, opens=opens)


def _is_data(text: str, unit: Unit) -> bool:
    """Return whether a unit is JSON, a table or lines of values between commas."""
    if unit.kind not in (Kind.TEXT, Kind.FENCED):
        return False
    start = unit.body if unit.kind is Kind.FENCED else unit.start
    said = text[start : unit.end][:_DATA_CHARS].strip()
    lines = [line for line in said.split("\n")[:6] if line.strip()]
    commas = {line.count(",") for line in lines}
    return begins_data(said) or (len(lines) > 2 and len(commas) == 1 and commas.pop() >= 2)


def _headings(units: list[Unit]) -> list[Unit | None]:
    """Return for each unit the heading of talk to the model under which it stands."""
    found: list[Unit | None] = []
    current: Unit | None = None
    for unit in units:
        if unit.kind is Kind.LABEL and unit.style != "[]#":
            below = current is not None and _is_under(unit, current)
            if unit.part in TALK and (unit.is_displayed or unit.part is not Part.INSTRUCTION):
                current = current if below else unit
            elif not below:
                current = None
        elif unit.is_evidence_element and current is not None and current.part is not Part.EXAMPLE:
            current = None
        found.append(current)
    return found


def _is_under(unit: Unit, head: Unit) -> bool:
    """Return whether a label stands below a heading: a heading of a lower level, or another kind of label."""
    if head.style.startswith("#"):
        return unit.part not in (Part.EVIDENCE, Part.QUESTION) and (
            not unit.style.startswith("#") or unit.is_below(head)
        )
    if head.part is Part.HISTORY:
        return unit.part is Part.ANSWER or unit.label in _TURNS
    return unit.style != head.style and unit.part in (
        Part.ANSWER,
        Part.INSTRUCTION,
        Part.EXAMPLE,
        Part.METADATA,
    )
