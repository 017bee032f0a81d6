"""Tests of ``bench.detection.crowds``."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bench.detection.crowds import (
    PASSAGE_CHARACTERS,
    DistractorPool,
    Donors,
    as_passages,
    crowd,
    plant_number,
)
from truthlens.lab.data.dataset import Example

TOPICS = {
    "harbour": "The harbour closes its eastern gate at nine because tides are strong in late {}.",
    "library": "A library lends maps, atlases and rare charts to every member of guild {}.",
    "bakery": "The bakery sells rye loaves and seeded rolls on market days in street {}.",
    "orchard": "Orchard workers prune old pear trees and burn the cut wood in field {}.",
    "museum": "The museum shows model ships, brass lamps and a whaling boat in hall {}.",
}


def example(group: str, *, response: str = "", query: str = "", passages: int = 2) -> Example:
    """A supported answer on one topic."""
    context = tuple(TOPICS[group].format(number) for number in range(passages))
    return Example(
        id=f"row-{group}", source="own", task="qa", query=query, context=context,
        response=response or context[0], label=0, spans=(), group=group,
    )  # fmt: skip


ROWS = [example(group) for group in TOPICS]
POOL = DistractorPool(ROWS)


def test_distractors_come_from_other_groups() -> None:
    """No passage of the row's own group, nor of a group that is left out, is among them."""
    row = example("harbour")
    found = POOL.random(row, 100, seed=1, without=frozenset({"bakery"}))
    assert len(found) == len(set(found)) == 3
    assert not any("harbour" in passage or "bakery" in passage for passage in found)


def test_random_distractors_depend_on_seed_and_row_alone() -> None:
    """The same seed draws the same, another seed another order; fewer are the first of more."""
    row = example("museum")
    assert POOL.random(row, 6, seed=1) == POOL.random(row, 6, seed=1)
    assert POOL.random(row, 6, seed=1) != POOL.random(row, 6, seed=2)
    assert POOL.random(row, 6, seed=1)[:2] == POOL.random(row, 2, seed=1)


def test_hard_distractors_share_the_words_of_query_and_answer() -> None:
    """The nearest topic comes first."""
    row = example("museum", query="Who lends rare charts and atlases?", response="It has a boat.")
    assert "library" in POOL.hard(row, 1)[0]


def test_near_duplicates_are_no_distractors() -> None:
    """A passage of another group that says the same as an own one could support the answer, so it is left out."""
    twin = Example(**{**_fields(example("harbour")), "group": "harbour-copy", "id": "copy"})
    assert not any(
        "harbour" in passage for passage in DistractorPool([*ROWS, twin]).hard(example("harbour"), 100)
    )


def _fields(row: Example) -> dict[str, object]:
    return {name: getattr(row, name) for name in Example.__slots__}


@given(own=st.integers(1, 6), others=st.integers(0, 30), seed=st.integers(0, 99), last=st.booleans())
def test_a_crowd_keeps_every_passage_and_the_order_of_the_own(
    own: int, others: int, seed: int, last: bool
) -> None:
    """Own passages and distractors are all there, each kind in its order, and the marks tell which is which."""
    row = example("orchard", passages=own)
    distractors = [f"distractor {number}" for number in range(others)]
    crowded = crowd(row, distractors, seed=seed, own_last=last)
    marked = list(zip(crowded.example.context, crowded.own, strict=True))
    assert [text for text, mark in marked if mark] == list(row.context)
    assert [text for text, mark in marked if not mark] == distractors
    assert crowded.example.response == row.response
    if last:
        assert all(crowded.own[others:])


def test_places_differ_from_row_to_row_and_seed_to_seed() -> None:
    """Own passages do not always stand in the same place."""
    distractors = [f"distractor {number}" for number in range(30)]
    places = {crowd(example("orchard"), distractors, seed=seed).own for seed in range(5)}
    places |= {crowd(example("museum"), distractors, seed=0).own}
    assert len(places) == 6


def test_lists_of_sentences_are_joined_and_long_documents_cut() -> None:
    """Passages have a usual size whatever the data set's way of cutting, and no text is lost."""
    listed = [f"Sentence number {number} is short." for number in range(60)]
    joined = as_passages(listed)
    assert 1 < len(joined) < 10
    assert " ".join(joined) == " ".join(listed)
    cut = as_passages([" ".join(listed)])
    assert " ".join(cut) == " ".join(listed)
    assert max(map(len, [*joined, *cut])) <= PASSAGE_CHARACTERS + 1
    usual = ["A passage of two hundred characters. " * 6] * 3
    assert as_passages(usual) == tuple(usual)


def test_a_planted_sentence_is_the_only_span() -> None:
    """The planted sentence is of another group, stands where the span says, and the rest of the answer is unchanged."""
    row = example("harbour", response="The gate closes at nine. Tides are strong.")
    planted = Donors(ROWS).plant(row)
    assert planted is not None
    ((start, end),) = planted.example.spans or ()
    sentence = planted.example.response[start:end]
    (group,) = planted.groups
    assert sentence == TOPICS[group].format(0)
    assert group != "harbour"
    assert planted.example.label == 1
    assert planted.example.response.replace(f" {sentence}", "") == row.response


def test_a_sentence_that_the_evidence_holds_is_not_planted() -> None:
    """Without an unsupported sentence nothing is planted."""
    donor = Example(**{**_fields(example("harbour")), "group": "other"})
    assert Donors([donor]).plant(example("harbour")) is None


def test_a_changed_number_is_not_in_the_evidence() -> None:
    """One number that the evidence holds becomes one that it does not; the span covers it."""
    row = example("bakery", response="Rolls are sold in street 1, on market days.", passages=5)
    planted = plant_number(row)
    assert planted is not None
    ((start, end),) = planted.example.spans or ()
    changed = planted.example.response[start:end]
    assert changed.isdigit()
    assert not any(f"street {changed}." in passage for passage in row.context)
    assert planted.example.response[:start] + "1" + planted.example.response[end:] == row.response


def test_an_answer_without_numbers_of_the_evidence_gets_none_changed() -> None:
    """Numbers that the evidence does not hold are unsupported already."""
    assert plant_number(example("bakery", response="Rolls cost 77 cents.")) is None
