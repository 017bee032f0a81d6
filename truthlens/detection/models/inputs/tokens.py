"""Encode texts as token ids, long ones piece by piece.

One long text then holds neither other threads nor memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.core.cancellation import checkpoint

Ids = NDArray[np.int64]

PIECE_CHARS = 1 << 15
"""A text of at most so many characters is tokenised in one."""

_SHORT_CHARS = 1 << 11
# Where a piece may end: no tokenizer that reads prose joins what is on both sides of a line's or a word's
# end.
_BREAK = re.compile(r"(?s:.*)[^\s](?=\s)")


def encode(tokenizer: Tokenizer, text: str, *, most: int | None = None) -> tuple[Ids, NDArray[np.int64]]:
    """Return the ids of ``text`` and the characters of each, shape (tokens, 2); no special tokens.

    Args:
        tokenizer: without padding and truncation.
        text: of any length.
        most: where there are more tokens than that, the text is not read to its end; all tokens that were
            made are given.

    Raises:
        StoppedError: the result is no longer needed.
    """
    ids: list[Ids] = []
    offsets: list[NDArray[np.int64]] = []
    count = 0
    for start, end in _pieces(text):
        checkpoint()
        # Alone it would keep the interpreter for itself; as a batch, which costs a little more, it does not.
        piece = text[start:end]
        encoding = (
            tokenizer.encode(piece, add_special_tokens=False)
            if len(piece) <= _SHORT_CHARS
            else tokenizer.encode_batch([piece], add_special_tokens=False)[0]
        )
        ids.append(np.array(encoding.ids, dtype=np.int64))
        offsets.append(np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2) + start)
        count += len(ids[-1])
        if most is not None and count > most:
            break
    if not ids:
        return np.zeros(0, dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
    return np.concatenate(ids), np.concatenate(offsets)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of ``text``.

    A cut depends only on the text before it, so that further text moves no cut.
    """
    start = 0
    while len(text) - start > PIECE_CHARS:
        last_word = _BREAK.match(text, start + PIECE_CHARS // 2, start + PIECE_CHARS)
        end = last_word.end() if last_word else start + PIECE_CHARS
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)
