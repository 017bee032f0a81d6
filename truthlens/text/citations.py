"""Find the citations in an answer: ``[S0]``, ``[1, 2]``, ``[1-3]``, ``【4】``, ``(Source: handbook.pdf)``, ``(1)``, ``¹``.

A bracket is a citation where it holds a label that is known, or that looks like one; else it is text. So are double braces and
tags for sources (``{{1}}``, ``<cite>1</cite>``, ``<ref id="S0"/>``). Numbers in round brackets and superscripts are citations only
where they are known; other labels in round brackets where they are an id as it is written, or a word for a retrieved text with a
number. Code, links, check boxes, indices, lists of values and definitions of footnotes are no citations. Pure, and linear in the
text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from truthlens.core.cancellation import checkpoint
from truthlens.text.sentences import is_json
from truthlens.text.spans import touching
from truthlens.text.values.numerals import number_word
from truthlens.text.values.units import UNITS

_RETRIEVED_WORDS = (
    "documents?|docs?|sources?|src|refs?|references?|passages?|chunks?|contexts?|citations?|cite|id|ids|snippets?|results?|"
    "files?|evidence|quellen?|dokumente?|fuentes?|documentos?|fonti|fonte|документ|источник|"
    "来源|來源|文档|文檔|文件|资料|資料|段落|片段|参考|參考|引用|出处|出處|出典|文書|출처"
)
# "(Article 5)" is a part of a law that the text speaks of.
GENERIC_WORDS = f"{_RETRIEVED_WORDS}|articles?"
SOURCE_WORDS = (
    "sources?|src|refs?|references?|citations?|cited|quellen?|fuentes?|fontes?|fonti|referencias?|références?|источники?|id|"
    "来源|來源|资料来源|資料來源|出处|出處|参考|參考|引用|出典|参照|출처"
)
_BRACKET = re.compile(r"[\[【［〔]([^\[\]【】［］〔〕\n]{1,200})[\]】］〕]")
_PARENTHESIS = re.compile(
    rf"[(（]\s{{0,3}}(?:{SOURCE_WORDS})\s{{0,3}}[:：#]\s{{0,3}}([^()（）\n]{{1,200}})[)）]", re.IGNORECASE
)
# Behind a word: at the start of a line or behind a colon or a comma it numbers what follows.
_NUMBER_BEHIND = re.compile(
    r"(?<=[\w.!?\"'”’*])[ \t]?[(（](?P<round>\d{1,3}(?:[ \t]?[,;][ \t]?\d{1,3}){0,5})[)）]"
    r"|(?:(?<=\w)[ \t]|(?<=[^\W\d_]|[.,;:!?)\]\"'”’*])[ \t]?)"
    r"(?:(?P<raised>[⁰¹²³⁴-⁹]{1,3})(?![⁺⁻⁰¹²³⁴-⁹\w])|(?i:<sup>(?P<tagged>\d{1,3})</sup>)(?!\w))"
)
_DAGGER = re.compile(r"(?<=[^\W\d_]|[.,;:!?)\]\"'”’*])[ \t]?(†\d{1,3})(?!\w)")
_BRACES = re.compile(r"\{\{([^{}\n]{1,200})\}\}")
_TAG_NAMES = r"(?:cite|citation|ref|reference|source|src|doc|document|passage|chunk)s?"
_ATTRIBUTE = (
    rf"[ \t]{{1,3}}(?:data-)?(?:{_TAG_NAMES}|ids?|names?|keys?|idx|index|n|num|number|href|target)"
    r"[ \t]?=[ \t]?(?:\\?[\"']([^\"'<>\\\n]{1,100})\\?[\"']|([^\s\"'<>/\\]{1,60}))"
)
_TAG = re.compile(
    rf"<(?P<name>{_TAG_NAMES})(?P<attributes>(?:{_ATTRIBUTE}){{0,4}})[ \t]{{0,3}}"
    r"(?:/>|>(?P<held>[^<>\n]{0,200})</(?P=name)[ \t]{0,3}>)",
    re.IGNORECASE,
)
_VALUE = re.compile(_ATTRIBUTE, re.IGNORECASE)
_INNER = re.compile(r"[\[【(]([^\[\]【】()]{0,200})[\]】)]")
_ROUND = re.compile(r"[(（]([^()（）\[\]\n]{1,80})[)）]")
_PAGE = re.compile(
    r"[(（\[【][ \t]{0,2}(?:(?:(?i:pp?)\.[ \t]?|pp?[ \t]|(?i:pages?|seiten?)[ \t]|S\.[ \t]?)\d{1,4}(?:[ \t]?[-–,][ \t]?\d{1,4}){0,3}"
    r"|第[ \t]?\d{1,4}(?:[-–]\d{1,4})?[ \t]?[页頁])[ \t]{0,2}[)）\]】]"
)
_WORD_BEFORE = re.compile(r"[^\W_]+$")
_LEAST_LETTERS = 3  # "m²" and "Ca²" are no citations
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
_RETRIEVED_NUMBER = re.compile(rf"(?:{_RETRIEVED_WORDS})[\s_:：#№.-]{{0,3}}\d{{1,3}}", re.IGNORECASE)
_WRITTEN_ID = re.compile(r"(?=.*\d)(?=.*[^\W\d_])\S+")
_SHORT_LABEL = re.compile(r"[sdrc]\d{1,3}", re.IGNORECASE)
_FILE = re.compile(
    r"[\w ()./%&+~-]{1,120}\.(?:pdf|docx?|md|html?|txt|csv|json|xlsx?|pptx?|xml|ya?ml|rtf|odt)"
    r"(?:#[\w=.-]{1,60})?(?:\s?[,:]?\s?(?:p|pp|page|pages|s|seite)\.?\s?\d{1,5}(?:[-–]\d{1,5})?)?",
    re.IGNORECASE,
)
_ANCHOR_NUMBER = re.compile(r"(?:p|pp|pages?|l|lines?|chunk)?[=-]?\d{1,5}(?:-l?\d{1,5})?", re.IGNORECASE)
_LOCATOR = re.compile(
    r"(?:#.*|\s?[,:;(-]?\s?(?:(?:pp?|pages?|seite|section|sec|chapter|lines?)\.?|s\.(?=\s)|第|§)\s?\d[\d.–-]{0,9}\s?[页頁章]?\)?"
    r"|(?<=\w):\d{1,5}(?:[-–]\d{1,5})?)$",
    re.IGNORECASE,
)

# \frac{{1}}{{2}}, x^{{2}}, ${{a}}
_MATH_BEFORE = re.compile(r"(?:[\^_$}]|\\\w{1,20})$")
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
HEADS_LIST = re.compile(
    r"[\s#*_>-]{0,8}(?:sources?|sources? cited|references?|citations?|bibliography|works cited|footnotes?|quellen|literatur|fuentes|"
    r"referencias|références|fonti|источники|来源|來源|资料来源|資料來源|参考资料|參考資料|参考文献|參考文獻|引用|出典)[\s*_]{0,4}[:：]?[\s*_]{0,4}",
    re.IGNORECASE,
)
_LISTED = re.compile(r"[ \t]{0,12}(?:[-*+•][ \t]|\d{1,3}[.):\]、]|[\[【［〔])")


@dataclass(frozen=True, slots=True)
class Citation:
    """Characters ``start`` to ``end`` of an answer, and the labels that it cites, as they are written.

    ``free`` marks one whose label does not look like an id: "(Source: the annual report)"; it is right where the label is known,
    and nothing can be said of it where it is not. A link is ``free`` as well. A page alone, "(p. 3)", has no labels: it says where
    something stands in a document that is not named. ``mixed`` marks a bracket that holds more than its labels: "[S0, at nine]".
    """

    start: int
    end: int
    labels: tuple[str, ...]
    free: bool = False
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class CitedText:
    """The citations of a text in order, and ``listed``: the lines that list sources and define footnotes."""

    citations: tuple[Citation, ...]
    listed: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Labels:
    """What decides which brackets are citations: whether a label is known, has the form of a known one, is an id to the letter."""

    known: Callable[[str], bool]
    resembles: Callable[[str], bool] = lambda _: False
    is_id: Callable[[str], bool] = lambda _: False


def label_key(label: str) -> str:
    """Return what two spellings of one label have in common: widths, case and white space aside."""
    return " ".join(unicodedata.normalize("NFKC", label).casefold().strip(" \t\"'“”‘’`*_^#@").split())


def without_word(key: str) -> str:
    """Return a label's key without the word that only says that it is one: ``3`` of ``source 3``."""
    return _GENERIC.sub("", key, count=1) if _GENERIC.match(key) else key


