"""Read sentences that give one value each to several things: "adults pay 12 euros and children 6". Pure.

Words shared by such a list tell nothing, so that alignment by words finds a value of the wrong thing as good as the right
one. Here each value gets the words that stand with it alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from truthlens.detection.numbers.comparison import Comparer, comparable
from truthlens.detection.numbers.places import KNOWN, Index, Item
from truthlens.text.values.cursor import STOPS
from truthlens.text.values.tokens import WORD, tokens
from truthlens.text.words import stem

# What parts two members of a list: one of these between two values, and not more.
_PARTS = re.compile(
    r"\s*[,;]\s*(?:(?:and|but|while|whereas|or|versus)\s+)?|\s+(?:and|but|while|whereas|or|versus|vs\.?)\s+",
    re.IGNORECASE,
)
# A list is short in between; what is longer is prose, in which other words say what a value is of.
_MOST_LABEL_WORDS = 3
_MOST_MEMBERS = 8
_MOST_BETWEEN_CHARS = 120
_OTHER_WORDS = re.compile(
    r"\b(?:respectively|each|both|total|together|than|from|to|between|if|unless|not|except|after|before|until)\b",
    re.IGNORECASE,
)


class Lists:
    """Finds, in the sentences of one body of evidence, what each value of a list is of.

    Args:
        evidence: values and places of the passages.
        comparer: says whether two values are equal.
    """

    def __init__(self, evidence: Index, comparer: Comparer) -> None:
        self._evidence, self._comparer = evidence, comparer
        self._labels: dict[int, Mapping[int, frozenset[str]]] = {}

    def instead(self, item: Item, words: frozenset[str], equals: Sequence[Item]) -> Item | None:
        """Return the value that a list gives for what the claim speaks of, where the claim gives another member's.

        It is ``None`` where any place of the evidence may give the claim's value for it.

        Args:
            item: the value of the answer.
            words: the stems of what the answer says of it.
            equals: the values of the evidence that are equal to it.
        """
        found: dict[int, frozenset[str]] = {}
        others: list[Item] = []
        for equal in equals:
            labels = self.labels(equal.place)
            own = labels.get(equal.number)
            if own is None:
                others.append(equal)
                continue
            if own & words:
                return None
            hits = {
                number: label & words
                for number, label in labels.items()
                if number != equal.number and 2 * len(label & words) >= len(label)
            }
            found |= {number: hit for number, hit in hits.items() if hit}
        if len(found) != 1:
            return None
        ((number, told),) = found.items()
        instead = self._evidence.items[number]
        places = self._evidence.places
        elsewhere = any(
            told & (places[each.place].words | places[each.place].context | each.near) for each in others
        )
        if elsewhere or self._comparer.equal(item.value, instead.value):
            return None
        return instead if comparable(item.value, instead.value) else None

    def labels(self, place: int) -> Mapping[int, frozenset[str]]:
        """Return, by number, the words of each member of the list in a place; none where it holds no list."""
        known = self._labels.get(place)
        if known is None:
            known = self._labels[place] = self._read(place)
        return known

    def _read(self, number: int) -> Mapping[int, frozenset[str]]:
        place = self._evidence.places[number]
        text = self._evidence.text.sources.get(place.passage)
        if text is None or place.passage == KNOWN or place.record >= 0:
            return {}
        items = [self._evidence.items[each] for each in self._evidence.of_place.get(number, ())]
        return members(text, place.start, place.end, [each for each in items if not each.is_label])


def members(text: str, start: int, end: int, items: Sequence[Item]) -> dict[int, frozenset[str]]:
    """Return, by number of the value, the stems that stand with it and with no other value of its sentence.

    It is empty where the sentence is no plain list: fewer than two values of one sort, or more than one mark or conjunction
    between two of them.

    Args:
        text: the whole text.
        start: of the sentence.
        end: of the sentence.
        items: its values, in any order.
    """
    ordered = sorted(items, key=lambda each: each.value.start)
    if not 2 <= len(ordered) <= _MOST_MEMBERS or _OTHER_WORDS.search(text[start:end]):
        return {}
    first = ordered[0].value
    if any(each.value.kind is not first.kind or not comparable(first, each.value) for each in ordered[1:]):
        return {}
    cuts = [start]
    for left, right in pairwise(ordered):
        between = text[left.value.end : right.value.start]
        parts = list(_PARTS.finditer(between)) if len(between) <= _MOST_BETWEEN_CHARS else []
        if len(parts) != 1:
            return {}
        cuts.append(left.value.end + parts[0].start())
    cuts.append(end)
    before = [_stems(text[low : each.value.start]) for low, each in zip(cuts, ordered, strict=False)]
    after = [_stems(text[each.value.end : high]) for each, high in zip(ordered, cuts[1:], strict=True)]
    return _labelled(ordered, before, after)


def _labelled(
    items: Sequence[Item], before: Sequence[list[str]], after: Sequence[list[str]]
) -> dict[int, frozenset[str]]:
    """Return the words of each member: those in front of the values, or those behind where nothing stands in front."""
    sides = [[*front, *behind] for front, behind in zip(before, after, strict=True)]
    shared = {word for word in sides[0] for other in sides[1:] if word in other}
    leading = any(word not in shared for front in before[1:] for word in front)
    own = [[word for word in side if word not in shared] for side in (before if leading else after)]
    most = max(len(words) for words in own[1:])
    # What the first member says beside its name holds for all: "adults pay 12 euros and children 6".
    named = [own[0][:most], *own[1:]]
    if any(not words or len(words) > _MOST_LABEL_WORDS for words in named):
        return {}
    taken = [frozenset(words) for words in named]
    if any(left & right for place, left in enumerate(taken) for right in taken[place + 1 :]):
        return {}
    return {item.number: words for item, words in zip(items, taken, strict=True)}


def _stems(text: str) -> list[str]:
    """Return the stems of the words that say something, in order, each once."""
    found = (stem(token.low) for token in tokens(text) if token.sort == WORD and token.low not in STOPS)
    return list(dict.fromkeys(found))
