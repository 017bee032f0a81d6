"""Find elements in a prompt: text between an opening and a closing tag, ``<context>…</context>``.

Any name can be an element; which count is decided by the words of the name. A document between tags may hold tags itself,
as text: an element ends at the last closing tag of its name that stands as its opening does (alone on its line, or
behind text), before the next opening. A tag in code, an empty pair, and a tag in the middle of a sentence ("the
<source> tag") are text. Every step is linear.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter

from truthlens.core.cancellation import checkpoint
from truthlens.evidence.language.label_words import Part, part_of_label
from truthlens.evidence.language.word_table import word_set

_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[^\W\d][\w.:-]{0,40})(?P<rest>\s[^<>]{0,400}?)?(?P<empty>/?)>", re.UNICODE
)
_FENCED = re.compile(r"^[ \t]{0,8}```.*?^[ \t]{0,8}```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]{1,300}`")
# Names of HTML, which documents are written in.
_HTML = word_set(
    "a abbr b big blockquote body br caption center cite code col colgroup dd del div dl dt em figcaption "
    "figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i iframe img ins kbd label li main "
    "mark meta nav ol option p pre q s samp script section select small span strike strong style sub "
    "summary sup svg table tbody td tfoot th thead tr tt u ul var video"
)
_ATTRIBUTE = re.compile(r"([\w-]{1,30})\s?=\s?(?:\"([^\"]{0,200})\"|'([^']{0,200})'|([^\s\"'>]{1,200}))")
_NUMBERED = re.compile(r"[ _-]?(\d{1,4})$")
# Only so far is the start of a line looked for: a megabyte without a line break costs no more.
_INDENT = 100
# So many tags of one name are looked at for the end of an element: nested ones, and closing tags in its text.
_MAX_NESTED = 60


@dataclass(frozen=True, slots=True)
class Element:
    """One element: characters ``start`` to ``end``, its content ``content_start`` to ``content_end``.

    ``part`` is what its name says, ``None`` for a name that says nothing.
    """

    start: int
    end: int
    content_start: int
    content_end: int
    name: str
    part: Part | None
    attributes: dict[str, str]


def find_elements(
    text: str, start: int = 0, end: int | None = None, *, marks: frozenset[str] = frozenset()
) -> list[Element]:
    """Return the outermost elements of ``text`` between two characters, in order; ``marks`` are further names of evidence."""
    end = len(text) if end is None else end
    if text.find("<", start, end) < 0:
        return []
    code = _spans(_CODE, "`", text, start, end)
    # Each tag with all of its name, in order, and its place among them.
    tags: list[tuple[re.Match[str], list[re.Match[str]], int]] = []
    by_name: dict[str, list[re.Match[str]]] = {}
    for tag in _TAG.finditer(text, start, end):
        checkpoint()
        name = tag["name"].lower()
        if name not in _HTML and not tag["empty"] and _span_around(code, tag.start()) is None:
            siblings = by_name.setdefault(name, [])
            tags.append((tag, siblings, len(siblings)))
            siblings.append(tag)
    fences = _spans(_FENCED, "```", text, start, end)
    found: list[Element] = []
    done = start
    for tag, siblings, at in tags:
        checkpoint()
        if tag.start() < done or tag["close"]:
            continue
        element = _element(text, siblings, at, marks)
        if element is None:
            continue
        fence = _span_around(fences, element.start)
        if fence is not None and element.end <= fence[1]:
            # Code that holds tags.
            done = fence[1]
        else:
            found.append(element)
            done = element.end
    return found


def _spans(pattern: re.Pattern[str], sign: str, text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans of a pattern between two characters, in order; without its sign there are none."""
    return [match.span() for match in pattern.finditer(text, start, end)] if sign in text else []


def _span_around(spans: list[tuple[int, int]], position: int) -> tuple[int, int] | None:
    """Return which of the spans, in order and apart, a character is in."""
    place = bisect_right(spans, position, key=itemgetter(0)) - 1
    return spans[place] if place >= 0 and position < spans[place][1] else None


def _attributes(tag_text: str) -> dict[str, str]:
    return {
        name.lower(): double or single or bare for name, double, single, bare in _ATTRIBUTE.findall(tag_text)
    }


