"""Reasoning in an answer's text: a leading block alone, however the text is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.api.reasoning import AnswerStart, ReasoningPlace, reasoning_end, split_reasoning

OPENED = (
    ("<think>Let me see.</think>", "\n\nSix tablets."),
    ("\n <think>\n\n</think>\n\n", "Six tablets."),
    ("<thinking>a</thinking>", "b"),
    ("<thought>a</thought> ", "b"),
    ("<reasoning>a</reasoning>", "b"),
    ("<seed:think>a</seed:think>", "b"),
    ("[THINK]a[/THINK]", "b"),
    ("◁think▷a◁/think▷", "b"),
    ("<|START_THINKING|>a<|END_THINKING|>", "b"),
    ("<|begin_of_thought|>a<|end_of_thought|>", "b"),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>", "b"),
    ("<think>a</think>\n<think>b</think>\n", "c"),
    ("<think>a <think> b</think>", "c</think>d"),
    ("<think>never closed", ""),
    ("<think>a</think>", ""),
)
UNOPENED = (
    ("The leaflet says six.\n</think>\n\n", "Six tablets."),
    ("It says six.</think>\n", "Six."),
    ("six[/THINK]\n", "Six."),
)
NONE = (
    "",
    "Six tablets.",
    "The tag <think> opens a block, </think> closes it.",
    "Write `</think>` at the end.",
    "Write </think> at the end.\nThen go on.",
    "```html\n<p>\n</think>\n</p>\n```\nThat is it.",
    "Six tablets.\n</think>\n",
    "First <think>x\n</think>\nThen more.",
    "</think>\nSix.",
    "<thin",
    "<thinker>a</thinker>",
    "<THINK>a</THINK> b",
    "> <think>a</think> b",
    '{"a": "<think>b</think>"}',
)


@pytest.mark.parametrize(("reasoning", "answer"), [*OPENED, *UNOPENED])
def test_reasoning_in_front_is_told_apart(reasoning: str, answer: str) -> None:
    """A leading block, its marks and the white space behind it are reasoning; what follows is the answer."""
    found, rest = split_reasoning(reasoning + answer)
    assert rest == answer.lstrip()
    assert found + rest == reasoning + answer


@pytest.mark.parametrize("text", NONE)
def test_a_mark_that_is_only_mentioned_is_text(text: str) -> None:
    """Marks in prose, in code, or that are not at the beginning leave the text as it is."""
    assert reasoning_end(text) == 0


@given(
    case=st.sampled_from([a + b for a, b in (*OPENED, *UNOPENED)] + list(NONE)),
    cuts=st.lists(st.integers(0, 120), max_size=12),
)
def test_how_a_text_is_cut_changes_nothing(case: str, cuts: list[int]) -> None:
    """Fed in pieces cut anywhere, the answer begins where it does in the whole of the text so far."""
    whole, pieces = AnswerStart(), AnswerStart()
    whole.feed(case)
    places = [0, *sorted(min(cut, len(case)) for cut in cuts), len(case)]
    for begin, end in pairwise(places):
        pieces.feed(case[begin:end])
        found = pieces.of(case[:end].__str__)
        assert found <= end
        assert found == reasoning_end(case[:end])
    assert pieces.place is whole.place


def test_a_reader_says_what_may_still_come() -> None:
    """A text that may become an opening mark is neither reasoning nor answer yet."""
    reader = AnswerStart()
    reader.feed(" <th")
    assert (reader.place, reader.of(str)) == (ReasoningPlace.BEFORE, 0)
    reader.feed("ink>So")
    assert (reader.place, reader.of(str)) == (ReasoningPlace.WITHIN, 10)
    reader.feed("</think> ")
    assert (reader.place, reader.of(str)) == (ReasoningPlace.BEFORE, 19)
    reader.feed("Six")
    assert (reader.place, reader.of(str)) == (ReasoningPlace.ANSWER, 19)
