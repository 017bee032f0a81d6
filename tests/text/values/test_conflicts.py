"""Which sentences contradict each other by figure, date or polarity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.values import conflicts

SAME = [
    ("The warranty lasts 24 months.", "The warranty lasts two years."),
    ("It takes 5 to 10 minutes.", "It takes 5-10 minutes."),
    ("It costs $5 million.", "It costs 5,000,000 dollars."),
    ("It costs $5M.", "It costs 5 million dollars."),
    ("As passage 1 says, it is free.", "As passage 2 says, it is free."),
    ("It is free [1].", "It is free [2]."),
    ("It holds 40 percent.", "It holds 40%."),
    ("It holds 1,000 people.", "It holds 1000 people."),
    ("It opened in 1990.", "It opened, with 40 rooms, in 1990."),
    ("You may go in, and may stay.", "It closed in May 2001."),
    ("It is open.", "The hall, which nobody likes, was never painted."),
    ("It is not only cheap but good.", "It is only cheap but good."),
    ("价格是3.5万元。", "价格是35000元。"),
    ("员工有300人。", "员工300名左右。"),
]
DIFFERENT = [
    ("It opened in 1990.", "It opened in 1985."),
    ("The warranty lasts 24 months.", "The warranty lasts ten years."),
    ("It takes 15 minutes.", "It takes 5 to 10 minutes."),
    ("It costs $5-10.", "It costs $7."),
    ("It holds 40 percent of 3 lots.", "It holds 45%."),
    ("Add two cups of flour.", "Add 3 cups of flour."),
    ("It opens on Monday.", "It opens on Tuesday."),
    ("It closed in March 2001.", "It closed in July 2001."),
    ("The hall is not open on Sundays.", "The hall is open on Sundays."),
    ("The hall isn't heated in winter.", "The hall is heated in winter."),
    ("成立于1990年。", "成立于1985年。"),
    ("保修期是24个月。", "保修期是10年。"),
    ("员工有300人。", "员工有500人。"),
    ("该产品不支持退款。", "该产品支持退款。"),
]


def conflicting(one: str, other: str) -> bool:
    return conflicts.conflicting(conflicts.content(one), conflicts.content(other))


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_values_in_other_words_and_values_of_one_side_are_no_conflict(one: str, other: str) -> None:
    assert not conflicting(one, other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_another_value_for_the_same_sort_of_thing_is_a_conflict(one: str, other: str) -> None:
    assert conflicting(one, other)


@given(st.sampled_from([text for pair in [*SAME, *DIFFERENT] for text in pair]), st.text(max_size=60))
def test_conflict_is_symmetric_and_nothing_conflicts_with_itself(one: str, other: str) -> None:
    assert conflicting(one, other) == conflicting(other, one)
    assert not conflicting(one, one)
    assert not conflicting(other, other)
