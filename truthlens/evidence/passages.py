"""Cut a block of evidence into passages: elements, numbered sources, JSON records, and else paragraphs.

Nothing of the block is lost but the marks: names and ids of documents become ``title`` and ``id``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from truthlens.core.cancellation import checkpoint
from truthlens.core.errors import BodyTooLargeError
from truthlens.core.json_size import check_values
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.evidence.documents import document_passages
from truthlens.evidence.language.label_words import Part
from truthlens.evidence.language.mood import mood
from truthlens.evidence.units.elements import Element, find_elements

_ID_NAMES = ("id", "doc_id", "docid", "index", "number", "n", "fileid")
_TITLE_NAMES = ("title", "name", "source", "file", "filename", "url", "file_name")
_LABEL_TAGS = frozenset((*_ID_NAMES, *_TITLE_NAMES, "type", "date", "score", "metadata", "link"))
_BODY_TAG = re.compile(
    r"<(document[_-]?contents?|contents?|text|page[_-]?content|body|snippet|item)>", re.IGNORECASE
)
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_MAX_DEPTH = 5
_ITEM_WORD = (
    "passage|document|doc|source|context|reference|snippet|chunk|excerpt|search result|result|article|evidence|id|content|quelle|dokument|auszug|extrait|fuente|"
    "fragmento|источник|документ|фрагмент|段落|文档|文檔|文件|资料|資料|来源|來源|片段|参考|文書"
)
_ITEM = re.compile(
    rf"^[ \t]{{0,20}}(?:#{{1,6}}[ \t]{{0,4}}|\*\*|[-=]{{2,20}}[ \t]{{0,4}}|[-*][ \t]+)?(?:"
    rf"(?:\[|【|<)?(?:{_ITEM_WORD})[ \t:]{{0,2}}[#№\[]?[ \t]{{0,2}}(?P<id>\d{{1,5}}|[A-Z])(?:\]|】|>)?[ \t]{{0,2}}(?:\*\*)?[ \t]{{0,2}}"
    rf"(?:[:：.)|]|[-=—]{{1,20}}(?=[ \t]|$)|$)(?:\*\*)?"
    rf"|(?:\[|【)(?P<tag>[A-Za-z]{{0,16}}[_\- ]?\d{{1,5}}|[A-Za-z][\w.:-]{{0,40}})(?:\]|】)(?!\()[ \t]*[:：.)-]?)"
    rf"[ \t]*(?P<rest>.*)$",
    re.IGNORECASE,
)
_LINE_CHARS = 600
_BETWEEN = re.compile(r"[\s,;]*(?:-{3,}\s*)?")
# Lines that say where a text is from, before it or behind it; the tree signs are of one framework.
_META_LINE = re.compile(
    r"^[ \t├└│─|*-]{0,12}(?P<key>title|name|source|source ?document|file|file[_ ]?name|file[_ ]?path|url|link|uri|id|doc[_ ]?id|index|page|page[_ ]?label|score|similarity|relevance|"
    r"document[_ ]?url|document[_ ]?title|document[_ ]?metadata|documentation url|chunk|标题|标題|来源|來源|文件名|文件名称|文档名|文档名称|链接|相似度)\**[ \t]?[:：][ \t]{0,4}(?P<value>.{0,300})$",
    re.IGNORECASE,
)
_CONTENT_LABEL = re.compile(
    r"^[ \t├└│─|*-]{0,12}(?:content|text|snippet|chunk|page[_ ]?content|excerpt|body|value|内容|正文|片段内容)\**[ \t]?[:：][ \t]*",
    re.IGNORECASE,
)
_ID_KEYS = ("id", "doc_id", "doc id", "docid", "index")
# What such lines say besides that is no title.
_NO_TITLES = ("page", "score", "simil", "relev", "chunk")
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}\w{0,20}|\"{3}|'{3})[ \t]*$")
_RULE_LINE = re.compile(r"^[ \t]*[-=*_]{3,}[ \t]*$")
_NAMED_LINE = re.compile(
    r"^[ \t]{0,8}(?:[-*] )?\[?(?P<name>[\w ()./%-]{1,120}\.(?:pdf|docx?|md|html?|txt|csv|json|xlsx?|pptx?|xml|ya?ml)(?:#[\w=.-]{1,40})?)\]?[ \t]?[:：][ \t]+(?P<rest>\S.*)$",
    re.IGNORECASE,
)
_BREAK = re.compile(r"\n[ \t]*\n\s*")
_HEADING_CHARS = 60
_FULL_STOPS = tuple(".!?:;。！？：；\"'”’)）|")


def passages_of(text: str, provenance: Provenance, rule: str, *, max_values: int) -> list[Passage]:
    """Return the passages of one block of evidence.

    Args:
        text: The block.
        provenance: Where it stands.
        rule: By which rule it is evidence.
        max_values: JSON values that may be read at most; a block with more is plain text.
    """
    return [replace(passage, rule=rule) for passage in _passages(text, provenance, max_values, 0)]


def _passages(text: str, provenance: Provenance, max_values: int, depth: int) -> list[Passage]:
    checkpoint()
    if not text.strip():
        return []
    found = _json(text, provenance, max_values)
    if found is not None:
        return found
    elements = [
        each
        for each in (find_elements(text) if depth < _MAX_DEPTH else ())
        # A tag of another name is a document's own text, but for one around all of it.
        if each.part is not None
        or (each.attributes and text[: each.start].rstrip(" \t")[-1:] in ("", "\n"))
        or not (text[: each.start] + text[each.end :]).strip()
    ]
    if not elements:
        return _items(_CDATA.sub(r"\1", text), provenance)
    passages: list[Passage] = []
    at = 0
    beside = any(each.part is Part.EVIDENCE for each in elements)
    for each in elements:
        passages += _loose(text[at : each.start], provenance, beside=beside)
        at = each.end
        if beside and each.part in (Part.INSTRUCTION, Part.EXAMPLE, Part.HISTORY, Part.QUESTION):
            continue
        passages += _element(text, each, provenance, max_values, depth)
    return passages + _loose(text[at:], provenance, beside=beside)


def _loose(text: str, provenance: Provenance, *, beside: bool) -> list[Passage]:
    """Return the passages of text between elements; beside documents, a line that leads to them or talks of them is none."""
    plain = text.strip()
    if beside and len(plain) <= 300 and (plain.endswith((":", "：")) or mood(plain).guides):
        return []
    return _items(text, provenance)


def _element(
    text: str, element: Element, provenance: Provenance, max_values: int, depth: int
) -> list[Passage]:
    content, labels = _without_labels(text[element.content_start : element.content_end], element, depth)
    label, title = _first(labels, _ID_NAMES), _first(labels, _TITLE_NAMES)
    if label or title:
        body = _CDATA.sub(r"\1", _unwrapped(content)).strip()
        if not any(each.part is Part.EVIDENCE for each in find_elements(body)):
            return [Passage(text=body, provenance=provenance, id=label, title=title)] if body else []
        found = _passages(body, provenance, max_values, depth + 1)
        return [replace(each, id=each.id or label, title=each.title or title) for each in found]
    return _passages(_unwrapped(content), provenance, max_values, depth + 1)


def _without_labels(content: str, element: Element, depth: int) -> tuple[str, dict[str, str]]:
    """Return the content of an element without tags that describe it; what they and attributes say."""
    labels = {**element.attributes}
    inner = find_elements(content) if depth < _MAX_DEPTH else []
    times = Counter(each.name.lower() for each in inner)
    kept: list[str] = []
    at = 0
    for each in inner:
        name, value = each.name.lower(), content[each.content_start : each.content_end].strip()
        # "<source>report.pdf</source>" beside the text of a document, not one of several sources.
        told = name in _LABEL_TAGS and not each.attributes and times[name] == 1 and len(value) <= 150
        if told and "\n" not in value and len(content) > each.end - each.start + 20:
            labels.setdefault(name, value)
            kept.append(content[at : each.start])
            at = each.end
    return "".join((*kept, content[at:])), labels


def _first(values: Mapping[str, str], names: Iterable[str]) -> str:
    """Return the first of the values by these names that is not empty, ``""`` for none."""
    return next((values[name] for name in names if values.get(name)), "")


def _unwrapped(content: str) -> str:
    """Return what stands inside the tag that holds a document's text, ``<document_content>``; tags in the text stay."""
    plain = content.strip()
    tag = _BODY_TAG.match(plain)
    if tag is not None and plain.lower().endswith(f"</{tag[1].lower()}>"):
        return plain[tag.end() : -len(tag[1]) - 3]
    return content


