"""Extract blocks between tags: ``<context>…</context>``, ``<documents>``, ``<source id="7">``.

A block ends at the first closing tag of its name: text that comes after is the user's, whatever a document
says. A tag in code, or an unclosed one in running text, is the user's text as well. Every step
is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from truthlens.api.evidence.paragraphs import paragraph_passages
from truthlens.api.evidence.prompt_patterns import QUESTION_LINE
from truthlens.core.cancellation import checkpoint
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage

_CONTAINERS = (
    "contexts?|retrieved[_-]contexts?|retrieved[_-]documents|documents|docs|passages|sources|evidence|"
    "search[_-]results|results|references|reference[_-]material|knowledge|knowledge[_-]base|background|"
    "articles?|chunks|snippets|excerpts?|上下文|资料|資料|参考资料|參考資料|背景资料|文档|文檔"
)
_ITEMS = "document|doc|passage|source|result|search[_-]result|reference|chunk|snippet|item"
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{_CONTAINERS}|{_ITEMS})(?P<number>[_-]?\d{{1,4}})?(?P<rest>\s[^<>]{{0,400}})?>",
    re.IGNORECASE,
)
_ITEM_NAME = re.compile(_ITEMS, re.IGNORECASE)
_CODE = re.compile(r"```.*?```|`[^`\n]{1,300}`", re.DOTALL)
_ATTRIBUTE = re.compile(r"([\w-]{1,30})\s?=\s?(?:\"([^\"]{0,200})\"|'([^']{0,200})'|([^\s\"'>]{1,200}))")
_LABEL_TAG = re.compile(r"<(title|source|id|name|url)>([^<]{0,300})</\1>", re.IGNORECASE)
_BODY_TAG = re.compile(
    r"</?(?:document[_-]contents?|content|contents|text|page[_-]content|body|snippet)>", re.IGNORECASE
)
_ID_NAMES = ("id", "doc_id", "docid", "index", "number", "n")
_TITLE_NAMES = ("title", "name", "source", "file", "url")
_MAX_DEPTH = 4
# Only so far is the start of a line looked for: a megabyte without a line break costs no more.
_INDENT = 100


@dataclass(frozen=True, slots=True)
class Taken:
    """Passages found in a text, and the text that is left when they are cut out."""

    passages: tuple[Passage, ...]
    rest: str


@dataclass(frozen=True, slots=True)
class _Block:
    start: int
    end: int
    text: str
    tag: re.Match[str]


def take_tagged(text: str, provenance: Provenance) -> Taken:
    """Return the passages of the tagged blocks of ``text``, in order, and the text around them."""
    if "<" not in text:
        return Taken((), text)
    passages: list[Passage] = []
    rest: list[str] = []
    done = 0
    for block in _blocks(text):
        rest += (text[done : block.start], "\n" if _at_line_start(text, block.start) else " ")
        done = block.end
        passages += _block_passages(block, provenance, 0)
    if not passages:
        return Taken((), text)
    rest.append(text[done:])
    # Closing tags without a block are left over from text that imitates the end of one.
    return Taken(tuple(passages), _TAG.sub(lambda tag: "" if tag["close"] else tag[0], "".join(rest)))


def _blocks(text: str) -> Iterator[_Block]:
    tags = list(_TAG.finditer(text))
    closes: dict[str, list[re.Match[str]]] = {}
    for tag in tags:
        checkpoint()
        if tag["close"]:
            closes.setdefault(_key(tag), []).append(tag)
    starts = {key: [tag.start() for tag in found] for key, found in closes.items()}
    code = [match.span() for match in _CODE.finditer(text)]
    events: list[tuple[int, int, re.Match[str] | None]] = [(*tag.span(), tag) for tag in tags]
    events += [(*span, None) for span in code]
    events.sort(key=lambda event: event[0])
    done = 0
    for start, end, tag_or_code in events:
        checkpoint()
        if start < done:
            continue
        if tag_or_code is None:
            done = end
            continue
        if tag_or_code["close"]:
            continue
        key = _key(tag_or_code)
        place = bisect_left(starts.get(key, []), end)
        if place < len(starts.get(key, [])):
            close = closes[key][place]
            yield _Block(start, close.end(), text[end : close.start()], tag_or_code)
            done = close.end()
        elif _alone_on_line(text, start, end):
            question = QUESTION_LINE.search(text, end)
            done = question.start() if question else len(text)
            yield _Block(start, done, text[end:done], tag_or_code)


def _block_passages(block: _Block, provenance: Provenance, depth: int) -> list[Passage]:
    inner = list(_blocks(block.text)) if depth < _MAX_DEPTH and "<" in block.text else []
    is_item = _ITEM_NAME.fullmatch(block.tag["name"]) is not None
    # Inside a document, <source> names where it is from; it is an item of its own only in a list.
    if is_item:
        inner = [found for found in inner if not _LABEL_TAG.fullmatch(block.text, found.start, found.end)]
    if not inner:
        return _leaf(block, provenance, is_item=is_item)
    passages: list[Passage] = []
    done = 0
    for found in inner:
        passages += paragraph_passages(block.text[done : found.start], provenance)
        passages += _block_passages(found, provenance, depth + 1)
        done = found.end
    return passages + paragraph_passages(block.text[done:], provenance)


def _leaf(block: _Block, provenance: Provenance, *, is_item: bool) -> list[Passage]:
    labels = {
        name.lower(): double or single or bare
        for name, double, single, bare in _ATTRIBUTE.findall(block.tag["rest"] or "")
    }
    number = (block.tag["number"] or "").lstrip("_-")
    text = block.text
    if is_item:
        labels.update((name.lower(), label.strip()) for name, label in _LABEL_TAG.findall(text))
        text = _BODY_TAG.sub("", _LABEL_TAG.sub("", text))
    label = next((labels[name] for name in _ID_NAMES if labels.get(name)), number)
    title = next((labels[name] for name in _TITLE_NAMES if labels.get(name)), "")
    if is_item or label or title:
        text = text.strip()
        return [Passage(text=text, provenance=provenance, id=label, title=title)] if text else []
    return paragraph_passages(text, provenance)


def _key(tag: re.Match[str]) -> str:
    return (tag["name"] + (tag["number"] or "")).lower()


def _at_line_start(text: str, position: int) -> bool:
    nearest = max(0, position - _INDENT)
    line_start = text.rfind("\n", nearest, position) + 1
    return (line_start > 0 or nearest == 0) and not text[line_start:position].strip()


def _alone_on_line(text: str, start: int, end: int) -> bool:
    return (
        _at_line_start(text, start)
        and re.match(r"[ \t]{0,80}(?:\n|\Z)", text[end : end + _INDENT]) is not None
    )
