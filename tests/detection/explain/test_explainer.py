"""Tests of ``truthlens.detection.explain.explainer`` and ``span_kind``."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.verdict import Span
from truthlens.detection.explain.explainer import Explainer, reason_for
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


FEES = (
    Passage("Wires ordered before 3 p.m. are sent the same day.", Provenance.DOCUMENTS),
    Passage(
        "Brightwater Bank charges 12 dollars for a domestic wire transfer and 75 dollars for an international one. "
        "Abroad, 90 dollars is the most.",
        Provenance.DOCUMENTS,
    ),
)


@pytest.mark.parametrize(
    ("text", "wrong", "meant"),
    [
        ("Brightwater Bank charges 40 dollars for an international wire transfer.", "40", "75 dollars"),
        ("Brightwater Bank charges 40 dollars for a domestic wire transfer.", "40", "12 dollars"),
        ("An international wire transfer costs 40 dollars.", "40", "75 dollars"),
        ("A domestic wire transfer costs 40 dollars.", "40", "12 dollars"),
    ],
)
def test_of_several_values_the_one_that_is_meant_is_named(text: str, wrong: str, meant: str) -> None:
    """What a list of values begins with is said of each of them."""
    _, explanation = explained(wrong, text=text, passages=FEES)
    (difference,) = explanation.differences
    assert difference.evidence is not None
    assert FEES[1].text[slice(*difference.evidence)] == meant


@pytest.mark.parametrize("given", ["75 dollars", "90 dollars"])
def test_what_a_detector_of_values_has_compared_is_explained_alike(given: str) -> None:
    """The words alone would name another value, of another sentence; values that it did not compare are found as before."""
    text = "It costs 40 dollars to send a wire transfer abroad before 5 p.m."
    start, there = text.index("40 dollars"), FEES[1].text.index(given)
    own = Explanation(
        SpanKind.CONTRADICTED, 0.6, "why", (0, 106), 0.5,
        (Difference(DifferenceKind.NUMBER, start, start + 10, (there, there + len(given))),),
    )  # fmt: skip
    compared = Span(start, start + 10, 0.6, "numbers", passage=1, explanation=own)
    first, second = Explainer(FEES).explain(text, [Span(start, start + 30, 0.96), compared])
    assert second == compared
    assert first.explanation is not None
    assert first.explanation.sentence is not None
    assert given in FEES[1].text[slice(*first.explanation.sentence)]
    assert (first.passage, first.explanation.differences[0].evidence) == (1, (there, there + len(given)))


def test_what_a_detector_of_values_found_nowhere_is_set_against_nothing() -> None:
    """A sum of something else is not named in its place."""
    text = "A wire transfer earns a bonus of 40 dollars."
    start = text.index("40 dollars")
    given = Difference(DifferenceKind.NUMBER, start, start + 10)
    absent = Span(
        start, start + 10, 0.6, "numbers", explanation=Explanation(SpanKind.UNSUPPORTED, 0.6, "why", differences=(given,))
    )  # fmt: skip
    span = Span(0, len(text), 0.96)
    alone, _ = Explainer(FEES).explain(text, [span, replace(absent, explanation=None)])
    beside, _ = Explainer(FEES).explain(text, [span, absent])
    assert alone.explanation is not None
    assert alone.explanation.differences[0].evidence is not None
    assert beside.explanation is not None
    assert beside.explanation.differences == (given,)


def test_another_weekday_is_contradicted() -> None:
    """A date is told by itself, as a number is by its unit: the sentence has one, and another one."""
    passages = (Passage("The meeting is on Tuesday.", Provenance.DOCUMENTS),)
    for part in ("Wednesday", "The meeting is on Wednesday"):
        _, explanation = explained(part, text="The meeting is on Wednesday.", passages=passages)
        assert explanation.kind is SpanKind.CONTRADICTED
        assert explanation.reason == "the nearest sentence gives another date"
        assert 0.5 <= explanation.confidence <= 1.0


@pytest.mark.parametrize("kind", [SpanKind.UNSUPPORTED, SpanKind.CONTRADICTED, SpanKind.OVER_EXTRAPOLATION])
@pytest.mark.parametrize("part", ["45 mg", "a small restaurant"])
def test_the_kind_that_a_detector_states_is_shown(kind: SpanKind, part: str) -> None:
    """Whatever the words look like: a judge's "unsupported" is not made "contradicted"."""
    start = ANSWER.index(part)
    given = Span(start, start + len(part), 0.8, "judge", kind=kind)
    (span,) = Explainer(PASSAGES).explain(ANSWER, [given])
    assert span.explanation is not None
    assert (span.explanation.kind, span.explanation.confidence) == (kind, 0.8)
    assert span.explanation.sentence is not None


def test_what_a_detector_states_goes_before_a_guess_about_the_same_words() -> None:
    start = ANSWER.index("a small restaurant")
    guessed, elsewhere = Span(start, start + 18, 0.9), Span(0, 6, 0.9)
    stated = Span(start, start + 7, 0.7, "judge", kind=SpanKind.CONTRADICTED)
    kinds = [
        [span.explanation.kind for span in Explainer(PASSAGES).explain(ANSWER, spans) if span.explanation]
        for spans in ([guessed, elsewhere], [guessed, elsewhere, stated])
    ]
    assert kinds[0][0] is not SpanKind.CONTRADICTED
    assert kinds[1] == [SpanKind.CONTRADICTED, kinds[0][1], SpanKind.CONTRADICTED]


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
