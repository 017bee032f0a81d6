"""Tests of ``truthlens.lab.data.paraphrase``."""

from __future__ import annotations

import random

import pytest

from truthlens.lab.data.paraphrase import reword


def _said(sentence: str) -> set[str]:
    return {reword(sentence, random.Random(seed)) for seed in range(60)}


@pytest.mark.parametrize(
    ("sentence", "other"),
    [
        ("It weighs 12% more.", "It weighs 12 percent more."),
        ("It cost 1,200,000 crowns.", "It cost 1.2 million crowns."),
        ("It has 3 doors.", "It has three doors."),
        ("The road is not open.", "The road isn't open."),
        ("The hall (an old barn) is full.", "The hall is full."),
        ("However, the hall is full.", "The hall is full."),
        ("The hall is large.", "The hall is big."),
    ],
)
def test_a_sentence_can_be_said_another_way(sentence: str, other: str) -> None:
    """Each rewording is among what is made, and so is the sentence as it was."""
    assert {sentence, other} <= _said(sentence)


def test_plain_sentences_stay() -> None:
    """Nothing to reword, nothing changed."""
    assert _said("Rowan trees grow slowly.") == {"Rowan trees grow slowly."}