def _json(text: str, provenance: Provenance, max_values: int) -> list[Passage] | None:
    """Return the passages of a text that is JSON: one value, or several one after the other; ``None`` for other text."""
    plain = text.strip()
    if plain.startswith("```") and plain.endswith("```") and "\n" in plain:
        plain = plain[plain.index("\n") : -3].strip()
    if not plain.startswith(("{", "[{", "[\n", '["')):
        return None
    try:
        check_values(plain, max_values)
    except BodyTooLargeError:
        return None
    decoder = json.JSONDecoder()
    values: list[object] = []
    at = 0
    while at < len(plain):
        checkpoint()
        try:
            value, at = decoder.raw_decode(plain, at)
        except (ValueError, RecursionError):
            return None
        values.append(value)
        separator = _BETWEEN.match(plain, at)
        at = separator.end() if separator is not None else at
    return document_passages(values, provenance)


def _items(text: str, provenance: Provenance) -> list[Passage]:
    """Return one passage per source, where the text marks each of several; else one per paragraph."""
    lines = text.split("\n")
    first = next((line[:_LINE_CHARS] for line in lines if line.strip()), "")
    if _NAMED_LINE.match(first):
        return [
            Passage(text=held.strip(), provenance=provenance, title=name)
            for name, held in _grouped(lines, _file_mark)
        ]
    label = _label_of_each(lines, first)
    if label:
        labelled = _grouped(
            lines, lambda line: ("", line) if line.strip().lower().startswith(label) else None
        )
        return _sources(labelled, provenance)
    begun = _ITEM.match(first)
    if begun is None:
        # A tool may say something before the first of several.
        place = _first_of_several(lines) if provenance is Provenance.TOOL else None
        if place is None:
            return _described(text, provenance)
        return _described("\n".join(lines[:place]), provenance) + _items("\n".join(lines[place:]), provenance)
    seen: set[str] = set()
    items = _grouped(lines, lambda line: _item_mark(line, seen, tagged=begun["id"] is None))
    if len(items) == 1 and len(items[0][0]) > 20:
        return _paragraph_passages(text, provenance)
    return _sources(items, provenance)


