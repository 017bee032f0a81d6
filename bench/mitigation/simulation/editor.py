"""Edit answers as an honest but imperfect model that is told which parts are unsupported.

Of every sentence that holds a part it was told of, it removes or rewrites it with a given probability, else
leaves it as it is. Rewritten means replaced by the sentence of the evidence nearest to it. Sometimes it also
adds a sentence of its own invention. It never touches what it was not told of.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.detection.explain.evidence_search import EvidenceSentence, EvidenceSentences
from truthlens.detection.models.inputs.assignment import content_keys
from truthlens.text.sentences import sentences

_NAMES = ("Varnholt", "Breckow", "Kestrel", "Falkbach", "Sillery", "Laarhoven")
_FORMS = (
    "According to {name} ({year}), this applies to {share} percent of all cases.",
    "A review by {name} in {year} put the average at {number} per year.",
    "Professor {name} recommends repeating this every {number} days.",
    "This was first described by {name} in {year}.",
)
_NUMBER = re.compile(r"(?<![\w.,])\d{1,4}(?![\w.,]?\d)")
_LIST_MARK = re.compile(r"(?:[-*•]|\d{1,2}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Habits:
    """Probabilities, 0..1.

    ``mends`` (corrects): a sentence it was told of is removed or rewritten; ``rewrites``: rather rewritten
    than removed. ``errs``: an invented sentence comes in with an edit. ``discerns``: a sentence it was
    wrongly told of is recognised as supported and left.
    """

    mends: float = 0.8
    errs: float = 0.1
    rewrites: float = 0.5
    discerns: float = 0.0


class Editor:
    """Edits answers.

    Args:
        habits: how it works.
        dice: what it leaves to chance.
        supported: whether people called a sentence supported.
        invent: called with every sentence that it makes up.
    """

    def __init__(
        self,
        habits: Habits,
        dice: random.Random,
        *,
        supported: Callable[[str], bool],
        invent: Callable[[str], None],
    ) -> None:
        self._habits = habits
        self._dice = dice
        self._supported = supported
        self._invent = invent

    def edit(
        self,
        answer: str,
        told: Sequence[tuple[int, int]],
        passages: Sequence[str],
        *,
        cleared: Sequence[tuple[int, int]] = (),
    ) -> str:
        """Return the corrected answer.

        Args:
            answer: the text to correct.
            told: its parts that were called unsupported.
            passages: the evidence.
            cleared: parts that were called unsupported but that its own checks have found supported.
        """
        habits, dice = self._habits, self._dice
        evidence = EvidenceSentences([Passage(text, Provenance.DOCUMENTS) for text in passages])
        ranges = sentences(answer)
        pieces = [answer[start:end] for start, end in ranges]
        glue = [answer[end:start] for (_, end), (start, _) in pairwise(ranges)] + [""]
        for place, (start, end) in enumerate(ranges):
            if not _touches((start, end), told) or _touches((start, end), cleared):
                continue
            known = self._supported(pieces[place]) and dice.random() < habits.discerns
            if known or dice.random() >= habits.mends:
                continue
            if dice.random() < habits.rewrites:
                pieces[place] = _rewritten(pieces[place], evidence, taken=pieces)
            else:
                pieces[place] = ""
        if not any(pieces):
            pieces[0] = _rewritten(answer[slice(*ranges[0])], evidence, taken=())
        if dice.random() < habits.errs:
            self._add(pieces, evidence)
        return _joined(pieces, glue)

    def _add(self, pieces: list[str], evidence: EvidenceSentences) -> None:
        dice = self._dice
        made = None
        listed = [text for text in map(evidence_text(evidence), evidence.sentences) if _NUMBER.search(text)]
        if listed and dice.random() < 0.5:
            chosen = dice.choice(listed)
            made = _NUMBER.sub(lambda match: str(int(match[0]) + dice.randint(2, 90)), chosen, count=1)
        if made is None:
            made = dice.choice(_FORMS).format(
                name=dice.choice(_NAMES),
                year=dice.randint(1975, 2023),
                share=dice.randint(11, 94),
                number=dice.randint(3, 88),
            )
        self._invent(made)
        place = dice.randrange(len(pieces))
        pieces[place] = f"{pieces[place]} {made}".strip()


def evidence_text(evidence: EvidenceSentences) -> Callable[[EvidenceSentence], str]:
    """Return a function that reads a sentence of ``evidence`` as one line."""
    return lambda found: " ".join(evidence.passages[found.passage].text[found.start : found.end].split())


def _touches(own: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(own[0] < end and start < own[1] for start, end in others)


def _rewritten(sentence: str, evidence: EvidenceSentences, *, taken: Sequence[str]) -> str:
    """Return the nearest sentence of the evidence after ``sentence``'s list mark, or ``""``."""
    match = evidence.nearest(dict.fromkeys(content_keys(sentence), 1.0))
    if match is None:
        return ""
    text = evidence_text(evidence)(match.sentence)
    if any(text in other for other in taken):
        return ""
    mark = _LIST_MARK.match(sentence)
    return (mark[0] if mark else "") + text


def _joined(pieces: Sequence[str], glue: Sequence[str]) -> str:
    """Return what is left, with the wider of the gaps around what was removed."""
    text, gap = "", ""
    for piece, after in zip(pieces, glue, strict=True):
        if piece:
            text += (gap if text else "") + piece
            gap = after
        elif len(after) > len(gap):
            gap = after
    return text
