"""Lay out a window: special tokens, the text around the evidence, and how much fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.core.errors import ModelError
from truthlens.detection.models.inputs.evidence_tokens import LONGEST_UNIT, EvidenceTokens
from truthlens.detection.models.inputs.manifest import InputFormat
from truthlens.detection.models.inputs.prompts import build_prompt
from truthlens.detection.models.inputs.tokens import Ids

_NO_IDS: Ids = np.zeros(0, dtype=np.int64)


def longest_unit(fmt: InputFormat) -> int:
    """Return the most tokens of a unit: it must fit into the room that every window keeps for evidence."""
    return min(LONGEST_UNIT, fmt.max_tokens // 4)


@dataclass(frozen=True, slots=True, eq=False)
class Special:
    """The special tokens before, between and after the two segments."""

    first: Ids
    middle: Ids
    last: Ids

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.first) + len(self.middle) + len(self.last)


def special_ids(tokenizer: Tokenizer) -> Special:
    """Return what the tokenizer's own pair template puts before, between and after two texts."""
    encoding = tokenizer.encode("a", "a")
    mask = np.array(encoding.special_tokens_mask, dtype=bool)
    ids = np.array(encoding.ids, dtype=np.int64)
    plain = np.flatnonzero(~mask)
    if mask.any() and len(plain):
        breaks = np.flatnonzero(np.diff(plain) > 1)
        if len(breaks) == 1:
            left, right = plain[breaks[0]], plain[breaks[0] + 1]
            return Special(ids[: plain[0]], ids[left + 1 : right], ids[plain[-1] + 1 :])
    for opening, closing in (("[CLS]", "[SEP]"), ("<s>", "</s>"), ("<bos>", "<eos>")):
        begin, end = tokenizer.token_to_id(opening), tokenizer.token_to_id(closing)
        if begin is not None and end is not None:
            return Special(np.array([begin]), np.array([end]), np.array([end]))
    raise ModelError(
        "the tokenizer has no separator tokens ([CLS]/[SEP] or the like); a pair cannot be built"
    )


@dataclass(frozen=True, slots=True, eq=False)
class WindowFrame:
    """What surrounds the evidence in segment A. ``whole`` is an exact encoding of all of segment A."""

    head: Ids
    labels: tuple[Ids, ...]
    gap: Ids
    tail: Ids
    whole: Ids | None


def frame_of(
    tokenizer: Tokenizer, fmt: InputFormat, *, query: str, passages: Sequence[str], evidence: EvidenceTokens
) -> WindowFrame:  # fmt: skip
    """Return the frame of ``fmt`` around ``evidence``, which was made of ``passages``."""

    def encode(text: str) -> Ids:
        return np.array(tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    asked = _shorten(tokenizer, query, fmt.max_tokens // 8)
    if fmt.template is None:
        head = np.concatenate([encode(asked), special_ids(tokenizer).middle]) if asked.strip() else _NO_IDS
        return WindowFrame(head, labels=(), gap=_NO_IDS, tail=_NO_IDS, whole=None)
    prompt = build_prompt(fmt.template, query=asked, passages=passages)
    # Pieces and whole may differ where BPE merges across their border, so what fits is encoded in one.
    fits = evidence.total == evidence.kept and evidence.kept < fmt.max_tokens
    return WindowFrame(
        head=encode(prompt.head),
        labels=tuple(encode(label) for label in prompt.labels),
        gap=encode(prompt.gap),
        tail=encode(prompt.tail),
        whole=encode(prompt.text(passages)) if fits else None,
    )


def _shorten(tokenizer: Tokenizer, text: str, most: int) -> str:
    offsets = tokenizer.encode(text[: most * 16], add_special_tokens=False).offsets
    return text[: offsets[most - 1][1]] if len(offsets) > most else text[: most * 16]


class Layout:
    """Sizes and segment A of the windows of one answer.

    ``chunk_with_all`` is the number of answer tokens that fit together with all of the evidence, 0 where that
    is less than a chunk; ``chunk_size`` the most tokens of a chunk; ``unit_extra`` what a unit costs besides
    its own tokens.
    """

    def __init__(
        self, fmt: InputFormat, special: Special, frame: WindowFrame, evidence: EvidenceTokens
    ) -> None:
        self._fmt = fmt
        self.special = special
        self._frame = frame
        self._evidence = evidence
        self._fixed = special.count + len(frame.head) + len(frame.tail)
        # In a prompt template every passage has a label: charged to each of its units, an upper bound.
        longest_label = max((len(label) for label in frame.labels), default=0)
        self.unit_extra = longest_label + len(frame.gap)
        self.chunk_with_all = self._chunk_with_all()
        most = fmt.max_tokens - self._fixed - longest_unit(fmt) - self.unit_extra
        if not self.chunk_with_all and most <= fmt.answer_overlap:
            raise ModelError(
                f"max_tokens {fmt.max_tokens} leaves no room for answer chunks beside the prompt's "
                f"{self._fixed} fixed tokens; raise max_tokens or lower answer_overlap in the manifest"
            )
        self.chunk_size = self.chunk_with_all or min(fmt.answer_tokens, most)

    def _chunk_with_all(self) -> int:
        """Return how many answer tokens fit together with all of the evidence.

        It is 0 where that is less than a chunk.
        """
        if self._evidence.kept < self._evidence.total:
            return 0
        if self._frame.whole is not None:
            used = self.special.count + len(self._frame.whole)
        elif self._frame.labels:
            return 0
        else:
            used = self._fixed + self._evidence.kept
        left = self._fmt.max_tokens - used
        return left if left >= self._fmt.answer_tokens else 0

    def room(self, chunk: int) -> int:
        """Return how many evidence tokens fit next to ``chunk`` answer tokens."""
        return max(self._fmt.max_tokens - self._fixed - chunk, 0)

    def groups(self, chunk: int) -> list[NDArray[np.int64]]:
        """Return all units in document order, cut into groups that fit next to ``chunk`` answer tokens."""
        room = self.room(chunk)
        groups: list[NDArray[np.int64]] = []
        start, used = 0, 0
        for unit, size in enumerate(self._evidence.sizes + self.unit_extra):
            if used and used + size > room:
                groups.append(np.arange(start, unit))
                start, used = unit, 0
            used += int(size)
        return [*groups, np.arange(start, len(self._evidence.units))]

    def segment(self, units: NDArray[np.int64]) -> Ids:
        """Return segment A with evidence ``units``, which ascend."""
        frame, evidence = self._frame, self._evidence
        if frame.whole is not None and len(units) == len(evidence.units):
            return frame.whole
        parts = [frame.head]
        passage = -1
        for unit in units:
            owner = int(evidence.units[unit, 0])
            if frame.labels and owner != passage:
                if passage >= 0:
                    parts.append(frame.gap)
                parts.append(frame.labels[owner])
                passage = owner
            parts.append(evidence.unit_ids(int(unit)))
        if passage >= 0:
            parts.append(frame.gap)
        return np.concatenate([*parts, frame.tail])
