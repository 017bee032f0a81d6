"""Marks of one finding are one span, without function words at its edges; scores are of the runs before that."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from truthlens.detection.detectors.encoder.span_edges import MOST_BETWEEN, evaluated_spans
from truthlens.detection.models.aggregation import span_max, spans_of

_TOKEN = re.compile(r"\w+|[^\w\s]")


def offsets_of(text: str) -> NDArray[np.int64]:
    return np.array([match.span() for match in _TOKEN.finditer(text)], dtype=np.int64).reshape(-1, 2)


def shown(text: str, *marked: str, high: str = "") -> list[str]:
    """Return the texts of the evaluated spans where the words ``marked`` are suspicious."""
    offsets = offsets_of(text)
    words = [text[start:end] for start, end in offsets.tolist()]
    p = np.array([0.9 if word == high else 0.6 if word in marked else 0.05 for word in words])
    spans = evaluated_spans(spans_of(p, offsets, 0.5, text), p, offsets, text)
    return [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("text", "marked", "expected"),
    [
        ("A new bridge across the Rhine opened.", ["new", "Rhine"], ["new bridge across the Rhine"]),
        ("It is new. The Rhine is long.", ["new", "Rhine"], ["new", "Rhine"]),
        ("- a new bridge\n- the Rhine", ["new", "Rhine"], ["new", "Rhine"]),
        ("| new bridge | Rhine |", ["new", "Rhine"], ["new", "Rhine"]),
        ("He paid 1,200 dollars, of which 30 came back.", ["1", "200", "30"], ["1,200 dollars, of which 30"]),
        ("new " + "old " * 13 + "Rhine", ["new", "Rhine"], ["new", "Rhine"]),
        ("It was found in the town of", ["in", "the", "town", "of"], ["town"]),
        ("It was found in the", ["in", "the"], ["in the"]),
        ("It costs the $40 (net), of", ["the", "$", "40", "(", "net", ")", ",", "of"], ["$40 (net)"]),
        ("It rose by 5% of", ["by", "5", "%", "of"], ["5%"]),
        ("会议在周三下午举行", ["会议在周三下午举行"], ["会议在周三下午举行"]),
        ("", [], []),
    ],
)
def test_what_is_evaluated(text: str, marked: list[str], expected: list[str]) -> None:
    """Gaps within a sentence, line and cell are closed; function words at the edges go, unless nothing else is left."""
    assert shown(text, *marked) == expected


def test_the_word_that_is_surest_stays() -> None:
    """A function word at the edge may be the error."""
    assert shown("It was found in the town", "in", "the", "town", high="in") == ["in the town"]
    assert shown("It was found in the town", "in", "the", "town", high="town") == ["town"]


def test_as_many_tokens_as_allowed_may_stand_between() -> None:
    """One more and they are two findings."""
    near, far = "old " * MOST_BETWEEN, "old " * (MOST_BETWEEN + 1)
    assert len(shown(f"new {near}Rhine", "new", "Rhine")) == 1
    assert len(shown(f"new {far}Rhine", "new", "Rhine")) == 2


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["the", "new", "of", "Rhine", ",", ".", "in", "9", "not"]), st.floats(0, 1)
        ),
        max_size=40,
    )
)
def test_no_score_is_lost_and_nothing_unmarked_is_at_an_edge(drawn: list[tuple[str, float]]) -> None:
    """Every run's highest token stays in a span with its score, spans do not touch, and edges are the runs' own."""
    text = " ".join(word for word, _ in drawn)
    # A full stop before a run is not part of it, whatever its score.
    p = np.array([value if word.isalnum() else 0.0 for word, value in drawn])
    offsets = offsets_of(text)
    runs = spans_of(p, offsets, 0.5, text)
    spans = evaluated_spans(runs, p, offsets, text)
    assert span_max(spans) == span_max(runs)
    assert len(spans) <= len(runs)
    assert all(one.end < other.start for one, other in pairwise(spans))
    for span in spans:
        assert text[span.start : span.end].strip() == text[span.start : span.end] != ""
        assert any(run.start <= span.start < run.end for run in runs)
        assert any(run.start < span.end <= run.end for run in runs)
        inside = (offsets[:, 0] >= span.start) & (offsets[:, 1] <= span.end)
        assert p[inside].max() == span.score
