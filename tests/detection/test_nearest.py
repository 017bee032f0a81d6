"""Tests of ``truthlens.detection.nearest``."""

from __future__ import annotations

from truthlens.core.records import Passage, Provenance, Span
from truthlens.detection.nearest import NearestPassage

PASSAGES = [
    Passage("The library is open on weekdays from nine to six.", Provenance.DOCUMENTS),
    Passage("Members may borrow ten books for three weeks.", Provenance.DOCUMENTS),
    Passage("Late returns cost a fee of two euros a week.", Provenance.DOCUMENTS, title="Fees"),
]


def nearest(text: str, part: str) -> int | None:
    """The passage of the span that covers ``part`` of ``text``."""
    start = text.index(part)
    (found,) = NearestPassage(PASSAGES).of(text, [Span(start, start + len(part), 0.9)])
    return found


def test_the_sentence_around_a_span_finds_its_passage() -> None:
    """The wrong figure is in no passage, the sentence that it stands in is about one."""
    text = "The library is open till six. Members may borrow fifty books for three weeks."
    assert nearest(text, "fifty") == 1
    assert nearest(text, "till six") == 0


def test_inflected_words_and_titles_count() -> None:
    """Stems and a passage's title are compared."""
    assert nearest("Returning late costs nine euros.", "nine euros") == 2
    assert nearest("The fees are waived.", "waived") == 2


def test_a_span_that_shares_no_word_has_no_passage() -> None:
    """Nothing in common gives no passage rather than an arbitrary one."""
    assert nearest("Bananas grow quickly.", "Bananas") is None


def test_chinese_is_compared_too() -> None:
    """Han text is compared by its character pairs."""
    passages = [
        Passage("图书馆周一至周五开放。", Provenance.TOOL),
        Passage("逾期还书每周收费两欧元。", Provenance.TOOL),
    ]
    assert NearestPassage(passages).of("逾期还书收费九欧元。", [Span(6, 9, 0.9)]) == [1]


def test_no_passages_and_no_spans() -> None:
    """Nothing to compare gives nothing."""
    assert NearestPassage([]).of("Text.", [Span(0, 4, 0.9)]) == [None]
    assert NearestPassage(PASSAGES).of("Text.", []) == []
