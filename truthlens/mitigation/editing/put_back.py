"""Put claims of an answer back in their own words where a correction worded them anew without being asked to.

A claim is put back only where it is certain what stands for it now: claims that were split, merged or moved are left as the
correction has them. Whether the result is better is for the verdict on it to say. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from truthlens.core.records.verdict import Verdict
from truthlens.mitigation.doubts import doubts_shown, is_supported
from truthlens.mitigation.editing.smoothing import is_finished
from truthlens.mitigation.editing.splice import Edit, exchanged
from truthlens.text.claims.claims import Claim, scored_claims
from truthlens.text.spans import touching
from truthlens.text.word_forms import content_words

_ALIKE = 0.5
"""Share of their words that a claim and its new wording have in common, at least (Dice's coefficient)."""

_CLEARLY = 0.15
"""By how much more alike the two are than either is to any other claim."""

# Words set against words. A text of which more is new is another text, not a correction of this one.
_MOST_COMPARED = 1_000_000


_FENCES = ("```", "~~~")


@dataclass(frozen=True, slots=True)
class PutBack:
    """A correction with claims put back; ``complete`` where it has every supported one of the text before, word for word."""

    text: str
    complete: bool


def put_back(before: str, verdict: Verdict, after: str, *, asked: Iterable[tuple[int, int]] = ()) -> PutBack:
    """Return ``after`` with the supported and proved claims of ``before`` in the words that they had.

    Args:
        before: the text that was to be corrected.
        verdict: on ``before``. What it holds against the text was to be changed.
        after: the correction.
        asked: what else was to be changed, as characters (start, end) of ``before``.
    """
    old = _units(before)
    kept = _kept(before, old, verdict, asked)
    if not any(kept):
        return PutBack(after, True)
    new = _units(after)
    pairs = _verbatim(old, new)
    wanted = [place for place, is_kept in enumerate(kept) if is_kept and place not in pairs]
    if not wanted:
        return PutBack(after, True)
    alignment = _Alignment(old, new, pairs)
    edits = [
        Edit(*new[partner].place, old[place].claim.text)
        for place in wanted
        if (partner := alignment.certain(place)) is not None
    ]
    return PutBack(exchanged(after, edits), len(edits) == len(wanted))


@dataclass(frozen=True, slots=True)
class _Unit:
    """A claim where it stands.

    ``clause`` is its number in its sentence, and how many that has; ``opens`` and ``closes`` say whether nothing but signs stands
    before and behind it in its line, or, in JSON, in its leaf. ``words`` are counted.
    """

    claim: Claim
    clause: tuple[int, int]
    opens: bool
    closes: bool
    words: Counter[str]

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands."""
        return self.claim.start, self.claim.end


def _units(text: str) -> list[_Unit]:
    found = scored_claims(text)
    in_sentence = Counter(each.sentence for each in found if each.sentence is not None)
    units: list[_Unit] = []
    number = 0
    for place, claim in enumerate(found):
        before = found[place - 1] if place else None
        behind = found[place + 1] if place + 1 < len(found) else None
        number = number + 1 if before is not None and before.sentence == claim.sentence else 0
        clause = (number, in_sentence[claim.sentence]) if claim.sentence is not None else (0, 1)
        if claim.path:
            opens = before is None or before.path != claim.path
            closes = behind is None or behind.path != claim.path
        else:
            opens = before is None or "\n" in text[before.end : claim.start]
            closes = behind is None or "\n" in text[claim.end : behind.start]
        units.append(_Unit(claim, clause, opens, closes, Counter(content_words(claim.text))))
    return units


def _kept(
    text: str, units: Sequence[_Unit], verdict: Verdict, asked: Iterable[tuple[int, int]]
) -> list[bool]:
    """Return for each claim whether it is to stay: it was judged, and all of it is supported. Citation marks cut otherwise."""
    places = [unit.place for unit in units]
    known = touching(places, ((each.start, each.end) for each in verdict.claims if is_supported(each)))
    others = [(each.start, each.end) for each in verdict.claims if not is_supported(each)]
    others += [(each.start, each.end) for each in doubts_shown(text, verdict)]
    changed = touching(places, [*others, *asked])
    return [is_known and not is_changed for is_known, is_changed in zip(known, changed, strict=True)]


def _verbatim(old: Sequence[_Unit], new: Sequence[_Unit]) -> dict[int, int]:
    """Return where the claims of ``old`` stand in ``new`` word for word; equal ones in their order.

    One in JSON stands at its path, or, as an element of a list, at any.
    """
    pairs: dict[int, int] = {}
    for key in (_by_path, _by_list):
        places: defaultdict[tuple[str, str] | None, list[int]] = defaultdict(list)
        taken = set(pairs.values())
        for place in reversed(range(len(new))):
            if place not in taken:
                places[key(new[place])].append(place)
        for place, unit in enumerate(old):
            wanted = key(unit)
            if place not in pairs and wanted is not None and (found := places[wanted]):
                pairs[place] = found.pop()
    return pairs


def _by_path(unit: _Unit) -> tuple[str, str] | None:
    return unit.claim.path, unit.claim.text


def _by_list(unit: _Unit) -> tuple[str, str] | None:
    around = _list_around(unit.claim.path)
    return None if around is None else (around, unit.claim.text)


def _list_around(path: str) -> str | None:
    """Return the JSON Pointer of the outermost list around ``path``, ``None`` where there is none."""
    parts = path.split("/")
    first = next((number for number, part in enumerate(parts) if part.isdecimal()), None)
    return None if first is None else "/".join(parts[:first])


class _Alignment:
    """Which claim of a text stands for which of another: the same words, else the one that is clearly most alike."""

    def __init__(self, old: Sequence[_Unit], new: Sequence[_Unit], verbatim: Mapping[int, int]) -> None:
        self._old, self._new = old, new
        self._pairs = dict(verbatim)
        taken = set(verbatim.values())
        mine = [place for place in range(len(old)) if place not in verbatim]
        theirs = [place for place in range(len(new)) if place not in taken]
        self._unsettled = _unsettled_lists(old, new, verbatim)
        words = sum(len(old[place].words) for place in mine), sum(len(new[place].words) for place in theirs)
        if words[0] * len(theirs) + words[1] * len(mine) <= _MOST_COMPARED:
            self._pairs |= self._alike(mine, theirs)
        self._partners = sorted(self._pairs.values())
        self._aligned = sorted(self._pairs)
        # What one claim lost and another has now was moved: neither stands for one claim alone.
        rewordings = {partner: place for place, partner in self._pairs.items()}
        self._lost = Counter(word for place in mine for word in self._lost_of(place))
        self._gained = Counter(
            word for place in theirs for word in self._beyond(new[place], old, rewordings.get(place))
        )

    def certain(self, place: int) -> int | None:
        """Return the claim of the new text in whose place claim ``place`` of the old one may stand, ``None`` where that is not certain."""
        partner = self._pairs.get(place)
        if partner is None:
            return None
        one, other = self._old[place], self._new[partner]
        if not _fit(one, other) or _list_around(one.claim.path) in self._unsettled:
            return None
        if self._is_leaf(place, partner):
            return partner
        gained = self._beyond(other, self._old, place)
        if any(self._gained[word] for word in self._lost_of(place)) or any(self._lost[w] for w in gained):
            return None
        return partner if one.claim.row or self._in_step(place, partner) else None

    def _in_step(self, place: int, partner: int) -> bool:
        """Return whether what stands before both is the same claim, or as much: a claim may lean on the one before it."""
        if self._old[place].claim.path and self._old[place].opens:
            return True
        before = bisect_left(self._aligned, place)
        near = bisect_left(self._partners, partner)
        last = self._aligned[before - 1] if before else -1
        their_last = self._partners[near - 1] if near else -1
        same = their_last == (self._pairs[last] if last >= 0 else -1)
        return same and place - last == partner - their_last

    def _alike(self, mine: Sequence[int], theirs: Sequence[int]) -> dict[int, int]:
        """Return the claims that are clearly more alike than either is to any other."""
        shares: dict[tuple[int, int], float] = {}
        # By claim the two greatest shares that it is part of, the greatest last.
        best: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
        for place in mine:
            for partner in theirs:
                if self._old[place].claim.path == self._new[partner].claim.path:
                    share = _share(self._old[place].words, self._new[partner].words)
                    shares[place, partner] = share
                    for side in (("old", place), ("new", partner)):
                        best[side] = sorted([*best[side], share])[-2:]
        pairs: dict[int, int] = {}
        for (place, partner), share in shares.items():
            sides = best["old", place], best["new", partner]
            # The key says which claim it is; an element of a list has none.
            is_named = self._is_leaf(place, partner) and max(map(len, sides)) == 1
            rival = max((each[-2] for each in sides if len(each) > 1), default=0.0)
            is_clear = (
                share >= _ALIKE and share >= max(side[-1] for side in sides) and share >= rival + _CLEARLY
            )
            if is_clear or (is_named and _list_around(self._old[place].claim.path) is None):
                pairs[place] = partner
        return pairs

    def _is_leaf(self, place: int, partner: int) -> bool:
        """Return whether both claims are a whole leaf of JSON."""
        units = self._old[place], self._new[partner]
        return all(bool(unit.claim.path) and unit.opens and unit.closes for unit in units)

    def _lost_of(self, place: int) -> set[str]:
        return self._beyond(self._old[place], self._new, self._pairs.get(place))

    @staticmethod
    def _beyond(unit: _Unit, others: Sequence[_Unit], partner: int | None) -> set[str]:
        """Return the words of a claim that its partner lacks; all, where it has none."""
        return set(unit.words) - (set() if partner is None else set(others[partner].words))


def _unsettled_lists(old: Sequence[_Unit], new: Sequence[_Unit], verbatim: Mapping[int, int]) -> set[str]:
    """Return the lists in JSON that have other elements now, or in another order: nothing says which stands for which."""
    mine, theirs = (
        {(_list_around(unit.claim.path), unit.claim.path) for unit in units} for units in (old, new)
    )
    changed = {around for around, _ in mine ^ theirs}
    changed |= {
        _list_around(old[place].claim.path)
        for place, partner in verbatim.items()
        if old[place].claim.path != new[partner].claim.path
    }
    return {around for around in changed if around is not None}


def _share(one: Counter[str], other: Counter[str]) -> float:
    return 2 * (one & other).total() / max(one.total() + other.total(), 1)


def _fit(one: _Unit, other: _Unit) -> bool:
    """Return whether ``one`` can stand in the place of ``other`` and read as it did: as a whole sentence, clause, item, row or leaf."""
    mine, theirs = one.claim, other.claim
    if (mine.path, mine.row, mine.factual, one.clause) != (
        theirs.path,
        theirs.row,
        theirs.factual,
        other.clause,
    ):
        return False
    if mine.row:
        return mine.text.count("|") == theirs.text.count("|")
    if mine.path:
        return (one.opens, one.closes) == (other.opens, other.closes)
    if mine.text.startswith(_FENCES) != theirs.text.startswith(_FENCES):
        return False
    return (other.opens or not one.opens) and (other.closes or not one.closes or is_finished(mine.text))
