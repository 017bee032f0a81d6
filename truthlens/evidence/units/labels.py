"""Read one line as a label: a heading, words before a colon, a name in brackets, a lone tag, the number of a source."""

from __future__ import annotations

import re
from collections.abc import Iterator

from truthlens.evidence.language.announcing import is_rewording
from truthlens.evidence.language.label_words import Part, is_models_label, is_others_label, part_of_label
from truthlens.evidence.units.elements import without_number
from truthlens.evidence.units.unit import Kind, Unit

_LABEL = r"(?P<label>[^\n:：<>{}|]{1,170}?)"
_SIGNS = r"(?:[-=~_+#─━—＝■●◆]{2,30}|\*{3,30})"
# How labels are written, with the style that a unit of each gets.
_FORMS = tuple(
    (re.compile(pattern), style)
    for style, pattern in {
        "--": rf"^[ \t]{{0,12}}(?P<mark>{_SIGNS})[ \t]*(?P<label>[^\n<>{{}}|]{{1,100}}?)[ \t]*[:：]?[ \t]*{_SIGNS}[ \t]*[:：]?(?P<rest>)$",
        "#": rf"^[ \t]{{0,12}}(?P<mark>#{{1,6}})[ \t]*\**{_LABEL}\**[ \t]*(?:[:：][ \t]*(?P<rest>.*))?$",
        "**": rf"^[ \t]{{0,12}}(?:[-*][ \t]+)?(?P<mark>\*\*|__){_LABEL}[:：]?(?P=mark)[ \t]*[:：]?[ \t]*(?P<rest>.*)$",
        "[]": rf"^[ \t]{{0,12}}(?P<mark>\[\[|\[|【|<<|\{{\{{|「|『)[ \t]*#*[ \t]*{_LABEL}[ \t]*#*[ \t]*(?:\]\]|\]|】|>>|\}}\}}|」|』)[ \t]*[:：]?[ \t]*(?P<rest>.*)$",
        "()": rf"^[ \t]{{0,12}}(?P<mark>[(（>])[ \t]*{_LABEL}[ \t]?[:：](?!//)[ \t]*(?P<rest>.*)$",
        ":": rf"^[ \t]{{0,20}}(?P<mark>){_LABEL}[ \t]?[:：](?!//)[ \t]*(?P<rest>.*)$",
        "CAPS": r"^[ \t]{0,12}(?P<mark>)(?P<label>[A-ZÄÖÜА-Я][A-ZÄÖÜА-Я _-]{2,40})(?P<rest>)[ \t]*$",
    }.items()
)
_NUMBER = re.compile(r"[ \t_#№\[(-]{0,3}(\d{1,5}|(?<=[ #])[A-Z])[\])]?$")
_LONE_TAG = re.compile(r"^[ \t]{0,12}<(?P<close>/?)(?P<name>[^\W\d][\w.:-]{0,40})(?:\s[^<>]{0,200})?>[ \t]*$")
# "[Source 1: Tariff sheet]" alone on its line.
_BOXED_TITLE = re.compile(
    r"^[ \t]{0,12}[\[【](?P<word>[^\W\d]{2,20})[ \t]?(?P<number>\d{1,4})[ \t]?[:：,–-][^\[\]]{1,150}[\]】][ \t]*$"
)
# "Result 1 · red-spring-path" alone on its line.
_NUMBERED_HEAD = re.compile(
    r"^[ \t]{0,12}(?:[-*#]{1,6}[ \t]+)?(?P<word>[^\W\d_]{3,20})[ \t]+(?:n[.º°o]{0,2}[ \t]?|[#№])?(?P<number>\d{1,4})(?![\w.])[^.!?。\n]{0,100}(?:\([^()\n]{0,80}\))?[ \t]*$"
)
# "[S0] …", "[doc_7] …", "【1】…": a numbered item without a word that says so.
_ITEM = re.compile(r"[A-Za-z]{0,16}[_-]?\d{1,5}")
_ASIDE = re.compile(r"\s*[(（][^()（）]{0,200}[)）]$")
_END_MARK = re.compile(r"^(?:/|end\b|end of\b|ende\b|fin\b|конец\b)|\bends?$", re.IGNORECASE)
# Words that a label has at most whose meaning is not known; longer ones are sentences.
_UNKNOWN_WORDS = 4
_LABEL_WORDS = 6
# Signs that no label before a colon has: code, quotes, brackets.
_NO_LABEL = frozenset('`"“(（{=<>|')


