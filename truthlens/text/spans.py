"""Ranges of characters of a text: trimmed, merged, compared. A range is (start, end), its end exclusive."""

from __future__ import annotations

from collections.abc import Iterable


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the range without the white space at its ends; an empty one where there is nothing else."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def touching(ranges: Iterable[tuple[int, int]], others: Iterable[tuple[int, int]]) -> list[bool]:
    """Return for each of ``ranges``, in order and not empty, whether it shares a character with one of ``others``.

    An empty range of ``others`` touches what it lies within.
    """
    merged = merge_ranges(others)
    place = 0
    found: list[bool] = []
    for start, end in ranges:
        while place < len(merged) and merged[place][1] <= start:
            place += 1
        found.append(place < len(merged) and merged[place][0] < end)
    return found


def merge_ranges(ranges: Iterable[tuple[int, int]], *, gap: int = 0) -> list[tuple[int, int]]:
    """Return the union of character ranges, sorted; ranges at most ``gap`` characters apart become one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1] + gap:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