def without_place(key: str) -> str:
    """Return a label's key without the place in the document: ``a.pdf`` of ``a.pdf, p. 3`` and ``a.pdf#page=3``."""
    if len(key) > 300:
        return key
    bare = _LOCATOR.sub("", key).strip()
    return key if bare.isdecimal() and ":" in key[len(bare) :] else bare  # "10:30"


def has_words_behind(label: str) -> bool:
    """Return whether a label goes on behind a ``#`` with room for words: ``a.pdf#within-90-days``, not ``a.pdf#page=3``."""
    _, mark, anchor = label.partition("#")
    return bool(mark and label.strip("#") and _ANCHOR_NUMBER.fullmatch(anchor) is None and anchor)


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
    return is_code(label) or any(pattern.fullmatch(label) for pattern in (_NUMBER, _FILE))


def is_code(label: str) -> bool:
    """Return whether a label has a letter or a word for a source and a number, and no room for anything else: ``S0``, ``doc-3``."""
    return any(pattern.fullmatch(label) for pattern in (_SHORT_LABEL, _GENERIC_NUMBER))


def find_citations(text: str, labels: Labels, *, start: int = 0, fence: str = "") -> CitedText:
    """Return the citations of ``text`` from ``start``, the start of a line, on.

    Args:
        text: an answer, or what has come of it.
        labels: which labels there are.
        start: where to begin.
        fence: what began the block of code that this is within, ``""`` where it is within none.
    """
    if not start and is_json(text):
        return CitedText((), ())
    hidden, listed = _layout(text, start, fence)
    reader = _Reader(text, labels)
    candidates = [(match, form) for pattern, form in _FORMS for match in pattern.finditer(text, start)]
    # Of two at one place the form that says more comes first.
    candidates.sort(key=lambda each: each[0].start())
    are_hidden = touching([match.span() for match, _ in candidates], hidden)
    for (match, form), is_hidden in zip(candidates, are_hidden, strict=True):
        checkpoint()
        if is_hidden or match.start() < reader.behind:
            continue
        if (citation := form(reader, match)) is not None:
            reader.found.append(citation)
    return CitedText(tuple(reader.found), tuple(listed))


