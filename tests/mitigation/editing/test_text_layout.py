"""The lines of an answer and what belongs below them."""

from __future__ import annotations

from truthlens.mitigation.editing.text_layout import last_below, outline, renumbered, vacated


def test_lines_know_their_markers_numbers_and_levels() -> None:
    lines = outline("## Costs\n\n 2. Alpha is x:\n**Bold**\n> quoted\nplain")
    assert [line.level for line in lines] == [2, 0, 0, 7, 0, 0]
    assert [line.item for line in lines] == [False, False, True, False, False, False]
    assert (lines[2].number, lines[2].digits, lines[2].leads) == (2, (11, 12), True)
    assert lines[1].blank


def test_headings_that_lose_all_below_them_go_from_the_inside_out() -> None:
    lines = outline("# All\n\n## Part\n\nOne is a.\n\n# Next\n\nTwo is b.")
    assert vacated(lines, {4}) == {0, 2, 4}
    assert vacated(lines, set()) == set()


def test_a_lead_in_stays_while_anything_below_it_does() -> None:
    lines = outline("Reasons:\n- a\n- b\n\nMore text.")
    assert vacated(lines, {1}) == {1}
    assert vacated(lines, {1, 2}) == {0, 1, 2}


def test_numbers_close_up_and_make_room_in_each_list_by_itself() -> None:
    lines = outline("1. a\n2. b\n   1. x\n   2. y\n3. c\n\nText.\n\n1. d\n2. e")
    assert renumbered(lines, {0, 2}, []) == ({1: 1, 3: 1, 4: 2}, {})
    assert renumbered(lines, set(), [8]) == ({9: 3}, {8: 2})


def test_what_is_nested_in_an_item_belongs_to_it() -> None:
    lines = outline("- a\n\n  - b\n  text\n- c")
    assert last_below(lines, 0) == 3
    assert last_below(lines, 4) == 4