def _grouped(lines: Iterable[str], mark_of: Callable[[str], tuple[str, str] | None]) -> list[tuple[str, str]]:
    """Return texts that each begin with a mark, by the name in it; lines before the first are left out.

    ``mark_of`` returns the name and what stands behind the mark of a line with which a text begins, ``None`` for another line.
    """
    groups: list[tuple[str, list[str]]] = []
    for line in lines:
        checkpoint()
        mark = mark_of(line)
        if mark is not None:
            groups.append((mark[0], [mark[1]]))
        elif groups:
            groups[-1][1].append(line)
    return [(name, "\n".join(held)) for name, held in groups]


def _file_mark(line: str) -> tuple[str, str] | None:
    """Read the name of a file: ``handbook.pdf#page=2: …``."""
    mark = _NAMED_LINE.match(line)
    return (mark["name"], mark["rest"]) if mark is not None else None


def _item_mark(line: str, seen: set[str], *, tagged: bool) -> tuple[str, str] | None:
    """Read the number of a source, or its tag in brackets where ``tagged``; none that was ``seen`` before."""
    mark = _ITEM.match(line[:_LINE_CHARS])
    if mark is None or (mark["id"] is None) != tagged:
        return None
    name: str = mark["id"] or mark["tag"]
    if name in seen:
        return None
    seen.add(name)
    return name, line[mark.start("rest") :]


def _label_of_each(lines: Iterable[str], first: str) -> str:
    """Return in lower case the label that each source begins with ("content:", "source:"), else ``""``."""
    label = _CONTENT_LABEL.match(first)
    if label is not None:
        return label[0].strip().lower()
    named = _metadata(first)
    if named is None or sum(_key(line) == named["key"].lower() for line in lines) < 2:
        return ""
    return first[: named.start("value")].strip().lower()


