"""Marks on the gateway's own calls."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.llm_backends import Clock
from truthlens.llm import loop_guard as module
from truthlens.llm.loop_guard import Marks

SECRET = b"0123456789abcdef"
BODY = b'{"model": "m"}'


def test_a_mark_is_accepted_once() -> None:
    marks = Marks()
    mark = marks.issue(BODY, 60)
    assert [marks.accepts(mark, BODY), marks.accepts(mark, BODY)] == [True, False]


def test_a_mark_is_short_url_safe_and_never_the_same() -> None:
    marks = Marks(clock=Clock(1000.0))
    first, second = marks.issue(BODY, 60), marks.issue(BODY, 60)
    assert re.fullmatch(r"1060\.[\w-]{16}\.[\w-]{43}", first, re.ASCII)
    assert first != second


def test_a_mark_expires() -> None:
    clock = Clock()
    marks = Marks(clock=clock)
    mark = marks.issue(BODY, 10)
    clock.advance(10)
    assert not marks.accepts(mark, BODY)


def test_no_mark_is_good_for_more_than_an_hour() -> None:
    clock = Clock()
    marks = Marks(clock=clock)
    mark = marks.issue(BODY, 1e9)
    clock.advance(3601)
    assert not marks.accepts(mark, BODY)


def test_a_process_does_not_accept_another_ones_mark_unless_they_share_a_secret() -> None:
    assert not Marks().accepts(Marks().issue(BODY, 60), BODY)
    assert Marks(SECRET).accepts(Marks(SECRET).issue(BODY, 60), BODY)


def test_a_secret_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        Marks(b"short")


@given(position=st.integers(0, 80), character=st.characters())
def test_a_mark_with_another_character_is_refused(position: int, character: str) -> None:
    marks = Marks(SECRET, clock=Clock())
    mark = marks.issue(BODY, 60)
    position %= len(mark)
    forged = mark[:position] + character + mark[position + 1 :]
    assert marks.accepts(forged, BODY) == (forged == mark)


@given(st.text() | st.from_regex(r"\d{1,12}\.[\w-]{16}\.[\w-]{43}", fullmatch=True))
def test_a_value_that_nobody_issued_is_refused(value: str) -> None:
    assert not Marks(SECRET).accepts(value, BODY)


@pytest.mark.parametrize(
    "edit", [lambda mark: f"{mark},{mark}", lambda mark: f" {mark}", lambda mark: mark + "=" * 200]
)
def test_a_mark_among_other_text_is_refused(edit: object) -> None:
    marks = Marks()
    assert not marks.accepts(edit(marks.issue(BODY, 60)), BODY)  # type: ignore[operator]


def test_marks_that_expired_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SEEN", 2)
    clock = Clock()
    marks = Marks(clock=clock)
    assert [marks.accepts(marks.issue(BODY, 10), BODY) for _ in range(3)] == [True, True, False]
    clock.advance(20)
    assert marks.accepts(marks.issue(BODY, 10), BODY)
    assert len(marks._seen) == 1


def test_a_mark_is_good_for_its_own_request_alone() -> None:
    """Who is sent one can do nothing with it but send the same request again."""
    marks = Marks(SECRET)
    assert not marks.accepts(marks.issue(BODY, 60), BODY + b" ")
