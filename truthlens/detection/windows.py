"""Cut evidence and answer into the encoder's windows, so that no token of the answer is ever dropped.

The answer is tokenised once as a whole and chunked with overlap. Evidence that does not fit beside a chunk is
selected by sentence, or laid out over several windows, as the model's manifest says. Nothing here runs a model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.core.errors import ModelError
from truthlens.core.records import Coverage
from truthlens.core.text import sentences
from truthlens.detection.lexical import keys_of, token_features
from truthlens.detection.manifest import InputFormat
from truthlens.detection.passages import LONGEST_UNIT, Evidence, Ids, encode_evidence
from truthlens.detection.selection import select_units
from truthlens.detection.templates import Prompt, lettucedetect_prompt
from truthlens.detection.words import words

_NO_IDS: Ids = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """One input of the encoder.

    ``input_ids`` and ``type_ids`` have shape (tokens,), int64. ``answer`` is the slice of positions that
    hold answer tokens and ``first`` the index, in the answer's own token sequence, of the first of them.
    ``features`` has shape (tokens, features), float32, or is ``None`` where the model takes none.
    """

    input_ids: NDArray[np.int64]
    type_ids: NDArray[np.int64]
    answer: slice
    first: int
    features: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """All inputs for one answer.

    ``offsets`` has shape (answer tokens, 2): character ranges of the answer's tokens. A token that stands in
    several windows (overlap, or several evidence windows) has several scores; the encoder merges them.
    """

    windows: tuple[Window, ...]
    offsets: NDArray[np.int64]
    coverage: Coverage


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model folder, without the truncation and padding that its file may switch on.

    Raises:
        ModelError: ``tokenizer.json`` is missing or damaged.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"{path} is missing; save the model's fast tokenizer beside its weights")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for a damaged file
        raise ModelError(f"{path} is not a tokenizer file that can be read; download it again") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def build_windows(
    tokenizer: Tokenizer,
    fmt: InputFormat,
    *,
    query: str,
    passages: Sequence[str],
    answer: str,
    max_windows: int = 256,
    max_evidence_tokens: int = 200_000,
) -> Windows:
    """Every window that the encoder must read to score all of ``answer`` against all of ``passages``.

    Args:
        tokenizer: the model's own, without truncation and padding (see ``load_tokenizer``).
        fmt: the model's input format.
        query: what the user asked, or ``""``; its beginning leads the evidence.
        passages: the evidence, in document order.
        answer: the text to score; no token of it is left out while ``max_windows`` suffices.
        max_windows: bound on the work for one answer; ``coverage`` shows where it cut.
        max_evidence_tokens: bound on the evidence that is tokenised; ``coverage`` shows where it cut.

    Raises:
        ModelError: the tokenizer truncates or lacks the special tokens, or the format leaves no room.
    """
    if tokenizer.truncation is not None or tokenizer.padding is not None:
        raise ModelError("the tokenizer truncates or pads; load it with load_tokenizer")
    encoding = tokenizer.encode(answer, add_special_tokens=False)
    offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
    evidence = encode_evidence(
        tokenizer, passages, max_tokens=max_evidence_tokens, longest_unit=_longest_unit(fmt)
    )
    frame = _frame(tokenizer, fmt, query=query, passages=passages, answer=answer, evidence=evidence)
    layout = _Layout(fmt, _special_ids(tokenizer), frame, evidence)
    needs_index = fmt.features is not None or (layout.chunk_with_all == 0 and fmt.evidence == "select")
    index = evidence.index() if needs_index else None
    features = None
    if fmt.features is not None and index is not None:
        features = token_features(index, answer=answer, offsets=offsets, query=query)

    chunks = _chunks(len(offsets), size=layout.chunk_size, overlap=fmt.answer_overlap)
    if layout.chunk_with_all:
        everything = np.arange(len(evidence.units))
        plan = [(chunk, everything) for chunk in chunks[:max_windows]]
    elif index is not None and fmt.evidence == "select":
        claims = _claims(answer)
        plan = [
            (
                chunk,
                select_units(
                    index,
                    sizes=evidence.sizes + layout.unit_extra,
                    claims=_claims_in(claims, offsets, chunk),
                    budget=layout.room(chunk[1] - chunk[0]),
                ),
            )
            for chunk in chunks[:max_windows]
        ]
    else:
        longest = max((end - start for start, end in chunks), default=0)
        groups = layout.groups(longest)[:max_windows]
        kept = chunks[: max_windows // max(len(groups), 1)]
        plan = [(chunk, group) for chunk in kept for group in groups]

    ids = np.array(encoding.ids, dtype=np.int64)
    return Windows(
        windows=tuple(layout.window(ids, chunk, units, features) for chunk, units in plan),
        offsets=offsets,
        coverage=_coverage(len(offsets), evidence, plan, compared=index is not None),
    )


def _longest_unit(fmt: InputFormat) -> int:
    """A unit must fit into the room that every window keeps for evidence."""
    return min(LONGEST_UNIT, fmt.max_tokens // 4)


@dataclass(frozen=True, slots=True, eq=False)
class _Special:
    first: Ids
    middle: Ids
    last: Ids

    @property
    def count(self) -> int:
        return len(self.first) + len(self.middle) + len(self.last)


def _special_ids(tokenizer: Tokenizer) -> _Special:
    """What the tokenizer's own pair template puts before, between and after two texts."""
    encoding = tokenizer.encode("a", "a")
    mask = np.array(encoding.special_tokens_mask, dtype=bool)
    ids = np.array(encoding.ids, dtype=np.int64)
    plain = np.flatnonzero(~mask)
    if mask.any() and len(plain):
        breaks = np.flatnonzero(np.diff(plain) > 1)
        if len(breaks) == 1:
            left, right = plain[breaks[0]], plain[breaks[0] + 1]
            return _Special(ids[: plain[0]], ids[left + 1 : right], ids[plain[-1] + 1 :])
    for opening, closing in (("[CLS]", "[SEP]"), ("<s>", "</s>"), ("<bos>", "<eos>")):
        begin, end = tokenizer.token_to_id(opening), tokenizer.token_to_id(closing)
        if begin is not None and end is not None:
            return _Special(np.array([begin]), np.array([end]), np.array([end]))
    raise ModelError(
        "the tokenizer has no separator tokens ([CLS]/[SEP] or the like); a pair cannot be built"
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """What surrounds the evidence in segment A. ``whole`` is an exact encoding of all of segment A."""

    head: Ids
    labels: tuple[Ids, ...]
    gap: Ids
    tail: Ids
    whole: Ids | None


def _frame(
    tokenizer: Tokenizer, fmt: InputFormat, *, query: str, passages: Sequence[str], answer: str, evidence: Evidence
) -> _Frame:  # fmt: skip
    def encode(text: str) -> Ids:
        return np.array(tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    asked = _shorten(tokenizer, query, fmt.max_tokens // 8)
    if fmt.template is None:
        head = np.concatenate([encode(asked), _special_ids(tokenizer).middle]) if asked.strip() else _NO_IDS
        return _Frame(head, labels=(), gap=_NO_IDS, tail=_NO_IDS, whole=None)
    prompt: Prompt = lettucedetect_prompt(
        query=asked, passages=len(passages), answer_words=len(answer.split())
    )
    # Pieces and whole may differ where BPE merges across their border, so what fits is encoded in one.
    fits = evidence.total == evidence.kept and evidence.kept < fmt.max_tokens
    return _Frame(
        head=encode(prompt.head),
        labels=tuple(encode(label) for label in prompt.labels),
        gap=encode(prompt.gap),
        tail=encode(prompt.tail),
        whole=encode(prompt.text(passages)) if fits else None,
    )


def _shorten(tokenizer: Tokenizer, text: str, most: int) -> str:
    offsets = tokenizer.encode(text[: most * 16], add_special_tokens=False).offsets
    return text[: offsets[most - 1][1]] if len(offsets) > most else text[: most * 16]


class _Layout:
    """Sizes and assembly of the windows of one answer."""

    def __init__(self, fmt: InputFormat, special: _Special, frame: _Frame, evidence: Evidence) -> None:
        self._fmt = fmt
        self._special = special
        self._frame = frame
        self._evidence = evidence
        self._fixed = special.count + len(frame.head) + len(frame.tail)
        # In a prompt template every passage has a label: charged to each of its units, an upper bound.
        longest_label = max((len(label) for label in frame.labels), default=0)
        self.unit_extra = longest_label + len(frame.gap)
        self.chunk_with_all = self._chunk_with_all()
        most = fmt.max_tokens - self._fixed - _longest_unit(fmt) - self.unit_extra
        if not self.chunk_with_all and most <= fmt.answer_overlap:
            raise ModelError(
                f"max_tokens {fmt.max_tokens} leaves no room for answer chunks beside the prompt's "
                f"{self._fixed} fixed tokens; raise max_tokens or lower answer_overlap in the manifest"
            )
        self.chunk_size = self.chunk_with_all or min(fmt.answer_tokens, most)

    def _chunk_with_all(self) -> int:
        """Answer tokens that fit beside all of the evidence; 0 where that is less than a chunk."""
        if self._evidence.kept < self._evidence.total:
            return 0
        if self._frame.whole is not None:
            used = self._special.count + len(self._frame.whole)
        elif self._frame.labels:
            return 0
        else:
            used = self._fixed + self._evidence.kept
        left = self._fmt.max_tokens - used
        return left if left >= self._fmt.answer_tokens else 0

    def room(self, chunk: int) -> int:
        """Evidence tokens that fit beside ``chunk`` answer tokens."""
        return max(self._fmt.max_tokens - self._fixed - chunk, 0)

    def groups(self, chunk: int) -> list[NDArray[np.int64]]:
        """All units in document order, cut into groups that fit beside ``chunk`` answer tokens."""
        room = self.room(chunk)
        groups: list[NDArray[np.int64]] = []
        start, used = 0, 0
        for unit, size in enumerate(self._evidence.sizes + self.unit_extra):
            if used and used + size > room:
                groups.append(np.arange(start, unit))
                start, used = unit, 0
            used += int(size)
        return [*groups, np.arange(start, len(self._evidence.units))]

    def window(
        self, ids: Ids, chunk: tuple[int, int], units: NDArray[np.int64], features: NDArray[np.float32] | None
    ) -> Window:
        """The window of answer tokens ``chunk`` beside evidence ``units``."""
        start, end = chunk
        evidence = self._segment(units)
        head = np.concatenate([self._special.first, evidence, self._special.middle])
        tail = np.concatenate([ids[start:end], self._special.last])
        input_ids = np.concatenate([head, tail])
        type_ids = np.zeros(len(input_ids), dtype=np.int64)
        if self._fmt.segment_ids:
            type_ids[len(head) :] = 1
        place = slice(len(head), len(head) + end - start)
        window_features = None
        if features is not None:
            window_features = np.zeros((len(input_ids), features.shape[1]), dtype=np.float32)
            window_features[place] = features[start:end]
        return Window(input_ids, type_ids, place, start, window_features)

    def _segment(self, units: NDArray[np.int64]) -> Ids:
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


def _chunks(tokens: int, *, size: int, overlap: int) -> list[tuple[int, int]]:
    """Even ranges of at most ``size`` tokens that cover ``tokens``, each sharing ``overlap`` with the next."""
    if tokens <= size:
        return [(0, tokens)] if tokens else []
    count = math.ceil((tokens - overlap) / (size - overlap))
    size = math.ceil((tokens + (count - 1) * overlap) / count)
    starts = [number * (size - overlap) for number in range(count)]
    return [(start, min(start + size, tokens)) for start in starts]


def _claims(answer: str) -> list[tuple[int, int, list[str]]]:
    listed = [word for word in words(answer) if not word.stop]
    claims: list[tuple[int, int, list[str]]] = []
    place = 0
    for start, end in sentences(answer):
        keys: list[str] = []
        while place < len(listed) and listed[place].start < end:
            keys.extend(keys_of(listed[place]))
            place += 1
        claims.append((start, end, keys))
    return claims


def _claims_in(
    claims: list[tuple[int, int, list[str]]], offsets: NDArray[np.int64], chunk: tuple[int, int]
) -> list[list[str]]:
    first, last = int(offsets[chunk[0], 0]), int(offsets[chunk[1] - 1, 1])
    return [keys for start, end, keys in claims if start < last and end > first]


def _coverage(
    tokens: int, evidence: Evidence, plan: list[tuple[tuple[int, int], NDArray[np.int64]]], *, compared: bool
) -> Coverage:
    scored = max((end for (_, end), _ in plan), default=0)
    read = np.zeros(len(evidence.units), dtype=bool)
    for _, units in plan:
        read[units] = True
    tokens_read = int(evidence.sizes[read].sum())
    return Coverage(
        answer_tokens=tokens,
        answer_tokens_scored=scored,
        evidence_tokens=evidence.total,
        evidence_tokens_seen=evidence.kept if compared or not plan else tokens_read,
        evidence_tokens_read=tokens_read,
        windows=len(plan),
    )
