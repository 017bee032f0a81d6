"""Measure what two texts share literally: whether they are copies, their rare words, their characters.

Pure.

No model, no language detection: that two texts mean the same in other words is not seen here.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from truthlens.detection.encoder.inputs.lexical import keys_of
from truthlens.text.words import words

MOST_CHARACTERS = 8_192
"""Of a text; what follows is not compared, copies apart."""

_GRAM_SIZES = (2, 3)
_NUMBER_WEIGHT = 3.0  # a number is one thing however few its digits, and claims are about numbers
_STOP_WEIGHT = 0.1  # enough to tell apart what has no other words
_MARKUP = re.compile(r"^\s*(?:#{1,6}|[-*+•>]|\d{1,2}[.)])\s+|\*\*|__|`", re.MULTILINE)
_RAISED = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
# What belongs to a number stays, for 1.5 is no copy of 15, and so does every sign but commas, full stops and
# the like.
_PARTS = re.compile(
    r"(?:(?<!\w)[-+−])?\.?\d+(?:[.,:/]\d+)*(?:\s?[%‰])?|[^\W\d_]+"
    r"|[^\w\s.,;:!…'\"´‘’“”„«»()\[\]{}。、「」『』·–—_-]"
)
_BLANK = re.compile(r"\s+")


def copies(left: Sequence[str], right: Sequence[str]) -> NDArray[np.bool_]:
    """Return whether two texts have the same words in the same order, shape (left, right).

    Case, white space, quotes, list and heading marks, and punctuation that changes no number do not count; a
    question mark does. Texts without a letter, a digit or a symbol are copies of nothing.
    """
    first, second = ([_bare(text) for text in texts] for texts in (left, right))
    return np.array([[a == b and bool(a) for b in second] for a in first], dtype=bool).reshape(
        len(left), len(right)
    )


def shared_words(left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
    """Return the share of their words that two texts have in common, 0..1, shape (left, right).

    Words count by stem and numbers by value, each by its rarity among all texts of the call: twice the weight
    of what is shared, over the weight of both.
    """
    return _shared(left, right, _word_counts)


def shared_characters(left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
    """Return the share of characters, by twos and threes, and of numbers that two texts share, 0..1.

    Shape (left, right). Works for scripts without spaces; rarity counts as in ``shared_words``.
    """
    return _shared(left, right, _gram_counts)


def _shared(
    left: Sequence[str], right: Sequence[str], count: Callable[[str], Mapping[str, float]]
) -> NDArray[np.float32]:
    first, second = ([count(text[:MOST_CHARACTERS]) for text in texts] for texts in (left, right))
    rows = [*first, *second]
    holders = Counter(key for row in rows for key in row)
    rarity = {key: math.log(1.0 + len(rows) / number) for key, number in holders.items()}
    place = {key: number for number, key in enumerate(rarity)}
    weights = np.zeros((len(rows), len(place)))
    for row, counts in zip(weights, rows, strict=True):
        for key, number in counts.items():
            row[place[key]] = number * rarity[key]
    whole = weights.sum(axis=1)
    ours, theirs = weights[: len(first)], weights[len(first) :]
    found = np.zeros((len(first), len(second)), dtype=np.float32)
    for number, row in enumerate(ours):
        used = np.flatnonzero(row)
        common = np.minimum(theirs[:, used], row[used]).sum(axis=1)
        both = whole[number] + whole[len(first) :]
        np.divide(2.0 * common, both, out=found[number], where=both > 0.0, casting="unsafe")
    return np.minimum(found, 1.0)


def _word_counts(text: str) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for word in words(text):
        weight = _STOP_WEIGHT if word.stop and not word.negation else 1.0
        for key in keys_of(word):
            found[key] = max(weight, found.get(key, 0.0))
    return found


def _gram_counts(text: str) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for word in words(text):
        for value in word.numbers:
            found[f"number {value}"] = _NUMBER_WEIGHT
    plain = f" {_plain(text)} "
    for size in _GRAM_SIZES:
        for start in range(len(plain) - size + 1):
            gram = plain[start : start + size]
            if not gram.isspace():
                found[gram] = found.get(gram, 0.0) + 1.0
    return found


def _plain(text: str) -> str:
    kept = "".join(c if c.isalnum() else " " for c in unicodedata.normalize("NFKC", text).casefold())
    return _BLANK.sub(" ", kept).strip()


def _bare(text: str) -> tuple[str, ...]:
    """Return the words, numbers and symbols of a text, without what is not compared."""
    plain = _RAISED.sub(r"^\g<0>", _MARKUP.sub("", text))  # else 10² would fold to 102
    folded = unicodedata.normalize("NFKC", plain).casefold()
    return tuple(_BLANK.sub("", part).replace("−", "-").removeprefix("+") for part in _PARTS.findall(folded))