class _Reader:
    """Reads the candidates of one text in its order, a method for each form: ``None`` where one is text."""

    def __init__(self, text: str, labels: Labels) -> None:
        self.found: list[Citation] = []
        self._text, self._labels = text, labels
        # Where the last index ends: another one may follow it.
        self._indexed = -1

    @property
    def behind(self) -> int:
        """The end of the last citation."""
        return self.found[-1].end if self.found else 0

    def bracket(self, match: re.Match[str]) -> Citation | None:
        text, labels, continues = self._text, self._labels, match.start() == self._indexed
        if _is_no_citation(text, match, continues=continues):
            if continues or self._is_called(match):
                self._indexed = match.end()
            return None
        link = _URL_BEHIND.match(text, match.end())
        if link is not None:
            target = next((each for each in (link[1], match[1]) if labels.known(each)), None)
            return None if target is None else Citation(match.start(), link.end(), (target,), free=True)
        cited, odd = _parts(match[1], labels)
        if not cited or _is_odd_list(text, match, cited):
            return None
        return Citation(*match.span(), cited, free=_is_free(cited), mixed=odd)

    def named(self, match: re.Match[str]) -> Citation | None:
        if _BRACKET.search(match[1]):  # "(Source: [1])" is what stands in it.
            return None
        cited, odd = _parts(match[1], self._labels)
        free = not cited or _is_free(cited)
        return Citation(*match.span(), cited or (match[1].strip(),), free=free, mixed=odd)

    def number(self, match: re.Match[str]) -> Citation | None:
        if not _is_known_number(self._text, match, self._labels):
            return None
        space = len(match[0]) - len(match[0].lstrip()) if match["round"] is not None else 0
        return Citation(match.start() + space, match.end(), tuple(_numbers(match)))

    def dagger(self, match: re.Match[str]) -> Citation | None:
        return self._free_unless_known(match.span(1), (match[1][1:],))

    def page(self, match: re.Match[str]) -> Citation | None:
        return Citation(*match.span(), ())

    def braces(self, match: re.Match[str]) -> Citation | None:
        if match.start() != self.behind and _MATH_BEFORE.search(_before(self._text, match.start())):
            return None
        return self._free_unless_known(match.span(), _whole(match[1], self._labels))

    def tag(self, match: re.Match[str]) -> Citation | None:
        return self._free_unless_known(match.span(), _tagged(match, self._labels))

    def round(self, match: re.Match[str]) -> Citation | None:
        cited = () if self._is_called(match) else _ids(match[1], self._labels)
        return self._free_unless_known(match.span(), cited)

    def _is_called(self, match: re.Match[str]) -> bool:
        return _IDENTIFIER.search(_before(self._text, match.start())) is not None

    def _free_unless_known(self, span: tuple[int, int], cited: tuple[str, ...]) -> Citation | None:
        return Citation(*span, cited, free=not all(map(self._labels.known, cited))) if cited else None


_FORMS = (
    (_BRACKET, _Reader.bracket),
    (_PARENTHESIS, _Reader.named),
    (_NUMBER_BEHIND, _Reader.number),
    (_DAGGER, _Reader.dagger),
    (_PAGE, _Reader.page),
    (_BRACES, _Reader.braces),
    (_TAG, _Reader.tag),
    (_ROUND, _Reader.round),
)


def _is_free(cited: tuple[str, ...]) -> bool:
    """Return whether a label is that of "【a†b】" whose halves are both unknown."""
    return any("†" in each for each in cited)


