"""Read lists, tables and records of several things: "adults pay 12 euros and children 6". Pure.

Words shared by such a list tell nothing, so that alignment by words finds a value of the wrong thing as good as the right
one. Here each value gets the words that stand with it alone: of its member of a list, its row, heading and keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, combinations, pairwise

from truthlens.detection.detectors.numbers.places import KNOWN, Index, Item
from truthlens.text.values.comparison import ValueComparer, comparable
from truthlens.text.values.cursor import STOPS
from truthlens.text.values.tokens import WORD, tokens
from truthlens.text.values.typed import TypedValue, ValueKind
from truthlens.text.words import stem

# What parts two members of a list: one of these between two values, and not more.
_PARTS = re.compile(
    r"\s*[,;]\s*(?:(?:and|but|while|whereas|or|versus)\s+)?|\s+(?:and|but|while|whereas|or|versus|vs\.?)\s+",
    re.IGNORECASE,
)
# A list is short in between; what is longer is prose, in which other words say what a value is of.
_MOST_LABEL_WORDS = 3
_MOST_MEMBERS = 8
_MOST_OF_RECORD = 60
_MOST_NEEDED = 4  # words of a name of which half have to be told
_MOST_BETWEEN_CHARS = 120
_OTHER_WORDS = re.compile(
    r"\b(?:respectively|each|both|total|together|than|from|to|between|if|unless|not|except|after|before|until)\b",
    re.IGNORECASE,
)


def could_be(value: TypedValue, item: Item, evidence: Index) -> bool:
    """Return whether a value of the evidence could be the claim's; a bare figure of a record has any unit."""
    if comparable(value, item.value):
        return True
    bare = item.value.kind is ValueKind.COUNT and not item.value.nouns and not item.value.unsure
    in_record = evidence.places[item.place].record >= 0
    return bare and in_record and value.kind in (ValueKind.CURRENCY, ValueKind.MEASURE, ValueKind.RATIO)


class Lists:
    """Finds, in the sentences of one body of evidence, what each value of a list is of.

    Args:
        evidence: values and places of the passages.
        comparer: says whether two values are equal.
    """

    def __init__(self, evidence: Index, comparer: ValueComparer) -> None:
        self._evidence, self._comparer = evidence, comparer
        self._labels: dict[int, Mapping[int, frozenset[str]]] = {}
        self._records: dict[int, Mapping[int, frozenset[str]]] = {}

    def instead(self, item: Item, words: frozenset[str], equals: Sequence[Item]) -> Item | None:
        """Return the value that a list or a table gives for the claim's thing, where the claim gives another's.

        It is ``None`` where any place of the evidence may give the claim's value for it.

        Args:
            item: the value of the answer.
            words: the stems of what the answer says of it.
            equals: the values of the evidence that are equal to it.
        """
        groups = [(equal, self._members(equal)) for equal in equals]
        instead = self._best_told(words, groups)
        if instead is None or self._names_other_cell(instead, words):
            return None
        if self._comparer.equal(item.value, instead.value) or not self._could_be(item.value, instead):
            return None
        return None if any(self._may_be(instead, words, *group) for group in groups) else instead

    def _best_told(
        self, words: frozenset[str], groups: Sequence[tuple[Item, Mapping[int, frozenset[str]]]]
    ) -> Item | None:
        """Return the value that the words name best, ``None`` where they name several that differ."""
        told = {
            number: len(label & words)
            for equal, labels in groups
            if equal.number in labels
            for number, label in labels.items()
            if _is_told(label, labels[equal.number], words)
        }
        most = max(told.values(), default=0)
        best = [self._evidence.items[number] for number, shared in told.items() if shared == most]
        same = all(self._comparer.equal(each.value, best[0].value) for each in best)
        return best[0] if best and same else None

    def _may_be(
        self, instead: Item, words: frozenset[str], equal: Item, labels: Mapping[int, frozenset[str]]
    ) -> bool:
        """Return whether a place that has the claim's value may give it for what the words name."""
        label = labels.get(instead.number)
        if label is not None and equal.number in labels:
            return not _is_told(label, labels[equal.number], words)
        place = self._evidence.places[equal.place]
        about = self._members(instead).get(instead.number, frozenset()) & words
        return bool(about & (place.words | place.context | equal.near))

    def _could_be(self, value: TypedValue, instead: Item) -> bool:
        bare = value.kind is ValueKind.COUNT and not value.nouns and not value.unsure
        return (bare and not instead.value.parts) or could_be(value, instead, self._evidence)

    def _names_other_cell(self, item: Item, words: frozenset[str]) -> bool:
        """Return whether words name another cell of a value's row better than its own."""
        evidence = self._evidence
        place = evidence.places[item.place]
        if place.record < 0:
            return False
        cells = map(evidence.items.__getitem__, evidence.of_record.get(place.record, ())[:_MOST_OF_RECORD])
        shared = len(place.words & words)
        return any(len(evidence.places[each.place].words & words) > shared for each in cells)

    def _members(self, item: Item) -> Mapping[int, frozenset[str]]:
        """Return, by number, the words of each value of the list, column or record of a value."""
        evidence = self._evidence
        place = evidence.places[item.place]
        if place.record < 0:
            return self.labels(item.place)
        if item.is_label or not place.labels:
            return {}
        known = self._records.get(item.number)
        if known is None:
            column = evidence.of_column.get((place.passage, place.labels[0]), ())
            numbers = dict.fromkeys(
                (
                    *evidence.of_record.get(place.record, ())[:_MOST_OF_RECORD],
                    *column[:_MOST_OF_RECORD],
                    item.number,
                )
            )
            known = self._records[item.number] = self._named(
                [
                    each
                    for each in map(evidence.items.__getitem__, numbers)
                    if comparable(item.value, each.value)
                ]
            )
        return known

    def _named(self, items: Sequence[Item]) -> Mapping[int, frozenset[str]]:
        """Return the words of each value's keys and row; of its whole record where two have the same."""
        places = [self._evidence.places[each.place] for each in items]
        own = [place.words for place in places]
        if len(set(own)) < len(own):
            own = [place.words | place.context for place in places]
        return {item.number: words for item, words in zip(items, own, strict=True)}

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


def _is_told(label: frozenset[str], other: frozenset[str], words: frozenset[str]) -> bool:
    """Return whether words name a member by what tells it from another one, and not that one."""
    apart = label - other
    return 2 * len(apart & words) >= max(1, min(len(apart), _MOST_NEEDED)) and not (other - label) & words


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
    shared = set(sides[0]).intersection(chain.from_iterable(sides[1:]))
    leading = not shared.issuperset(chain.from_iterable(before[1:]))
    own = [[word for word in side if word not in shared] for side in (before if leading else after)]
    most = max(len(words) for words in own[1:])
    # What the first member says beside its name holds for all: "adults pay 12 euros and children 6".
    named = [own[0][:most], *own[1:]]
    if any(not words or len(words) > _MOST_LABEL_WORDS for words in named):
        return {}
    taken = [frozenset(words) for words in named]
    if any(left & right for left, right in combinations(taken, 2)):
        return {}
    return {item.number: words for item, words in zip(items, taken, strict=True)}


def _stems(text: str) -> list[str]:
    """Return the stems of the words that say something, in order, each once."""
    found = (stem(token.low) for token in tokens(text) if token.sort == WORD and token.low not in STOPS)
    return list(dict.fromkeys(found))
