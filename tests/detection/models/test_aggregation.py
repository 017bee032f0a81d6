"""Tests of ``truthlens.detection.models.aggregation``."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import Aggregation
from truthlens.detection.models.aggregation import (
    aggregate,
    noisy_or,
    span_max,
    span_noisy_or,
    spans_of,
    worst_tokens,
)

probability = st.floats(0.0, 1.0)
some_probabilities = st.lists(probability, min_size=1, max_size=40)


def word_offsets(text: str) -> np.ndarray:
    """Offsets of the words of ``text`` that single blanks part."""
    ends = np.cumsum([len(word) + 1 for word in text.split(" ")])
    return np.array([(end - 1 - len(word), end - 1) for word, end in zip(text.split(" "), ends, strict=True)])


def test_noisy_or_is_one_minus_the_product_of_complements() -> None:
    """Noisy-OR over two tokens is computed as definition 4 says."""
    assert noisy_or([0.6, 0.7, 0.2], 0.5) == pytest.approx(1 - 0.4 * 0.3)


def test_noisy_or_counts_only_tokens_above_tau() -> None:
    """A token exactly at tau does not count."""
    assert noisy_or([0.5, 0.4], 0.5) == 0.0


def test_noisy_or_of_nothing_is_zero() -> None:
    """An empty product leaves a score of 0."""
    assert noisy_or([], 0.5) == 0.0


def test_noisy_or_exponent_tempers() -> None:
    """The exponent is applied to every complement."""
    assert noisy_or([0.6, 0.7], 0.5, 0.25) == pytest.approx(1 - (0.4**0.25) * (0.3**0.25))


def test_one_certain_token_does_not_make_a_certain_answer() -> None:
    """A token probability of 1 is clipped, so that the score stays below 1."""
    assert 0.99999 < noisy_or([1.0], 0.5) < 1.0


@pytest.mark.parametrize("bad", [[math.nan], [1.1], [-0.1], [math.inf]])
def test_a_probability_that_is_none_is_refused(bad: list[float]) -> None:
    """What is not a number in 0..1 raises and never becomes a score."""
    with pytest.raises(ValueError, match=r"outside 0\.\.1"):
        noisy_or(bad, 0.5)


@pytest.mark.parametrize("exponent", [0.0, 1.5, math.nan])
def test_an_exponent_out_of_range_is_refused(exponent: float) -> None:
    """The tempering exponent has to be above 0 and at most 1."""
    with pytest.raises(ValueError, match="exponent"):
        noisy_or([0.5], 0.1, exponent)


@given(some_probabilities, probability, st.floats(0.01, 1.0), st.data())
def test_raising_a_token_never_lowers_noisy_or(
    p: list[float], tau: float, exponent: float, data: st.DataObject
) -> None:
    """Noisy-OR is monotone in every token and stays within 0..1."""
    place = data.draw(st.integers(0, len(p) - 1))
    raised = [*p]
    raised[place] = data.draw(st.floats(p[place], 1.0))
    before, after = noisy_or(p, tau, exponent), noisy_or(raised, tau, exponent)
    assert 0.0 <= before <= after + 1e-12 <= 1.0 + 1e-12


@given(st.lists(probability, min_size=2, max_size=20), st.floats(0.05, 0.95), st.data())
def test_raising_a_token_never_lowers_span_max(p: list[float], tau: float, data: st.DataObject) -> None:
    """The maximum over spans is monotone in every token, also where spans join."""
    text = " ".join("word" for _ in p)
    offsets = word_offsets(text)
    place = data.draw(st.integers(0, len(p) - 1))
    raised = [*p]
    raised[place] = data.draw(st.floats(p[place], 1.0))
    assert span_max(spans_of(p, offsets, tau, text)) <= span_max(spans_of(raised, offsets, tau, text))


@given(st.lists(probability, min_size=2, max_size=20), st.floats(0.05, 0.95), st.data())
def test_raising_a_token_that_keeps_the_spans_never_lowers_span_noisy_or(
    p: list[float], tau: float, data: st.DataObject
) -> None:
    """Noisy-OR over spans is monotone as long as no spans join, and never below the span maximum."""
    text = " ".join("word" for _ in p)
    offsets = word_offsets(text)
    place = data.draw(st.integers(0, len(p) - 1))
    raised = [*p]
    raised[place] = data.draw(st.floats(p[place], 1.0))
    before, after = spans_of(p, offsets, tau, text), spans_of(raised, offsets, tau, text)
    assert span_max(after) <= span_noisy_or(after) <= 1.0
    if len(after) >= len(before):
        assert span_noisy_or(before) <= span_noisy_or(after) + 1e-12


def test_a_token_that_joins_two_spans_may_lower_span_noisy_or() -> None:
    """Two faults that become one count once: the documented exception to monotonicity."""
    text = "one two three"
    apart = spans_of([0.9, 0.1, 0.9], word_offsets(text), 0.5, text)
    joined = spans_of([0.9, 0.6, 0.9], word_offsets(text), 0.5, text)
    assert span_noisy_or(apart) == pytest.approx(0.99)
    assert span_noisy_or(joined) == pytest.approx(0.9)


@given(some_probabilities, st.floats(0.05, 0.95))
def test_spans_are_ordered_apart_and_hold_every_hot_token(p: list[float], tau: float) -> None:
    """Spans do not overlap, score their highest token, and leave out no token at or above tau."""
    text = " ".join("word" for _ in p)
    offsets = word_offsets(text)
    spans = spans_of(p, offsets, tau, text)
    assert all(left.end < right.start for left, right in itertools.pairwise(spans))
    for value, (start, end) in zip(p, offsets.tolist(), strict=True):
        inside = [span for span in spans if span.start <= start and end <= span.end]
        assert bool(inside) == (value >= tau)
        assert all(span.score >= value for span in inside)
    assert all(span.score in p for span in spans)


def test_a_run_of_tokens_is_one_span_with_its_highest_score() -> None:
    """Neighbouring tokens at or above tau are one span."""
    text = "it costs nine hundred euros"
    spans = spans_of([0.1, 0.2, 0.5, 0.8, 0.3], word_offsets(text), 0.5, text)
    assert [(text[span.start : span.end], span.score) for span in spans] == [("nine hundred", 0.8)]


def test_white_space_at_the_edges_is_trimmed() -> None:
    """Byte-pair tokens begin with a blank, spans do not."""
    text = "a cat sat"
    spans = spans_of([0.1, 0.9, 0.1], np.array([(0, 1), (1, 5), (5, 9)]), 0.5, text)
    assert [(span.start, span.end) for span in spans] == [(2, 5)]


def test_a_span_of_white_space_is_dropped() -> None:
    """A hot token of nothing but a line break is no span, and joins none that it does not touch."""
    text = "ab cd\n\nef"
    offsets = np.array([(0, 2), (2, 5), (5, 7), (7, 9)])
    assert spans_of([0.1, 0.1, 0.9, 0.1], offsets, 0.5, text) == ()
    spans = spans_of([0.9, 0.1, 0.9, 0.9], offsets, 0.5, text)
    assert [(span.start, span.end) for span in spans] == [(0, 2), (7, 9)]


@pytest.mark.parametrize(
    ("text", "pieces", "p", "expected"),
    [
        ("Petersburg", [(0, 2), (2, 6), (6, 10)], [0.9, 0.1, 0.8], ["Petersburg"]),
        ("1,200 men", [(0, 1), (1, 2), (2, 5), (6, 9)], [0.9, 0.1, 0.8, 0.1], ["1,200"]),
        ("red, blue", [(0, 3), (3, 4), (5, 9)], [0.9, 0.1, 0.8], ["red", "blue"]),
        ("北京上海", [(0, 1), (1, 2), (2, 3), (3, 4)], [0.9, 0.1, 0.1, 0.9], ["北", "海"]),
        ("a b", [(0, 1), (1, 2), (2, 3)], [0.9, 0.1, 0.9], ["a b"]),
    ],
    ids=["word", "number", "two words", "Chinese", "white space token"],
)
def test_pieces_of_one_word_are_one_span(
    text: str, pieces: list[tuple[int, int]], p: list[float], expected: list[str]
) -> None:
    """A calm piece inside of a word, a number or white space does not part a span; other text does."""
    spans = spans_of(p, np.array(pieces), 0.5, text)
    assert [text[span.start : span.end] for span in spans] == expected


def test_span_shapes_have_to_fit() -> None:
    """Offsets of another length than the probabilities are refused."""
    with pytest.raises(ValueError, match="offsets have shape"):
        spans_of([0.5, 0.6], np.zeros((1, 2), dtype=np.int64), 0.5, "a b")


def test_aggregate_follows_the_name() -> None:
    """Each aggregation gives its own formula."""
    p = [0.6, 0.7, 0.1, 0.8]
    text = "a b c d"
    spans = spans_of(p, word_offsets(text), 0.5, text)
    assert aggregate(Aggregation.NOISY_OR, p=p, spans=spans, tau=0.5) == pytest.approx(1 - 0.4 * 0.3 * 0.2)
    assert aggregate(Aggregation.SPAN_MAX, p=p, spans=spans, tau=0.5) == 0.8
    assert aggregate(Aggregation.SPAN_NOISY_OR, p=p, spans=spans, tau=0.5) == pytest.approx(1 - 0.3 * 0.2)


@pytest.mark.parametrize("name", list(Aggregation))
def test_an_answer_without_hot_tokens_scores_zero(name: Aggregation) -> None:
    """No token above tau leaves nothing to aggregate."""
    assert aggregate(name, p=[0.1, 0.2], spans=(), tau=0.5) == 0.0


def test_the_worst_tokens_are_three() -> None:
    """Missing ones count as 0, so that one token alone is a third."""
    assert worst_tokens([0.9], 0.15) == pytest.approx(0.3)
    assert worst_tokens([0.9, 0.1, 0.95, 0.85, 0.2], 0.15) == pytest.approx(0.9)


def test_a_span_begins_with_its_own_first_word() -> None:
    """The full stop of the sentence before is not part of it; a span of mere punctuation keeps it."""
    text = "It rains. Nobody knows."
    offsets = np.array([(0, 2), (3, 8), (8, 9), (10, 16), (17, 22), (22, 23)])
    (span,) = spans_of([0.0, 0.0, 0.9, 0.9, 0.9, 0.0], offsets, 0.5, text)
    assert text[span.start : span.end] == "Nobody knows"
    (stop,) = spans_of([0.0, 0.0, 0.9, 0.0, 0.0, 0.0], offsets, 0.5, text)
    assert text[stop.start : stop.end] == "."
