"""Cut evidence and answer into the encoder's windows; no token of the answer is ever dropped.

The answer is tokenised once as a whole and chunked with overlap. Evidence that does not fit next to a chunk
is selected by sentence, or laid out over several windows, as the model's manifest says. Nothing here runs a
model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.core.errors import ModelError
from truthlens.core.records.verdict import Coverage
from truthlens.detection.models.inputs.assignment import Pairing, PlannedWindow, chunks_of
from truthlens.detection.models.inputs.evidence_tokens import EvidenceTokens, encode_evidence
from truthlens.detection.models.inputs.layout import Layout, frame_of, longest_unit, special_ids
from truthlens.detection.models.inputs.lexical import EvidenceIndex, index_evidence, token_features
from truthlens.detection.models.inputs.manifest import InputFormat
from truthlens.detection.models.inputs.tokens import Ids, encode

MAX_EVIDENCE_TOKENS = 200_000
"""Evidence that one call tokenises, by default."""


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """One input of the encoder.

    ``input_ids`` and ``type_ids`` have shape (tokens,), int64. ``answer`` is the slice of positions that hold
    answer tokens and ``first`` the index, in the answer's own token sequence, of the first of them.
    ``features`` has shape (tokens, features), float32, or is ``None`` where the model takes none.
    ``relevance`` has shape (answer tokens of the window,), float32, 0..1: what share of the rare words of
    each token's sentence the window's evidence holds; ``None`` where the format's merging does not ask for
    it.
    """

    input_ids: NDArray[np.int64]
    type_ids: NDArray[np.int64]
    answer: slice
    first: int
    features: NDArray[np.float32] | None = None
    relevance: NDArray[np.float32] | None = None

    @property
    def end(self) -> int:
        """Index, in the answer's own token sequence, behind the last answer token of the window."""
        return self.first + int(self.answer.stop - self.answer.start)


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """All inputs for one answer.

    ``offsets`` has shape (answer tokens, 2): character ranges of the answer's tokens. A token that is in
    several windows (overlap, or several evidence windows) has several scores; the encoder merges them.
    """

    windows: tuple[Window, ...]
    offsets: NDArray[np.int64]
    coverage: Coverage


