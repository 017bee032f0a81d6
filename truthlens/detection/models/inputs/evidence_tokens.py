"""Tokenise evidence and cut it into units: sentences, or pieces of long ones.

Bounded: beyond ``max_tokens`` nothing is tokenised, and what was left out is counted by an estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.core.cancellation import checkpoint
from truthlens.detection.models.inputs.lexical import EvidenceIndex, index_evidence
from truthlens.detection.models.inputs.tokens import Ids, encode
from truthlens.text.sentences_v1 import sentences_v1
from truthlens.text.words import Word, words

LONGEST_UNIT = 96
_CHARACTERS_PER_TOKEN = 12  # more than any prose has; only bounds how much text one call tokenises
_TYPICAL_CHARACTERS_PER_TOKEN = 4.0


@dataclass(frozen=True, eq=False)  # no slots: the index is kept once it was asked for
class EvidenceTokens:
    """Tokenised evidence.

    ``ids`` per passage, shape (tokens,). ``units`` has shape (units, 3): passage, first token, end token.
    ``words`` per unit. ``total`` counts all tokens, also those left out; ``kept`` those in ``ids``.
    """

    ids: tuple[Ids, ...]
    units: NDArray[np.int64]
    words: tuple[tuple[Word, ...], ...]
    total: int
    kept: int

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Shape (units,): tokens of each unit."""
        sizes: NDArray[np.int64] = self.units[:, 2] - self.units[:, 1]
        return sizes

    def unit_ids(self, unit: int) -> Ids:
        """Return the token ids of one unit."""
        passage, first, end = self.units[unit]
        ids: Ids = self.ids[passage][first:end]
        return ids

    @cached_property
    def index(self) -> EvidenceIndex:
        """The lexical index over the units, made when first asked for."""
        return index_evidence(self.words)


def encode_evidence(
    tokenizer: Tokenizer, passages: Sequence[str], *, max_tokens: int, longest_unit: int = LONGEST_UNIT
) -> EvidenceTokens:
    """Encode at most ``max_tokens`` tokens of ``passages``, cut into units of at most ``longest_unit``."""
    ids: list[Ids] = []
    units: list[NDArray[np.int64]] = []
    unit_words: list[tuple[Word, ...]] = []
    kept = left_out = characters = 0
    for number, passage in enumerate(passages):
        checkpoint()
        room = max_tokens - kept
        text = passage[: room * _CHARACTERS_PER_TOKEN]
        tokens, offsets = encode(tokenizer, text, most=room)
        if len(tokens) > room:
            # What is after the last token was not read.
            text = text[: int(offsets[-1, 1])]
        characters += len(text)
        left_out += _estimate(len(passage) - len(text), tokens=kept + len(tokens), characters=characters)
        if len(tokens) > room:
            left_out += len(tokens) - room
            tokens, offsets = tokens[:room], offsets[:room]
            text = text[: int(offsets[-1, 1]) if room else 0]
        kept += len(tokens)
        ids.append(tokens)
        starts = _unit_starts(text, offsets, longest_unit)
        ends = np.append(starts, len(tokens))[1:]
        units.append(np.stack([np.full_like(starts, number), starts, ends], axis=1))
        unit_words.extend(_words_of(text, offsets[starts, 0] if len(tokens) else starts))
    return EvidenceTokens(
        ids=tuple(ids),
        units=np.concatenate(units) if units else np.zeros((0, 3), dtype=np.int64),
        words=tuple(unit_words),
        total=kept + left_out,
        kept=kept,
    )


def _estimate(missing: int, *, tokens: int, characters: int) -> int:
    if missing <= 0:
        return 0
    rate = characters / tokens if tokens else _TYPICAL_CHARACTERS_PER_TOKEN
    return max(1, round(missing / max(rate, 1.0)))


def _unit_starts(text: str, offsets: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Return the first tokens of the units, ascending; empty where there are no tokens."""
    if not len(offsets):
        return np.zeros(0, dtype=np.int64)
    # A token may begin with the white space before its sentence (byte-level BPE), so its end decides.
    first = np.array([start for start, _ in sentences_v1(text)], dtype=np.int64)
    sentence = np.searchsorted(first, np.maximum(offsets[:, 1] - 1, offsets[:, 0]), side="right")
    starts = np.flatnonzero(np.diff(sentence, prepend=-1) != 0)
    pieces = [
        np.arange(start, end, longest)
        for start, end in zip(starts, np.append(starts[1:], len(offsets)), strict=True)
    ]
    return np.concatenate(pieces).astype(np.int64)


def _words_of(text: str, starts: NDArray[np.int64]) -> list[tuple[Word, ...]]:
    groups: list[list[Word]] = [[] for _ in starts]
    if len(starts):
        listed = words(text)
        places = np.searchsorted(starts, [word.start for word in listed], side="right") - 1
        for word, place in zip(listed, np.maximum(places, 0), strict=True):
            groups[place].append(word)
    return [tuple(group) for group in groups]
