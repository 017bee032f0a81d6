"""The editor is honest, imperfect, and touches only what it was told of."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.mitigation.simulation.editor import Editor, Habits
from truthlens.text.sentences import sentences

ANSWER = "The kiln holds forty pots.\n\n1. Heat it for nine hours.\n2. Let it cool overnight.\n\nOpen it in the morning."
PASSAGES = ["A kiln of this size holds 40 pots. Heating takes eleven hours. Cool it for 2 days."]


def editor(
    habits: Habits, *, seed: int = 0, supported: bool = False, invented: list[str] | None = None
) -> Editor:
    noted = [] if invented is None else invented
    return Editor(habits, random.Random(seed), supported=lambda _: supported, invent=noted.append)


def told(part: str) -> list[tuple[int, int]]:
    return [(ANSWER.index(part), ANSWER.index(part) + len(part))]


def test_a_sentence_is_removed_and_the_gap_closes() -> None:
    """Removing takes the whole sentence and leaves the paragraphs."""
    found = editor(Habits(mends=1.0, errs=0.0, rewrites=0.0)).edit(ANSWER, told("overnight"), PASSAGES)
    assert found == "The kiln holds forty pots.\n\n1. Heat it for nine hours.\n\nOpen it in the morning."


def test_a_sentence_is_rewritten_from_the_evidence() -> None:
    """Rewriting puts the nearest sentence of the evidence in place, behind the list mark."""
    found = editor(Habits(mends=1.0, errs=0.0, rewrites=1.0)).edit(ANSWER, told("nine"), PASSAGES)
    assert found == ANSWER.replace("Heat it for nine hours.", "Heating takes eleven hours.")


def test_an_editor_that_never_corrects_returns_the_answer() -> None:
    """With probability 0 nothing changes."""
    assert editor(Habits(mends=0.0, errs=0.0)).edit(ANSWER, told("nine"), PASSAGES) == ANSWER


def test_what_its_checks_cleared_stays() -> None:
    """A part that it was told of but found supported is left alone."""
    habits = Habits(mends=1.0, errs=0.0)
    assert editor(habits).edit(ANSWER, told("nine"), PASSAGES, cleared=told("nine")) == ANSWER


def test_a_discerning_editor_leaves_what_is_supported() -> None:
    """With full discernment a wrong accusation changes nothing."""
    habits = Habits(mends=1.0, errs=0.0, discerns=1.0)
    assert editor(habits, supported=True).edit(ANSWER, told("nine"), PASSAGES) == ANSWER
    assert editor(habits, supported=False).edit(ANSWER, told("nine"), PASSAGES) != ANSWER


@pytest.mark.parametrize("seed", range(8))
def test_inventions_are_noted_and_stand_in_the_text(seed: int) -> None:
    """Every invented sentence is told of, word by word."""
    invented: list[str] = []
    found = editor(Habits(mends=0.0, errs=1.0), seed=seed, invented=invented).edit(ANSWER, [], PASSAGES)
    assert len(invented) == 1
    assert invented[0] in found
    assert invented[0] not in PASSAGES[0]
    assert found.replace(invented[0], "").split() == ANSWER.split()


def test_an_answer_that_is_all_wrong_does_not_vanish() -> None:
    """Where every sentence goes, one comes back from the evidence."""
    text = "Heat it for nine hours."
    found = editor(Habits(mends=1.0, errs=0.0, rewrites=0.0)).edit(text, [(0, len(text))], PASSAGES)
    assert found == "Heating takes eleven hours."


@given(st.integers(0, 1000), st.lists(st.tuples(st.integers(0, 90), st.integers(1, 30)), max_size=3))
def test_what_it_was_not_told_of_stays(seed: int, parts: list[tuple[int, int]]) -> None:
    """Sentences outside the told parts stand in the result, in their order."""
    spans = [(start, start + length) for start, length in parts]
    found = editor(Habits(mends=0.8, errs=0.0), seed=seed).edit(ANSWER, spans, PASSAGES)
    at = 0
    for start, end in sentences(ANSWER):
        if not any(start < until and begin < end for begin, until in spans):
            at = found.index(ANSWER[start:end], at) + 1
