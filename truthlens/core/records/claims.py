"""The frozen records of claims: what a detector finds of one, and what all of them together make of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self


class ClaimOutcome(StrEnum):
    """What is known of a claim. ``unjudged`` says that no detector could tell, and is never shown as clean."""

    PROVED = "proved"
    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_STATED = "not-stated"
    UNJUDGED = "unjudged"


@dataclass(frozen=True, slots=True)
class InAnswer:
    """Something of characters ``start`` (inclusive) to ``end`` (exclusive) of an answer."""

    start: int
    end: int

    def moved(self, start: Callable[[int], int], end: Callable[[int], int]) -> Self:
        """Return the same in a text in which its characters stand elsewhere.

        ``start`` and ``end`` map where something starts and where it ends.
        """
        return replace(self, start=start(self.start), end=end(self.end))

    def shifted(self, by: int) -> Self:
        """Return the same in a text that has ``by`` more characters before it."""
        return self.moved(lambda place: place + by, lambda place: place + by)


@dataclass(frozen=True, slots=True)
class Finding(InAnswer):
    """What one detector finds of characters ``start`` (inclusive) to ``end`` (exclusive) of an answer, as a whole claim.

    ``risk`` (0..1) is the probability, at even odds and by this detector alone, that they are unsupported. ``outcome`` is
    ``None`` where the detector says no more than its suspicion. ``passage`` is the index of the exchange's passage that decides,
    ``sentence`` the characters of it that do, ``None`` where there is none. ``source`` names a database that proved a value.
    ``apart`` is the risk of what is said beside the values, where the detector can tell: what counts once the values are verified.
    ``read`` is the share of the evidence (0..1) that was read with the claim, where the detector selects sentences; 0 where it does not.
    """

    risk: float
    outcome: ClaimOutcome | None = None
    passage: int | None = None
    sentence: tuple[int, int] | None = None
    source: str = ""
    apart: float | None = None
    read: float = 0.0


@dataclass(frozen=True, slots=True)
class NearestSentence:
    """The sentence that shares most of a claim's words: characters ``start`` to ``end`` of a passage.

    It is where to look, and proves nothing. ``similarity`` is the share of the claim's weight in words that
    it holds, 0..1.
    """

    passage: int
    start: int
    end: int
    similarity: float


@dataclass(frozen=True, slots=True)
class JudgedClaim(InAnswer):
    """One claim of an answer, characters ``start`` to ``end``, with what all detectors together make of it.

    ``risk`` (0..1, at even odds) is the probability that it is unsupported, ``None`` exactly where ``outcome`` is ``unjudged``.
    ``detector`` is the one that decided, ``""`` where none did; ``passage``, ``sentence`` and ``source`` are those of its
    finding. ``path`` is the JSON Pointer of a claim in JSON; ``context`` are the characters of the answer without which it is not
    understood: the lead-in of a list item, the head of a table, the key around a leaf. ``reason`` says what a database gives, where one
    decided. ``nearest`` is there where details are asked for and the finding names no sentence; ``None`` also
    where no sentence shares a word of content with the claim.
    """

    outcome: ClaimOutcome
    risk: float | None
    detector: str = ""
    passage: int | None = None
    sentence: tuple[int, int] | None = None
    source: str = ""
    path: str = ""
    context: tuple[int, int] | None = None
    reason: str = ""
    nearest: NearestSentence | None = None

    def moved(self, start: Callable[[int], int], end: Callable[[int], int]) -> JudgedClaim:
        """Return the claim in a text in which its characters stand elsewhere; ``start`` and ``end`` map starts and ends."""
        context = None if self.context is None else (start(self.context[0]), end(self.context[1]))
        return replace(self, start=start(self.start), end=end(self.end), context=context)
