"""Parse what the critics and the proposer write in a debate.

Reading is tolerant of the dress (code fences, prose around the list, an object around it, numbers as strings)
and strict about the content: an entry that names nothing that was asked about is dropped. Whether a quote is
true is not looked at here.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

_MOST_ENTRIES = 20  # of one turn
_MOST_TEXT_CHARS = 600  # of one argument; it goes into the prompts of the other side
_MOST_TRIES = 64  # brackets that are tried as the beginning of the list


class AttackKind(StrEnum):
    """What an attack says of a claim: the evidence says otherwise, or it does not say it."""

    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack on the claim number ``claim``; ``quote`` is ``""`` where there is none."""

    claim: int
    kind: AttackKind
    quote: str = ""
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Defence:
    """The answer to the attack number ``attack``."""

    attack: int
    concede: bool
    quote: str = ""


def attacks(text: str, *, claims: Collection[int]) -> list[Attack] | None:
    """Parse a critic's attacks on the numbered ``claims``; ``None`` where the turn cannot be read.

    A turn that holds entries of which none can be read is no turn either; one that says that nothing is wrong
    is an empty list.
    """
    entries = read_list(text)
    if entries is None:
        return None
    found: list[Attack] = []
    for entry in entries:
        claim = _number(entry.get("claim"))
        kind = str(entry.get("kind", "")).strip().casefold()
        if claim in claims and kind in set(AttackKind):
            found.append(
                Attack(cast("int", claim), AttackKind(kind), _text(entry, "quote"), _text(entry, "argument"))
            )
    return found if found or not entries else None


def defences(text: str, *, attacks: Collection[int]) -> list[Defence] | None:
    """Parse a proposer's answers to the numbered ``attacks``; ``None`` where the turn cannot be read.

    What is not said clearly to be conceded is defended, and stands or falls by its quote.
    """
    entries = read_list(text)
    if entries is None:
        return None
    found = {
        cast("int", number): Defence(
            cast("int", number), _is_true(entry.get("concede")), _text(entry, "quote")
        )
        for entry in entries
        if (number := _number(entry.get("attack"))) in attacks
    }
    return list(found.values()) if found or not entries else None


def read_list(text: str) -> list[Mapping[str, object]] | None:
    """Return the first JSON list of objects in ``text`` (at most 20 of them), or ``None`` if it holds none.

    An object that holds such a list, or that is the one entry of it, counts too. ``[]`` counts only where no
    list with entries follows.
    """
    empty = False
    for value in _values(text):
        if value == []:
            empty = True
        elif entries := _entries(value):
            return entries[:_MOST_ENTRIES]
        elif isinstance(value, dict) and [] in value.values():
            empty = True
    return [] if empty else None


def _values(text: str) -> Iterator[object]:
    """Yield the JSON lists and objects in ``text``, outermost ones, in order."""
    decoder = json.JSONDecoder()
    place = 0
    for _ in range(_MOST_TRIES):
        starts = [start for bracket in "[{" if (start := text.find(bracket, place)) >= 0]
        if not starts:
            return
        place = min(starts)
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
        else:
            yield value


def _entries(value: object) -> list[Mapping[str, object]]:
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return value
    if isinstance(value, dict):
        if "claim" in value or "attack" in value:
            return [value]
        return next(
            (entries for each in value.values() if isinstance(each, list) and (entries := _entries(each))), []
        )
    return []


def _number(value: object) -> int | None:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 9:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_true(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.strip().casefold() in {"true", "yes"})


def _text(entry: Mapping[str, object], name: str) -> str:
    value = entry.get(name)
    return value.strip()[:_MOST_TEXT_CHARS] if isinstance(value, str) else ""
