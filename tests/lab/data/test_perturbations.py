"""Tests of ``truthlens.lab.data.perturbations``."""

from __future__ import annotations

import random

import pytest

from truthlens.lab.data.perturbations import CORRUPTIONS, Corruption, Perturbation

CONTEXT = """The old bridge at Tamsel was opened on 4 March 1931 and carries about 1,200 carts a week. Repairs by the town of \
Luren cost 35% more than planned, and crossing takes 12 minutes. The toll was not raised before winter. Engineers from Brask \
Hollow met the mayor of Luren and inspected the higher arches twice."""


@pytest.mark.parametrize(
    "corruption", sorted(set(CORRUPTIONS), key=lambda f: f.__name__), ids=lambda f: f.__name__
)
def test_each_edit_changes_a_sentence_it_applies_to(corruption: Corruption) -> None:
    """Every kind of error finds a sentence here, and the sentence says something else afterwards."""
    edits = [
        (sentence, edit)
        for seed in range(40)
        for sentence in (f"{part.rstrip('.')}." for part in CONTEXT.split(". "))
        if (edit := corruption(sentence, CONTEXT, random.Random(seed))) is not None
    ]
    assert edits
    for sentence, edit in edits:
        assert 0 <= edit.start <= edit.end <= len(sentence)
        wrong = edit.apply(sentence)
        assert wrong != sentence
        assert wrong[slice(*edit.span)] == edit.text


def test_the_span_is_what_the_edit_put_there() -> None:
    """An edit's span points into the edited sentence."""
    edit = Perturbation(4, 9, "hazel")
    assert edit.apply("The rowan is old.") == "The hazel is old."
    assert edit.span == (4, 9)


def test_swapped_roles_keep_every_word() -> None:
    """Two names change places: only the relation is wrong."""
    swap = next(corruption for corruption in CORRUPTIONS if corruption.__name__ == "_swap_roles")
    sentence = "In spring the mayor Edda Roe beat her rival Max Ulm by a mile."
    edit = swap(sentence, sentence, random.Random(1))
    assert edit is not None
    assert edit.apply(sentence) == "In spring the mayor Max Ulm beat her rival Edda Roe by a mile."


def test_a_sentence_without_anything_to_change_is_left() -> None:
    """No number, name, hedge or unit: those edits give nothing."""
    named = {corruption.__name__: corruption for corruption in CORRUPTIONS}
    for name in (
        "_change_number",
        "_swap_name",
        "_overstate",
        "_change_unit",
        "_change_calendar",
        "_invent_name",
    ):
        assert named[name]("It rains.", "It rains.", random.Random(0)) is None
