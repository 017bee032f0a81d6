"""Decide what a sentence of the evidence says of a claim in nearly the same words: the same, the contrary, or nothing. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from truthlens.detection.detectors.contradictions import scales, sides
from truthlens.detection.detectors.contradictions.alignment import Alignment, Pair, align, are_opposite
from truthlens.detection.detectors.contradictions.reading import Reading, Token
from truthlens.detection.detectors.contradictions.sides import Sides
from truthlens.detection.detectors.contradictions.tables import IMPLIED, Mark

_LEAST_PAIRS = 2
_LONG, _LONGER = 4, 9  # words of a claim of which one, or two, may be said otherwise
_MOST_EXTRA = 6
_ORDERED = frozenset((Mark.THAN, Mark.BEFORE, Mark.AFTER))
_PREFIXES = ("un", "in", "im", "non", "dis", "ir")
_LEAST_DENIED = 7
_NEGATIVE = frozenset((Mark.NOT, Mark.MAY_NOT))


class Kind(StrEnum):
    """What a contradiction lies in."""

    NEGATION = "negation"
    OPPOSITE = "opposite"
    SCALE = "scale"
    COMPARISON = "comparison"
    ORDER = "order"
    ROLE = "role"
    UNIT = "unit"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a sentence says of a claim; ``kind`` is ``None`` where it says the same.

    ``mine`` and ``theirs`` are the words that differ, ``shared`` the share of the claim's words that the sentence has.
    """

    kind: Kind | None
    shared: float
    mine: tuple[tuple[int, int], ...] = ()
    theirs: tuple[tuple[int, int], ...] = ()


def judge(claim: Reading, evidence: Reading) -> Judgement | None:
    """Return what the sentence says of the claim, ``None`` where it cannot be told."""
    found = align(claim, evidence)
    count = len(claim.content)
    allowed = (count >= _LONG) + (count >= _LONGER)
    if len(found.pairs) < _LEAST_PAIRS or len(found.missing) > allowed:
        return None
    if any(token.number or token.entity for token in found.missing):
        return None
    if found.missing and found.missing[0] is claim.content[0] and not found.missing[0].determined:
        return None
    shared = len(found.pairs) / count
    telling = _difference(found, claim, evidence)
    if telling is None:
        same = not found.differing and not any(pair.unit for pair in found.pairs)
        return Judgement(None, shared) if same else None
    kind, mine, theirs = telling
    if _is_doubtful(found, claim, evidence, kind):
        return None
    return Judgement(kind, shared, _ranges(mine), _ranges(theirs))


_Telling = tuple[Kind, list[Token], list[Token]]


def _difference(found: Alignment, claim: Reading, evidence: Reading) -> _Telling | None:
    units = [pair for pair in found.pairs if pair.unit]
    if units:
        return (
            (Kind.UNIT, [units[0].mine], [units[0].theirs])
            if len(units) == 1 and _is_unit(found, units[0])
            else None
        )
    compared = _compared(found, claim, evidence)
    if compared is not None:
        return compared if compared[1] else None
    marks = scales.conflict(found)
    if marks is not None:
        if _has(found.mine, Mark.NOT) or _has(found.theirs, Mark.NOT) or found.differing:
            return None
        if marks[0].mark in scales.BOUNDS and any(
            mark.mark in (Mark.LIMITS, Mark.BEFORE, Mark.AFTER) for mark in evidence.marks
        ):
            return None
        return Kind.SCALE, [marks[0]], [marks[1]]
    if _turned(found.pairs, found.mine, found.theirs):
        mine, theirs = _negations(found.mine), _negations(found.theirs)
        opposite = found.differing
        if len(mine) + len(theirs) + len(opposite) != 1:
            return None
        # "Spain is south of France": what says the contrary of two things that change places may say the same.
        if opposite and (_is_rearranged(found) or any(_changes_voice(pair) for pair in opposite)):
            return None
        kind = Kind.OPPOSITE if opposite else Kind.NEGATION
        own = [*mine, *(pair.mine for pair in opposite)] or _denied(found, theirs[0])
        return kind, own, [*theirs, *(pair.theirs for pair in opposite)]
    if any(mark.mark in _ORDERED for mark in (*found.mine, *evidence.marks)):
        return None
    swap = None if len(found.missing) > 1 or found.differing else sides.role_swap(found)
    if swap is not None:
        return Kind.ROLE, [pair.mine for pair in swap], [pair.theirs for pair in swap]
    return None


def _compared(found: Alignment, claim: Reading, evidence: Reading) -> _Telling | None:
    """Return how two comparisons or orders in time differ: with no words where that is unclear or nothing."""
    nothing: _Telling = (Kind.COMPARISON, [], [])
    for kind, wanted in ((Kind.COMPARISON, (Mark.THAN,)), (Kind.ORDER, (Mark.BEFORE, Mark.AFTER))):
        mine = [mark for mark in found.mine if mark.mark in wanted]
        theirs = [mark for mark in found.theirs if mark.mark in wanted]
        if not mine and not theirs:
            continue
        if len(mine) != 1 or len(theirs) != 1:
            return nothing
        lie = sides.around_marks(found, claim, evidence, mine[0], theirs[0])
        if lie is Sides.UNCLEAR:
            return nothing
        odd = _turned(found.pairs, found.mine, found.theirs)
        odd ^= (lie is Sides.SWAPPED) ^ (mine[0].mark is not theirs[0].mark)
        if not odd:
            return nothing
        if _negations(found.mine) or _negations(found.theirs):
            return nothing
        differing = found.differing
        return kind, [mine[0], *(p.mine for p in differing)], [theirs[0], *(p.theirs for p in differing)]
    return None