def load_tokenizer(folder: Path) -> Tokenizer:
    """Load the tokenizer of a model folder, without the truncation and padding that its file may switch on.

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


def read_evidence(
    tokenizer: Tokenizer,
    fmt: InputFormat,
    passages: Sequence[str],
    *,
    max_evidence_tokens: int = MAX_EVIDENCE_TOKENS,
) -> EvidenceTokens:
    """Tokenise the passages and cut them into units as ``fmt`` needs them; see ``build_windows``."""
    return encode_evidence(
        tokenizer, passages, max_tokens=max_evidence_tokens, longest_unit=longest_unit(fmt)
    )


def lay_out(
    tokenizer: Tokenizer, fmt: InputFormat, *, query: str, passages: Sequence[str], evidence: EvidenceTokens
) -> Layout:
    """Return how the windows of any answer are laid out with ``evidence``; arguments as of ``build_windows``.

    Raises:
        ModelError: see ``build_windows``.
    """
    frame = frame_of(tokenizer, fmt, query=query, passages=passages, evidence=evidence)
    return Layout(fmt, special_ids(tokenizer), frame, evidence)


def build_windows(
    tokenizer: Tokenizer,
    fmt: InputFormat,
    *,
    query: str,
    passages: Sequence[str],
    answer: str,
    max_windows: int = 256,
    max_evidence_tokens: int = MAX_EVIDENCE_TOKENS,
    evidence: EvidenceTokens | None = None,
    layout: Layout | None = None,
    after: int = 0,
) -> Windows:
    """Build every window that the encoder must read to score all of ``answer`` against all of ``passages``.

    Args:
        tokenizer: the model's own, without truncation and padding (see ``load_tokenizer``).
        fmt: the model's input format.
        query: what the user asked, or ``""``; its beginning leads the evidence.
        passages: the evidence, in document order.
        answer: the text to score; no token of it is left out while ``max_windows`` suffices.
        max_windows: bound on the work for one answer; ``coverage`` shows where it cut.
        max_evidence_tokens: bound on the evidence that is tokenised; ``coverage`` shows where it cut.
        evidence: ``read_evidence`` of the same passages and format, where several answers share them.
        layout: ``lay_out`` of that evidence and the same query, where several answers share it.
        after: chunks that end at this token or before get no windows; neither windows nor coverage count
            them.

    Raises:
        ModelError: the tokenizer truncates or lacks the special tokens, or the format leaves no room.
    """
    if tokenizer.truncation is not None or tokenizer.padding is not None:
        raise ModelError("the tokenizer truncates or pads; load it with load_tokenizer")
    ids, offsets = encode(tokenizer, answer)
    if evidence is None:
        evidence = read_evidence(tokenizer, fmt, passages, max_evidence_tokens=max_evidence_tokens)
    if layout is None:
        layout = lay_out(tokenizer, fmt, query=query, passages=passages, evidence=evidence)
    index = evidence.index if _compares_words(fmt, layout) else None
    chunks = chunks_of(len(offsets), size=layout.chunk_size, overlap=fmt.answer_overlap)
    if layout.chunk_with_all:
        everything = np.arange(len(evidence.units))
        pairs = [PlannedWindow(chunk, everything) for chunk in chunks[:max_windows] if chunk[1] > after]
    else:
        pairing = Pairing(fmt, layout, evidence, index, answer=answer, offsets=offsets, query=query)
        pairs = pairing.pairs(chunks, max_windows=max_windows, after=after)
    features = None
    if fmt.features is not None and index is not None:
        support = _read_index(evidence, pairs) if fmt.features_over == "read" else index
        features = token_features(support, answer=answer, offsets=offsets, query=query, features=fmt.features)
    return Windows(
        windows=tuple(_window(fmt, layout, ids, pair, features=features) for pair in pairs),
        offsets=offsets,
        coverage=_coverage(len(offsets), evidence, pairs, compared=_compares_all(fmt)),
    )


def _compares_words(fmt: InputFormat, layout: Layout) -> bool:
    """Return whether anything needs the lexical index of the evidence."""
    if fmt.features is not None:
        return True
    chooses = fmt.evidence == "select" or fmt.evidence_windows is not None or fmt.merge not in {"min", "mean"}
    return chooses and not layout.chunk_with_all


def _compares_all(fmt: InputFormat) -> bool:
    """Return whether selection or features look at every unit, also those that no window holds."""
    chooses = fmt.evidence == "select" or fmt.evidence_windows is not None
    return chooses or (fmt.features is not None and fmt.features_over == "all")


def _read_index(evidence: EvidenceTokens, pairs: Sequence[PlannedWindow]) -> EvidenceIndex:
    """Build the lexical index of what some window holds, in document order."""
    read = _read_units(evidence, pairs)
    return index_evidence([evidence.words[unit] for unit in np.flatnonzero(read)])


def _read_units(evidence: EvidenceTokens, pairs: Sequence[PlannedWindow]) -> NDArray[np.bool_]:
    read = np.zeros(len(evidence.units), dtype=np.bool_)
    for pair in pairs:
        read[pair.units] = True
    return read


def _window(
    fmt: InputFormat, layout: Layout, ids: Ids, pair: PlannedWindow, *, features: NDArray[np.float32] | None
) -> Window:
    start, end = pair.chunk
    special = layout.special
    head = np.concatenate([special.first, layout.segment(pair.units), special.middle])
    input_ids = np.concatenate([head, ids[start:end], special.last])
    type_ids = np.zeros(len(input_ids), dtype=np.int64)
    if fmt.segment_ids:
        type_ids[len(head) :] = 1
    place = slice(len(head), len(head) + end - start)
    window_features = None
    if features is not None:
        window_features = np.zeros((len(input_ids), features.shape[1]), dtype=np.float32)
        window_features[place] = features[start:end]
    return Window(input_ids, type_ids, place, start, window_features, pair.relevance)


def _coverage(
    tokens: int, evidence: EvidenceTokens, pairs: Sequence[PlannedWindow], *, compared: bool
) -> Coverage:
    tokens_read = int(evidence.sizes[_read_units(evidence, pairs)].sum())
    return Coverage(
        answer_tokens=tokens,
        answer_tokens_scored=max((pair.chunk[1] for pair in pairs), default=0),
        evidence_tokens=evidence.total,
        evidence_tokens_seen=evidence.kept if compared or not pairs else tokens_read,
        evidence_tokens_read=tokens_read,
        windows=len(pairs),
    )
