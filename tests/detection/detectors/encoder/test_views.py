"""Tests of ``truthlens.detection.detectors.encoder.views``: a part of an answer, and the text right before it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import AnswerKind
from truthlens.core.records.exchange import Answer
from truthlens.detection.detectors.encoder.views import CONTEXT_CHARACTERS, excerpt_of
from truthlens.text.sentences import sentences

LATE = "Boats leave from pier nine. " * 20


def answer(text: str) -> Answer:
    return Answer(3, AnswerKind.TEXT, text)


@given(
    text=st.text(alphabet="ab .!\n。", min_size=1, max_size=700),
    places=st.lists(st.integers(0, 700), min_size=2, max_size=6, unique=True),
)
def test_the_parts_keep_their_text_and_little_stands_before_them(text: str, places: list[int]) -> None:
    """Whatever the text: no character of a part is lost, none behind them stays, and the answer is known again."""
    cuts = sorted({min(place, len(text)) for place in places})
    ranges = list(pairwise(cuts)) or [(0, cuts[0])]
    excerpt = excerpt_of(answer(text), ranges)
    found = [excerpt.answer.text[start:end] for start, end in excerpt.ranges]
    assert found == [text[start:end] for start, end in ranges]
    assert 0 <= ranges[0][0] - excerpt.start <= CONTEXT_CHARACTERS
    assert text[excerpt.start : ranges[-1][1]] == excerpt.answer.text
    assert (excerpt.answer.index, excerpt.answer.kind) == (3, AnswerKind.TEXT)


@given(before=st.text(alphabet="ab .\n", max_size=400), text=st.text(alphabet="ab .\n", max_size=260))
def test_text_out_of_reach_changes_nothing(before: str, text: str) -> None:
    """What stands further before than the reach may be anything."""
    near = text.rjust(CONTEXT_CHARACTERS, "b") + "Part."
    excerpts = [
        excerpt_of(answer(far + near), [(len(far + near) - 5, len(far + near))])
        for far in (before + "a", "c")
    ]
    assert excerpts[0].answer == excerpts[1].answer


def test_the_context_begins_with_a_whole_sentence() -> None:
    """Of sentences that begin within reach the earliest; the one that the reach cuts through is left out."""
    text = LATE + "It is red."
    excerpt = excerpt_of(answer(text), [sentences(text)[-1]])
    assert excerpt.answer.text == "Boats leave from pier nine. " * 7 + "It is red."
    assert excerpt.start == 13 * 28


def test_all_text_within_reach_is_context() -> None:
    """At the beginning of an answer nothing is left out."""
    text = "  Lamps. Boats are late."
    assert excerpt_of(answer(text), [(9, len(text))]).start == 0


def test_within_a_long_sentence_the_context_begins_with_a_word() -> None:
    """A part in mid-sentence has the words before it; where there is no space, what the reach gives."""
    text = "lantern " * 60
    excerpt = excerpt_of(answer(text), [(400, 440)])
    assert excerpt.answer.text.startswith("lantern ")
    assert CONTEXT_CHARACTERS - len("lantern ") <= 400 - excerpt.start <= CONTEXT_CHARACTERS
    assert excerpt_of(answer("x" * 900), [(700, 800)]).start == 700 - CONTEXT_CHARACTERS


def test_without_parts_there_is_no_excerpt() -> None:
    """Nothing to be scored is a fault of the caller."""
    with pytest.raises(ValueError, match="empty"):
        excerpt_of(answer("Lamps."), [])