def _whole(content: str, labels: Labels) -> tuple[str, ...]:
    """Return the labels that ``content`` consists of, none where anything else is in it."""
    inner = _INNER.fullmatch(content.strip())
    cited, odd = _parts(inner[1] if inner else content, labels)
    return () if odd else cited


def _tagged(match: re.Match[str], labels: Labels) -> tuple[str, ...]:
    """Return what a tag for sources cites, in its attributes and between its ends; none where one of them is text."""
    held = [first or other for first, other in _VALUE.findall(match["attributes"])]
    if match["held"] and match["held"].strip():
        held.append(match["held"])
    cited = [_whole(each, labels) for each in held]
    return tuple(dict.fromkeys(label for each in cited for label in each)) if all(cited) else ()


def _ids(content: str, labels: Labels) -> tuple[str, ...]:
    """Return the labels in round brackets where all are ids to the letter, or words for a retrieved text with a number."""
    content = unicodedata.normalize("NFKC", content).strip()
    if _is_written_id(without_place(content), labels):
        return (content,)
    found: list[str] = []
    counted = False
    for part in _SEPARATOR.split(content):
        label = part.strip()
        of_retrieved = _RETRIEVED_NUMBER.fullmatch(label) is not None
        if not (of_retrieved or _is_written_id(label, labels) or (counted and _NUMBER.fullmatch(label))):
            return ()
        counted = of_retrieved or (counted and label.isdecimal())
        found.append(label)
    return tuple(found)


def _is_written_id(label: str, labels: Labels) -> bool:
    if _SHORT_LABEL.fullmatch(label):
        return labels.is_id(label.upper()) or labels.is_id(label.lower())
    return _WRITTEN_ID.fullmatch(label) is not None and labels.is_id(label)


def fence_after(text: str, start: int, end: int, fence: str) -> str:
    """Return the fence of the block of code that the line at ``end`` is in, ``""`` for none.

    ``fence`` is that of the line at ``start``.
    """
    return [fence, *(behind for *_, behind in _code_lines(text, start, end, fence))][-1]


def _code_lines(text: str, start: int, end: int, fence: str) -> Iterator[tuple[int, int, bool, str]]:
    """Yield the lines, each with whether it is code, and the fence of the block that the next one is in.

    ``fence`` is that of the first line.
    """
    while start < end:
        last = text.find("\n", start, end)
        last = end if last < 0 else last
        mark = _FENCE.match(text, start, last)
        is_code = bool(fence)
        if mark is not None and fence:
            fence = "" if mark[1].startswith(fence) else fence
        elif mark is not None and "`" not in text[mark.end() : last]:
            fence, is_code = mark[1], True
        yield start, last, is_code, fence
        start = last + 1


def _numbers(match: re.Match[str]) -> list[str]:
    """Return the numbers in round brackets or raised."""
    numbers = unicodedata.normalize("NFKC", match[match.lastgroup or ""]).replace(";", ",").split(",")
    return [each.strip() for each in numbers]


def _is_known_number(text: str, match: re.Match[str], labels: Labels) -> bool:
    """Return whether numbers in round brackets or raised are those of sources, and no power, unit or repeated amount."""
    numbers = _numbers(match)
    raised = match["round"] is None
    if not all(map(labels.known, numbers)):
        return False
    before = _WORD_BEFORE.search(_before(text, match.start()))
    if before is None:
        return True
    word = before[0].lower()
    if len(numbers) == 1 and str(number_word(word, "en")) == numbers[0]:  # "two (2) days"
        return False
    if raised and word in UNITS and UNITS[word].sort == "length":
        return False
    if match[0][0] in " \t":
        return True
    if any(each.isdigit() for each in word):  # "5(2)" and "10²"
        return False
    return not raised or len(word) >= _LEAST_LETTERS


def _parts(content: str, labels: Labels) -> tuple[tuple[str, ...], bool]:
    """Return the labels that a bracket cites, none where it is text; and whether it holds something else as well."""
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
        return ((number,) if _NUMBER.fullmatch(number) else (content,)), False
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
    return (tuple(known) if odd else tuple(every)), odd


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


def _layout(text: str, start: int, fence: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return where nothing is cited, code and definitions of footnotes, and the lines that list sources."""
    hidden: list[tuple[int, int]] = []
    listed: list[tuple[int, int]] = []
    in_list = False
    for first, last, is_code, _ in _code_lines(text, start, len(text), fence):
        if is_code:
            hidden.append((first, last))
            continue
        hidden += _inline(text, first, last)
        if _DEFINITION.match(text, first, last):
            hidden.append((first, last))
            listed.append((first, last))
        elif last - first <= 60 and HEADS_LIST.fullmatch(text, first, last):
            in_list = True
            listed.append((first, last))
        elif in_list and first < last and not text[first:last].isspace():
            in_list = _LISTED.match(text, first, last) is not None
            if in_list:
                listed.append((first, last))
    return hidden, listed


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
