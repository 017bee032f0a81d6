"""Where a claim is certain of what its evidence only says with reserve: "some" and "all", "may" and "will". English. Pure.

Source: hallucination-guidelines, over-extrapolation. By closed classes and the words beside them, made for precision: it
compares a claim with the one sentence that speaks of the same thing, and a hedge that is simply left out is not found.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from truthlens.text.negations import NEGATION_WORDS
from truthlens.text.words import words

_SCALES = (
    # how many
    (
        (
            "some|many|(?<!at )most|several|a few|few|a number of|nearly all|almost all|about half(?: of)?|half of|a majority of|the majority of|part of|parts of"
            "|not all|not every"
        ),
        "every one of|all of|none of|all|every|each|any|everyone|everybody|the whole|entire|no(?! (?:more|less|fewer|later|earlier|longer|one)\\b)",
    ),
    # how surely
    (
        (
            "may|might|could|can|possibly|perhaps|probably|likely to|expected to|appears? to|seems? to|tends? to|is thought to|are thought to"
            "|is believed to|are believed to|suggests? that|plans? to|hopes? to"
        ),
        (
            "will|must|certainly|definitely|surely|undoubtedly|inevitably|is certain to|are certain to|is sure to|is guaranteed to|guarantees?"
            "|always"
        ),
    ),
    # how often
    (
        "often|sometimes|usually|typically|generally|occasionally|normally|mostly|frequently|in most cases|in some cases|now and then",
        "always|never|invariably|without exception|every time|in all cases|in every case",
    ),
    # how well shown
    (
        "suggests?|suggested|indicates?|indicated|hints?|hinted|may show|preliminary|one study|a small study|early results?|inconclusive",
        "proves?|proved|proven|confirms|confirmed|demonstrates?|demonstrated|establishes|established|conclusively",
    ),
    # how binding
    (
        "recommended|recommends?|advised|advises?|encouraged|suggested|optional|should|may|can|ought to|voluntary",
        "must|required|requires?|mandatory|compulsory|obligatory|has to|have to|obliged|forced",
    ),
    # how exactly
    (
        "about|around|approximately|roughly|nearly|almost|up to|as many as|as much as|at most|at least|an estimated|some|or so",
        "exactly|precisely|fully|entirely|completely",
    ),
)
_BEFORE = 60  # characters before a word in which what denies it stands
_NEAR = 4  # words behind and before a hedge in which what it speaks of stands
# What follows a hedge and makes it none, and what makes a permission a duty.
_DENIED = re.compile(r"(?:['’]t\b|(?:\W+\w+){0,2}?\W+(?:not|only|no longer)\b)", re.IGNORECASE)
_BOUND = re.compile(r"\b(?:only|unless|without|if|provided|except|until)\b", re.IGNORECASE)
_NEGATED = re.compile(
    rf"(?:\b(?:{'|'.join(sorted(NEGATION_WORDS))}|hardly|if|whether|unless|where|could|might|may|can|should)|n['’]t)\W+(?:\w+\W+)?\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Overreach:
    """Characters of a claim that are certain, and those of its evidence that are not; ends exclusive."""

    start: int
    end: int
    evidence: tuple[int, int]


def overreach(claim: str, evidence: str) -> Overreach | None:
    """Return the first place where ``claim`` is certain of what ``evidence``, a sentence about the same, hedges.

    Both words must stand beside the same word of content, and neither text may hold the other's kind of word there.
    """
    mine, theirs = _Content(claim), _Content(evidence)
    for hedges, certain in _PATTERNS:
        sure = [
            match
            for match in certain.finditer(claim)
            if not _NEGATED.search(claim[max(0, match.start() - _BEFORE) : match.start()])
        ]
        if not sure or hedges.search(claim):
            continue
        if certain.search(evidence) or _BOUND.search(evidence):
            continue
        unsure = [match for match in hedges.finditer(evidence) if not _DENIED.match(evidence, match.end())]
        beside: dict[str, int] = {}  # by stem, the first hedge that stands beside it
        for place, match in enumerate(unsure):
            for stem in theirs.near(match):
                beside.setdefault(stem, place)
        for match in sure:
            shared = [beside[stem] for stem in mine.near(match) if stem in beside]
            if shared:
                return Overreach(*match.span(), unsure[min(shared)].span())
    return None


class _Content:
    """The words of content of one text, read once however many places are asked for."""

    def __init__(self, text: str) -> None:
        self._words = [word for word in words(text) if not word.stop]
        self._starts = [word.start for word in self._words]
        self._ends = [word.end for word in self._words]

    def near(self, match: re.Match[str]) -> frozenset[str]:
        """Return the stems of the nearest ones around a match."""
        before = bisect_right(self._ends, match.start())
        behind = bisect_left(self._starts, match.end())
        found = (*self._words[max(before - 1, 0) : before], *self._words[behind : behind + _NEAR])
        return frozenset(word.stem for word in found)


_PATTERNS = tuple(
    (re.compile(rf"\b(?:{hedges})\b", re.IGNORECASE), re.compile(rf"\b(?:{certain})\b", re.IGNORECASE))
    for hedges, certain in _SCALES
)
