"""Find the citations in an answer: ``[S0]``, ``[1, 2]``, ``[1-3]``, ``【4】``, ``(Source: handbook.pdf)``.

A bracket is a citation where it holds a label that is known, or that looks like one; else it is text. Code, links, check boxes,
indices, lists of values and definitions of footnotes are no citations. Pure, and linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from truthlens.core.cancellation import checkpoint
from truthlens.text.sentences import is_json

GENERIC_WORDS = (
    "documents?|docs?|sources?|src|refs?|references?|passages?|chunks?|contexts?|citations?|cite|id|ids|snippets?|results?|"
    "articles?|files?|evidence|quellen?|dokumente?|fuentes?|documentos?|fonti|fonte|документ|источник|"
    "来源|來源|文档|文檔|文件|资料|資料|段落|片段|参考|參考|引用|出处|出處|出典|文書|출처"
)
_SOURCE_WORDS = (
    "sources?|src|refs?|references?|citations?|cited|quellen?|fuentes?|fontes?|fonti|referencias?|références?|источники?|id|"
    "来源|來源|资料来源|資料來源|出处|出處|参考|參考|引用|出典|参照|출처"
)
_BRACKET = re.compile(r"[\[【［〔]([^\[\]【】［］〔〕\n]{1,200})[\]】］〕]")
_PARENTHESIS = re.compile(
    rf"[(（]\s{{0,3}}(?:{_SOURCE_WORDS})\s{{0,3}}[:：#]\s{{0,3}}([^()（）\n]{{1,200}})[)）]", re.IGNORECASE
)
_URL_BEHIND = re.compile(
    r"\]?\(([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,500})?)(?:\s[^()\n]{0,200})?\)"
)
_SEPARATOR = re.compile(r"\s{0,3}[,;，；、|]\s{0,3}|\s{1,3}(?:and|und|et|y|&|和|及)\s{1,3}", re.IGNORECASE)
_RANGE = re.compile(
    r"([^\W\d_]{0,16}[ _#:.-]?)(\d{1,3})\s?(?:[-–—‐‑~～]|to|bis|至|到)\s?([^\W\d_]{0,16}[ _#:.-]?)(\d{1,3})"
)
_LONGEST_RANGE = 50
_NUMBER = re.compile(r"\d{1,3}")
_GENERIC = re.compile(rf"(?:{GENERIC_WORDS})[\s_:：#№.-]{{0,3}}(?=\S)", re.IGNORECASE)
_GENERIC_NUMBER = re.compile(rf"(?:{GENERIC_WORDS})[\s_:：#№.-]{{0,3}}[a-z]?\d{{1,6}}", re.IGNORECASE)
_SHORT_LABEL = re.compile(r"[sdrc]\d{1,3}", re.IGNORECASE)
_FILE = re.compile(
    r"[\w ()./%&+~-]{1,120}\.(?:pdf|docx?|md|html?|txt|csv|json|xlsx?|pptx?|xml|ya?ml|rtf|odt)"
    r"(?:#[\w=.-]{1,60})?(?:\s?[,:]?\s?(?:p|pp|page|pages|s|seite)\.?\s?\d{1,5}(?:[-–]\d{1,5})?)?",
    re.IGNORECASE,
)
_LOCATOR = re.compile(
    r"(?:#.*|\s?[,:;(-]?\s?(?:(?:pp?|pages?|seite|section|sec|chapter|lines?)\.?|s\.(?=\s)|第)\s?\d[\d–-]{0,9}\s?[页頁章]?\)?)$",
    re.IGNORECASE,
)

# What stands right before a bracket of an index: a[1], user_ids[0], argv[1].
_IDENTIFIER = re.compile(
    r"(?:(?<![^\W_])[A-Za-z]|[A-Za-z]\w{0,40}_\w{0,40}|[a-z]{1,30}[A-Z]\w{0,40}|\bargs|\bargv|\barr|\bnums|\\\w{1,20})$"
)
_INDEXED = re.compile(r"\s{0,2}(?:=|\+=|\.[a-z_]\w{0,40}\()|\{")
_ASSIGNED = re.compile(
    r"(?:[\"'”]\s{0,2}:|(?<![=<>!])=|\b(?:in|range|interval|between|∈|return|区间|區間)|∈)\s{0,2}$",
    re.IGNORECASE,
)
_BEFORE_CHARS = 64
_JOINT = re.compile(r"[\s_:.#-]+|(?<=[^\W\d_])(?=\d)")
_CHECK_BOX = re.compile(r"[ xX✓✔]")
_ITEM_START = re.compile(r"[ \t]{0,20}(?:[-*+•]|\d{1,3}[.)])[ \t]{1,4}$")
_DEFINITION = re.compile(r"[ \t]{0,3}\[\^?[^\[\]\n]{1,60}\]:")
_FENCE = re.compile(r"[ \t]{0,12}(?:[>*-][ \t]{0,4})?(`{3,}|~{3,})")
_TICKS = re.compile(r"`+")
_HEADS_LIST = re.compile(
    r"[\s#*_>-]{0,8}(?:sources?|sources? cited|references?|citations?|bibliography|works cited|footnotes?|quellen|literatur|fuentes|"
    r"referencias|références|fonti|источники|来源|來源|资料来源|資料來源|参考资料|參考資料|参考文献|參考文獻|引用|出典)[\s*_]{0,4}[:：]?[\s*_]{0,4}",
    re.IGNORECASE,
)
_LISTED = re.compile(r"[ \t]{0,12}(?:[-*+•][ \t]|\d{1,3}[.):\]、]|[\[【［〔])")


@dataclass(frozen=True, slots=True)
class Citation:
    """Characters ``start`` to ``end`` of an answer, and the labels that it cites, as they are written.

    ``free`` marks one whose label does not look like an id: "(Source: the annual report)"; it is right where the label is known,
    and nothing can be said of it where it is not. A link is ``free`` as well.
    """

    start: int
    end: int
    labels: tuple[str, ...]
    free: bool = False


@dataclass(frozen=True, slots=True)
class CitedText:
    """The citations of a text in order, and ``listed``: the lines that list sources and define footnotes."""

    citations: tuple[Citation, ...]
    listed: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Labels:
    """What decides which brackets are citations: whether a label is known, and whether it has the form of a known one."""

    known: Callable[[str], bool]
    resembles: Callable[[str], bool] = lambda _: False


def label_key(label: str) -> str:
    """Return what two spellings of one label have in common: widths, case and white space aside."""
    return " ".join(unicodedata.normalize("NFKC", label).casefold().strip(" \t\"'“”‘’`*_^#@").split())


def without_word(key: str) -> str:
    """Return a label's key without the word that only says that it is one: ``3`` of ``source 3``."""
    return _GENERIC.sub("", key, count=1) if _GENERIC.match(key) else key


