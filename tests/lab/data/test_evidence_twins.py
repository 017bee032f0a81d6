import random
from collections import Counter

import pytest

from truthlens.lab.data.dataset import Example
from truthlens.lab.data.evidence_twins import evidence_twins

PASSAGES = (
    "Bob Miller bought the house from Carol Jones in March 1998. He paid 250,000 dollars, and she kept 3,400 of it.",
    "The ferry is not open to cars. It leaves before noon on Tuesday and carries 120 people.",
    "The council has approved the larger of the two plans, which Anna Weber had drawn in Lisbon in 2004.",
)
ANSWERS = (
    "Bob Miller bought the house in March 1998 and paid 250,000 dollars for it.",
    "Cars cannot go on it: the ferry is not open to cars. It leaves before noon on Tuesday.",
    "The council has approved the larger of the two plans, the one of Anna Weber of 2004.",
)


def _rows(label: int = 0) -> list[Example]:
    return [
        Example(f"r{n}", "made", "qa", "", (passage,), answer, label, None if label else (), f"g{n}")
        for n, (passage, answer) in enumerate(zip(PASSAGES, ANSWERS, strict=True))
    ]


@pytest.fixture(scope="module")
def made() -> list[Example]:
    return evidence_twins(_rows(), count=400, seed=3)


def test_four_rows_cross_two_answers_with_two_evidences(made: list[Example]) -> None:
    assert len(made) >= 400
    assert len(made) % 4 == 0
    for place in range(0, len(made), 4):
        four = made[place : place + 4]
        assert [row.label for row in four] == [0, 1, 0, 1]
        assert len({row.pair for row in four}) == 1
        assert len({row.group for row in four}) == 1
        true, false, other_true, other_false = four
        assert true.response == false.response != other_true.response == other_false.response
        assert true.context == other_false.context != false.context == other_true.context


def test_marks_hold_what_was_exchanged(made: list[Example]) -> None:
    for row in made:
        assert bool(row.spans) == bool(row.label)
        for start, end in row.spans or ():
            marked = row.response[start:end]
            assert marked
            assert marked == marked.strip()
    assert {"number", "date", "role", "opposite", "negation"} <= set(Counter(row.kind for row in made))


def test_no_answer_tells_its_label(made: list[Example]) -> None:
    by_answer: dict[str, list[int]] = {}
    for row in made:
        by_answer.setdefault(row.response, []).append(row.label)
    assert all(sum(labels) * 2 == len(labels) for labels in by_answer.values())


def test_roles_are_exchanged_in_the_evidence(made: list[Example]) -> None:
    roles = [row for row in made if row.kind == "role" and row.label and "Bob" in row.response]
    assert any("Carol Jones bought the house from Bob Miller" in row.context[0] for row in roles)


def test_only_supported_answers_are_used_and_the_draw_repeats() -> None:
    assert evidence_twins(_rows(label=1), count=10, seed=1) == []
    assert evidence_twins(_rows(), count=40, seed=random.Random(5).randrange(9)) == evidence_twins(
        _rows(), count=40, seed=random.Random(5).randrange(9)
    )
