"""Whether two sentences about one matter give different figures, dates or a different polarity. Pure.

Meaning models rate "opened in 1990" and "opened in 1985" as near copies, which is why these are compared by
value. It does not decide whether two sentences are about one matter, and knows no opposites ("rises",
"falls").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from truthlens.core.records.explanation import DifferenceKind
from truthlens.text.scripts import HAN
from truthlens.text.values.entities import Mention, mentions, readings, same_value, sort_of
from truthlens.text.words import words

_REFERENCE = re.compile(
    r"\b(?:passages?|sources?|documents?|steps?|figures?|tables?|sections?|chapters?|pages?|versions?|question"
    r"|docs?|refs?)[ _-]?(?:\d+(?:\s*(?:,|and|&|or|-)\s*\d+)*)|\[[^\]\n]{0,20}\d[^\]\n]{0,8}\]|第\d+[段篇章页条步]"
    r"|https?://\S+",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|without|cannot|neither|nor|none|nobody|nothing)\b|n['’]t\b", re.IGNORECASE
)
_NEGATION_ZH = re.compile(r"没有|并非|从未|不|没|未|无|非")
_NO_NEGATION_ZH = re.compile(r"不仅|不但|不过|不同|不断|不少|不久|无论|非常|除非|未来|差不多|不管")
_NO_NEGATION = re.compile(r"\b(?:not only|no doubt|no longer than|no more than|not least)\b", re.IGNORECASE)
_CONTENT = re.compile(rf"[A-Za-z]{{3,}}|[{HAN}]")
_STOP_WORDS = (
    "the and are was were has have had does did not for with that this from into its their they will would can could "
    "should may might must been being which who than then also but never without cannot"
)
_STOPS = frozenset(_STOP_WORDS.split())
_LONGEST = 1200
_SAME_STATEMENT = 0.7
"""Dice overlap of the content words at which a negation in one of two sentences turns it against the other."""


_MOST_DATES = 40


@dataclass(frozen=True, slots=True)
class _Figure:
    """A number: what it counts or measures, and the values that it may have."""

    kind: str
    readings: frozenset[tuple[str, str]]
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Content:
    """What of a sentence is compared: it is read once, however many sentences it is held against."""

    figures: Sequence[_Figure]
    held: frozenset[object]
    """The values and readings of all figures."""
    dates: Sequence[Mention]
    negated: bool
    words: frozenset[str]


def content(sentence: str) -> Content:
    """Return the figures, dates, polarity and words of ``sentence``; of a longer text the first 1,200 characters count."""
    text = sentence[:_LONGEST]
    plain = _REFERENCE.sub(lambda found: " " * len(found[0]), text)
    found = mentions(plain, words(plain))
    figures = [
        _Figure(_kind(each), readings(each), frozenset(each.keys))
        for each in found
        if each.kind is DifferenceKind.NUMBER
    ]
    held = frozenset[object]().union(*(figure.readings | figure.values for figure in figures))
    dates = [each for each in found if each.kind is DifferenceKind.DATE][:_MOST_DATES]
    return Content(figures, held, dates, _negations(text) % 2 == 1, _words(text))


def conflicting(one: Content, other: Content) -> bool:
    """Return whether one sentence gives a figure, date or polarity where the other gives another one.

    A value that only one of them gives is no conflict. The result does not depend on the order.
    """
    return (
        not _kinds_without_equal(one, other).isdisjoint(_kinds_without_equal(other, one))
        or _dates_differ(one.dates, other.dates)
        or _polarity_differs(one, other)
    )


def _kind(number: Mention) -> str:
    sort = sort_of(number.unit)
    return number.unit if sort == "count" else sort


def _kinds_without_equal(one: Content, other: Content) -> set[str]:
    """Return the kinds of those figures of ``one`` whose value ``other`` does not have.

    Equal values count as the same whatever they seem to count: the word behind a number is a weak sign.
    """
    return {
        figure.kind
        for figure in one.figures
        if figure.readings.isdisjoint(other.held) and figure.values.isdisjoint(other.held)
    }


def _dates_differ(mine: Sequence[Mention], theirs: Sequence[Mention]) -> bool:
    """Return whether each side has a date that the other lacks, and the two cannot both be meant."""
    left = [each for each in mine if not any(same_value(each, other) for other in theirs)]
    right = [each for each in theirs if not any(same_value(each, other) for other in mine)]
    return any(same_value(each, other) is False for each in left for other in right)


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
