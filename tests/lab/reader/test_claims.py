"""Tests of ``truthlens.lab.reader.claims``."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from truthlens.lab.data.dataset import Example
from truthlens.lab.data.twins import PLAIN_SOURCE
from truthlens.lab.data.twins import SOURCE as TWINS
from truthlens.lab.reader.claims import (
    CONTRADICTED,
    NOT_STATED,
    SUPPORTED,
    UNSUPPORTED,
    ClaimSets,
    IdleSentences,
    labelled_claims,
)

_ROW = Example(
    "1", "made", "qa", "", ("The pool opens at nine on weekdays.",), "It opens at nine.", 0, None, "made:g"
)


def _wrong(**changes: object) -> Example:
    return replace(_ROW, response="It opens at ten.", label=1, **changes)  # type: ignore[arg-type]


def test_an_answer_of_one_claim_has_the_answers_label() -> None:
    """One sentence is what its answer is; the kind of item says which outcome it is."""
    assert [each.label for each in labelled_claims(_ROW)] == [SUPPORTED]
    assert [each.label for each in labelled_claims(_wrong())] == [UNSUPPORTED]
    assert [each.label for each in labelled_claims(_wrong(kind="C"))] == [CONTRADICTED]
    assert [each.label for each in labelled_claims(_wrong(kind="orig:N"))] == [NOT_STATED]
    assert [each.label for each in labelled_claims(_wrong(kind="E"))] == [UNSUPPORTED]


def test_of_a_marked_answer_the_marked_claim_is_wrong() -> None:
    """People marked what is wrong; the other sentences are supported."""
    text = "The pool is in the park. It opens at ten. Dogs stay outside."
    start = text.index("ten")
    row = replace(_ROW, response=text, label=1, spans=((start, start + 3),))
    assert [each.label for each in labelled_claims(row)] == [SUPPORTED, UNSUPPORTED, SUPPORTED]


def test_of_an_unmarked_wrong_answer_nothing_is_known() -> None:
    """Nobody said which of two claims is wrong, so neither is learnt from."""
    assert labelled_claims(replace(_ROW, response="The pool is large. It opens at ten.", label=1)) == []


def test_a_set_has_both_labels_where_there_are_both() -> None:
    """Right and wrong answers to one evidence are learnt against each other."""
    sets = ClaimSets([_ROW, _wrong(), replace(_ROW, id="2", group="made:h")])
    drawn = [sets.draw(random.Random(seed)) for seed in range(20)]
    assert any({each.supported for each in members} == {True, False} for members in drawn)
    assert all(len({each.example.group for each in members}) == 1 for members in drawn)


@pytest.mark.parametrize("source", [TWINS, PLAIN_SOURCE])
def test_of_a_long_twin_the_sentence_with_the_fact_is_learnt(source: str) -> None:
    """The supported side of a twin has no marks of its own: its twin's say where the fact stands."""
    text = "The pool is in the park. It opens at ten."
    start = text.index("ten")
    wrong = replace(_ROW, source=source, response=text, label=1, spans=((start, start + 3),), pair="p")
    right = replace(wrong, context=("It opens at ten.",), label=0, spans=())
    drawn = [
        each
        for seed in range(9)
        for each in ClaimSets([wrong, right]).draw(random.Random(seed))
        if each.supported
    ]
    assert {each.text for each in drawn if each.example is right} == {"It opens at ten."}


def test_idle_sentences_are_the_same_for_a_whole_set() -> None:
    """What is put around the evidence must tell nothing of the label, and never be of the same source text."""
    idle = IdleSentences(
        [
            replace(_ROW, context=(f"The tenth of {n} gardens lies behind the mill.",), group=f"made:{n}")
            for n in range(9)
        ]
    )
    members = ClaimSets([_ROW, _wrong()]).draw(random.Random(1))
    around = idle.around(members, random.Random(3))
    added = {
        each.passages[0].replace(old.passages[0], "|") for each, old in zip(around, members, strict=True)
    }
    assert len(added) == 1
    assert "gardens" in added.pop()


def test_long_evidence_gets_no_idle_sentences() -> None:
    """It has enough of its own."""
    idle = IdleSentences(
        [replace(_ROW, context=("The tenth of nine gardens lies behind the mill.",), group="other")]
    )
    members = ClaimSets([replace(_ROW, context=("The pool opens at nine. " * 40,))]).draw(random.Random(1))
    assert idle.around(members, random.Random(3)) == members
