"""Tests of ``truthlens.lab.data.synthetic_errors``."""

from __future__ import annotations

from truthlens.lab.data.dataset import Example
from truthlens.lab.data.synthetic_errors import SOURCE, synthesize

CONTEXTS = (
    """The old bridge at Tamsel was opened on 4 March 1931 and carries 1,200 carts a week. Repairs by the town of Luren \
cost 35% more than planned. The toll was not raised before winter. Engineers from Brask Hollow inspected the higher \
arches twice.""",
    """The herb garden in Oslo Park grows forty kinds of mint and has 3 ponds. Visitors can walk there on Sunday with a \
guide called Marta Lind. The gardeners always water the beds in the early morning.""",
)
BASES = [
    Example(str(n), "made", "qa", "What of it?", (context,), "", 0, (), f"made:{n}")
    for n, context in enumerate(CONTEXTS)
]


def test_about_half_have_a_marked_error() -> None:
    """Labels, spans and source agree, and both kinds are there in number."""
    made = synthesize(BASES, count=300, seed=1)
    assert len(made) == 300
    assert all(row.label == int(bool(row.spans)) and row.source == SOURCE for row in made)
    assert 0.35 < sum(row.label for row in made) / 300 < 0.65


def test_marks_point_to_what_the_evidence_does_not_say() -> None:
    """A marked part stands in no sentence of the evidence at its place: the clean sentence does not hold it."""
    for row in synthesize(BASES, count=200, seed=2):
        assert row.spans is not None
        for start, end in row.spans:
            assert 0 <= start < end <= len(row.response)
            around = row.response[max(0, start - 12) : end + 12].strip()
            assert around not in row.context[0]


def test_groups_stay_with_their_source_text() -> None:
    """A synthetic answer is in the group of its evidence, so that splits hold."""
    assert {row.group for row in synthesize(BASES, count=50, seed=3)} == {"made:0", "made:1"}


def test_the_same_seed_makes_the_same_answers() -> None:
    """Synthesis is repeatable."""
    assert synthesize(BASES, count=20, seed=4) == synthesize(BASES, count=20, seed=4)
    assert synthesize(BASES, count=20, seed=4) != synthesize(BASES, count=20, seed=5)


def test_clean_answers_cover_what_detectors_wrongly_flag() -> None:
    """Abstentions, lead-ins and restated questions are among the supported answers."""
    clean = [row.response for row in synthesize(BASES, count=400, seed=6) if not row.label]
    assert any(text.startswith("Unable to answer") for text in clean)
    assert any(text.startswith("Based on the") for text in clean)
    assert any("You asked: What of it?" in text for text in clean)


def test_without_sources_nothing_is_made() -> None:
    """No evidence, no answers, no endless loop."""
    assert synthesize([], count=5, seed=0) == []
