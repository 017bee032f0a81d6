"""Sections of a prompt that hold evidence: ``Context: … Question: …``, ``passage 1: …``, ``[S0] …``.

A section opens at a label line, at a sentence that announces evidence, or at the first of several numbered
sources; it closes at the question. The text is read once, line by line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from truthlens.api.evidence import prompt_patterns
from truthlens.api.evidence.paragraphs import paragraph_passages
from truthlens.api.evidence.tags import Taken
from truthlens.core.cancellation import checkpoint
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage

# Prompts on one line: labels after the end of a sentence are put on a line of their own.
_INLINE = re.compile(
    r"(?<=[.!?:;。！？；）)\"”])[ \t]{0,4}(?=(?:Question|User question|Query|问题|問題|用户问题|上下文|Context|Answer)[ \t]?[:：])"
)
_FENCE = re.compile(r"[ \t]{0,8}(?:```\w{0,20}|\"\"\"|'''|-{5,}|={5,})[ \t]*")
# "Summarize the following text: …" with the text on the same line.
_LEAD_COLON = re.compile(r"[\w ]{0,40}[:：]\s{1,4}(?=.{40})")
_LEAD_CHARS = 300
_STRONG_ID = re.compile(r"(?:S|[Dd]oc|[Ss]ource|[Pp]assage|[Dd]ocument)[_\- ]?\d{1,5}")
# Longer lines are never labels that a program wrote, only text; matching looks at their beginning.
_LINE_CHARS = 600
_LABEL_CHARS = 120
_MARKER_CHARS = 90
_MARKER_ENDS = tuple(":：.)|]-=—")
# What a user says after the evidence is short; more would take evidence away.
_TAIL_PARAGRAPHS = 4


@dataclass(frozen=True, slots=True)
class _Item:
    id: str
    lines: tuple[str, ...]


def take_sections(text: str, provenance: Provenance) -> Taken:
    """Return the passages of the sections of ``text``, in order, and the text around them."""
    lines = _lines(text)
    passages: list[Passage] = []
    rest: list[str] = []
    place = 0
    starts = _starts(lines)
    while place < len(lines):
        checkpoint()
        if place not in starts:
            rest.append(lines[place])
            place += 1
            continue
        end = place + 1
        while end < len(lines) and end not in starts:
            end += 1
        found, left = _section(lines[place:end], starts[place], provenance)
        passages += found
        rest += left
        place = end
    return Taken(tuple(passages), "\n".join(rest)) if passages else Taken((), text)


def _lines(text: str) -> list[str]:
    lines: list[str] = []
    split = False
    for line in _INLINE.sub("\n", text).split("\n"):
        lead = None if split else _lead(line[:_LEAD_CHARS])
        colon = _LEAD_COLON.match(line, lead.end()) if lead is not None else None
        split = split or colon is not None
        lines += (line,) if colon is None else (line[: colon.end()].rstrip(), line[colon.end() :])
    return lines


def _starts(lines: list[str]) -> dict[int, str]:
    """Return the lines at which a section opens, with how: ``header``, ``lead`` or ``item``."""
    starts: dict[int, str] = {}
    markers = {
        place: marker
        for place, line in enumerate(lines)
        if (marker := _marker(line, strict=True)) is not None
    }
    labels = {_label(marker) for marker in markers.values()}
    numbered = len(labels) > 1 or any(
        marker.re is prompt_patterns.NAMED_ITEM or _STRONG_ID.fullmatch(_label(marker))
        for marker in markers.values()
    )
    # A label ends in a colon, so other lines need no matching.
    labelled = {
        place for place, line in enumerate(lines) if ":" in line[:_LABEL_CHARS] or "：" in line[:_LABEL_CHARS]
    }
    last_question = max((place for place in labelled if _question(lines[place])), default=-1)
    # Inside a section only another label opens the next; a document may say "the following data" itself.
    inside = False
    filled = False
    for place, line in enumerate(lines):
        head = line[:_LINE_CHARS]
        if numbered and place in markers:
            if not inside:
                starts[place] = "item"
            inside = filled = True
        elif place in labelled and _question(line):
            inside = filled = False
        elif place in labelled and (header := prompt_patterns.HEADER_LINE.match(head)) is not None:
            starts[place] = "header"
            inside, filled = True, bool(header["rest"].strip())
        elif not (inside and filled) and _is_lead(line, before_question=place < last_question):
            starts[place] = "lead"
            inside, filled = True, False
        else:
            filled = filled or bool(line.strip())
    return starts


def _question(line: str) -> bool:
    return prompt_patterns.QUESTION_LINE.match(line[:_LINE_CHARS]) is not None


def _lead(line: str) -> re.Match[str] | None:
    checkpoint()
    return prompt_patterns.LEAD_LINE.search(line) if prompt_patterns.LEAD_WORD.search(line) else None


def _is_lead(line: str, *, before_question: bool) -> bool:
    if len(line) >= _LINE_CHARS or _lead(line) is None or prompt_patterns.TRANSLATION.search(line):
        return False
    ending = line.rstrip(" \t*")
    return ending.endswith((":", "：", "below.")) or (before_question and not ending.endswith(("?", "？")))


def _section(lines: list[str], kind: str, provenance: Provenance) -> tuple[list[Passage], list[str]]:
    """Return the passages of one section, and the lines of it that are not evidence."""
    kept: list[str] = []
    if kind == "header":
        header = prompt_patterns.HEADER_LINE.match(lines[0][:_LINE_CHARS])
        first = lines[0][header.start("rest") :].strip() if header else lines[0]
        lines = [first, *lines[1:]]
    elif kind == "lead":
        kept, lines = [lines[0]], lines[1:]
    body, tail = _split_at_question(lines)
    fenced = _fenced(body)
    if fenced is not None:
        body, after = fenced
        tail = after + tail
    items, loose = _items(body, strict=kind == "item")
    if items:
        items, after = _close_last(items)
        passages = paragraph_passages("\n".join(loose), provenance)
        for item in items:
            text = "\n".join(item.lines).strip()
            if text:
                passages.append(Passage(text=text, provenance=provenance, id=item.id))
        return passages, kept + after + tail
    if fenced is None:
        body, after = _split_tail(body, tail_known=any(line.strip() for line in tail))
        tail = after + tail
    return paragraph_passages("\n".join(body), provenance), kept + tail


def _split_at_question(lines: list[str]) -> tuple[list[str], list[str]]:
    """Split the lines at the question: the first label that no answer follows (evidence may be an FAQ)."""
    questions = []
    last_answered = -1
    for place, line in enumerate(lines):
        head = line[:_LINE_CHARS]
        if prompt_patterns.QUESTION_LINE.match(head):
            questions.append(place)
        elif (answer := prompt_patterns.ANSWER_LINE.match(head)) is not None and answer["rest"].strip():
            last_answered = place
    asked = next((place for place in questions if place > last_answered), None)
    if asked is not None:
        return lines[:asked], lines[asked:]
    end = len(lines)
    while end and _is_end(lines[end - 1]):
        # "Answer:" at the end asks for the answer and is part of nothing.
        end -= 1
    return lines[:end], []


def _is_end(line: str) -> bool:
    answer = prompt_patterns.ANSWER_LINE.match(line[:_LINE_CHARS])
    return not line.strip() or (answer is not None and not answer["rest"].strip())


def _fenced(lines: list[str]) -> tuple[list[str], list[str]] | None:
    """Return the lines inside a fence that opens the section, and the lines after it.

    It is ``None`` without one.
    """
    start = next((place for place, line in enumerate(lines) if line.strip()), None)
    if start is None or _FENCE.fullmatch(lines[start]) is None:
        return None
    mark = lines[start].strip()[:3]
    for place in range(start + 1, len(lines)):
        if lines[place].strip().startswith(mark) and _FENCE.fullmatch(lines[place]):
            return lines[start + 1 : place], lines[place + 1 :]
    return None


def _items(lines: list[str], *, strict: bool) -> tuple[list[_Item], list[str]]:
    """Return the numbered sources among ``lines``, and the lines before the first."""
    loose: list[str] = []
    items: list[tuple[str, list[str]]] = []
    for line in lines:
        marker = _marker(line, strict=strict)
        if marker is not None:
            items.append((_label(marker), [line[marker.start("rest") :]]))
        elif items:
            items[-1][1].append(line)
        else:
            loose.append(line)
    return [_Item(label, tuple(held)) for label, held in items], loose


def _marker(line: str, *, strict: bool) -> re.Match[str] | None:
    """Return the marker with which a source begins; ``strict`` asks for a number in it."""
    checkpoint()
    # Most lines hold no marker; looking for its characters is much cheaper than matching.
    head = line[:_LINE_CHARS]
    beginning = head[:_MARKER_CHARS]
    match = None
    if any(character in beginning for character in _MARKER_ENDS):
        match = prompt_patterns.NAMED_ITEM.match(head)
    if match is None and ("[" in beginning or "【" in beginning):
        match = prompt_patterns.BRACKET_ITEM.match(head)
    if match is not None and strict and not any(character.isdigit() for character in _label(match)):
        return None
    return match


def _label(marker: re.Match[str]) -> str:
    return marker["id"] or marker.groupdict().get("id_zh") or ""


def _close_last(items: list[_Item]) -> tuple[list[_Item], list[str]]:
    """End the last source; return the sources and the lines after it.

    Where each source before is one paragraph, so is the last; else it ends where the user's own text begins.
    """
    *before, last = items
    blank = next(
        (place for place, line in enumerate(last.lines) if place > 0 and not line.strip()), len(last.lines)
    )
    single = before and all(not any(not line.strip() for line in _trimmed(item.lines)) for item in before)
    if single and any(line.strip() for line in last.lines[:blank]):
        body, tail = list(last.lines[:blank]), list(last.lines[blank:])
    else:
        body, tail = _split_tail(list(last.lines), tail_known=False)
    return [*before, _Item(last.id, tuple(body))], tail


def _trimmed(lines: tuple[str, ...]) -> tuple[str, ...]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]


def _split_tail(lines: list[str], *, tail_known: bool) -> tuple[list[str], list[str]]:
    """Return the evidence, and the paragraphs at its end that are the user's own.

    At least one paragraph stays evidence. Where the question is known already (``tail_known``), only
    instructions are taken off.
    """
    end = len(lines)
    for _ in range(_TAIL_PARAGRAPHS):
        stop = end
        while stop and not lines[stop - 1].strip():
            stop -= 1
        start = stop
        while start and lines[start - 1].strip():
            start -= 1
        if not start or not any(line.strip() for line in lines[:start]):
            break
        paragraph = "\n".join(lines[start:stop])
        if not (
            prompt_patterns.BOILERPLATE.match(paragraph)
            or (not tail_known and prompt_patterns.is_asking(paragraph))
        ):
            break
        end = start
    if end == len(lines) and not tail_known:
        stop = len(_trimmed(tuple(lines)))
        # "Context: …" and the question on the very next line.
        if stop > 1 and any(line.strip() for line in lines[: stop - 1]) and _ends_asking(lines[stop - 1]):
            end = stop - 1
    return lines[:end], lines[end:]


def _ends_asking(line: str) -> bool:
    return line.rstrip().endswith(("?", "？")) and prompt_patterns.is_asking(line)
