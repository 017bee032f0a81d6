"""Words of a text with offsets, stems and number values: the raw material of lexical support.

FROZEN byte for byte for ``lexical-v1`` and ``lexical-v2``, the features that bundled encoders were trained on, faults
included ("men" and "many" have one stem). ``tests/text/test_words.py`` pins the outputs; what has nothing to do with the model may use
``text.word_forms``.

A light stemmer of our own, enough to bring inflected English forms together; Han text counts in character
bigrams. No dictionary, no language detection.
"""

from __future__ import annotations

import math
import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from truthlens.core.cancellation import checkpoint
from truthlens.text.negations import NEGATION_WORDS

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(
    rf"(?P<number>\d+(?:[,.]\d+)*(?:st|nd|rd|th|bn|mn|[kKmMbB])?(?![^\W_{HAN}])|\d+(?:[,.]\d+)*)"
    rf"|(?P<han>[{HAN}]+)|(?P<word>[^\W\d_{HAN}]+(?:['’][^\W\d_{HAN}]{{1,2}}\b)?)"
)
_PERCENT = re.compile(r"\s?(?:%|％|percent\b|per cent\b)", re.IGNORECASE)
_SCALE_AFTER = re.compile(
    r"\s?(?:(?P<name>thousand|million|billion|trillion|mn|bn)\b|(?P<han>[十百千万亿]+))", re.IGNORECASE
)
_SCALES = {
    "thousand": 1e3, "k": 1e3, "K": 1e3, "million": 1e6, "mn": 1e6, "m": 1e6, "M": 1e6, "billion": 1e9,
    "bn": 1e9, "b": 1e9, "B": 1e9, "trillion": 1e12, "十": 10.0, "百": 1e2, "千": 1e3, "万": 1e4, "亿": 1e8,
}  # fmt: skip
# Lower-case letters after a number are units as often as scales, so both readings count.
_AMBIGUOUS_SCALES = frozenset("mb")
_LIST_MARK = re.compile(r"[.)](?:\s|$)")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NUMBER_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100,
}  # fmt: skip