def without_place(key: str) -> str:
    """Return a label's key without the place in the document: ``a.pdf`` of ``a.pdf, p. 3`` and ``a.pdf#page=3``."""
    return _LOCATOR.sub("", key).strip() if len(key) <= 300 else key


def spelling_key(key: str) -> str:
    """Return what ``doc_7``, ``doc-7``, ``doc 7`` and ``doc7`` have in common."""
    return _JOINT.sub("-", key).strip("-")


def shape_of(key: str) -> str:
    """Return the form of an id: equal for ``kb-7`` and ``kb-12``, and for numbers of as many digits; ``""`` without a digit."""
    if key.isdigit():
        return "0" * len(key)
    return re.sub(r"[\s_:.-]", "", re.sub(r"\d+", "0", key)) if any(each.isdigit() for each in key) else ""


def looks_like_label(label: str) -> bool:
    """Return whether a label looks like an id whatever the ids are: a number, ``S0``, ``doc-3``, ``handbook.pdf``."""
    patterns = (_NUMBER, _SHORT_LABEL, _GENERIC_NUMBER, _FILE)
    return any(pattern.fullmatch(label) for pattern in patterns)


def find_citations(text: str, labels: Labels, *, start: int = 0, fenced: bool = False) -> CitedText:
    """Return the citations of ``text`` from ``start``, the start of a line, on.

    Args:
        text: an answer, or what has come of it.
        labels: which labels there are.
        start: where to begin.
        fenced: whether that is within a block of code.
    """
    if not start and is_json(text):
        return CitedText((), ())
    code, listed = _layout(text, start, fenced=fenced)
    defined = [(first, last) for first, last, is_definition in listed if is_definition]
    hidden = sorted((*code, *defined))
    found: list[Citation] = []
    place = 0
    indexed = -1
    for match, kind in _brackets(text, start):
        checkpoint()
        while place < len(hidden) and hidden[place][1] <= match.start():
            place += 1
        if place < len(hidden) and hidden[place][0] < match.end():
            continue
        if found and match.start() < found[-1].end:
            continue
        if kind == "(":
            cited, free = _parts(match[1], labels)
            found.append(Citation(*match.span(), cited or (match[1].strip(),), free=free or not cited))
            continue
        if _is_no_citation(text, match, continues=match.start() == indexed):
            if match.start() == indexed or _IDENTIFIER.search(_before(text, match.start())):
                indexed = match.end()
            continue
        link = _URL_BEHIND.match(text, match.end())
        if link is not None:
            target = next((each for each in (link[1], match[1]) if labels.known(each)), None)
            if target is not None:
                found.append(Citation(match.start(), link.end(), (target,), free=True))
            continue
        cited, free = _parts(match[1], labels)
        if cited and not _is_odd_list(text, match, cited):
            found.append(Citation(*match.span(), cited, free=free))
    return CitedText(tuple(found), tuple((first, last) for first, last, _ in listed))