def _first_of_several(lines: Sequence[str]) -> int | None:
    """Return the line of the first of several numbered sources, which may stand behind a few others."""
    place = next((at for at, line in enumerate(lines[:4]) if _ITEM.match(line[:_LINE_CHARS])), None)
    if place is None:
        return None
    several = sum(_ITEM.match(line[:_LINE_CHARS]) is not None for line in lines[place : place + 200]) > 1
    return place if several else None


def _sources(groups: Iterable[tuple[str, str]], provenance: Provenance) -> list[Passage]:
    """Return one passage per text of ``_grouped``, its name as the id."""
    found = ((name, _undescribed(held)) for name, held in groups)
    return [replace(each, provenance=provenance, id=name or each.id) for name, each in found if each.text]


def _described(text: str, provenance: Provenance) -> list[Passage]:
    """Return one passage per paragraph; lines that name the source, before a text or behind it, are its title and id."""
    passage = _undescribed(text)
    if not passage.title and not passage.id and passage.text == text.strip():
        return _paragraph_passages(text, provenance)
    return [
        replace(each, id=passage.id, title=passage.title)
        for each in _paragraph_passages(passage.text, provenance)
    ]


def _key(line: str) -> str:
    mark = _metadata(line)
    return mark["key"].lower() if mark is not None else ""


def _metadata(line: str) -> re.Match[str] | None:
    """Return the match of a line that says where a text is from; a sentence behind such a word is text."""
    mark = _META_LINE.match(line[:_LINE_CHARS])
    if mark is None or len(mark["value"].split()) > (3 if mark["key"].lower() in _ID_KEYS else 14):
        return None
    return mark


def _undescribed(text: str) -> Passage:
    """Return the text without the lines around it that only say where it is from; they become title and id."""
    lines = text.strip("\n").split("\n")
    told: dict[str, str] = {}
    if (
        len(lines) > 2
        and 0 < len(lines[0].strip()) <= 120
        and not _CONTENT_LABEL.match(lines[0][:_LINE_CHARS])
        and _metadata(lines[1])
        and not _metadata(lines[0])
    ):
        # The title alone on the first line, and more of its kind below.
        told["title"] = lines.pop(0).strip()
    kept = lines[_count_described(lines, told) :]
    if not kept:
        return Passage(text=text.strip(), provenance=Provenance.USER)
    behind = _count_described(reversed(kept[1:]), told, rules=True)
    kept = kept[: len(kept) - behind]
    label = _CONTENT_LABEL.match(kept[0])
    if label is not None:
        kept[0] = kept[0][label.end() :]
        if not kept[0].strip():
            kept.pop(0)
    if len(kept) > 2 and _FENCE_LINE.match(kept[0]) and kept[-1].strip() == kept[0].strip()[:3]:
        kept = kept[1:-1]
    titles = (key for key in told if key not in _ID_KEYS and not key.startswith(_NO_TITLES))
    return Passage(
        text="\n".join(kept).strip(),
        provenance=Provenance.USER,
        id=_first(told, _ID_KEYS),
        title=next((told[key] for key in titles), ""),
    )


def _count_described(lines: Iterable[str], told: dict[str, str], *, rules: bool = False) -> int:
    """Return how many lines before a text describe it or are blank; what they say goes into ``told``."""
    count = 0
    for line in lines:
        mark = _metadata(line)
        if mark is not None:
            told.setdefault(mark["key"].lower(), mark["value"].strip())
        elif line.strip() and not (rules and _RULE_LINE.match(line)):
            break
        count += 1
    return count


def _paragraphs(text: str) -> list[str]:
    """Return the parts of ``text`` between blank lines; a heading stays with the next paragraph."""
    found: list[str] = []
    heading = ""
    for piece in _BREAK.split(text):
        checkpoint()
        body = piece.strip()
        if not body:
            continue
        part = f"{heading}\n{body}" if heading else body
        heading = ""
        if len(part) <= _HEADING_CHARS and "\n" not in part and not part.endswith(_FULL_STOPS):
            heading = part
        else:
            found.append(part)
    return [*found, heading] if heading else found


def _paragraph_passages(text: str, provenance: Provenance) -> list[Passage]:
    """Return one passage per paragraph of ``text``, without those that hold no letter or digit."""
    return [
        Passage(text=part, provenance=provenance)
        for part in _paragraphs(text)
        if any(character.isalnum() for character in part)
    ]
