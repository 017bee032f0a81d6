"""Long texts are tokenised piece by piece: the same tokens, at the same characters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from truthlens.core.cancellation import stopping
from truthlens.core.errors import StoppedError
from truthlens.detection.models.inputs.tokens import PIECE_CHARS, encode
from truthlens.detection.models.inputs.windows import load_tokenizer

MODEL = Path(__file__).parents[4] / "models" / "truthlens-minilm-en-v2"
PIECES = {
    "prose": "The shop is open at five, and no dog may enter. ",
    "lines": "1. a\n",
    "words": "tea ",
    "wide": "Der Tee \U0001f600 ist müde. ",
    "chinese": "茶 是 免费 的。\n",
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer(MODEL)


@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("size", [0, 10, 3000, PIECE_CHARS, PIECE_CHARS * 3 + 17])
def test_pieces_make_no_difference(tokenizer: Tokenizer, name: str, size: int) -> None:
    """Wherever a text with words in it is cut."""
    text = (PIECES[name] * (size // len(PIECES[name]) + 1))[:size]
    ids, offsets = encode(tokenizer, text)
    whole = tokenizer.encode(text, add_special_tokens=False)
    assert ids.tolist() == whole.ids
    assert offsets.tolist() == [list(each) for each in whole.offsets]


def test_a_text_without_a_gap_is_covered_to_its_end(tokenizer: Tokenizer) -> None:
    """There is no good place to cut it, and every character of it still belongs to a token."""
    text = "a.b" * PIECE_CHARS
    ids, offsets = encode(tokenizer, text)
    covered = np.zeros(len(text), dtype=bool)
    for start, end in offsets:
        covered[start:end] = True
    assert len(ids) == len(offsets)
    assert covered.all()


def test_further_text_moves_no_cut(tokenizer: Tokenizer) -> None:
    """What was said of an answer so far stays true while it grows."""
    text = PIECES["prose"] * 2000
    before = encode(tokenizer, text)[1]
    after = encode(tokenizer, text + PIECES["lines"] * 2000)[1]
    assert after[: len(before) - 1].tolist() == before[:-1].tolist()


def test_no_more_is_read_than_is_needed(tokenizer: Tokenizer) -> None:
    """Tokens beyond the asked number come only from the last piece."""
    ids, offsets = encode(tokenizer, PIECES["words"] * PIECE_CHARS, most=100)
    assert 100 < len(ids) <= PIECE_CHARS
    assert offsets[-1, 1] <= PIECE_CHARS


def test_it_ends_when_nobody_waits(tokenizer: Tokenizer) -> None:
    """Between two pieces."""
    with stopping(lambda: True), pytest.raises(StoppedError):
        encode(tokenizer, "tea")
