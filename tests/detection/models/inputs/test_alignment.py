"""What stands in the place of a word: the columns of ``lexical-v2``."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.detection.models.inputs.alignment import ALIGNMENT_NAMES, alignment_features
from truthlens.detection.models.inputs.lexical import (
    FEATURE_COUNT,
    FEATURE_NAMES,
    LEXICAL_COUNT,
    evidence_words,
    index_evidence,
    token_features,
)
from truthlens.text.words import words


def _of(evidence: str, answer: str) -> dict[str, dict[str, float]]:
    """Feature name to value, by word of the answer."""
    listed = words(answer)
    table = alignment_features(listed, words(evidence))
    return {
        answer[word.start : word.end]: dict(zip(ALIGNMENT_NAMES, row.tolist(), strict=True))
        for word, row in zip(listed, table, strict=True)
    }


@pytest.mark.parametrize(
    ("evidence", "answer", "word", "column"),
    [
        ("The meeting is on Tuesday at nine.", "The meeting is on Wednesday at nine.", "Wednesday", "clash"),
        ("The fee is 40 dollars a month.", "The fee is 45 dollars a month.", "45", "replaced_by_kind"),
        ("Bob bought the house from Carol.", "Carol bought the house from Bob.", "Bob", "moved"),
        ("Bob bought the house from Carol.", "Carol bought the house from Bob.", "house", "order_differs"),
        ("Refunds end before noon.", "Refunds end after noon.", "after", "replaced_by_opposite"),
        ("All tickets must be shown.", "Some tickets must be shown.", "Some", "replaced"),
        ("Guests may smoke here.", "Guests may not smoke here.", "smoke", "negation_near_differs"),
        ("A domestic wire costs 25 dollars; an international wire costs 40 dollars.", "A domestic wire costs 40 dollars.",
         "40", "gap_of_kind"),
    ],
)  # fmt: skip
def test_one_changed_word_is_told(evidence: str, answer: str, word: str, column: str) -> None:
    """The changed word has the column; in the sentence as it stood no word has it."""
    assert _of(evidence, answer)[word][column] == 1.0
    if column != "gap_of_kind":
        assert not any(line[column] for line in _of(evidence, evidence).values())


def test_a_sentence_said_again_is_aligned_whole() -> None:
    """Every word that carries something is aligned, and nothing is replaced."""
    found = _of("The old mill in Basel burnt down in 1998.", "The old mill in Basel burnt down in 1998.")
    assert all(line["sentence_aligned"] == line["unit_aligned"] == 1.0 for line in found.values())
    assert not any(line["replaced"] or line["moved"] or line["clash"] for line in found.values())


_TEXT = st.lists(
    st.sampled_from(
        [
            "Bob",
            "Carol",
            "Tuesday",
            "Wednesday",
            "40",
            "45",
            "forty",
            "not",
            "no",
            "fee",
            "costs",
            "bought",
            "会议",
            ".",
            "before",
            "after",
            "all",
        ]
    ),
    max_size=30,
).map(" ".join)


@settings(deadline=None)
@given(_TEXT, _TEXT)
def test_features_stay_in_range(evidence: str, answer: str) -> None:
    """For any two texts the values lie in 0..1; no word is aligned and replaced, or aligned and moved."""
    listed = words(answer)
    table = alignment_features(listed, words(evidence))
    assert table.shape == (len(listed), len(ALIGNMENT_NAMES))
    assert np.isfinite(table).all()
    assert ((table >= 0.0) & (table <= 1.0)).all()
    aligned, replaced, moved = (
        table[:, ALIGNMENT_NAMES.index(name)] for name in ("aligned", "replaced", "moved")
    )
    assert not (aligned * (replaced + moved)).any()


def test_the_first_columns_are_those_of_models_without_alignment() -> None:
    """``lexical-v1`` is a beginning of ``lexical-v2``, to the byte."""
    index = index_evidence(evidence_words("The library opens at nine. It holds 1,200 maps."))
    answer = "It opens at ten and holds 1,300 maps."
    offsets = np.array([(word.start, word.end) for word in words(answer)], dtype=np.int64)
    whole = token_features(index, answer=answer, offsets=offsets, query="")
    first = token_features(index, answer=answer, offsets=offsets, query="", features="lexical-v1")
    assert first.shape[1] == LEXICAL_COUNT
    assert whole.shape[1] == FEATURE_COUNT == len(FEATURE_NAMES)
    assert np.array_equal(first, whole[:, :LEXICAL_COUNT])


def test_the_columns_are_frozen() -> None:
    """Models were trained on these values, so that a change needs a feature set of its own."""
    evidence = words(
        "A domestic wire costs 25 dollars; an international wire costs 40 dollars before Tuesday, and Bob pays for Carol."
    )
    answers = (
        "An international wire costs 25 dollars after Wednesday.",
        "Carol pays for Bob, not more than 40 dollars.",
        "Sending money abroad isn't cheap.",
    )
    table = np.concatenate([alignment_features(words(answer), evidence) for answer in answers])
    digest = hashlib.sha256(np.round(table, 4).astype("<f4").tobytes()).hexdigest()
    assert digest[:16] == "fee12719e679c0ce"