def fence_after(text: str, start: int, end: int, *, fenced: bool) -> bool:
    """Return whether the line at ``end`` is within a block of code, where ``fenced`` says so of the line at ``start``."""
    mark = "`" if fenced else ""
    for first, last in _lines(text, start, end):
        fence = _FENCE.match(text, first, last)
        if fence is None:
            continue
        if mark:
            mark = "" if fence[1][0] == mark or fenced else mark
        elif "`" not in text[fence.end() : last]:
            mark = fence[1][0]
    return bool(mark)


def _brackets(text: str, start: int) -> Iterator[tuple[re.Match[str], str]]:
    """Return both kinds of marks in the order of the text."""
    marks = [(match, "[") for match in _BRACKET.finditer(text, start)]
    named = [(match, "(") for match in _PARENTHESIS.finditer(text, start)]
    # "(Source: [1])" is what stands in it.
    inside = [(m, k) for m, k in named if not _BRACKET.search(m[1])]
    return iter(sorted((*marks, *inside), key=lambda each: each[0].start()))


def _parts(content: str, labels: Labels) -> tuple[tuple[str, ...], bool]:
    """Return the labels that a bracket cites, none where it is text; and whether they are only known, not of the form of a label."""
    content = unicodedata.normalize("NFKC", content).strip()
    if not content:
        return (), False
    number, dagger, name = content.partition("†")
    if dagger:
        # 【4:0†handbook.pdf】, 【1†source】
        named = next((each.strip() for each in (name, number) if labels.known(each.strip())), None)
        if named is not None:
            return (named,), False
        number = number.strip()
        return ((number,), False) if _NUMBER.fullmatch(number) else ((content,), True)
    bare = content.lstrip("^#@").strip()
    if labels.known(bare) or _FILE.fullmatch(bare):
        return (bare,), False
    known: list[str] = []
    every: list[str] = []
    odd = False
    for part in _SEPARATOR.split(bare):
        label = part.strip().lstrip("^#@")
        if labels.known(label):
            known.append(label)
            every.append(label)
        elif numbers := _ranged(label):
            every += numbers
        elif looks_like_label(label) or labels.resembles(label):
            every.append(label)
        else:
            odd = True
    return (tuple(known) if odd else tuple(every)), False