def read_label(line: str, start: int, end: int, marks: frozenset[str]) -> Unit | None:
    """Return the label unit that a line is, or ``None``: only labels that say something, and items with a number.

    Args:
        line: The beginning of the line.
        start: Where the line begins in the prompt.
        end: Where it ends.
        marks: Labels that mean evidence besides the built-in ones, in lower case.
    """
    tag = _LONE_TAG.match(line)
    if tag is not None:
        return _lone_tag(tag, start, end, marks)
    numbered = _numbered(_BOXED_TITLE.match(line), start, end, "[]") or _numbered(
        _NUMBERED_HEAD.match(line), start, end, "1", marks
    )
    if numbered is not None:
        return numbered
    for match, style, words in _readings(line):
        if is_rewording(words) or (style == ":" and not _NO_LABEL.isdisjoint(words)):
            return None
        plain, number = without_number(words, _NUMBER)
        part = part_of_label(plain, marks) if plain else None
        if style == "()" and not is_models_label(plain):
            # "(Source: …)" is the document's.
            return None
        if part is None:
            label = _without_meaning(match, words, start, end, style)
            if label is not None:
                return label
        elif style != ":" or _is_short(words, part):
            label = Unit(start, end, Kind.LABEL, part, label=plain.lower(), number=number)
            return _placed(label, match, words, style)
        else:
            return None
    return None


def form_of(line: str) -> tuple[str, str, bool] | None:
    """Return the style and the words of a line that is written as a label, whatever they say, and whether it ends with them."""
    match, style, words = next(_readings(line), (None, "", ""))
    if match is None or not words[:1].isalpha():
        return None
    most = _LABEL_WORDS if is_others_label(words) else _UNKNOWN_WORDS
    if len(words.split()) > most or (style == ":" and not _NO_LABEL.isdisjoint(match["label"])):
        return None
    return match["mark"] if style == "#" else style, words.lower(), not (match["rest"] or "").strip()


def _readings(line: str) -> Iterator[tuple[re.Match[str], str, str]]:
    """Yield the ways in which a line is written as a label: the match, its style and the words."""
    for pattern, style in _FORMS:
        match = pattern.match(line)
        if match is not None:
            yield match, style, _ASIDE.sub("", match["label"].strip().strip("*_# "))


def _lone_tag(tag: re.Match[str], start: int, end: int, marks: frozenset[str]) -> Unit | None:
    """Return a tag without its pair as a label: it opens a part as a label does, or ends one."""
    part = part_of_label(tag["name"], marks)
    if part is None:
        return None
    opened = None if tag["close"] else part
    style = "<>end" if tag["close"] else "<>"
    return Unit(start, end, Kind.LABEL, opened, end, end, style, tag["name"].lower())


def _numbered(
    mark: re.Match[str] | None, start: int, end: int, style: str, marks: frozenset[str] = frozenset()
) -> Unit | None:
    """Return a word for evidence with a number as a label."""
    if mark is None or part_of_label(mark["word"], marks) is not Part.EVIDENCE:
        return None
    return Unit(start, end, Kind.LABEL, Part.EVIDENCE, end, end, style, mark["word"].lower(), mark["number"])


def _without_meaning(match: re.Match[str], words: str, start: int, end: int, style: str) -> Unit | None:
    """Return a label whose words say nothing: a numbered item, or a heading, which parts the prompt all the same."""
    rest = match["rest"]
    if style == "[]":
        bare = words.replace(" ", "")
        if not _ITEM.fullmatch(bare) or rest.startswith("("):
            return None
        body = start + match.start("rest")
        return Unit(start, end, Kind.LABEL, Part.EVIDENCE, body, end, "[]#", "item", bare)
    if style not in ("#", "--") or rest:
        return None
    mark = match["mark"] if style == "#" else style
    return Unit(start, end, Kind.LABEL, None, end, end, mark, words.lower())


def _placed(label: Unit, match: re.Match[str], words: str, style: str) -> Unit | None:
    """Return ``label`` with its style and the place of what stands behind it; ``None`` for an end mark with text behind."""
    rest = match["rest"]
    if _END_MARK.search(words):
        if rest and rest.strip():
            return None
        return Unit(
            label.start, label.end, Kind.LABEL, None, label.end, label.end, f"{style}end", words.lower()
        )
    label.body = label.start + match.start("rest") if rest else label.end
    label.body_end = label.end
    label.style = (match["mark"] if style == "#" else style) + ("C" if words.isupper() else "")
    return label


def _is_short(words: str, part: Part) -> bool:
    """Return whether words before a colon are a label, and not the beginning of a sentence."""
    count = len(words.split())
    return count <= (
        _LABEL_WORDS if part in (Part.EVIDENCE, Part.QUESTION, Part.HISTORY, Part.ANSWER) else _UNKNOWN_WORDS
    )
