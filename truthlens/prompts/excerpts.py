"""Shorten the evidence to what is shown where it is longer than a prompt may be.

Cuts are made between sentences and are visible. Nothing is reworded and the order stays; which passages
matter is the caller's to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from truthlens.text.sentences import sentences
from truthlens.text.spans import touching

OMITTED = "[…]"

# A shorter piece of a passage says too little to be worth its tags.
_LEAST_PIECE_CHARS = 200


def excerpts(
    texts: Sequence[str],
    *,
    near: Sequence[int] = (),
    most_chars: int,
    around: Mapping[int, Sequence[tuple[int, int]]] | None = None,
) -> list[str]:
    """Return each text whole, cut, or ``""`` if left out; at most about ``most_chars`` characters together.

    The space goes to the texts of ``near`` first, in equal shares where they do not all fit, then to the
    others in their order.

    Args:
        texts: passages.
        near: indexes of the texts that matter most.
        most_chars: how many characters may be kept.
        around: by index of a text, characters that are kept first when it is cut.
    """
    if sum(map(len, texts)) <= most_chars:
        return list(texts)
    kept = [""] * len(texts)
    first = [index for index in dict.fromkeys(near) if 0 <= index < len(texts)]
    left = most_chars
    for index, share in _shares([len(texts[index]) for index in first], left, first).items():
        kept[index] = excerpt(texts[index], share, around=(around or {}).get(index, ()))
        left -= len(kept[index])
    known = frozenset(first)
    for index, text in enumerate(texts):
        if index in known:
            continue
        if len(text) <= left or left >= _LEAST_PIECE_CHARS:
            kept[index] = excerpt(text, left, around=(around or {}).get(index, ()))
            left -= len(kept[index])
    return kept


def excerpt(text: str, most_chars: int, *, around: Sequence[tuple[int, int]] = ()) -> str:
    """Return ``text``, or as many of its sentences as fit, with ``[…]`` for each gap.

    Sentences that touch ``around`` come first, then their neighbours, outwards; without ``around`` the first
    sentences. A single sentence that is too long is cut within.
    """
    if len(text) <= most_chars:
        return text
    ranges = sentences(text)
    wanted = [number for number, is_wanted in enumerate(touching(ranges, around)) if is_wanted]
    chosen: set[int] = set()
    left = most_chars - 2 * len(OMITTED)
    for number in _outwards(wanted or [0], len(ranges)):
        start, end = ranges[number]
        if end - start + 1 > left:
            break
        chosen.add(number)
        left -= end - start + 1
    if not chosen:
        start = ranges[wanted[0]][0] if wanted else 0
        piece = text[start : start + max(most_chars - 2 * len(OMITTED), 0)].strip()
        return f"{OMITTED} {piece} {OMITTED}" if start else f"{piece} {OMITTED}"
    return _joined(text, ranges, sorted(chosen))


def _joined(text: str, ranges: Sequence[tuple[int, int]], chosen: Sequence[int]) -> str:
    pieces: list[str] = []
    before = -1
    for number in chosen:
        if number != before + 1:
            pieces.append(f" {OMITTED} " if pieces else f"{OMITTED} ")
        elif pieces:
            pieces.append(text[ranges[before][1] : ranges[number][0]])
        pieces.append(text[slice(*ranges[number])])
        before = number
    if before != len(ranges) - 1:
        pieces.append(f" {OMITTED}")
    return "".join(pieces)


def _outwards(wanted: Sequence[int], count: int) -> list[int]:
    """Return all sentence numbers, those of ``wanted`` first, then by their distance from one of them."""
    known = frozenset(wanted)
    distance = [0 if number in known else count for number in range(count)]
    for number in range(1, count):
        distance[number] = min(distance[number], distance[number - 1] + 1)
    for number in range(count - 2, -1, -1):
        distance[number] = min(distance[number], distance[number + 1] + 1)
    return sorted(range(count), key=lambda number: (distance[number], number))


def _shares(sizes: Sequence[int], space: int, indexes: Sequence[int]) -> dict[int, int]:
    """Return how many characters each index gets: its need, but at most an equal share of the rest."""
    shares: dict[int, int] = {}
    pairs = sorted(zip(sizes, indexes, strict=True))
    for place, (size, index) in enumerate(pairs):
        share = min(size, space // (len(pairs) - place))
        shares[index] = share
        space -= share
    return shares
