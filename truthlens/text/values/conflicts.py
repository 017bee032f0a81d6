"""Whether two sentences about one matter give different figures, dates or a different polarity. Pure.

Meaning models rate "opened in 1990" and "opened in 1985" as near copies, which is why these are compared by
value. It does not decide whether two sentences are about one matter, and knows no opposites ("rises",
"falls").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from truthlens.text.negations import HAN_NEGATIONS, NEGATION_WORDS
from truthlens.text.scripts import HAN
from truthlens.text.values.comparison import same_value
from truthlens.text.values.mentions import mentions
from truthlens.text.values.typed import TypedValue
from truthlens.text.words import words

_REFERENCE = re.compile(
    r"\b(?:passages?|sources?|documents?|steps?|figures?|tables?|sections?|chapters?|pages?|versions?|question"
    r"|docs?|refs?)[ _-]?(?:\d+(?:\s*(?:,|and|&|or|-)\s*\d+)*)|\[[^\]\n]{0,20}\d[^\]\n]{0,8}\]|第\d+[段篇章页条步]"
    r"|https?://\S+",
    re.IGNORECASE,
)
_NEGATION = re.compile(rf"\b(?:{'|'.join(sorted(NEGATION_WORDS))})\b|n['’]t\b", re.IGNORECASE)
_NEGATION_ZH = re.compile(rf"[没沒]有|[并並]非|[从從]未|[{HAN_NEGATIONS}]")
_NO_NEGATION_ZH = re.compile(
    r"不仅|不但|不过|不同|不[断斷]|不少|不久|[无無][论論]|非常|除非|未[来來]|差不多|不管"
)
_NO_NEGATION = re.compile(r"\b(?:not only|no doubt|no longer than|no more than|not least)\b", re.IGNORECASE)
_CONTENT = re.compile(rf"[A-Za-z]{{3,}}|[{HAN}]")
_STOP_WORDS = (
    "the and are was were has have had does did not for with that this from into its their they will would can could "
    "should may might must been being which who than then also but never without cannot"
)
_STOPS = frozenset(_STOP_WORDS.split())
_LONGEST = 1200
_MOST_VALUES = 80
_SAME_STATEMENT = 0.7
"""Dice overlap of the content words at which a negation in one of two sentences turns it against the other."""


@dataclass(frozen=True, slots=True)
class Content:
    """What of a sentence is compared: it is read once, however many sentences it is held against."""

    values: Sequence[TypedValue]
    negated: bool
    words: frozenset[str]


def content(sentence: str) -> Content:
    """Return the values, polarity and words of ``sentence``; of a longer text the first 1,200 characters count."""
    text = sentence[:_LONGEST]
    plain = _REFERENCE.sub(lambda found: " " * len(found[0]), text)
    values = [each.value for each in mentions(plain, words(plain)) if each.value is not None]
    return Content(values[:_MOST_VALUES], _negations(text) % 2 == 1, _words(text))


def conflicting(one: Content, other: Content) -> bool:
    """Return whether one sentence gives a value or a polarity where the other gives another one.

    A value that only one of them gives is no conflict. The result does not depend on the order.
    """
    mine, theirs = _lacking(one, other), _lacking(other, one)
    return any(
        same_value(each, against) is False and same_value(against, each) is False
        for each in mine
        for against in theirs
    ) or _polarity_differs(one, other)


def _lacking(one: Content, other: Content) -> list[TypedValue]:
    """Return the values of ``one`` that ``other`` does not give."""
    return [each for each in one.values if not any(_alike(each, against) for against in other.values)]


def _alike(one: TypedValue, other: TypedValue) -> bool:
    """Return whether two values may be one: the word behind a number is a weak sign of what it counts."""
    return bool(
        same_value(one, other)
        or same_value(other, one)
        or not set(one.amounts).isdisjoint(other.amounts)
        or (one.kind is not other.kind and not set(one.written).isdisjoint(other.written))
    )


def _polarity_differs(one: Content, other: Content) -> bool:
    if one.negated == other.negated:
        return False
    shared = 2 * len(one.words & other.words)
    return shared > 0 and shared >= _SAME_STATEMENT * (len(one.words) + len(other.words))


def _negations(text: str) -> int:
    plain = _NO_NEGATION_ZH.sub("", _NO_NEGATION.sub("", text))
    return len(_NEGATION.findall(plain)) + len(_NEGATION_ZH.findall(plain))


def _words(text: str) -> frozenset[str]:
    plain = _NEGATION_ZH.sub("", re.sub(r"n['’]t\b", "", text))
    return frozenset(word.casefold() for word in _CONTENT.findall(plain)) - _STOPS
