"""What a gate does not cut: reasoning between marks, and answers for programs."""

from __future__ import annotations

import pytest

from tests.fakes.gated_streams import (
    BAD,
    GOOD,
    UNCHECKED,
    GatedStream,
    exchange,
    finish,
    frame,
    plan,
    read_back,
    said,
    tell,
    text_of,
)
from truthlens.core.records.enums import OnFlagged, OnUnchecked
from truthlens.core.records.verdict import Verdict
from truthlens.streaming.finish import answers_of

MARK, WITHHOLD, STOP = OnFlagged.MARK, OnFlagged.WITHHOLD, OnFlagged.STOP
THOUGHT = "The wrong way. Is it wrong?\nYes, wrong.\n"
BLOCKS = [
    ("<think>", "</think>\n\n"),
    ("\n<thinking>\n", "</thinking>"),
    ("<thought>", "</thought> "),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<seed:think>", "</seed:think>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
]


def scorer(_choice: int, text: str) -> Verdict:
    return BAD if "wrong" in text else GOOD


def stream(on_flagged: OnFlagged, structured: bool = False, **settings: object) -> GatedStream:
    return GatedStream(plan(on_flagged=on_flagged, **settings), exchange(structured=structured), scorer)


def cut(text: str, size: int) -> list[bytes]:
    return tell(*[text[start : start + size] for start in range(0, len(text), size)])


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("on_flagged", list(OnFlagged))
@pytest.mark.parametrize(("opening", "closing"), BLOCKS)
def test_reasoning_leaves_at_once_as_it_is_and_the_answer_is_scored(
    opening: str, closing: str, on_flagged: OnFlagged, size: int
) -> None:
    """Neither its marks nor its sentences are torn, whatever they say; what follows is gated like any answer."""
    played = stream(on_flagged)
    reasoning = opening + THOUGHT + closing
    for each in cut(reasoning, size):
        played.feed(each)
        assert played.ask() == []
    assert played.released == len(played.entries)
    assert played.out == b"".join(cut(reasoning, size))
    out = played.play(*cut("It is so. It is wrong. The end.", size), frame(finish()))
    assert text_of(out).startswith(f"{reasoning}It is so.")
    assert all("wrong" not in ask.text or ask.text.startswith("It is so.") for ask in played.asks)
    assert {ask.text[start:end] for ask in played.asks for start, end in ask.ranges} <= {
        "It is so.",
        "It is wrong.",
        "The end.",
    }
    (answer,) = answers_of(played.transcript, exchange())
    assert answer.text == "It is so. It is wrong. The end."
    expected = {MARK: "It is so. It is wrong. The end.", STOP: "It is so. "}
    assert played.gate.delivered(0) == expected.get(on_flagged, "It is so.  The end.")


@pytest.mark.parametrize("size", [2, 1000])
def test_an_answer_that_never_comes_out_of_its_reasoning_passes_unscored(size: int) -> None:
    played = stream(WITHHOLD)
    frames = cut(f"<think>{THOUGHT}", size)
    assert played.play(*frames, frame(finish(reason="length"))) == b"".join(frames) + frame(
        finish(reason="length")
    )
    assert played.asks == []
    (answer,) = answers_of(played.transcript, exchange())
    assert (answer.kind, answer.text) == ("empty", "")


@pytest.mark.parametrize("text", ["<thin wrong. ", "<", "<think", "[THIN"])
def test_what_only_begins_like_a_mark_is_held_and_scored(text: str) -> None:
    played = stream(WITHHOLD)
    played.feed(*cut(text, 1))
    assert played.released == 0
    out = played.end()
    assert ("wrong" in text) == ("withheld" in text_of(out))
    assert len(played.asks) == bool(text.strip("<["))


def test_what_only_begins_like_a_mark_is_scored_after_its_time() -> None:
    played = stream(MARK)
    played.feed(*tell("<think"), now=1.0)
    assert played.ask(1.0) == []
    assert played.gate.next_expiry == 4.0
    assert played.ask(4.1) == ["<think"]


@pytest.mark.parametrize("size", [4, 1000])
def test_a_mark_that_is_mentioned_later_is_text(size: int) -> None:
    played = stream(WITHHOLD)
    text = "A tag. The <think>wrong</think> tag. It ends."
    assert "wrong" not in text_of(played.play(*cut(text, size)))


@pytest.mark.parametrize("on_flagged", list(OnFlagged))
def test_reasoning_that_the_prompt_opened_is_told_by_its_closing_mark(on_flagged: OnFlagged) -> None:
    """What had not left by then passes unscored, a scoring of it that is under way included."""
    played = stream(on_flagged)
    played.feed(*tell("Let me see. ", "It is wrong to", " say that. Hm"))
    assert played.ask() == ["Let me see.", "It is wrong to say that."]
    played.feed(*tell(".\n</think>\n\n", "It is so. ", "It"))
    assert played.ask() == ["It is so."]
    played.answer()
    out = played.play(*tell(" is wrong. The end."))
    assert text_of(out).startswith("Let me see. It is wrong to say that. Hm.\n</think>\n\nIt is so.")
    (answer,) = answers_of(played.transcript, exchange())
    assert answer.text == "It is so. It is wrong. The end."
    assert played.gate.delivered(0).startswith("It is so.")


