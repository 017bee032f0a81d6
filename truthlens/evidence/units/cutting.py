"""Cut a prompt into units, once: labels, headings, elements, fenced blocks, rules and paragraphs.

The units are flat and in order; what stands before and behind one decides about it later (``prompt``). Nothing here decides what is evidence.
"""

from __future__ import annotations

import itertools
import re

from truthlens.core.cancellation import checkpoint
from truthlens.evidence.language.announcing import announces_text
from truthlens.evidence.language.label_words import is_models_label
from truthlens.evidence.language.mood import Mood, mood
from truthlens.evidence.units.elements import Element, find_elements
from truthlens.evidence.units.labels import read_label
from truthlens.evidence.units.unit import Kind, Unit, begins_data, text_unit

_LINE_CHARS = 600
_INSIDE_CHARS = 4000
_MAX_FENCED_LINES = 2000
_MAX_PARTED_LINES = 60
_RULE = re.compile(
    r"^[ \t]{0,8}(?:-{3,}|[─━—]{2,}|＝{2,}|={3,}|\*{3,}|_{3,}|~{4,}|#{3,}|\+{3,}|\"{3}|'{3})[ \t]*$"
)
_FENCE = re.compile(r"^[ \t]{0,8}(?P<mark>`{3,}|~{3})[ \t]*[\w+-]{0,20}[ \t]*$")
_QUOTES = re.compile(r"^\s*(\"{3}|'{3}|`{3})\s*(?P<more>.*)$", re.DOTALL)
# "Context: … Question: … Answer:" on one line: each label begins a line of its own.
_INLINE = re.compile(
    r"(?:(?<=[.!?:;。！？；）)\"”])|(?<=\s))[ \t]{0,4}(?=(?:Question|User question|Query|Context|Answer|Frage|Antwort|Pregunta|Respuesta|Вопрос|Ответ|问题|問題|用户问题|回答|質問) ?[:：])"
)
_INLINE_LINES = 3
# Words before a colon behind the end of a sentence, or in brackets: "It leaves at eight. Draft: …".
_INNER_LABEL = re.compile(
    r"(?<=[.!;。！；)）\"”] )\(?(?P<label>[^\W\d_][\w' -]{1,40}?) ?[:：](?=\s)|[(（](?P<inner>[^\W\d_][\w' -]{1,40}?) ?[:：](?=\s)"
)


def cut(text: str, marks: frozenset[str] = frozenset()) -> list[Unit]:
    """Return the units of ``text``, in order; together they hold every character that is not blank.

    ``marks`` are labels and names of tags, in lower case, that mean evidence besides the built-in ones.
    """
    units: list[Unit] = []
    at = 0
    for element in find_elements(text, marks=marks):
        units += _cut_lines(text, at, element.start, marks)
        units.append(_element_unit(text, element))
        at = element.end
    return units + _cut_lines(text, at, len(text), marks)


def _element_unit(text: str, element: Element) -> Unit:
    return Unit(
        element.start,
        element.end,
        Kind.ELEMENT,
        element.part,
        element.content_start,
        element.content_end,
        style="<>",
        label=element.name.lower(),
        element=element,
        text=_inside(text, element.content_start, element.content_end),
    )


def _inside(text: str, start: int, end: int) -> str:
    return text[start : min(end, start + _INSIDE_CHARS)]


