"""Cut a block of evidence into passages: elements, numbered sources, JSON records, and else paragraphs.

Nothing of the block is lost but the marks: names and ids of documents become ``title`` and ``id``.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from truthlens.api.evidence.documents import document_passages
from truthlens.api.evidence.language.label_words import Part
from truthlens.api.evidence.language.mood import mood
from truthlens.api.evidence.paragraphs import paragraph_passages
from truthlens.api.evidence.units.elements import Element, find_elements
from truthlens.core.cancellation import checkpoint
from truthlens.core.errors import BodyTooLargeError
from truthlens.core.json_size import check_values
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage

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
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}\w{0,20}|\"{3}|'{3})[ \t]*$")
_RULE_LINE = re.compile(r"^[ \t]*[-=*_]{3,}[ \t]*$")
_NAMED_LINE = re.compile(
    r"^[ \t]{0,8}(?:[-*] )?\[?(?P<name>[\w ()./%-]{1,120}\.(?:pdf|docx?|md|html?|txt|csv|json|xlsx?|pptx?|xml|ya?ml)(?:#[\w=.-]{1,40})?)\]?[ \t]?[:：][ \t]+(?P<rest>\S.*)$",
    re.IGNORECASE,
)


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
    content = text[element.content_start : element.content_end]
    labels = {**element.attributes}
    inner = find_elements(content) if depth < _MAX_DEPTH else []
    names = [each.name.lower() for each in inner]
    kept: list[str] = []
    at = 0
    for each in inner:
        name, value = each.name.lower(), content[each.content_start : each.content_end].strip()
        # "<source>report.pdf</source>" beside the text of a document, not one of several sources.
        told = name in _LABEL_TAGS and not each.attributes and names.count(name) == 1 and len(value) <= 150
        if told and "\n" not in value and len(content) > each.end - each.start + 20:
            labels.setdefault(name, value)
            kept.append(content[at : each.start])
            at = each.end
    content = "".join((*kept, content[at:]))
    label = next((labels[name] for name in _ID_NAMES if labels.get(name)), "")
    title = next((labels[name] for name in _TITLE_NAMES if labels.get(name)), "")
    if label or title:
        body = _CDATA.sub(r"\1", _unwrapped(content)).strip()
        if not any(each.part is Part.EVIDENCE for each in find_elements(body)):
            return [Passage(text=body, provenance=provenance, id=label, title=title)] if body else []
        found = _passages(body, provenance, max_values, depth + 1)
        return [replace(each, id=each.id or label, title=each.title or title) for each in found]
    return _passages(_unwrapped(content), provenance, max_values, depth + 1)


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
    """Return one passage per numbered source, where the text is a list of them; else one per paragraph."""
    lines = text.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if _NAMED_LINE.match(first[:_LINE_CHARS]):
        return _named(lines, provenance)
    label = _CONTENT_LABEL.match(first[:_LINE_CHARS])
    if label is not None and label[0].strip():
        return _labelled(lines, label[0].strip().lower(), provenance)
    named = _metadata(first)
    if named is not None and sum(_key(line) == named["key"].lower() for line in lines) > 1:
        # "Source: …" and "Content: …", again and again.
        return _labelled(lines, first[: named.start("value")].strip().lower(), provenance)
    begun = _ITEM.match(first[:_LINE_CHARS])
    if begun is None:
        if provenance is not Provenance.TOOL:
            return _described(text, provenance)
        # A tool may say something before the first of several.
        place = next((at for at, line in enumerate(lines[:4]) if _ITEM.match(line[:_LINE_CHARS])), None)
        if (
            place is None
            or sum(_ITEM.match(line[:_LINE_CHARS]) is not None for line in lines[place : place + 200]) < 2
        ):
            return _described(text, provenance)
        return _described("\n".join(lines[:place]), provenance) + _items("\n".join(lines[place:]), provenance)
    items: list[tuple[str, list[str]]] = []
    seen: set[str] = set()
    for line in lines:
        checkpoint()
        mark = _ITEM.match(line[:_LINE_CHARS])
        number: str = (mark["id"] or mark["tag"]) if mark is not None else ""
        if mark is not None and number not in seen and (mark["id"] is None) == (begun["id"] is None):
            seen.add(number)
            items.append((number, [line[mark.start("rest") :]]))
        elif items:
            items[-1][1].append(line)
    if len(items) == 1 and len(items[0][0]) > 20:
        return paragraph_passages(text, provenance)
    passages = []
    for number, held in items:
        passage = _undescribed("\n".join(held))
        if passage.text:
            passages.append(replace(passage, provenance=provenance, id=number or passage.id))
    return passages


def _named(lines: list[str], provenance: Provenance) -> list[Passage]:
    """Return one passage per line that begins with the name of a file: ``handbook.pdf#page=2: …``."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        checkpoint()
        mark = _NAMED_LINE.match(line)
        if mark is not None:
            found.append((mark["name"], [mark["rest"]]))
        elif found:
            found[-1][1].append(line)
    return [Passage(text="\n".join(held).strip(), provenance=provenance, title=name) for name, held in found]


