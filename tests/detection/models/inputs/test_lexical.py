"""Tests of ``truthlens.detection.models.inputs.lexical``."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from truthlens.detection.models.inputs.lexical import (
    FEATURE_COUNT,
    FEATURE_NAMES,
    EvidenceIndex,
    evidence_words,
    index_evidence,
    token_features,
)
from truthlens.text.words import words

EVIDENCE = "The library opens at nine. It holds 1,200 maps of Norway. Visitors may not smoke inside."


def _index(text: str) -> EvidenceIndex:
    return index_evidence(evidence_words(text))


def _features(answer: str, *, evidence: str = EVIDENCE, query: str = "") -> dict[str, dict[str, float]]:
    """Feature name to value, by word of the answer (the words are the tokens)."""
    listed = words(answer)
    offsets = np.array([(word.start, word.end) for word in listed], dtype=np.int64).reshape(-1, 2)
    values = token_features(_index(evidence), answer=answer, offsets=offsets, query=query)
    return {
        answer[word.start : word.end]: dict(zip(FEATURE_NAMES, row.tolist(), strict=True))
        for word, row in zip(listed, values, strict=True)
    }


def test_inflected_words_count_as_present() -> None:
    """A word is present when a form of it stands in the evidence, else absent."""
    found = _features("Visitors smoking near a map of Sweden")
    assert (found["smoking"]["present"], found["map"]["present"]) == (1.0, 1.0)
    assert (found["Sweden"]["absent"], found["Sweden"]["entity_absent"]) == (1.0, 1.0)
    assert found["smoking"]["absent"] == 0.0


@pytest.mark.parametrize(
    ("answer", "evidence", "expected"),
    [
        ("It has 1200 maps", "It has 1,200 maps.", 1.0),
        ("It has 1.2k maps", "It has 1,200 maps.", 1.0),
        ("12% agreed", "A share of 0.12 agreed.", 1.0),
        ("A share of 0.12 agreed", "12% agreed.", 1.0),
        ("twelve agreed", "12 agreed.", 1.0),
        ("1.2 million came", "1,200,000 came.", 1.0),
        ("It has 1300 maps", "It has 1,200 maps.", 0.0),
        ("1.2 million came", "1.2 came.", 0.0),
    ],
)
def test_numbers_are_found_by_value(answer: str, evidence: str, expected: float) -> None:
    """A number is found where its value stands in the evidence, however it is written."""
    rows = [row for row in _features(answer, evidence=evidence).values() if row["number"]]
    assert [row["number_found"] for row in rows] == [expected]


def test_bigrams_and_trigrams_must_stand_together() -> None:
    """Neighbours count only where the evidence has them side by side."""
    found = _features("library opens nine")
    assert found["opens"]["bigram_before"] == 1.0
    assert found["opens"]["bigram_after"] == 0.0
    assert found["opens"]["trigram"] == 0.0


def test_recombined_words_share_no_unit() -> None:
    """Words from different sentences of the evidence are seen not to stand together."""
    true, mixed = _features("visitors smoke inside"), _features("library smoke Norway")
    assert true["smoke"]["neighbours_share_unit"] == 1.0
    assert mixed["smoke"]["neighbours_share_unit"] == 0.0


def test_sentence_figures_belong_to_the_sentence() -> None:
    """Overlap of a supported sentence is 1, of a foreign one 0."""
    found = _features("The library opens at nine. Dolphins sing quietly.")
    assert found["opens"]["sentence_best_overlap"] == pytest.approx(1.0)
    assert found["Dolphins"]["sentence_best_overlap"] == 0.0
    assert found["opens"]["answer_worst_sentence"] == 1.0


def test_negation_against_the_best_sentence_is_seen() -> None:
    """A sentence that drops the evidence's "not" differs in negation."""
    assert _features("Visitors may smoke inside")["smoke"]["sentence_negation_differs"] == 1.0
    assert _features("Visitors may not smoke inside")["smoke"]["sentence_negation_differs"] == 0.0


def test_query_words_are_marked() -> None:
    """Words of the question are marked as asked."""
    found = _features("Parking is free", query="Is there parking?")
    assert (found["Parking"]["in_query"], found["free"]["in_query"]) == (1.0, 0.0)


def test_han_words_are_compared_by_bigram() -> None:
    """Chinese support is found by character pairs."""
    evidence, answer = "图书馆九点开门。", "图书馆很大"
    offsets = np.array([(i, i + 1) for i in range(len(answer))], dtype=np.int64)
    values = token_features(_index(evidence), answer=answer, offsets=offsets, query="")
    assert values[:, FEATURE_NAMES.index("present")].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_subword_tokens_share_their_word() -> None:
    """All pieces of one word carry its features; punctuation carries none of a word."""
    answer = "Norwegian, maps"
    offsets = np.array([(0, 4), (4, 9), (9, 10), (11, 15)], dtype=np.int64)
    values = token_features(_index(EVIDENCE), answer=answer, offsets=offsets, query="")
    names = ["absent", "content"]
    columns = [FEATURE_NAMES.index(name) for name in names]
    assert values[0, columns].tolist() == values[1, columns].tolist() == [1.0, 1.0]
    assert values[2, columns].tolist() == [0.0, 0.0]
    assert values[3, columns].tolist() == [0.0, 1.0]


def _token_offsets(answer: str) -> NDArray[np.int64]:
    return np.array([(i, i + 1) for i, c in enumerate(answer) if not c.isspace()], dtype=np.int64).reshape(
        -1, 2
    )


@given(answer=st.text(max_size=120), evidence=st.text(max_size=120), query=st.text(max_size=30))
def test_features_are_finite_and_bounded(answer: str, evidence: str, query: str) -> None:
    """Every feature of every token is in 0..1, whatever the texts."""
    offsets = _token_offsets(answer)
    values = token_features(_index(evidence), answer=answer, offsets=offsets, query=query)
    assert values.shape == (len(offsets), FEATURE_COUNT)
    assert values.dtype == np.float32
    assert np.isfinite(values).all()
    assert values.min(initial=0.0) >= 0.0
    assert values.max(initial=0.0) <= 1.0 + 1e-5


def test_overlap_weighs_rare_words_more() -> None:
    """A unit that shares a rare word beats one that shares a common word."""
    index = index_evidence([words("map shelf"), words("map lamp"), words("map harp")])
    overlap = index.overlap(["map", "harp"])
    assert overlap.argmax() == 2
    assert index.idf("harp") > index.idf("map")
