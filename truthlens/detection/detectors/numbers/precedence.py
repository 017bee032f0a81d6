"""Let a source that is believed more than passages, such as a database, decide of what its own values speak. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from truthlens.detection.detectors.numbers.places import KNOWN, PASSAGE_CONFIDENCE, Index, Item
from truthlens.text.values.comparison import ValueComparer, comparable, lenient
from truthlens.text.values.cursor import STOPS
from truthlens.text.values.tokens import HAN, HAN_NUMBER, WORD, tokens
from truthlens.text.values.typed import Bound, TypedValue, ValueKind
from truthlens.text.word_forms import word_set
from truthlens.text.words import stem

DECIDED_SCORE = 0.9
_MOST_KNOWN = 2_000
GENERAL = frozenset(map(stem, word_set(
    "property properties company firm quarter period year month report statement database record records"
    " figure figures amount value number total level stood stands stand came come comes reached reach reported recorded amounted"
    " earned generated brought given shown listed"
)))  # fmt: skip
"""Words that tell nothing apart: of the record, of a figure, and of how it is stated."""
# Before a period that a figure is compared with, or that lies ahead.
_BESIDES = re.compile(
    r"\b(?:than|from|since|versus|vs\.?|with|to|against|until|till|by|before|after|next|previous|prior|last)\s+(?:(?:the|in|of|for)\s+){0,2}$",
    re.IGNORECASE,
)
_PERIOD = ("month", "quarter", "year")
_NO_PERIOD = frozenset(("day", "time", "weekday", "month_and_day", "decade"))


class SourceDecision(NamedTuple):
    """What a source says of a claim: its value, and whether the claim agrees."""

    item: Item
    agrees: bool


class Decider:
    """Finds the values of sources that are of the same thing as a claim.

    Args:
        evidence: passages and sources.
        comparer: says whether two values are equal.
    """

    def __init__(self, evidence: Index, comparer: ValueComparer) -> None:
        self._evidence, self._comparer = evidence, comparer
        # What sources know stands behind the passages.
        from_sources = takewhile(
            lambda item: evidence.places[item.place].passage == KNOWN, reversed(evidence.items)
        )
        known = [item for item in from_sources if self._is_known(item)][::-1]
        self._dates = [item for item in known if item.value.parts]
        self._periods = [
            item
            for item in self._dates
            if "year" in item.value.parts and not _NO_PERIOD & item.value.parts.keys()
        ]
        self._labelled: dict[str, list[tuple[frozenset[str], Item]]] = {}
        for item in [each for each in known if not each.value.parts][:_MOST_KNOWN]:
            for words in _alternatives(evidence.places[item.place].labels):
                self._labelled.setdefault(min(words), []).append((words, item))

    def decide(self, item: Item, siblings: Sequence[Item], *, plain: bool) -> SourceDecision | None:
        """Return what a source says of the thing that a number is of; ``None`` where none surely speaks of the same.

        Args:
            item: the number.
            siblings: the other values of its sentence.
            plain: the sentence says what is, and neither compares nor supposes.
        """
        value = item.value
        if not self._labelled or value.parts or not all(map(self._is_of_period, siblings)):
            return None
        found = [
            known
            for first in item.near & self._labelled.keys()
            for words, known in self._labelled[first]
            if words <= item.near and not self._told_apart(item, known)
        ]
        agreeing = next(
            (
                each
                for each in found
                if lenient(value, each.value) and self._comparer.equal(value, each.value)
            ),
            None,
        )
        if agreeing is not None:
            return SourceDecision(agreeing, agrees=True)
        other = next((each for each in found if comparable(value, each.value)), None)
        if other is None or not plain or value.bound is not Bound.EXACT:
            return None
        return SourceDecision(other, agrees=False)

    def knows(self, items: Iterable[Item]) -> bool:
        """Return whether a source gives any of these values of the evidence."""
        return any(map(self._is_known, items))

    def disagrees(self, rivals: Iterable[Item]) -> bool:
        """Return whether some values stand in passages that speak of no other period than the sources."""
        places = {each.place for each in rivals if not self._is_known(each)}
        items, of_place = self._evidence.items, self._evidence.of_place
        return any(
            all(self._is_of_period(items[number]) for number in of_place.get(place, ())) for place in places
        )

    def other_period(self, value: TypedValue, before: str, siblings: Iterable[Sequence[Item]]) -> Item | None:
        """Return a source's period where a claim that no evidence gives is of another one.

        Args:
            value: the claim.
            before: the text of its sentence before it.
            siblings: for each of the sentence's other values, the evidence's that equal it.
        """
        parts = value.parts
        if not self._periods or not parts or _NO_PERIOD & parts.keys() or _BESIDES.search(before):
            return None
        finest = next((part for part in _PERIOD if part in parts), None)
        if finest is None:
            return None
        of_source = any(self._is_known(each) and not each.value.parts for equal in siblings for each in equal)
        if not of_source and (
            finest == "year" or not any(finest in each.value.parts for each in self._periods)
        ):
            return None
        return next((each for each in self._periods if comparable(value, each.value)), self._periods[0])

    def _is_known(self, item: Item) -> bool:
        place = self._evidence.places[item.place]
        return place.passage == KNOWN and place.confidence > PASSAGE_CONFIDENCE

    def _is_of_period(self, item: Item) -> bool:
        """Return whether a value is no date, or one of those of the sources."""
        if item.value.kind is not ValueKind.DATE:
            return True
        return any(self._comparer.equal(item.value, each.value) for each in self._dates)

    def _told_apart(self, item: Item, known: Item) -> bool:
        """Return whether a claim has a word that the evidence uses, and not of this value: "parking" of "parking revenue"."""
        postings = self._evidence.postings
        return any(word in postings for word in item.near - known.near - GENERAL)


@lru_cache(maxsize=8192)
def _alternatives(labels: tuple[str, ...]) -> list[frozenset[str]]:
    """Return the words of each label; "Rent: amount" is what its row and its column say."""
    found: list[frozenset[str]] = []
    for label in labels:
        about, _, named = label.rpartition(": ")
        row = stems(about) - GENERAL
        for each in named.split("; "):
            words = stems(each)
            words = row | (words - GENERAL) if row else words
            if words:
                found.append(words)
    return found


def stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words that say something."""
    found: set[str] = set()
    for token in tokens(text):
        if token.sort == WORD and token.low not in STOPS:
            found.add(stem(token.low))
        elif token.sort in (HAN, HAN_NUMBER):
            found.update([token.low[at : at + 2] for at in range(len(token.low) - 1)] or [token.low])
    return frozenset(found)
