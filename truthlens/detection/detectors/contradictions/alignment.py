"""Match the words of a claim with those of a sentence of the evidence, by form, meaning and opposite meaning. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from truthlens.detection.detectors.contradictions.reading import Reading, Token, unit_family
from truthlens.detection.detectors.contradictions.tables import CONVERSES, OPPOSITES, Mark

_PREFIXES = ("non", "un", "in", "im", "ir", "dis", "mis")
_LEAST_STEM = 4


@dataclass(frozen=True, slots=True)
class Pair:
    """A word of the claim and its counterpart; ``opposite`` and ``unit`` say that they differ, and how."""

    mine: Token
    theirs: Token
    opposite: bool = False
    unit: bool = False

    @property
    def converse(self) -> bool:
        """Whether the words say the same once their sides change places."""
        return frozenset((self.mine.key, self.theirs.key)) in CONVERSES


@dataclass(frozen=True, slots=True)
class Alignment:
    """A claim beside a sentence: ``pairs`` in the claim's order, what neither has, and the marks that count on either side."""

    pairs: tuple[Pair, ...]
    missing: tuple[Token, ...]
    extra: tuple[Token, ...]
    mine: tuple[Token, ...]
    theirs: tuple[Token, ...]

    @property
    def differing(self) -> tuple[Pair, ...]:
        """The pairs of opposites."""
        return tuple(pair for pair in self.pairs if pair.opposite)


def align(claim: Reading, evidence: Reading) -> Alignment:
    """Return the words of a claim with their counterparts: same words first, nearest to the one before; then opposites."""
    places: dict[str, list[int]] = {}
    for number, token in enumerate(evidence.content):
        places.setdefault(token.key, []).append(number)
    taken: set[int] = set()
    found: dict[int, Pair] = {}
    last = -1
    for number, token in enumerate(claim.content):
        free = [place for place in places.get(token.key, ()) if place not in taken]
        if free:
            last = min(free, key=lambda place: (abs(place - last - 1), place))
            taken.add(last)
            found[number] = Pair(token, evidence.content[last])
    for number, token in enumerate(claim.content):
        if number in found:
            continue
        for place, other in enumerate(evidence.content):
            pair = None if place in taken else _differing(token, other)
            if pair is not None:
                taken.add(place)
                found[number] = pair
                break
    pairs = tuple(found[number] for number in sorted(found))
    # A part without a word of content, as in "fee: none", says something of what stands beside it.
    parts = {pair.theirs.part for pair in pairs}
    full = {token.part for token in evidence.content}
    missing = tuple(token for number, token in enumerate(claim.content) if number not in found)
    extra = tuple(
        token for number, token in enumerate(evidence.content) if number not in taken and token.part in parts
    )
    return Alignment(
        pairs,
        missing,
        extra,
        claim.marks,
        tuple(
            mark
            for mark in evidence.marks
            if mark.part in parts or (mark.mark is Mark.LACKS and mark.part not in full)
        ),
    )


def _differing(token: Token, other: Token) -> Pair | None:
    """Return the pair of two words of opposite meaning, or of two units of one family."""
    if are_opposite(token, other):
        return Pair(token, other, opposite=True)
    family = unit_family(token)
    if family is not None and family == unit_family(other) and token.key != other.key:
        return Pair(token, other, unit=True)
    return None


def are_opposite(token: Token, other: Token) -> bool:
    """Return whether two words have opposite meanings, by the table or by a prefix that denies."""
    for word in (token.lower, token.key):
        against = OPPOSITES.get(word, ())
        if other.lower in against or other.key in against:
            return True
    return _denies(token.lower, other.lower) or _denies(other.lower, token.lower)


def _denies(word: str, plain: str) -> bool:
    return len(plain) >= _LEAST_STEM and any(word == prefix + plain for prefix in _PREFIXES)