def _labelled(lines: list[str], label: str, provenance: Provenance) -> list[Passage]:
    """Return one passage per label that repeats: ``content: …``."""
    held: list[list[str]] = []
    for line in lines:
        checkpoint()
        if line.strip().lower().startswith(label):
            held.append([])
        if held:
            held[-1].append(line)
    found = [_undescribed("\n".join(each)) for each in held]
    return [replace(each, provenance=provenance) for each in found if each.text]


def _described(text: str, provenance: Provenance) -> list[Passage]:
    """Return one passage per paragraph; lines that name the source, before a text or behind it, are its title and id."""
    passage = _undescribed(text)
    if not passage.title and not passage.id and passage.text == text.strip():
        return paragraph_passages(text, provenance)
    return [
        replace(each, id=passage.id, title=passage.title)
        for each in paragraph_passages(passage.text, provenance)
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
    found: dict[str, str] = {}
    first, last = 0, len(lines)
    if (
        last > 2
        and 0 < len(lines[0].strip()) <= 120
        and not _CONTENT_LABEL.match(lines[0][:_LINE_CHARS])
        and _metadata(lines[1])
        and not _metadata(lines[0])
    ):
        # The title alone on the first line, and more of its kind below.
        found["title"] = lines[0].strip()
        first = 1
    while first < last:
        mark = _metadata(lines[first])
        if mark is None and lines[first].strip():
            break
        if mark is not None:
            found.setdefault(mark["key"].lower(), mark["value"].strip())
        first += 1
    if first == last:
        return Passage(text=text.strip(), provenance=Provenance.USER)
    while last > first + 1:
        mark = _metadata(lines[last - 1])
        if mark is None and lines[last - 1].strip() and not _RULE_LINE.match(lines[last - 1]):
            break
        if mark is not None:
            found.setdefault(mark["key"].lower(), mark["value"].strip())
        last -= 1
    kept = lines[first:last]
    label = _CONTENT_LABEL.match(kept[0])
    if label is not None:
        kept[0] = kept[0][label.end() :]
        if not kept[0].strip():
            kept.pop(0)
    if len(kept) > 2 and _FENCE_LINE.match(kept[0]) and kept[-1].strip() == kept[0].strip()[:3]:
        kept = kept[1:-1]
    title = next(
        (
            found[key]
            for key in found
            if key not in _ID_KEYS and not key.startswith(("page", "score", "simil", "relev", "chunk"))
        ),
        "",
    )
    return Passage(
        text="\n".join(kept).strip(),
        provenance=Provenance.USER,
        id=next((found[key] for key in _ID_KEYS if found.get(key)), ""),
        title=title,
    )


_ID_KEYS = ("id", "doc_id", "doc id", "docid", "index")
