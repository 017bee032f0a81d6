"""Find elements in a prompt: text between an opening and a closing tag, ``<context>…</context>``.

Any name can be an element; which count is decided by the words of the name. A document between tags may hold tags itself,
as text: an element ends at the last closing tag of its name that stands as its opening does (alone on its line, or
behind text), before the next opening. A tag in code, an empty pair, and a tag in the middle of a sentence ("the
<source> tag") are text. Every step is linear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from truthlens.api.evidence.language.label_words import Part, part_of_label
from truthlens.api.evidence.language.word_table import word_set
from truthlens.core.cancellation import checkpoint

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
_NUMBERED = re.compile(r"[_-]?(\d{1,4})$")
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
    code = [match.span() for match in _CODE.finditer(text, start, end)] if "`" in text else []
    tags: list[re.Match[str]] = []
    place = 0
    for tag in _TAG.finditer(text, start, end):
        checkpoint()
        while place < len(code) and code[place][1] <= tag.start():
            place += 1
        if place < len(code) and code[place][0] <= tag.start():
            continue
        if tag["name"].lower() not in _HTML and not tag["empty"]:
            tags.append(tag)
    by_name: dict[str, list[int]] = {}
    for index, tag in enumerate(tags):
        by_name.setdefault(tag["name"].lower(), []).append(index)
    position = {index: at for indexes in by_name.values() for at, index in enumerate(indexes)}
    fences = [match.span() for match in _FENCED.finditer(text, start, end)] if "```" in text else []
    found: list[Element] = []
    done = start
    fence = 0
    for index, tag in enumerate(tags):
        checkpoint()
        if tag.start() < done or tag["close"]:
            continue
        siblings = by_name[tag["name"].lower()]
        element = _element(text, tags, siblings, position[index], marks)
        if element is None:
            continue
        while fence < len(fences) and fences[fence][1] <= element.start:
            fence += 1
        if fence < len(fences) and fences[fence][0] < element.start and element.end <= fences[fence][1]:
            # Code that holds tags.
            done = fences[fence][1]
            continue
        found.append(element)
        done = element.end
    return found


def attributes_of(tag_text: str) -> dict[str, str]:
    """Return the attributes of an opening tag, their names in lower case."""
    return {
        name.lower(): double or single or bare for name, double, single, bare in _ATTRIBUTE.findall(tag_text)
    }


def _element(
    text: str, tags: list[re.Match[str]], siblings: list[int], at: int, marks: frozenset[str]
) -> Element | None:
    """Return the element that the tag at ``siblings[at]`` opens, or ``None`` where it is text."""
    tag = tags[siblings[at]]
    own_line = _at_line_start(text, tag.start())
    # An opening that another follows before any closing is a mention, or the outer of two of the same name.
    closes: list[re.Match[str]] = []
    depth = 1
    inner = False
    for index in siblings[at + 1 : at + 1 + _MAX_NESTED]:
        other = tags[index]
        if not other["close"]:
            if closes and depth <= 0:
                break
            if closes and _at_line_start(text, other.start()):
                break
            depth += 1
            inner = True
            continue
        depth -= 1
        closes.append(other)
    part, number = _part_of_name(tag["name"], marks)
    labels = attributes_of(tag["rest"] or "")
    if number and "id" not in labels:
        labels["number"] = number
    if not closes:
        return None
    if inner and not own_line:
        # "the <source> tag … <source id=1>": the later one is the element.
        return None
    if (
        inner
        and _balanced(tags, siblings, at) is None
        and not text[tag.end() : tags[siblings[at + 1]].start()].strip()
    ):
        # One opening too many: the inner one is the element.
        return None
    alone = _ends_line(text, tag.end())
    alike = [each for each in closes if _stands_as(text, each, alone=alone)]
    close = (alike or closes)[-1] if not inner else _balanced(tags, siblings, at) or closes[-1]
    content = text[tag.end() : close.start()]
    if not content.strip():
        # An empty pair on lines of its own is a place that nothing was filled into; else it is talk of the tags.
        filled = own_line and _ends_line(text, close.end()) and part is Part.EVIDENCE
        return (
            Element(tag.start(), close.end(), tag.end(), close.start(), tag["name"], part, labels)
            if filled
            else None
        )
    if not own_line and len(content) < 30 and part is None:
        return None
    if not own_line and _mention(text, tag, content):
        return None
    return Element(tag.start(), close.end(), tag.end(), close.start(), tag["name"], part, labels)


def _balanced(tags: list[re.Match[str]], siblings: list[int], at: int) -> re.Match[str] | None:
    depth = 0
    for index in siblings[at : at + _MAX_NESTED]:
        depth += -1 if tags[index]["close"] else 1
        if depth == 0:
            return tags[index]
    return None


def _part_of_name(name: str, marks: frozenset[str]) -> tuple[Part | None, str]:
    number = _NUMBERED.search(name)
    plain = name[: number.start()] if number else name
    return part_of_label(plain, marks), number[1] if number else ""


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