STOP_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between
    both but by can could did do does doing down during each either else even ever few for from further had
    has have having he her here hers him his how however i if in into is it its itself just may me might more
    most much must my near neither nor of off on once one only or other our out over own per please rather
    same shall she should since so some such than that the their them then there these they this those though
    through thus to too under until up upon us very was we were what when where whether which while who whom
    whose why will with within would yet you your yours""".split()  # noqa: SIM905  # a list to read
)
NEGATIONS = (
    NEGATION_WORDS
    | {"n't", "hardly", "unable"}
    | {"can't", "don't", "doesn't", "didn't", "isn't", "aren't", "wasn't", "weren't", "won't", "wouldn't"}
)
_SUFFIXES = (
    ("ization", 3), ("isation", 3), ("ation", 4), ("ment", 4), ("ness", 4), ("ize", 4), ("ise", 4),
    ("ion", 4), ("er", 4), ("or", 5), ("al", 4), ("e", 3), ("y", 3), ("i", 3),
)  # fmt: skip
_IRREGULAR = {
    "used": "use", "uses": "use", "using": "use", "made": "make", "went": "go", "gone": "go", "goes": "go",
    "took": "take", "taken": "take", "gave": "give", "given": "give", "came": "come", "said": "say",
    "says": "say", "saw": "see", "seen": "see", "got": "get", "gotten": "get", "knew": "know",
    "known": "know", "found": "find", "thought": "think", "told": "tell", "became": "become",
    "began": "begin", "begun": "begin", "left": "leave", "kept": "keep", "held": "hold", "wrote": "write",
    "written": "write", "brought": "bring", "bought": "buy", "sold": "sell", "led": "lead", "paid": "pay",
    "sent": "send", "built": "build", "grew": "grow", "grown": "grow", "lost": "lose", "won": "win",
    "ate": "eat", "eaten": "eat", "men": "man", "women": "woman", "children": "child", "people": "person",
    "feet": "foot", "teeth": "tooth", "better": "good", "best": "good", "worse": "bad", "worst": "bad",
    "died": "die", "dies": "die", "dying": "die", "lies": "lie", "lying": "lie",
}  # fmt: skip
NEGATIONS |= {word.replace("'", "") for word in NEGATIONS if word != "n't"}


class Word(NamedTuple):
    """A word at characters ``start`` to ``end``.

    ``stem`` is what is compared. ``numbers`` are the canonical values a number may stand for (empty for other
    words). ``stop`` marks words that carry no claim, list marks among them; ``entity`` names, acronyms and
    other capitals.
    """

    start: int
    end: int
    stem: str
    numbers: tuple[str, ...] = ()
    stop: bool = False
    entity: bool = False
    negation: bool = False


def words(text: str) -> list[Word]:
    """The words of ``text`` in order, not overlapping; punctuation belongs to none."""
    found: list[Word] = []
    for match in _WORD.finditer(text):
        checkpoint()
        start, end = match.span()
        kind = match.lastgroup
        if kind == "word":
            found.append(_latin(text, start, end))
        elif kind == "number":
            found.append(_number(text, start, end))
        else:
            found.extend(_han(text, start, end))
    return found


def _latin(text: str, start: int, end: int) -> Word:
    surface = text[start:end]
    lower, base, stop, negation = _facts(surface)
    if lower in _NUMBER_WORDS:
        value = float(_NUMBER_WORDS[lower])
        return Word(start, end, base, numbers=_after(text, end, value))
    entity = not stop and surface[0].isupper() and (
        (len(surface) > 1 and surface.isupper()) or _inside_sentence(text, start)
    )  # fmt: skip
    return Word(start, end, base, (), stop, entity, negation)


@lru_cache(maxsize=1 << 16)
def _facts(surface: str) -> tuple[str, str, bool, bool]:
    lower = surface.lower().replace("’", "'")
    base = str(_NUMBER_WORDS[lower]) if lower in _NUMBER_WORDS else stem(lower)
    return lower, base, lower in STOP_WORDS, lower in NEGATIONS or lower.endswith("n't")


def _inside_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 4) : start].rstrip(" \"'“‘(*-")
    return bool(before) and before[-1] not in ".!?:\n•"


def _number(text: str, start: int, end: int) -> Word:
    written = text[start:end]
    digits = written.rstrip("stndrhkKmMbB")
    if digits.isdigit() and len(digits) <= 2 and _LIST_MARK.match(text, end) and _at_line_start(text, start):
        return Word(start, end, digits, stop=True)
    plain = digits.replace(",", "") if _THOUSANDS.fullmatch(digits) else digits
    try:
        value = float(plain)
    except ValueError:
        # Dotted or comma lists such as 1.2.3 or 1,2: compared as they stand.
        return Word(start, end, digits, numbers=(digits,))
    suffix = written[len(digits) :]
    if suffix in _SCALES:
        scaled = _canonical(value * _SCALES[suffix])
        numbers: tuple[str, ...] = (scaled, _canonical(value)) if suffix in _AMBIGUOUS_SCALES else (scaled,)
    else:
        numbers = _after(text, end, value)
    return Word(start, end, _canonical(value), numbers=numbers)


def _at_line_start(text: str, start: int) -> bool:
    return not text[text.rfind("\n", 0, start) + 1 : start].strip(" *#(-")


def _after(text: str, end: int, value: float) -> tuple[str, ...]:
    """Values of a number, with the percent sign or scale that follows it.

    A scaled number is its product alone: 1.2 is not evidence for 1.2 million.
    """
    tail = text[end : end + 12]
    if _PERCENT.match(tail):
        return (_canonical(value), _canonical(value / 100))
    scale = _SCALE_AFTER.match(tail)
    if scale is None:
        return (_canonical(value),)
    if scale["name"]:
        return (_canonical(value * _SCALES[scale["name"].lower()]),)
    return (_canonical(value * math.prod(_SCALES[sign] for sign in scale["han"])),)


def _canonical(value: float) -> str:
    return f"{value:.10g}"


def _han(text: str, start: int, end: int) -> list[Word]:
    if end - start == 1:
        return [Word(start, end, text[start])]
    return [
        Word(i, i + 1, text[i : i + 2] if i + 1 < end else text[i - 1 : i + 1]) for i in range(start, end)
    ]


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of a lower-case ``word``: accents, possessives and common English endings removed."""
    if not word.isascii():
        word = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    word = word.removesuffix("'s")
    word = _IRREGULAR.get(word, word)
    if len(word) <= 3:
        return word
    if word.endswith(("ies", "ied")):
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and word[-2] not in "su":
        word = word[:-1]
    inflected = False
    for ending, least in (("ingly", 3), ("edly", 3), ("ing", 3), ("ed", 3), ("ly", 4)):
        if word.endswith(ending) and len(word) - len(ending) >= least:
            word = _undouble(word[: -len(ending)])
            inflected = ending != "ly"
            break
    for ending, least in _SUFFIXES:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            return word if inflected and ending == "e" else _undouble(word[: -len(ending)])
    return word


def _undouble(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] in "bdfgmnprt":
        return word[:-1]
    return word