def test_text_that_was_withheld_before_a_closing_mark_stays_withheld() -> None:
    played = stream(WITHHOLD)
    played.step(*tell("It is wrong. Hm"))
    out = played.play(*tell(".\n</think>\n\nIt is so."))
    assert "wrong" not in text_of(out)


def test_the_answer_behind_reasoning_may_be_json() -> None:
    played = stream(WITHHOLD)
    text = '<think>Hm. So.</think>\n{"a": "It is so. It is right.", "b": 1}'
    played.feed(*cut(text, 5))
    assert played.ask() == []
    assert text_of(played.end()) == text
    assert played.asks[0].text == text.partition("\n")[2]


JSON = [
    '{"a": "It is so. It is wrong.", "b": "The end."}',
    '[{"a": "It is so. It is wrong."}, {"b": "The end."}]',
    '```json\n{"a": "It is so. It is wrong.",\n "b": "The end."}\n```',
    '```\n[\n{"a": "It is so.\\nIt is wrong."}]\n```',
    '\n\n``` JSON\n{\n"a": "It is so. It is wrong."}\n```\n',
]


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("text", JSON)
@pytest.mark.parametrize("on_flagged", list(OnFlagged))
def test_json_is_scored_as_one_and_leaves_whole_or_not_at_all(
    on_flagged: OnFlagged, text: str, size: int
) -> None:
    played = stream(on_flagged)
    out = text_of(played.play(*cut(text, size), frame(finish())))
    assert out.strip() == (text.strip() if on_flagged is MARK else "")
    assert [len(ask.ranges) for ask in played.asks] == [1]
    right = text.replace("wrong", "right")
    assert text_of(stream(on_flagged).play(*cut(right, size))) == right


@pytest.mark.parametrize("on_flagged", list(OnFlagged))
@pytest.mark.parametrize("structured", [False, True])
def test_json_that_had_to_begin_to_leave_leaves_whole(on_flagged: OnFlagged, structured: bool) -> None:
    """Where it takes longer than text may be held, or more than may be."""
    for pressed in (False, True):
        played = stream(on_flagged, structured)
        text = '{"a": "It is so.", "b": "It is wrong.", "c": 1}'
        played.feed(*tell(text[:18]), now=0.0)
        assert played.ask(9.0, pressed=pressed) == [text[:18]]
        played.answer()
        assert text_of(played.play(*cut(text[18:], 4), frame(finish()))) == text
        assert played.gate.results["flagged"] == 1
        assert not played.gate.all_stopped


@pytest.mark.parametrize(("verdict", "reason"), [(BAD, "flagged"), (UNCHECKED, "unchecked")])
def test_json_whose_rest_may_not_leave_unchecked_is_stopped(verdict: Verdict, reason: str) -> None:
    """A plan that blocks what is not checked does not let the rest of it by."""
    played = GatedStream(
        plan(on_flagged=WITHHOLD, on_unchecked=OnUnchecked.BLOCK),
        exchange(),
        lambda _choice, text: verdict if "wrong" in text else GOOD,
    )
    played.feed(*tell('{"a": "It is so.", '), now=0.0)
    played.ask(9.0)
    played.answer()
    out = played.play(*tell('"b": "It is wrong."}'), frame(finish()))
    assert "wrong" not in text_of(out)
    assert read_back(out).choices[0].finish_reason == "content_filter"
    assert played.gate.results[reason] == 1


def test_prose_with_a_block_of_code_is_cut_at_its_sentences() -> None:
    for text in ("```python\nprint(1)\n```\nIt is wrong. The end.", "`a` is so. It is wrong. The end."):
        out = text_of(stream(WITHHOLD).play(*cut(text, 3)))
        assert "wrong" not in out
        assert out.endswith("The end.")


def test_long_text_is_asked_for_by_and_by() -> None:
    """However much comes at once, every sentence is asked for once, and none is lost."""
    played = stream(WITHHOLD)
    text = "It is so. " * 9000 + "It is wrong. " + "And so. " * 300
    played.feed(frame(said(text)), frame(finish()))
    found: list[str] = []
    while asked := played.ask() or played.gate.behind:
        found += asked if isinstance(asked, list) else []
        played.answer()
    assert found == ["It is so."] * 9000 + ["It is wrong."] + ["And so."] * 300
    assert "wrong" not in text_of(played.out)
    assert len(text_of(played.out)) > len(text)
