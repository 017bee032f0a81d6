"""Tests of ``truthlens.detection.detectors.reader.inputs``."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from tests.fakes.tiny_encoder import word_tokenizer
from truthlens.core.errors import ModelError
from truthlens.detection.detectors.reader.inputs import (
    ReaderEvidence,
    ReaderFormat,
    format_of,
    readable_units,
)

_TEXT = (
    "The library opens at nine. The east branch lends laptops to members over sixteen. Parking is free. "
    "Fines are ten cents a day. The cafe sells soup. The roof was mended in May. Guides speak Dutch."
)
TOKENIZER = word_tokenizer(dict.fromkeys(set(_TEXT.replace(".", " .").split()), 0.0))
FMT = format_of(TOKENIZER)


def _read(evidence: ReaderEvidence, text: str, sentence: int) -> str:
    each = evidence.sentences[sentence]
    return text[each.start : each.end]


def test_the_sentence_that_shares_the_claims_words_is_read() -> None:
    """Of much evidence the sentences that bear on the claim are chosen, in document order."""
    fmt = FMT.model_copy(update={"evidence_tokens": 24, "sentences": 2})
    evidence = ReaderEvidence(TOKENIZER, fmt, [_TEXT])
    read = evidence.input_for("Laptops are lent by the east branch.")
    assert "The east branch lends laptops to members over sixteen." in [
        _read(evidence, _TEXT, n) for n in read.sentences
    ]
    assert list(read.sentences) == sorted(read.sentences)
    assert len(read.ids) <= 24 + FMT.claim_tokens + 4


def test_a_claim_that_shares_nothing_is_read_against_the_beginning() -> None:
    """Where no sentence shares a word, the reader still sees evidence."""
    evidence = ReaderEvidence(TOKENIZER, FMT, [_TEXT])
    assert evidence.input_for("Zebras xylophone.").sentences[0] == 0


def test_the_claims_tokens_stand_where_the_slice_says() -> None:
    """The slice marks exactly the claim, also behind a question."""
    evidence = ReaderEvidence(TOKENIZER, FMT, [_TEXT])
    ids = TOKENIZER.encode("Parking is free", add_special_tokens=False).ids
    for query in ("", "The library"):
        read = evidence.input_for("Parking is free", query=query)
        assert read.ids[read.claim].tolist() == ids


def test_only_short_claims_are_read_with_the_question() -> None:
    """A full sentence needs no question; "free" does."""
    evidence = ReaderEvidence(TOKENIZER, FMT, [_TEXT])
    short = evidence.input_for("free", query="The cafe sells soup")
    long = "The east branch lends laptops to members over sixteen"
    assert len(short.ids) - short.claim.stop == 1
    asked = short.ids[: short.claim.start].tolist()
    assert TOKENIZER.encode("soup", add_special_tokens=False).ids[0] in asked[-6:]
    assert len(evidence.input_for(long, query="soup").ids) == len(evidence.input_for(long).ids)


def test_no_evidence_gives_an_input_with_the_claim_alone() -> None:
    """Without passages there is nothing to choose."""
    assert ReaderEvidence(TOKENIZER, FMT, []).input_for("Parking is free").sentences == ()


def test_a_long_line_is_cut_into_pieces_that_fit() -> None:
    """No sentence is dropped because it is long."""
    fmt = FMT.model_copy(update={"evidence_tokens": 8})
    evidence = ReaderEvidence(TOKENIZER, fmt, ["soup " * 30])
    assert sum(len(each.ids) for each in evidence.sentences) == 30
    assert evidence.input_for("soup").sentences


def test_rows_of_a_table_are_read_with_their_heads() -> None:
    """A cell tells nothing without the name of its column."""
    table = "| Day | Opens |\n| --- | --- |\n| Monday | nine |\n| Friday | ten |"
    assert [text for *_, text in readable_units(table)] == [
        "| Day | Opens |", "Day: Monday; Opens: nine", "Day: Friday; Opens: ten",
    ]  # fmt: skip


def test_a_tokenizer_without_the_special_tokens_is_refused() -> None:
    """The manifest and the tokenizer must agree."""
    with pytest.raises(ModelError, match="<s>"):
        ReaderEvidence(Tokenizer(WordLevel({"a": 0}, unk_token="a")), ReaderFormat(), [])
