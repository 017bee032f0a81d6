"""Turn labelled answers into labelled claims, in sets whose members are learnt against each other."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from truthlens.lab.data.dataset import Example
from truthlens.lab.data.twins import PLAIN_SOURCE
from truthlens.lab.data.twins import SOURCE as TWINS
from truthlens.text.claims.claims import claims
from truthlens.text.words import words

SUPPORTED, CONTRADICTED, NOT_STATED, UNSUPPORTED = 0, 1, 2, 3
"""Labels of claims; ``UNSUPPORTED`` where the data do not tell contradicted from not stated."""
_TYPED = {"E": SUPPORTED, "C": CONTRADICTED, "N": NOT_STATED}
_TWINS = frozenset({TWINS, PLAIN_SOURCE})
_LARGEST_SET = 6
_SHORT_EVIDENCE_CHARS = 600
_IDLE = (1, 4)


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim of an answer with the passages to judge it by.

    ``score_key`` names what claims share whose truth differs by the evidence alone or by the claim alone: within one set
    an unsupported claim is to score above a supported one.
    """

    text: str
    passages: tuple[str, ...]
    query: str
    label: int
    example: Example

    @property
    def supported(self) -> bool:
        """Whether the evidence supports the claim."""
        return self.label == SUPPORTED


def labelled_claims(
    example: Example, *, spans: Sequence[tuple[int, int]] | None = None
) -> list[LabelledClaim]:
    """Return the claims of an answer whose label is known.

    Args:
        example: a labelled answer.
        spans: where the answer states what it is judged by, for a supported answer that has an unsupported twin: only the
            claims there are given. ``None``: all claims.

    A wrong answer of several claims without marked spans gives none: nobody said which of them is wrong.
    """
    text = example.response
    listed = [each for each in claims(text) if each.factual]
    if len(listed) <= 1:
        return [_labelled(example, text.strip(), example.label)]
    marked = example.spans if example.label else spans
    found = []
    for claim in listed:
        touched = any(start < claim.end and claim.start < end for start, end in marked or ())
        if example.label and example.spans is None:
            continue
        if spans is not None and not touched:
            continue
        found.append(_labelled(example, claim.text, int(bool(example.label) and touched)))
    return found


def _labelled(example: Example, text: str, wrong: int) -> LabelledClaim:
    label = SUPPORTED
    if wrong:
        label = _TYPED.get(example.kind.rpartition(":")[2], UNSUPPORTED) or UNSUPPORTED
    return LabelledClaim(text, example.context, example.query, label, example)


class ClaimSets:
    """Draws sets of related claims from the rows of one source."""

    def __init__(self, rows: Iterable[Example]) -> None:
        """Index ``rows`` by what they share."""
        self._by_key: dict[str, list[Example]] = defaultdict(list)
        for row in rows:
            self._by_key[row.pair or row.group].append(row)
        self._keys = sorted(self._by_key)

    def __len__(self) -> int:
        """Return the number of sets that can be drawn apart from each other."""
        return len(self._keys)

    def draw(self, dice: random.Random) -> list[LabelledClaim]:
        """Return up to six claims that share an answer or an evidence, of both labels where there are both."""
        rows = self._by_key[dice.choice(self._keys)]
        seed = dice.choice(rows)
        near = [row for row in rows if row.response == seed.response or row.context == seed.context]
        dice.shuffle(near)
        wrong = [row for row in near if row.label]
        right = [row for row in near if not row.label]
        half = _LARGEST_SET // 2
        chosen = [
            *wrong[: max(half, _LARGEST_SET - len(right))],
            *right[: max(half, _LARGEST_SET - len(wrong))],
        ]
        spans = {row.response: row.spans for row in rows if row.label and row.spans}
        found = []
        for row in chosen:
            listed = labelled_claims(row, spans=spans.get(row.response) if row.source in _TWINS else None)
            found.extend(dice.sample(listed, min(len(listed), 2)))
        return found[: _LARGEST_SET + 2]


class IdleSentences:
    """Sentences that bear on nothing, to be put around short evidence: some hold a word of the claim that the evidence lacks."""

    def __init__(self, rows: Iterable[Example]) -> None:
        """Index the single-sentence passages of ``rows``."""
        self._sentences = sorted(
            {(text, row.group) for row in rows for text in row.context if 30 < len(text) < 260}
        )

    @cached_property
    def _by_word(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for place, (text, _) in enumerate(self._sentences):
            for stem in {word.stem for word in words(text) if not word.stop}:
                found[stem].append(place)
        return found

    def around(self, members: Sequence[LabelledClaim], dice: random.Random) -> list[LabelledClaim]:
        """Return ``members`` with the same idle sentences in the same places of their evidence, if it is short."""
        if not self._sentences or any(
            sum(map(len, each.passages)) > _SHORT_EVIDENCE_CHARS for each in members
        ):
            return list(members)
        held = {word.stem for each in members for text in each.passages for word in words(text)}
        new = sorted({w.stem for each in members for w in words(each.text) if not w.stop} - held)
        groups = {each.example.group for each in members}
        idle: list[str] = []
        for _ in range(dice.randint(*_IDLE)):
            places = self._by_word.get(dice.choice(new), ()) if new and dice.random() < 0.7 else ()
            text, group = self._sentences[
                dice.choice(places) if places else dice.randrange(len(self._sentences))
            ]
            if group not in groups:
                idle.append(text)
        before = dice.randint(0, len(idle))
        return [
            replace(each, passages=(" ".join([*idle[:before], *each.passages, *idle[before:]]),))
            for each in members
        ]
