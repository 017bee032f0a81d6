"""Tests of ``truthlens.detection.explain.explainer``, ``span_kind`` and ``explanation_text``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.core.records.explanation import DifferenceKind, Explanation, SpanKind
from truthlens.core.records.verdict import Span
from truthlens.detection.explain.explainer import Explainer
from truthlens.detection.explain.explanation_text import reason_for
from truthlens.detection.explain.span_kind import Standing, probabilities

PASSAGES = (
    Passage(
        "The starting dose of Corvadil for adults is 54 mg a day, taken with food. "
        "Anna Keller led the trial in Bern in May 2019.",
        Provenance.DOCUMENTS,
    ),
    Passage(
        "The reading room is not open on holidays. The ferry leaves at eight and costs 12.50 euros.",
        Provenance.DOCUMENTS,
    ),
)
ANSWER = (
    "Adults start with 45 mg of Corvadil a day. The reading room is open on holidays. "
    "Its roof garden attracts walkers, as Norrel et al. (2019) report. The ferry has a small restaurant."
)


def explained(
    part: str, *, text: str = ANSWER, passages: tuple[Passage, ...] = PASSAGES
) -> tuple[Span, Explanation]:
    """The span of ``part`` and its explanation."""
    start = text.index(part)
    (span,) = Explainer(passages).explain(text, [Span(start, start + len(part), 0.9)])
    assert span.explanation is not None
    return span, span.explanation


def test_a_wrong_figure_is_contradicted_and_named() -> None:
    """The nearest sentence, its place in its passage, and both figures."""
    span, explanation = explained("45 mg")
    assert (span.passage, explanation.kind) == (0, SpanKind.CONTRADICTED)
    assert explanation.sentence == (0, PASSAGES[0].text.index(" Anna"))
    (difference,) = explanation.differences
    assert difference.kind is DifferenceKind.NUMBER
    assert ANSWER[difference.start : difference.end] == "45 mg"
    assert difference.evidence is not None
    assert PASSAGES[0].text[slice(*difference.evidence)] == "54 mg"
    assert explanation.reason == "the nearest sentence gives another number"


def test_a_lost_negation_is_contradicted() -> None:
    """Nearly the same words, the other way round."""
    span, explanation = explained("open")
    assert (span.passage, explanation.kind) == (1, SpanKind.CONTRADICTED)
    assert explanation.confidence > 0.7
    assert explanation.similarity > 0.7


def test_an_invented_source_is_fabricated() -> None:
    """A citation that stands nowhere, in a sentence that the evidence does not come near to."""
    _, explanation = explained("Its roof garden attracts walkers, as Norrel et al. (2019) report")
    assert explanation.kind is SpanKind.FABRICATED
    assert explanation.reason == "it gives a citation that stands nowhere in the evidence"


def test_what_the_evidence_does_not_say_of_its_matter_is_unsupported() -> None:
    """The ferry is spoken of, its restaurant is not."""
    span, explanation = explained("a small restaurant")
    assert (span.passage, explanation.kind) == (1, SpanKind.UNSUPPORTED)
    assert explanation.differences == ()


def test_nothing_near_has_no_passage_and_is_made_up() -> None:
    """No sentence shares a word: no arbitrary one is shown."""
    text = "Bananas ripen quickest beside apples in paper bags."
    span, explanation = explained(text, text=text)
    assert (span.passage, explanation.sentence, explanation.similarity) == (None, None, 0.0)
    assert explanation.kind is SpanKind.FABRICATED


def test_without_evidence_and_without_spans_there_is_nothing_to_compare() -> None:
    """An empty request or a clean answer breaks nothing."""
    assert Explainer(PASSAGES).explain(ANSWER, []) == ()
    span, explanation = explained("45 mg", passages=())
    assert (span.passage, explanation.sentence) == (None, None)
    (bare,) = Explainer(PASSAGES).explain("... !", [Span(0, 3, 0.9)])
    assert bare.explanation is not None


def test_a_span_over_several_sentences_shows_the_one_that_differs() -> None:
    """What tells most is shown, and every difference belongs to the passage that is named."""
    text = "The garden attracts walkers all year. Adults start with 45 mg of Corvadil a day."
    span, explanation = explained(text, text=text)
    assert span.passage == 0
    assert [text[each.start : each.end] for each in explanation.differences] == ["45 mg"]


def test_the_evidence_may_be_chinese() -> None:
    """Sentence, kind and difference in a script without spaces."""
    passages = (Passage("图书馆周一开放。药片溶于水。", Provenance.TOOL),)
    text = "药片不溶于水。"
    span, explanation = explained("不溶于", text=text, passages=passages)
    assert (span.passage, explanation.kind) == (0, SpanKind.CONTRADICTED)
    assert explanation.sentence == (8, 14)


def test_no_reason_holds_text_of_answer_or_evidence() -> None:
    """Reasons are safe to log: they are made of our own words alone."""
    for part in (
        "45 mg",
        "open",
        "Its roof garden attracts walkers, as Norrel et al. (2019) report",
        "a small",
    ):
        reason = explained(part)[1].reason
        assert not any(secret in reason for secret in ("45", "54", "Norrel", "Corvadil", "garden"))


@given(
    st.lists(st.text(alphabet="ab 1.\nAB年不", max_size=40), max_size=3),
    st.text(alphabet="ab 1.\nAB年不", min_size=1, max_size=60),
    st.data(),
)
@settings(max_examples=60)
def test_whatever_the_texts_all_offsets_are_valid(
    passages: list[str], text: str, data: st.DataObject
) -> None:
    """Sentences lie in the named passage, differences in the answer, and figures within 0..1."""
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    records = [Passage(each, Provenance.TOOL) for each in passages]
    (span,) = Explainer(records).explain(text, [Span(start, end, 0.5)])
    explanation = span.explanation
    assert explanation is not None
    assert 1 / 3 <= explanation.confidence <= 1.0
    assert 0.0 <= explanation.similarity <= 1.0
    assert (span.passage is None) == (explanation.sentence is None)
    assert all(0 <= each.start < each.end <= len(text) for each in explanation.differences)
    if span.passage is not None and explanation.sentence is not None:
        first, last = explanation.sentence
        assert 0 <= first < last <= len(passages[span.passage])
        assert passages[span.passage][first:last].strip()


@given(st.lists(st.floats(0.0, 1.0), min_size=13, max_size=13))
def test_the_kinds_share_one_probability(figures: list[float]) -> None:
    """Three figures that sum to one, whatever the standing."""
    found = probabilities(Standing(*figures))
    assert sum(found.values()) == pytest.approx(1.0)
    assert set(found) == {SpanKind.CONTRADICTED, SpanKind.UNSUPPORTED, SpanKind.FABRICATED}
    assert all(0.0 <= each <= 1.0 for each in found.values())


@pytest.mark.parametrize("kind", list(SpanKind))
def test_every_kind_has_a_reason_without_differences(kind: SpanKind) -> None:
    """Nothing to name is no reason to say nothing."""
    assert reason_for(kind, [], Standing())
    assert reason_for(kind, [], Standing(similarity=0.5, absent=0.25))
