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
from truthlens.detection.layout import Layout, frame_of, longest_unit, special_ids
from truthlens.detection.lexical import EvidenceIndex, keys_of, token_features
from truthlens.detection.manifest import InputFormat
from truthlens.detection.passages import Evidence, Ids, encode_evidence
from truthlens.detection.selection import select_units
from truthlens.detection.words import words

_Chunk = tuple[int, int]
"""Answer tokens, by number: start inclusive, end exclusive."""
_Plan = list[tuple[_Chunk, NDArray[np.int64]]]
"""Per window its chunk and its evidence units."""


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
        tokenizer, passages, max_tokens=max_evidence_tokens, longest_unit=longest_unit(fmt)
    )
    frame = frame_of(tokenizer, fmt, query=query, passages=passages, answer=answer, evidence=evidence)
    layout = Layout(fmt, special_ids(tokenizer), frame, evidence)
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
        plan = _selected(chunks[:max_windows], layout, index, evidence, answer=answer, offsets=offsets)
    else:
        plan = _crossed(chunks, layout, max_windows=max_windows)
    ids = np.array(encoding.ids, dtype=np.int64)
    return Windows(
        windows=tuple(_window(fmt, layout, ids, chunk, units, features=features) for chunk, units in plan),
        offsets=offsets,
        coverage=_coverage(len(offsets), evidence, plan, compared=index is not None),
    )


def _selected(
    chunks: Sequence[_Chunk],
    layout: Layout,
    index: EvidenceIndex,
    evidence: Evidence,
    *,
    answer: str,
    offsets: NDArray[np.int64],
) -> _Plan:
    """Each chunk beside the evidence units that are nearest to its sentences."""
    claims = _claims(answer)
    sizes = evidence.sizes + layout.unit_extra
    return [
        (
            chunk,
            select_units(
                index,
                sizes=sizes,
                claims=_claims_in(claims, offsets, chunk),
                budget=layout.room(chunk[1] - chunk[0]),
            ),
        )
        for chunk in chunks
    ]


def _crossed(chunks: Sequence[_Chunk], layout: Layout, *, max_windows: int) -> _Plan:
    """Each chunk beside each group of evidence; whole chunks are left out where windows run short."""
    longest = max((end - start for start, end in chunks), default=0)
    groups = layout.groups(longest)[:max_windows]
    kept = chunks[: max_windows // max(len(groups), 1)]
    return [(chunk, group) for chunk in kept for group in groups]


def _window(
    fmt: InputFormat,
    layout: Layout,
    ids: Ids,
    chunk: _Chunk,
    units: NDArray[np.int64],
    *,
    features: NDArray[np.float32] | None,
) -> Window:
    start, end = chunk
    special = layout.special
    head = np.concatenate([special.first, layout.segment(units), special.middle])
    input_ids = np.concatenate([head, ids[start:end], special.last])
    type_ids = np.zeros(len(input_ids), dtype=np.int64)
    if fmt.segment_ids:
        type_ids[len(head) :] = 1
    place = slice(len(head), len(head) + end - start)
    window_features = None
    if features is not None:
        window_features = np.zeros((len(input_ids), features.shape[1]), dtype=np.float32)
        window_features[place] = features[start:end]
    return Window(input_ids, type_ids, place, start, window_features)


def _chunks(tokens: int, *, size: int, overlap: int) -> list[_Chunk]:
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


def _coverage(tokens: int, evidence: Evidence, plan: _Plan, *, compared: bool) -> Coverage:
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