def _cut_lines(text: str, start: int, end: int, marks: frozenset[str]) -> list[Unit]:
    lines = _lines(text, start, end)
    units: list[Unit] = []
    held: list[tuple[int, int]] = []
    place = 0
    while place < len(lines):
        checkpoint()
        first, last = lines[place]
        line = text[first : min(last, first + _LINE_CHARS)]
        found: list[Unit] = []
        blank = not line.strip()
        fence = None if blank else _FENCE.match(line)
        closing = _closing(text, lines, place, fence["mark"]) if fence is not None else None
        if blank:
            pass
        elif fence is not None and closing is not None:
            body, body_end = last, lines[closing][0]
            found = [
                Unit(first, lines[closing][1], Kind.FENCED, None, body, body_end, style=fence["mark"][:3],
                     text=_inside(text, body, body_end))
            ]  # fmt: skip
            place = closing
        elif fence is not None or _RULE.match(line):
            found = [Unit(first, last, Kind.RULE, style=line.strip())]
        elif (label := read_label(line, first, last, marks)) is not None:
            found = _with_quotes(text, label)
        else:
            held.append((first, last))
            place += 1
            continue
        # Anything else than a line of text, a blank one too, ends a paragraph.
        units += _paragraph(text, held)
        units += found
        held = []
        place += 1
    return units + _paragraph(text, held)


def _lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    lines: list[tuple[int, int]] = []
    at = start
    while at < end:
        stop = text.find("\n", at, end)
        stop = end if stop < 0 else stop
        lines.append((at, stop))
        at = stop + 1
    few = sum(1 for first, last in lines[:20] if text[first:last].strip()) <= _INLINE_LINES
    return [part for first, last in lines for part in _parted(text, first, last, few=few)]


def _parted(text: str, first: int, last: int, *, few: bool) -> list[tuple[int, int]]:
    """Return a line in parts: one more at each label in it for the words of a model and, in a prompt of few lines, for a part of it."""
    places = {match.start() for match in _INLINE.finditer(text, first, last)} if few else set()
    if text.find(":", first, last) >= 0 or text.find("：", first, last) >= 0:
        places |= {
            match.start()
            for match in _INNER_LABEL.finditer(text, first, last)
            if match.start() > first and is_models_label(match["label"] or match["inner"])
        }
    bounds = [first, *sorted(place for place in places if place > first), last]
    return list(itertools.pairwise(bounds))


def _with_quotes(text: str, label: Unit) -> list[Unit]:
    """Return the label and, where triple quotes open behind it, those as a rule of their own."""
    rest = text[label.body : label.end]
    quotes = _QUOTES.match(rest)
    if quotes is None or quotes[1] in quotes["more"]:
        label.text = rest
        return [label]
    rule = Unit(label.body, label.body + quotes.end(1), Kind.RULE, style=quotes[1])
    more = label.body + quotes.start("more")
    behind = [text_unit(text, more, label.end)] if quotes["more"].strip() else []
    label.end = label.body
    return [label, rule, *behind]


def _closing(text: str, lines: list[tuple[int, int]], place: int, mark: str) -> int | None:
    """Return the line that closes the fence on line ``place``."""
    for at in range(place + 1, min(len(lines), place + _MAX_FENCED_LINES)):
        first, last = lines[at]
        if text[first : min(last, first + 100)].strip() == mark:
            return at
    return None


def _paragraph(text: str, lines: list[tuple[int, int]]) -> list[Unit]:
    """Return the units of consecutive lines: where lines to the model stand before or behind other text, they are parted."""
    if not lines:
        return []
    if len(lines) == 1 or len(lines) > _MAX_PARTED_LINES:
        return [text_unit(text, lines[0][0], lines[-1][1])]
    units: list[Unit] = []
    begun: int | None = None
    end = 0
    total = Mood()
    guiding = False
    for start, stop in lines:
        said = text[start : min(stop, start + _LINE_CHARS)]
        found = mood(said)
        # An order behind talk to the model belongs to it.
        guides = found.is_half_talk or (begun is not None and guiding and 0 < found.orders == found.total)
        if begun is not None and guides != guiding:
            units.append(text_unit(text, begun, end, total))
            begun, total = None, Mood()
        begun = start if begun is None else begun
        end, guiding = stop, guides
        total += found
        if announces_text(said) or (
            said.rstrip().endswith((":", "：")) and begins_data(text[stop : stop + 40])
        ):
            # What it announces begins on the next line.
            units.append(text_unit(text, begun, end, total))
            begun, total = None, Mood()
    if begun is not None:
        units.append(text_unit(text, begun, end, total))
    return units
