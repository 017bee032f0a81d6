"""Find where a claim and a sentence of the evidence disagree: values, names, citations, negation, opposites.

Pure.

Compares two sentences about the same subject; it does not decide whether they do. A value that the sentence
does not give is set against the one that it gives in its place: of the same sort, and in the same
surroundings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from truthlens.core.records.explanation import Difference, DifferenceKind
from truthlens.detection.explain.evidence_search import EvidenceSentence, EvidenceSentences, Match
from truthlens.detection.models.inputs.lexical import keys_of
from truthlens.text.negations import HAN_NEGATIONS
from truthlens.text.opposites import OPPOSITES, OPPOSITES_ZH
from truthlens.text.values.mentions import Mention, mentions, same_mention
from truthlens.text.words import HAN, Word

_AROUND = 5  # words on either side that are a value's surroundings
_SCOPE = 3  # words that a negation reaches
_NAMED = (DifferenceKind.NUMBER, DifferenceKind.DATE, DifferenceKind.NAME)
_CLAUSE_END = re.compile(r"[,;:.!?()]")
_NEGATION_ZH = re.compile(rf"[{HAN_NEGATIONS}](?:有|是|会|能|被|曾)?(?P<scope>[{HAN}]{{2}})")


class SentenceComparison:
    """A sentence of the answer and the nearest sentence of the evidence.

    Args:
        text: the answer.
        claim: the words of one of its sentences.
        span: the characters of it that are flagged; only differences that touch them are named.
        evidence: all of it: what occurs elsewhere in it is not invented.
        match: the nearest sentence, or ``None``.
        known: keys that are no invention although the evidence lacks them, such as the query's.
        compared: what a detector of values has set against values of the claim, in the passage of the sentence.
    """

    def __init__(
        self,
        text: str,
        claim: Sequence[Word],
        *,
        span: tuple[int, int],
        evidence: EvidenceSentences,
        match: Match | None,
        known: frozenset[str] = frozenset(),
        compared: Sequence[Difference] = (),
    ) -> None:
        self._text, self._claim, self._span = text, claim, span
        self._evidence, self._match, self._known = evidence, match, known
        self._compared = [each for each in compared if self._flagged(each.start, each.end)]
        self._claim_keys = frozenset(key for word in claim for key in keys_of(word))
        self._theirs: Sequence[Word] = match.sentence.words if match else ()
        self._passage = evidence.passages[match.sentence.passage].text if match else ""
        self._their_keys = evidence.keys(match.number) if match else frozenset()

    def differences(self) -> tuple[Difference, ...]:
        """Return the differences that touch the span, by position.

        Values that occur nowhere have no ``evidence``.
        """
        found = [*self._compared, *self._values(), *self._opposites(), *self._negations()]
        if self._match is not None:
            found += self._han(self._match.sentence)
        return tuple(dict.fromkeys(sorted(found, key=lambda each: (each.start, each.end, each.kind))))

    def _values(self) -> Iterator[Difference]:
        mine = mentions(self._text, self._claim, names=self._evidence.names)
        theirs = mentions(self._passage, self._theirs, names=self._evidence.names)
        free = [
            other
            for other in theirs
            if not any(same_mention(other, own) for own in mine) and not self._is_compared(other)
        ]
        for own in mine:
            if any(each.start < own.end and own.start < each.end for each in self._compared):
                continue
            if not self._flagged(own.start, own.end):
                continue
            if any(same_mention(own, other) for other in theirs):
                continue
            other = self._counterpart(own, free)
            if other is not None:
                free.remove(other)
                yield Difference(own.kind, own.start, own.end, (other.start, other.end))
            elif self._is_nowhere(own):
                yield Difference(own.kind, own.start, own.end)

    def _is_compared(self, other: Mention) -> bool:
        places = [each.evidence for each in self._compared if each.evidence is not None]
        return any(start < other.end and other.start < end for start, end in places)

    def _counterpart(self, own: Mention, others: Sequence[Mention]) -> Mention | None:
        candidates = [
            other for other in others if other.kind in _NAMED and same_mention(own, other) is not None
        ]
        if not candidates or self._match is None:
            return None
        around = _around(self._claim, own)
        # What a list of values begins with is said of each: "charges 12 dollars at home and 75 abroad".
        begins = _around(self._theirs, candidates[0], behind=False)
        rated = [
            (len(around & (begins | _around(self._theirs, other))) + 2.0 * _alike(own, other), other)
            for other in candidates
        ]
        worth, best = max(rated, key=lambda each: each[0])
        # A date says what it is, as a unit or a noun does of a number.
        value = own.value
        named = value is not None and bool(value.unit or value.nouns or value.parts)
        least = 1.0 if named else 2.0
        return best if worth >= least or (worth >= 1.0 and self._match.similarity >= 0.5) else None

    def _is_nowhere(self, own: Mention) -> bool:
        inside = [word for word in self._claim if own.start <= word.start < own.end and not word.stop]
        if own.kind is DifferenceKind.CITATION:
            return not all(self._stands(word) for word in inside)
        if own.kind is DifferenceKind.DATE:
            return any(not self._stands(word) for word in inside)
        # A name is invented where its last word is, a number where none of its readings stands anywhere
        word = next(
            (word for word in reversed(inside) if word.numbers or word.entity or word.stem in own.keys), None
        )
        return word is not None and not self._stands(word)

    def _stands(self, word: Word) -> bool:
        return self._evidence.holds(word) or any(key in self._known for key in keys_of(word))

    def _flagged(self, start: int, end: int) -> bool:
        return start < self._span[1] and end > self._span[0]

    def _opposites(self) -> Iterator[Difference]:
        for place, word in enumerate(self._claim):
            against = OPPOSITES.get(word.stem)
            if not against or word.stem in self._their_keys or not self._flagged(word.start, word.end):
                continue
            for number, other in enumerate(self._theirs):
                if (
                    other.stem in against
                    and other.stem not in self._claim_keys
                    and _near(self._claim, place) & _near(self._theirs, number)
                    and _negated(self._claim, place, self._text)
                    == _negated(self._theirs, number, self._passage)
                ):
                    yield Difference(DifferenceKind.OPPOSITE, word.start, word.end, (other.start, other.end))
                    break

    def _negations(self) -> Iterator[Difference]:
        """Yield the content words that one side negates and the other never does."""
        mine = _polarity(self._claim, self._text)
        theirs = _polarity(self._theirs, self._passage)
        for key in mine.keys() & theirs.keys():
            own, other = {place[2] for place in mine[key]}, {place[2] for place in theirs[key]}
            if len(own) > 1 or len(other) > 1 or own == other:
                continue
            (start, end, _), (first, last, _) = mine[key][0], theirs[key][0]
            if self._flagged(start, end):
                yield Difference(DifferenceKind.NEGATION, start, end, (first, last))

    def _han(self, sentence: EvidenceSentence) -> Iterator[Difference]:
        start, end = max(self._span[0], self._claim[0].start), min(self._span[1], self._claim[-1].end)
        claim = self._text[self._claim[0].start : self._claim[-1].end]
        other = self._passage[sentence.start : sentence.end]
        for word, against in OPPOSITES_ZH.items():
            place = self._text.find(word, start, end)
            there = next((each for each in against if each in other and each not in claim), None)
            if place >= 0 and word not in other and there is not None:
                at = sentence.start + other.index(there)
                yield Difference(DifferenceKind.OPPOSITE, place, place + len(word), (at, at + len(there)))
        for match in _NEGATION_ZH.finditer(self._text, start, end):
            at = other.find(match["scope"])
            if at >= 0 and not any(m["scope"] == match["scope"] for m in _NEGATION_ZH.finditer(other)):
                yield Difference(
                    DifferenceKind.NEGATION, *match.span(), (sentence.start + at, sentence.start + at + 2)
                )
        for match in _NEGATION_ZH.finditer(other):
            at = self._text.find(match["scope"], start, end)
            if at >= 0 and not any(m["scope"] == match["scope"] for m in _NEGATION_ZH.finditer(claim)):
                there_start, there_end = match.span()
                yield Difference(
                    DifferenceKind.NEGATION,
                    at,
                    at + 2,
                    (sentence.start + there_start, sentence.start + there_end),
                )


def _alike(one: Mention, other: Mention) -> bool:
    """Return whether they count the same things, or are dates that share a part."""
    if one.value is None or other.value is None:
        return False
    mine, theirs = one.value, other.value
    same_unit = mine.unit == theirs.unit and bool(mine.unit or set(mine.nouns) & set(theirs.nouns))
    return same_unit or bool(mine.parts.items() & theirs.parts.items())


def _around(listed: Sequence[Word], mention: Mention, *, behind: bool = True) -> set[str]:
    """Return the stems of the content words around a value; with ``behind`` false, of those before it."""
    inside = [place for place, word in enumerate(listed) if mention.start <= word.start < mention.end]
    if not inside:
        return set()
    low, high = max(0, inside[0] - _AROUND), inside[-1] + 1 + (_AROUND if behind else 0)
    return {
        word.stem
        for place, word in enumerate(listed[low:high], start=low)
        if not word.stop and not inside[0] <= place <= inside[-1]
    }


def _near(listed: Sequence[Word], place: int) -> set[str]:
    low, high = max(0, place - _AROUND), place + 1 + _AROUND
    return {word.stem for word in listed[low:high] if not word.stop}


def _negated(listed: Sequence[Word], place: int, text: str) -> bool:
    """Return whether a negation precedes within ``_SCOPE`` words, in the same clause."""
    for word in reversed(listed[max(0, place - _SCOPE) : place]):
        if _CLAUSE_END.search(text, word.end, listed[place].start):
            return False
        if word.negation:
            return True
    return False


def _polarity(listed: Sequence[Word], text: str) -> dict[str, list[tuple[int, int, bool]]]:
    """Return, per stem of content, its places (start, end, negated); a negated one starts at its negation.

    A negation counts for the first content word behind it alone: "not open on Sundays" negates "open".
    """
    places: dict[str, list[tuple[int, int, bool]]] = {}
    pending: Word | None = None
    reach = 0
    for word in listed:
        if pending is not None and (reach == 0 or _CLAUSE_END.search(text, pending.end, word.start)):
            pending = None
        if word.negation:
            pending, reach = word, _SCOPE
            continue
        reach -= pending is not None
        if word.stop or word.numbers:
            continue
        start = pending.start if pending is not None else word.start
        places.setdefault(word.stem, []).append((start, word.end, pending is not None))
        pending = None
    return places