def _changes_voice(verb: Pair) -> bool:
    """Return whether the sides of two verbs may have changed places without their words."""
    return verb.converse and (verb.mine.passive or verb.theirs.passive)


def _is_rearranged(found: Alignment) -> bool:
    """Return whether the words of the claim stand in another order than those of the evidence."""
    return any(one.theirs.start > other.theirs.start for one, other in pairwise(found.pairs))


def _is_unit(found: Alignment, unit: Pair) -> bool:
    """Return whether the same number stands right before both units."""
    number = next((pair for pair in reversed(found.pairs) if pair.mine.end <= unit.mine.start), None)
    return (
        number is not None
        and number.mine.number
        and unit.mine.start - number.mine.end <= 1
        and unit.theirs.start - number.theirs.end <= 1
        and unit.theirs.start > number.theirs.start
    )


def _denied(found: Alignment, negation: Token) -> list[Token]:
    """Return the word of the claim that the evidence denies: the first one behind its negation."""
    behind = [pair for pair in found.pairs if pair.theirs.start >= negation.end]
    chosen = min(behind, key=lambda pair: pair.theirs.start, default=found.pairs[-1])
    return [chosen.mine]


def _is_doubtful(found: Alignment, claim: Reading, evidence: Reading, kind: Kind) -> bool:
    """Return whether the difference may be none: conditions, contrasts, two statements in one sentence, details left out."""
    if _limits(found.mine) != _limits(found.theirs):
        return True
    if any(mark.mark is Mark.DOUBT for mark in (*found.mine, *found.theirs)):
        return True
    if any(are_opposite(token, pair.mine) for token in found.extra for pair in found.pairs):
        return True
    if len({pair.mine.part for pair in found.pairs}) > 2:
        return True
    if len(found.extra) > min(_MOST_EXTRA, max(2, len(found.pairs))):
        return True
    if any(_may_deny(token) for token in (*found.missing, *found.extra)):
        return True
    if kind in (Kind.COMPARISON, Kind.ORDER) and found.missing:
        return True
    if kind in (Kind.NEGATION, Kind.OPPOSITE):
        weak = (Mark.LACKS, Mark.NEED_NOT, Mark.NOT_ALL, Mark.NOT_ALWAYS)
        if any(mark.mark in weak for mark in (*found.mine, *found.theirs)):
            return True
        if _bounds(found.mine) != _bounds(found.theirs) or _is_without(found):
            return True
        if not _is_anchored(found):
            return True
        return not _is_plain(found) or _splits(found)
    return False


def _limits(marks: tuple[Token, ...]) -> list[str]:
    return sorted(mark.lower for mark in marks if mark.mark in (Mark.LIMITS, Mark.ONLY))


def _bounds(marks: tuple[Token, ...]) -> list[str]:
    return sorted(mark.mark for mark in marks if mark.mark in scales.BOUNDS)


def _is_without(found: Alignment) -> bool:
    """Return whether "without" stands on one side and no "with" before the same word on the other."""
    for marks, behind in ((found.mine, True), (found.theirs, False)):
        for mark in marks:
            if mark.lower != "without":
                continue
            listed = [
                (pair.mine, pair.theirs) if behind else (pair.theirs, pair.mine) for pair in found.pairs
            ]
            first = min(
                (pair for pair in listed if pair[0].start >= mark.end),
                key=lambda pair: pair[0].start,
                default=None,
            )
            if first is None or first[1].after != "with":
                return True
    return False


def _has(marks: tuple[Token, ...], mark: Mark) -> bool:
    return any(each.mark is mark for each in marks)


def _may_deny(token: Token) -> bool:
    """Return whether a word without a counterpart may be what denies the statement: "cancelled", "unsuitable", "useless"."""
    lower = token.lower
    if token.key in IMPLIED or lower in IMPLIED or lower.endswith("less"):
        return True
    return len(lower) >= _LEAST_DENIED and lower.startswith(_PREFIXES)


def _is_anchored(found: Alignment) -> bool:
    """Return whether the words right behind every negation have counterparts."""
    ends = [mark.end for mark in _negations(found.mine)]
    own = sorted(token.start for token in (*(pair.mine for pair in found.pairs), *found.missing))
    lost = {token.start for token in found.missing}
    for end in ends:
        behind = next((start for start in own if start >= end), None)
        if behind is not None and behind in lost:
            return False
    ends = [mark.end for mark in _negations(found.theirs)]
    other = sorted(token.start for token in (*(pair.theirs for pair in found.pairs), *found.extra))
    left = {token.start for token in found.extra}
    return not any(next((start for start in other if start >= end), None) in left for end in ends)


def _splits(found: Alignment) -> bool:
    """Return whether the claim is pieced together from several parts of the sentence."""
    return len({pair.theirs.part for pair in found.pairs}) > 1 + len({pair.mine.part for pair in found.pairs})


def _ranges(tokens: list[Token]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted({(token.start, token.end) for token in tokens}))


def _negations(marks: tuple[Token, ...]) -> list[Token]:
    """Return the marks that deny."""
    return [mark for mark in marks if mark.mark in _NEGATIVE]


def _turned(pairs: tuple[Pair, ...], mine: tuple[Token, ...], theirs: tuple[Token, ...]) -> bool:
    """Return whether negations and opposites together turn the statement round."""
    return (sum(pair.opposite for pair in pairs) + len(_negations(mine)) + len(_negations(theirs))) % 2 == 1


def _is_plain(found: Alignment) -> bool:
    """Return whether the negation of the evidence is of the whole statement, and not of a detail that the claim leaves out.

    "It is not open on Mondays" denies nothing of "it is open".
    """
    denied = _negations(found.theirs)
    if not denied or _negations(found.mine):
        return True
    at = denied[0].start
    return all(token.start < at for token in found.extra)