def _element(text: str, siblings: list[re.Match[str]], at: int, marks: frozenset[str]) -> Element | None:
    """Return the element that the tag at ``siblings[at]`` opens, or ``None`` where it is text."""
    tag, close = siblings[at], _closing(text, siblings, at)
    if close is None:
        return None
    rest = tag["rest"] or ""
    # Without attributes what stands behind the name belongs to it: "<notes of the assistant>".
    name, number = without_number(tag["name"] + ("" if "=" in rest else rest.rstrip()), _NUMBERED)
    part = part_of_label(name, marks)
    labels = _attributes(rest)
    if number and "id" not in labels:
        labels["number"] = number
    own_line = _at_line_start(text, tag.start())
    content = text[tag.end() : close.start()]
    if content.strip():
        holds = own_line or not ((part is None and len(content) < 30) or _mention(text, tag, content))
    else:
        # An empty pair on lines of its own is a place that nothing was filled into; else it is talk of the tags.
        holds = own_line and _ends_line(text, close.end()) and part is Part.EVIDENCE
    span = (tag.start(), close.end(), tag.end(), close.start())
    return Element(*span, tag["name"], part, labels) if holds else None


def _closing(text: str, siblings: list[re.Match[str]], at: int) -> re.Match[str] | None:
    """Return the tag that closes what the one at ``siblings[at]`` opens, ``None`` where that is text."""
    tag = siblings[at]
    closes: list[re.Match[str]] = []
    depth = 1
    nested = False
    for other in siblings[at + 1 : at + 1 + _MAX_NESTED]:
        if other["close"]:
            depth -= 1
            closes.append(other)
        elif closes and (depth <= 0 or _at_line_start(text, other.start())):
            break
        else:
            # An opening that another follows before any closing is a mention, or the outer of two of the same name.
            depth += 1
            nested = True
    if not nested:
        alone = _ends_line(text, tag.end())
        alike = [each for each in closes if _stands_as(text, each, alone=alone)]
        return next(reversed(alike or closes), None)
    if not closes or not _at_line_start(text, tag.start()):
        # "the <source> tag … <source id=1>": the later one is the element.
        return None
    balanced = _balanced(siblings, at)
    if balanced is None and not text[tag.end() : siblings[at + 1].start()].strip():
        # One opening too many: the inner one is the element.
        return None
    return balanced or closes[-1]


def _balanced(siblings: list[re.Match[str]], at: int) -> re.Match[str] | None:
    depth = 0
    for tag in siblings[at : at + _MAX_NESTED]:
        depth += -1 if tag["close"] else 1
        if depth == 0:
            return tag
    return None


def without_number(name: str, pattern: re.Pattern[str]) -> tuple[str, str]:
    """Return a name without the number that ``pattern`` finds behind it, and the number; ``""`` for none."""
    number = pattern.search(name)
    return (name[: number.start()].strip(), number[1]) if number else (name, "")


def _mention(text: str, tag: re.Match[str], content: str) -> bool:
    """Return whether a pair of tags in running text only names them: "between <context> and </context>"."""
    before = text[max(0, tag.start() - 1) : tag.start()]
    return "\n" not in content and len(content.split()) <= 3 and (before.isspace() or before in "(\"'`“（")


def _stands_as(text: str, close: re.Match[str], *, alone: bool) -> bool:
    if alone:
        return _at_line_start(text, close.start()) and _ends_line(text, close.end())
    return (
        _ends_line(text, close.end())
        or text[close.end() : close.end() + 1] == "<"
        or not text[close.end() : close.end() + 1].isalnum()
    )


def _at_line_start(text: str, position: int) -> bool:
    nearest = max(0, position - _INDENT)
    line_start = text.rfind("\n", nearest, position) + 1
    return (line_start > 0 or nearest == 0) and not text[line_start:position].strip(" \t-*>")


def _ends_line(text: str, position: int) -> bool:
    line_end = text.find("\n", position, position + _INDENT)
    rest = text[position : line_end if line_end >= 0 else position + _INDENT]
    return not rest.strip(" \t.,:;") or rest.lstrip().startswith("<")