def _ranged(label: str) -> list[str]:
    match = _RANGE.fullmatch(label)
    if match is None:
        return []
    word, first, other, last = match[1], int(match[2]), match[3], int(match[4])
    if other not in ("", word) or not first < last < first + _LONGEST_RANGE:
        return []
    return [f"{word}{number}" for number in range(first, last + 1)]


def _is_no_citation(text: str, match: re.Match[str], *, continues: bool) -> bool:
    """Return whether a bracket is an index, a check box, an escaped bracket or a definition."""
    start, end = match.span()
    before = _before(text, start)
    if before.endswith("\\") or text[end : end + 1] == "{":
        return True
    if continues or (text[start] == "[" and _IDENTIFIER.search(before)):
        return True
    if text[start] == "[" and before[-1:].isalnum() and _INDEXED.match(text, end):
        return True
    if _CHECK_BOX.fullmatch(match[1]) and _ITEM_START.search(before[before.rfind("\n") + 1 :]):
        return True
    # "[A]ccording to": a letter that was changed in a quotation.
    follows = text[end : end + 1]
    return len(match[1]) == 1 and match[1].isalpha() and follows.isascii() and follows.islower()


def _is_odd_list(text: str, match: re.Match[str], cited: tuple[str, ...]) -> bool:
    """Return whether several numbers in one bracket are values: ``x = [1, 2]``, ``"a": [3, 4]``, "in [0, 1]"."""
    return (
        text[match.start()] == "["
        and len(cited) > 1
        and all(_NUMBER.fullmatch(each) for each in cited)
        and _ASSIGNED.search(_before(text, match.start())) is not None
    )


def _before(text: str, start: int) -> str:
    return text[max(0, start - _BEFORE_CHARS) : start]


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        last = text.find("\n", start, end)
        last = end if last < 0 else last
        yield start, last
        start = last + 1


def _layout(
    text: str, start: int, *, fenced: bool
) -> tuple[list[tuple[int, int]], list[tuple[int, int, bool]]]:
    """Return the ranges of code, and the lines of lists of sources, each with whether it defines a footnote."""
    code: list[tuple[int, int]] = []
    listed: list[tuple[int, int, bool]] = []
    mark = "any" if fenced else ""
    in_list = False
    for first, last in _lines(text, start, len(text)):
        fence = _FENCE.match(text, first, last)
        if mark:
            code.append((first, last))
            if fence is not None and (mark == "any" or fence[1].startswith(mark)):
                mark = ""
            continue
        if fence is not None and "`" not in text[fence.end() : last]:
            mark = fence[1]
            code.append((first, last))
            continue
        code += _inline(text, first, last)
        if _DEFINITION.match(text, first, last):
            listed.append((first, last, True))
        elif last - first <= 60 and _HEADS_LIST.fullmatch(text, first, last):
            in_list = True
            listed.append((first, last, False))
        elif in_list and first < last and not text[first:last].isspace():
            in_list = _LISTED.match(text, first, last) is not None
            if in_list:
                listed.append((first, last, False))
    return code, listed


def _inline(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the ranges between runs of as many back ticks, in one line."""
    if text.find("`", start, end) < 0:
        return []
    runs = [match.span() for match in _TICKS.finditer(text, start, end)]
    follows: list[int | None] = [None] * len(runs)
    latest: dict[int, int] = {}
    for place in range(len(runs) - 1, -1, -1):
        length = runs[place][1] - runs[place][0]
        follows[place] = latest.get(length)
        latest[length] = place
    found: list[tuple[int, int]] = []
    place = 0
    while place < len(runs):
        other = follows[place]
        if other is None:
            place += 1
        else:
            found.append((runs[place][0], runs[other][1]))
            place = other + 1
    return found
