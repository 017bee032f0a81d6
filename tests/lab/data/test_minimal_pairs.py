"""Tests of ``truthlens.lab.data.minimal_pairs``."""

from __future__ import annotations

from dataclasses import replace

from truthlens.lab.data.dataset import Example
from truthlens.lab.data.minimal_pairs import (
    EVIDENCE,
    PAIRS,
    locate_errors,
    minimal_pairs,
    other_evidence,
)

PASSAGES = (
    (
        "The mill at Orsen was built in 1871 by two brothers. It grinds barley and rye for nine villages. "
        "A flood in 1904 broke the wheel. The wheel was replaced with an iron one from Hadwick."
    ),
    "Visitors may enter on Sunday for a small fee. The keeper sells bread in the yard. Dogs stay outside.",
)
ANSWER = "The mill at Orsen was built in 1871 by two brothers. Visitors may enter on Sunday for a small fee."
ROW = Example("r", "made", "qa", "What of the mill?", PASSAGES, ANSWER, 0, (), "made:1")


def test_a_pair_differs_in_one_marked_place() -> None:
    """Taking the marked part out of the wrong answer leaves the parts that the right one has as well."""
    rows = minimal_pairs([ROW], count=30, seed=1)
    assert len(rows) == 60
    for right, wrong in zip(rows[::2], rows[1::2], strict=True):
        assert (right.label, wrong.label) == (0, 1)
        assert right.pair == wrong.pair
        assert {right.source, right.group} == {PAIRS, "made:1"}
        assert wrong.spans is not None
        ((start, end),) = wrong.spans
        assert wrong.response != right.response
        assert right.response.startswith(wrong.response[:start])
        assert right.response.endswith(wrong.response[end:])
    assert len({row.pair for row in rows}) == 30
    assert rows == minimal_pairs([ROW], count=30, seed=1)


def test_only_supported_answers_with_claims_are_edited() -> None:
    """Unsupported answers and abstentions make no pairs, and nothing runs for ever."""
    wrong = replace(ROW, label=1, spans=((0, 5),))
    silent = replace(ROW, response="I cannot answer this from the passages that were provided.")
    assert minimal_pairs([wrong, silent], count=5, seed=1) == []


def test_one_changed_place_is_marked_and_paired() -> None:
    """An unmarked wrong answer that differs in one place from a right one is wrong there."""
    wrong = replace(ROW, id="w", response=ANSWER.replace("1871", "1817"), label=1, spans=None)
    right, found = locate_errors([ROW, wrong])
    assert found.spans is not None
    assert [found.response[start:end] for start, end in found.spans] == ["1817"]
    assert found.pair == right.pair != ""


def test_several_changed_places_are_doubtful() -> None:
    """Which of several changes is the error cannot be told, but the rest is supported."""
    response = ANSWER.replace("1871", "1817").replace("small fee", "modest fee")
    _, found = locate_errors([ROW, replace(ROW, id="w", response=response, label=1, spans=None)])
    assert found.spans is None
    assert [response[start:end] for start, end in found.doubtful] == ["1817", "modest"]


def test_answers_that_have_little_in_common_stay_as_they_are() -> None:
    """Comparison tells nothing where the answers are different, or about other evidence."""
    other = replace(
        ROW, id="w", response="Dogs are welcome everywhere, even in the yard.", label=1, spans=None
    )
    elsewhere = replace(other, response=ANSWER.replace("1871", "1817"), context=("Something else.",))
    assert locate_errors([ROW, other, elsewhere]) == [ROW, other, elsewhere]


def test_a_sentence_whose_evidence_is_withheld_becomes_a_span() -> None:
    """The words of the span are gone from the evidence, and the rest of the evidence is still there."""
    changed = other_evidence([ROW], count=10, seed=2)
    assert changed
    for row in changed:
        assert (row.source, row.label, row.group) == (EVIDENCE, 1, "made:1")
        assert row.spans is not None
        ((start, end),) = row.spans
        evidence = " ".join(row.context)
        gone = "1871" if "1871" in row.response[start:end] else "Sunday"
        assert gone not in evidence
        assert "grinds barley" in evidence


def test_a_span_whose_evidence_is_supplied_is_supported() -> None:
    """The sentence with the mark stands, perhaps reworded, in the evidence, and the mark is gone."""
    opening, claim = "As the passages say, dogs stay outside.", "The miller keeps 14 grey geese."
    start = len(opening) + 1 + claim.index("14")
    row = replace(ROW, response=f"{opening} {claim}", label=1, spans=((start, start + 12),))
    supplied = [row for row in other_evidence([row], count=12, seed=3) if not row.label]
    assert supplied
    for found in supplied:
        assert found.spans == ()
        assert "grey geese" in " ".join(found.context)
        assert found.response == row.response
