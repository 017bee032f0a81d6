"""Tell who stands on which side of a comparison, an order in time or a verb. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum, auto

from truthlens.detection.detectors.contradictions.alignment import Alignment, Pair
from truthlens.detection.detectors.contradictions.reading import Reading, Token, is_preposition
from truthlens.detection.detectors.contradictions.tables import SYMMETRIC
from truthlens.text.word_forms import word_set
from truthlens.text.words import stem

_IRREGULAR = word_set(
    "sold bought paid gave taught sent lent beat wrote told led drove made built saw hit won lost owes owed took found hired fed"
    " brought caught chose held kept left let lost met overtook replaced taken given written driven chosen beaten seen shown"
)


class Sides(Enum):
    """How the sides of a claim lie to those of its evidence."""

    SAME = auto()
    SWAPPED = auto()
    UNCLEAR = auto()


def _object(reading: Reading, mark: Token) -> set[int]:
    """Return where the words begin that depend on "than", "before" or "after": those behind it, to the end of its part."""
    return {token.start for token in reading.content if token.start > mark.start and token.part == mark.part}


def around_marks(found: Alignment, claim: Reading, evidence: Reading, mine: Token, theirs: Token) -> Sides:
    """Return how the words of either side of two marks lie."""
    own, other = _object(claim, mine), _object(evidence, theirs)
    counts = Counter(pair.mine.key for pair in found.pairs)
    told = [
        (pair.mine.start in own, pair.theirs.start in other)
        for pair in found.pairs
        if not pair.opposite and counts[pair.mine.key] == 1
    ]
    return _lie(told, is_whole=not found.missing)


def _lie(sides: Sequence[tuple[bool, bool]], *, is_whole: bool) -> Sides:
    crossing = {mine for mine, theirs in sides if mine is not theirs}
    straight = {mine for mine, theirs in sides if mine is theirs}
    if len(crossing) == 2:  # words of both sides change places
        return Sides.SWAPPED if True not in straight or False not in straight else Sides.UNCLEAR
    if crossing:
        return Sides.UNCLEAR
    return Sides.SAME if len(straight) == 2 or (True in straight and is_whole) else Sides.UNCLEAR


def is_verb(token: Token) -> bool:
    """Return whether a word is surely a verb by its form."""
    if token.determined or token.entity or {token.key, stem(token.lower)} & SYMMETRIC:
        return False
    lower = token.lower
    return (lower.endswith(("ed", "s")) or lower in _IRREGULAR) and not is_preposition(token.after)


def role_swap(found: Alignment) -> tuple[Pair, Pair, Pair] | None:
    """Return the verb and the two words on its sides that changed places, the verb being in one voice on both sides."""
    for number, verb in enumerate(found.pairs):
        if not is_verb(verb.mine) or not is_verb(verb.theirs) or verb.opposite:
            continue
        if verb.mine.lower != verb.theirs.lower:
            continue
        if verb.mine.passive is not verb.theirs.passive:
            turned = _turned_voice(found, number)
            if turned is not None:
                return turned
            continue
        before = [p for p in found.pairs[:number] if p.theirs.start > verb.theirs.start]
        behind = [p for p in found.pairs[number + 1 :] if p.theirs.start < verb.theirs.start]
        straight = [
            (p.mine.start < verb.mine.start) for p in found.pairs
            if p is not verb and (p.mine.start < verb.mine.start) is (p.theirs.start < verb.theirs.start)
        ]  # fmt: skip
        if not before or not behind or True in straight:
            continue
        left, right = before[-1], behind[0]
        if is_preposition(left.mine.after) or is_preposition(right.theirs.after):
            continue
        if is_preposition(left.theirs.after) is is_preposition(right.mine.after):
            return left, verb, right
    return None


def _turned_voice(found: Alignment, number: int) -> tuple[Pair, Pair, Pair] | None:
    """Return the verb at ``number`` and its sides where only its voice changed: "A paid B", "A was paid by B"."""
    pairs, verb = found.pairs, found.pairs[number]
    if found.missing or not 0 < number < len(pairs) - 1:
        return None
    behind = pairs[number + 1]
    by = [token.after == "by" for token in (behind.mine, behind.theirs)]
    stay = all(
        (pair.mine.start < verb.mine.start) is (pair.theirs.start < verb.theirs.start)
        for pair in pairs
        if pair is not verb
    )
    passive = behind.mine if verb.mine.passive else behind.theirs
    if not stay or sum(by) != 1 or passive.after != "by" or is_preposition(pairs[number - 1].mine.after):
        return None
    active = behind.theirs if verb.mine.passive else behind.mine
    return None if is_preposition(active.after) else (pairs[number - 1], verb, behind)
