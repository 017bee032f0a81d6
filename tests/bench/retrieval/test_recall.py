"""Figures of recall, of hand-made ranks; searches are tried by the small benchmarks."""

from __future__ import annotations

import pytest

from bench.retrieval.corpus import QuestionKind, read_corpus
from bench.retrieval.recall import WAYS, FoundRank, figures, interval, rank_of, told
from truthlens.core.records.retrieval import FoundPassage, RetrievedPassage

QUESTIONS = [each for each in read_corpus().questions if each.kind is QuestionKind.ANSWERABLE][:4]
RANKS = {"words": (1, None, 3, 6), "vectors": (2, None, None, 1), "words and vectors": (1, None, 2, 1)}


def test_the_place_is_that_of_the_first_passage_of_a_page_that_answers() -> None:
    passages = [RetrievedPassage("words", FoundPassage(page, page, parent_id=page)) for page in "abcb"]
    assert [rank_of(passages, pages) for pages in (("b",), ("c", "a"), ("d",))] == [2, 1, None]


def test_recall_counts_the_first_five() -> None:
    """With what both gain over each, on the same questions."""
    found = figures(
        [
            FoundRank(question, way, rank)
            for way in WAYS
            for question, rank in zip(QUESTIONS, RANKS[way], strict=True)
        ]
    )
    ways = found["ways"]
    assert {way: ways[way]["recall"] for way in WAYS} == {
        "words": 0.5,
        "vectors": 0.5,
        "words and vectors": 0.75,
    }
    assert ways["words"]["mrr"] == pytest.approx((1 + 1 / 3) / 4)
    assert ways["vectors"]["first"] == 0.25
    assert found["gain_of_both"]["words"]["mean"] == 0.25
    assert len(told("all", found)) == len(WAYS)


def test_an_interval_holds_the_mean_and_narrows_with_more_questions() -> None:
    few, many = ([1.0, 0.0] * count for count in (5, 500))
    for hits in (few, many):
        low, high = interval(hits)
        assert low <= 0.5 <= high
    assert interval(many)[1] - interval(many)[0] < interval(few)[1] - interval(few)[0]
    assert interval([1.0] * 9) == (1.0, 1.0)
