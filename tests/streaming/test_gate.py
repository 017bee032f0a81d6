"""What becomes of the frames of a gated stream, rule by rule."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.fakes.gated_streams import (
    BAD,
    GOOD,
    HALF_BAD,
    HALF_GOOD,
    UNCHECKED,
    GatedStream,
    Scorer,
    exchange,
    finish,
    frame,
    frames_of,
    plan,
    read_back,
    said,
    tell,
    text_of,
)
from truthlens.api.sse.frames import encode
from truthlens.core.records.enums import Endpoint, LeftOut, OnFlagged, OnUnchecked, Reason, Status
from truthlens.core.records.verdict import Coverage, Verdict, unchecked
from truthlens.streaming.types import ScoringRequest

MARK, WITHHOLD, STOP = OnFlagged.MARK, OnFlagged.WITHHOLD, OnFlagged.STOP
NOTICE = "[A sentence was withheld: the provided context does not support it.]"
STOPPED = "[The answer was stopped here: the provided context does not support what follows.]"
DONE = b"data: [DONE]\n\n"
USAGE = frame(usage={"total_tokens": 9})
END = [frame(finish()), USAGE, DONE]


def against(*words: str) -> Scorer:
    """A detector that flags what holds one of these words."""
    return lambda _choice, text: BAD if any(word in text for word in words) else GOOD


WRONG = against("wrong")


def stream(
    on_flagged: OnFlagged = MARK,
    scorer: Scorer = WRONG,
    endpoint: Endpoint = Endpoint.CHAT,
    **fields: object,
) -> GatedStream:
    return GatedStream(plan(on_flagged=on_flagged), exchange(endpoint, **fields), scorer)


# --- what is held, and what is asked for -------------------------------------------------------------------


def test_text_is_held_until_its_sentence_is_decided() -> None:
    played = stream()
    played.feed(frame({"index": 0, "delta": {"role": "assistant", "content": ""}}))
    assert played.released == 1
    played.feed(*tell("It", " is", " so."))
    assert (played.ask(), played.released) == ([], 1)
    played.feed(*tell(" And"))
    assert (played.ask(), played.released) == (["It is so."], 1)
    played.feed(*tell(" more"))
    played.answer()
    assert played.released == 4
    assert played.gate.oldest == 0.0


def test_an_ask_has_the_text_so_far_and_the_places_of_its_sentences() -> None:
    played = stream()
    played.feed(*tell("One. Two. Th"))
    played.ask()
    played.answer()
    played.feed(*tell("ree.\nFour"))
    played.ask()
    assert played.asks == [
        ScoringRequest(0, "One. Two.", ((0, 4), (5, 9))),
        ScoringRequest(0, "One. Two. Three.", ((10, 16),)),
    ]


def test_all_choices_are_asked_for_together_and_nothing_twice() -> None:
    played = stream(choices=2)
    played.feed(frame(said("One. Tw"), said("Three. Fo", 1)), frame(said("ur. Five", 1)))
    assert played.ask() == ["One.", "Three.", "Four."]
    assert (played.ask(), played.ask(ended=True)) == ([], ["Tw", "Five"])


def test_a_choice_that_has_finished_is_asked_for_as_a_whole() -> None:
    played = stream(choices=2)
    played.feed(frame(said("Open"), said("Open too", 1)), frame(finish(1)))
    assert played.ask() == ["Open too"]
    assert played.ask(ended=True) == ["Open"]


def test_frames_without_answer_text_leave_as_they_are_in_their_place() -> None:
    others = [
        b": keep-alive\n\n",
        b"event: ping\ndata: {}\n\n",
        frame({"index": 0, "delta": {"reasoning_content": "Hm. So."}}),
        encode('{"error": {"message": "m"}}'),
        USAGE,
    ]
    played = stream()
    for count, other in enumerate(others, start=1):
        played.feed(other)
        assert played.released == count
    played.feed(*tell("Held"), *others)
    assert played.released == len(others)
    played.end()
    assert {entry.output for entry in played.entries} == {None}


def test_a_frame_that_cannot_be_read_passes_and_counts_as_unchecked() -> None:
    played = stream()
    assert played.play(b"data: {no json\n\n", *tell("Fine."), *END).startswith(b"data: {no json\n\n")
    assert played.gate.results == {"passed": 1, "flagged": 0, "unchecked": 1}


def test_a_sentence_that_rules_alone_looked_at_counts_as_unchecked_unless_it_is_flagged() -> None:
    """The encoder reads another language: what its coverage of 0 says."""
    rules = Verdict(Status.PARTIAL, Reason.LANGUAGE, 0.0, 0.6, coverage=Coverage(7, 0, 9, 0))
    played = GatedStream(
        plan(), exchange(), lambda _, text: replace(rules, score=0.9) if "wrong" in text else rules
    )
    played.play(*tell("Eins. ", "Zwei wrong. ", "Drei."), *END)
    assert played.gate.results == {"passed": 0, "flagged": 1, "unchecked": 2}


@pytest.mark.parametrize(
    "text", ["\n\n", "---\n", "  ", "```\n", "…", "。"], ids=lambda text: text.encode().hex()
)
def test_text_without_letters_and_digits_needs_no_score(text: str) -> None:
    played = stream()
    played.feed(*tell(text))
    assert played.ask(ended=True) == []
    assert played.released == 1
    assert played.gate.results == {"passed": 0, "flagged": 0, "unchecked": 0}


def test_symbols_alone_are_scored_and_may_stop_a_stream() -> None:
    """A tick may be an answer: where nothing was scored of it, ``block`` lets none of it out."""
    silent = unchecked(Reason.EMPTY_ANSWER)
    signs = replace(silent, coverage=Coverage(1, 0, 9, 9, left_out=((LeftOut.SIGNS, 1),)))
    for verdict, stopped in ((signs, True), (silent, False)):
        played = GatedStream(plan(on_unchecked=OnUnchecked.BLOCK), exchange(), lambda *_, said=verdict: said)
        out = played.play(*tell("✅"), *END)
        assert ("✅" not in text_of(out)) == stopped
        assert played.gate.results["passed"] == (not stopped)


def test_white_space_behind_a_kept_sentence_leaves_with_it() -> None:
    played = stream()
    played.feed(*tell("One.", "\n\n"))
    played.ask()
    played.answer()
    assert played.released == 2
    played.feed(*tell("\n", "---\n", " \n"))
    assert played.released == 5
    played.feed(*tell("**"))
    assert played.released == 5


def test_verdicts_must_match_what_was_asked() -> None:
    played = stream()
    played.feed(*tell("One. Two. "))
    asks = played.gate.ask(now=0.0, ended=False)
    with pytest.raises(ValueError, match="argument"):
        played.gate.decide(asks, [[GOOD]])
    with pytest.raises(ValueError, match="not asked for"):
        played.gate.decide(asks, [[GOOD, GOOD]])


# --- how long text is held ---------------------------------------------------------------------------------


def test_text_that_has_waited_long_enough_is_asked_for_as_far_as_it_has_come() -> None:
    played = GatedStream(plan(max_hold_s=3.0), exchange())
    assert played.gate.next_expiry is None
    played.feed(*tell("A slow"), now=10.0)
    played.feed(*tell(" answer "), now=12.0)
    assert played.gate.next_expiry == 13.0
    assert played.ask(12.9) == []
    assert played.ask(13.0) == ["A slow answer"]
    assert played.gate.next_expiry is None
    played.feed(*tell("goes on. Yes"), now=14.0)
    assert played.gate.next_expiry == 17.0
    played.answer()
    assert (played.released, played.gate.oldest) == (2, 14.0)
    assert played.ask(14.0) == ["goes on."]
    played.answer()
    assert played.gate.next_expiry == 17.0
    played.end()
    assert (played.gate.next_expiry, played.gate.oldest) == (None, None)


def test_a_word_that_has_only_begun_is_not_torn_from_its_rest() -> None:
    """Unless nothing more of it has come when its own time is up."""
    played = GatedStream(plan(max_hold_s=3.0), exchange(), against("costs"))
    played.feed(*tell("It", " costs"), now=10.0)
    played.feed(*tell(" ni", "ne"), now=11.0)
    assert played.ask(13.0) == ["It costs"]
    assert played.gate.next_expiry == 14.0
    played.answer()
    assert text_of(played.out) == "It costs [unverified]"
    played.feed(*tell(" eu"), now=13.5)
    assert (played.ask(13.9), played.ask(14.0)) == ([], ["nine"])
    played.answer()
    assert (played.ask(16.4), played.ask(16.5)) == ([], ["eu"])
    played.end()
    assert text_of(played.out) == "It costs [unverified] nine eu"


def test_wordless_text_that_has_waited_long_enough_leaves() -> None:
    played = GatedStream(plan(max_hold_s=3.0), exchange())
    played.feed(*tell("**"), now=1.0)
    assert (played.ask(3.9), played.released) == ([], 0)
    assert (played.ask(4.0), played.released, played.gate.next_expiry) == ([], 1, None)


def test_white_space_behind_a_withheld_sentence_waits_no_longer_than_text() -> None:
    played = GatedStream(plan(max_hold_s=3.0, on_flagged=WITHHOLD), exchange(), against("wrong"))
    played.step(*tell("All wrong.", " \n"), now=1.0)
    played.step(*tell(" "), now=2.0)
    assert (played.released, played.gate.next_expiry) == (1, 4.0)
    played.ask(4.0)
    assert (played.released, played.gate.next_expiry) == (3, None)
    assert text_of(played.out) == f"{NOTICE} \n "


def test_under_pressure_half_sentences_are_asked_for_where_there_are_no_whole_ones() -> None:
    played = stream(choices=2)
    played.feed(frame(said("One. Two"), said("Thr", 1)))
    assert played.ask(pressed=True) == ["One.", "Thr"]
    assert played.ask(pressed=True) == ["Two"]


# --- mark --------------------------------------------------------------------------------------------------


def test_a_mark_stands_directly_behind_the_flagged_sentence() -> None:
    played = stream()
    out = played.play(*tell("So. ", "It is", " wrong", ".\n", "\nEnd", "."), *END)
    assert text_of(out) == "So. It is wrong. [unverified]\n\nEnd."
    assert [entry.output is None for entry in played.entries] == [True, True, True, False] + [True] * 5
    assert played.gate.results == {"passed": 2, "flagged": 1, "unchecked": 0}
    assert (played.gate.marked, played.gate.withheld) == ({0}, frozenset())
    assert played.gate.delivered(0) == "So. It is wrong.\n\nEnd."
    assert played.gate.insertions(0) == ((16, " [unverified]"),)


@pytest.mark.parametrize(
    ("template", "text", "marked"),
    [
        (None, "这是wrong的。好", "这是wrong的。［未经证实］好"),
        (" (?)", "It is wrong. Yes", "It is wrong. (?) Yes"),
        ("  ", "It is wrong. Yes", "It is wrong. [unverified] Yes"),
    ],
)
def test_the_mark_is_the_plans_or_in_the_script_of_the_answer(
    template: str | None, text: str, marked: str
) -> None:
    played = GatedStream(plan(mark_template=template), exchange(), against("wrong"))
    assert text_of(played.play(*tell(text))) == marked


def test_a_marked_frame_loses_its_log_probabilities_and_keeps_the_rest() -> None:
    played = stream()
    raw = frame(said("All wrong.", logprobs={"content": []}, more=1.50), said("Fine.", 1), extra="x")
    (leaves,) = frames_of(played.play(raw))
    body = json.loads(leaves.data or "")
    assert body["extra"] == "x"
    assert body["choices"] == [
        {"index": 0, "delta": {"content": "All wrong. [unverified]"}, "finish_reason": None, "more": 1.5},
        {"index": 1, "delta": {"content": "Fine."}, "finish_reason": None},
    ]


# --- withhold ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "received"),
    [
        (["Aye. ", "It is wrong.", " Bee."], f"Aye. {NOTICE} Bee."),
        (["Aye. It is", " wrong. Bee", "."], f"Aye. {NOTICE} Bee."),
        (["Wrong wrong. ", "Still wrong.", " Bee."], f"{NOTICE} Bee."),
        (["A.\nwrong\n", "\nwrong\nB\n"], f"A.\n{NOTICE}\nB\n"),
        (["wrong\n---\nwrong\n"], f"{NOTICE}\n---\n{NOTICE}\n"),
        (["wrong. Bee. wrong."], f"{NOTICE} Bee. {NOTICE}"),
        (["wrong.", " "], f"{NOTICE} "),
    ],
)
def test_a_notice_stands_in_the_place_of_withheld_sentences(texts: list[str], received: str) -> None:
    played = stream(WITHHOLD)
    assert text_of(played.play(*tell(*texts), *END)) == received
    assert played.gate.withheld == {0}
    delivered = played.gate.delivered(0)
    for place, notice in reversed(played.gate.insertions(0)):
        delivered = delivered[:place] + notice + delivered[place:]
    assert delivered == received
    assert played.gate.delivered(0) == received.replace(NOTICE, "")


def test_a_frame_that_carried_nothing_but_withheld_text_leaves_as_nothing() -> None:
    played = stream(WITHHOLD)
    played.play(*tell("It", " is", " wrong", ". Fine"), *END)
    assert [entry.output for entry in played.entries[1:3]] == [b"", b""]
    assert text_of(played.entries[0].output or b"") == NOTICE
    assert text_of(played.entries[3].output or b"") == " Fine"


@pytest.mark.parametrize(
    ("delta", "more", "kept"),
    [
        ({"role": "assistant"}, {}, {}),
        ({}, {"finish_reason": "length"}, {}),
        ({}, {}, {"usage": {"total_tokens": 3}}),
    ],
)
def test_a_frame_that_carries_more_than_withheld_text_keeps_it(
    delta: dict[str, object], more: dict[str, object], kept: dict[str, object]
) -> None:
    played = stream(WITHHOLD)
    choice = {"index": 0, "delta": {**delta, "content": " wrong"}, "finish_reason": None, **more}
    played.play(*tell("It is"), frame(choice, **kept))
    body = json.loads(frames_of(played.entries[1].output or b"")[0].data or "")
    assert body["choices"] == [choice | {"delta": {**delta, "content": ""}}]
    assert body.items() >= kept.items()


def test_the_other_choices_of_a_frame_keep_their_text() -> None:
    played = stream(WITHHOLD, choices=2)
    out = played.play(frame(said("It is"), said("It", 1)), frame(said(" wrong."), said(" is fine.", 1)), *END)
    assert (text_of(out), text_of(out, 1)) == (NOTICE, "It is fine.")


def test_a_chinese_answer_has_a_chinese_notice_and_the_plans_own_goes_before_it() -> None:
    played = stream(WITHHOLD)
    assert text_of(played.play(*tell("天空wrong。好。"))).startswith("［此处有一句话未予显示")
    own = GatedStream(plan(on_flagged=WITHHOLD, notice_template="[gone]"), exchange(), against("wrong"))
    assert text_of(own.play(*tell("天空wrong。好。"))) == "[gone]好。"


# --- stop --------------------------------------------------------------------------------------------------


def test_a_stopped_answer_ends_with_the_notice_and_a_finish_of_its_own() -> None:
    played = stream(STOP)
    played.step(frame({"index": 0, "delta": {"role": "assistant", "content": ""}}))
    played.step(*tell("Aye. ", "It is", " wrong", ". Bee."))
    assert played.gate.stopped
    assert played.gate.stop_entry is played.entries[2]
    for raw in [*tell(" More."), *END]:
        played.step(raw)
    out = played.end()
    client = read_back(out)
    assert client.choices[0].text == f"Aye. {STOPPED}"
    assert client.choices[0].finish_reason == "content_filter"
    assert (client.done, client.usage) == (False, {})
    assert [entry.output for entry in played.entries[3:]] == [b""] * 6
    assert played.gate.delivered(0) == "Aye. "
    assert played.gate.insertions(0) == ((5, STOPPED),)
    assert played.gate.withheld == {0}
    assert played.gate.results == {"passed": 1, "flagged": 1, "unchecked": 0}


def test_the_finish_that_a_stopped_answer_had_of_its_own_is_gone() -> None:
    played = stream(STOP)
    played.feed(frame(said("All wrong.", finish_reason="stop")), *END)
    out = played.end()
    reasons = [json.loads(found.data or "")["choices"][0]["finish_reason"] for found in frames_of(out)]
    assert reasons == [None, "content_filter"]
    assert text_of(out) == STOPPED


def test_other_choices_go_on_behind_a_stopped_one() -> None:
    played = stream(STOP, choices=2)
    played.step(frame(said("It is wrong. "), said("B", 1)))
    assert not played.gate.stopped
    played.step(frame(said("gone"), said("ut", 1)))
    played.step(frame(said("gone as well")), frame(finish()), b": keep-alive\n\n")
    played.step(frame(said(" fine.", 1)))
    played.step(frame(finish(1)))
    assert played.gate.stopped
    played.step(USAGE, DONE)
    out = played.end()
    client = read_back(out)
    assert (client.choices[0].text, client.choices[1].text) == (STOPPED, "But fine.")
    assert (client.choices[0].finish_reason, client.choices[1].finish_reason) == ("content_filter", "stop")
    assert (b": keep-alive" in out, b"gone" in out, client.done) == (True, False, False)
    assert played.gate.stop_entry is played.entries[6]


def test_the_stream_goes_on_to_its_own_end_while_a_choice_is_still_expected() -> None:
    played = stream(STOP, choices=2)
    out = played.play(*tell("All wrong. "), frame(finish()), USAGE, DONE)
    assert not played.gate.stopped
    assert (read_back(out).done, read_back(out).usage) == (True, {"total_tokens": 9})
    assert read_back(out).choices[0].finish_reason == "content_filter"


def test_all_choices_may_be_stopped_in_one_frame() -> None:
    played = stream(STOP, choices=2)
    out = played.play(frame(said("wrong. "), said("Yes. wrong. ", 1)), frame(said("x"), said("y", 1)))
    assert played.gate.stopped
    assert (text_of(out), text_of(out, 1)) == (STOPPED, f"Yes. {STOPPED}")


def test_a_stopped_answer_whose_frame_was_cut_off_is_made_whole_before_its_finish() -> None:
    played = stream(STOP)
    out = played.play(tell("All wrong.")[0].rstrip(b"\n"))
    assert read_back(out).choices[0].finish_reason == "content_filter"
    assert text_of(out) == STOPPED


def test_a_stream_without_a_stop_is_not_ended_by_the_gate() -> None:
    played = stream(STOP)
    out = played.play(*tell("Fine. ", "Fine."), *END)
    assert (played.gate.stopped, played.gate.stop_entry) == (False, None)
    assert {entry.output for entry in played.entries} == {None}
    assert read_back(out).done


# --- what was not checked ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "received"),
    [
        (GOOD, "One. Two."),
        (UNCHECKED, "[The answer was stopped here: what follows could not be checked.]"),
        (HALF_GOOD, "[The answer was stopped here: what follows could not be checked.]"),
        (HALF_BAD, STOPPED),
        (unchecked(Reason.NO_CONTEXT), "[The answer was stopped here: what follows could not be checked.]"),
        (unchecked(Reason.TOOL_CALL), "One. Two."),
        (unchecked(Reason.EMPTY_ANSWER), "One. Two."),
        (unchecked(Reason.DISABLED), "One. Two."),
    ],
)
def test_where_the_plan_blocks_the_unchecked_it_is_stopped(verdict: Verdict, received: str) -> None:
    played = GatedStream(plan(on_unchecked=OnUnchecked.BLOCK), exchange(), lambda _choice, _text: verdict)
    assert text_of(played.play(*tell("One. Two."))) == received


@pytest.mark.parametrize("on_unchecked", [OnUnchecked.PASS, OnUnchecked.ANNOTATE])
@pytest.mark.parametrize(
    ("verdict", "received", "result"),
    [
        (UNCHECKED, "One.", "unchecked"),
        (HALF_GOOD, "One.", "passed"),
        (HALF_BAD, "One. [unverified]", "flagged"),
    ],
)
def test_elsewhere_the_unchecked_passes(
    on_unchecked: OnUnchecked, verdict: Verdict, received: str, result: str
) -> None:
    played = GatedStream(plan(on_unchecked=on_unchecked), exchange(), lambda _choice, _text: verdict)
    assert text_of(played.play(*tell("One."))) == received
    assert played.gate.results == {"passed": 0, "flagged": 0, "unchecked": 0} | {result: 1}


# --- answers for programs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "scored"),
    [
        (['{"a": ', '"It is wrong. Bee"}\n'], '{"a": "It is wrong. Bee"}'),
        (["[", '"It is wrong. ', 'Bee"]'], '["It is wrong. Bee"]'),
        ([" [", "[1], 'It is wrong. Bee'", "]"], "[[1], 'It is wrong. Bee']"),
    ],
)
@pytest.mark.parametrize("on_flagged", OnFlagged)
def test_nothing_is_pasted_into_json(texts: list[str], scored: str, on_flagged: OnFlagged) -> None:
    played = stream(on_flagged)
    out = played.play(*tell(*texts), *END)
    assert [ask.text.strip() for ask in played.asks] == [scored]
    assert [ask.text[start:end] for ask in played.asks for start, end in ask.ranges] == [scored]
    passes = on_flagged is MARK
    assert text_of(out) == (
        "".join(texts) if passes else "".join(texts).removesuffix("\n").removesuffix(scored)
    )
    assert read_back(out).choices[0].finish_reason == ("stop" if passes else "content_filter")
    assert (played.gate.insertions(0), played.gate.marked) == ((), frozenset())


@pytest.mark.parametrize("text", ["[S1] So. ", "[1] So. ", "So {x}. ", "[link](u). "])
def test_text_with_brackets_is_not_json(text: str) -> None:
    played = stream()
    played.feed(*tell(*text))
    assert played.ask() == [text.strip()]


def test_a_structured_answer_is_asked_for_whole_or_once_it_has_waited_too_long() -> None:
    played = GatedStream(plan(max_hold_s=3.0), exchange(structured=True))
    played.feed(*tell("One. Two.\n", "Three"), now=1.0)
    assert played.ask(3.9) == []
    assert played.ask(4.0) == ["One. Two.\nThree"]
    played.feed(*tell(". Four."), now=5.0)
    assert played.ask(5.0, ended=True) == [". Four."]


# --- tool calls and echoes ---------------------------------------------------------------------------------


def test_a_tool_call_frees_no_text_beside_it() -> None:
    played = stream(STOP)
    call = frame({"index": 0, "delta": {"tool_calls": [{"index": 0}]}})
    out = played.play(*tell("Let me look. "), call, *tell("This is wrong. And on."))
    assert text_of(out).startswith("Let me look. ")
    assert "wrong" not in text_of(out)
    assert b"tool_calls" in out


def test_let_pass_keeps_what_was_ruled_on() -> None:
    """A sentence that was found unsupported does not leave because the next one could not be scored."""
    played = stream(WITHHOLD)
    played.feed(*tell("This is wrong. It is"))
    played.ask()
    played.answer()
    played.feed(*tell(" wrong too."))
    played.gate.let_pass()
    assert played.ask(ended=True) == []
    assert text_of(played.out) == f"{NOTICE} It is wrong too."


def completion(text: str, index: int = 0, **more: object) -> bytes:
    return frame({"index": index, "text": text, "logprobs": None, "finish_reason": None, **more})


def test_completions_are_gated_as_chat_is() -> None:
    played = stream(WITHHOLD, endpoint=Endpoint.COMPLETIONS)
    out = played.play(
        completion("Aye. It is"), completion(" wrong. Bee."), completion("", finish_reason="stop")
    )
    assert text_of(out, endpoint=Endpoint.COMPLETIONS) == f"Aye. {NOTICE} Bee."
    stopped = stream(STOP, endpoint=Endpoint.COMPLETIONS)
    client = read_back(stopped.play(completion("Aye. It is wrong. Bee.")), Endpoint.COMPLETIONS)
    assert (client.choices[0].text, client.choices[0].finish_reason) == (f"Aye. {STOPPED}", "content_filter")


@pytest.mark.parametrize(
    "cuts", [["Say wrong. ", "It is. Bee."], ["Say", " wrong. It", " is. Bee."], ["Say wrong. It is. Bee."]]
)
def test_an_echo_is_neither_held_nor_scored_and_places_are_counted_behind_it(cuts: list[str]) -> None:
    played = stream(endpoint=Endpoint.COMPLETIONS, echoed="Say wrong. ")
    released = []
    for text in cuts:
        played.feed(completion(text))
        released.append(played.released)
    assert played.ask(ended=True) == ["It is.", "Bee."]
    assert played.asks == [ScoringRequest(0, "It is. Bee.", ((0, 6), (7, 11)))]
    played.answer()
    assert (released[0] == 1) is (len(cuts) > 1)
    assert {entry.output for entry in played.entries} == {None}
    assert played.gate.delivered(0) == "It is. Bee."


def test_marks_behind_an_echo_stand_where_they_should() -> None:
    played = stream(endpoint=Endpoint.COMPLETIONS, echoed="Say. ")
    out = played.play(completion("Say. It is wr"), completion("ong. Bee."))
    assert text_of(out, endpoint=Endpoint.COMPLETIONS) == "Say. It is wrong. [unverified] Bee."
    assert played.gate.insertions(0) == ((12, " [unverified]"),)


def test_text_that_turns_out_to_be_no_echo_is_gated_from_there_on() -> None:
    played = stream(endpoint=Endpoint.COMPLETIONS, echoed="Say it. ")
    out = played.play(completion("Say"), completion(" what is wrong. Bee."))
    assert text_of(out, endpoint=Endpoint.COMPLETIONS) == "Say what is wrong. [unverified] Bee."
    assert played.asks[0] == ScoringRequest(0, "Say what is wrong.", ((4, 18),))
    assert played.gate.results == {"passed": 1, "flagged": 1, "unchecked": 1}
    assert played.gate.delivered(0) == "Say what is wrong. Bee."


# --- characters cut in two ---------------------------------------------------------------------------------

HIGH, LOW = "\ud83d", "\ude00"


def test_a_torn_pair_leaves_as_it_came_where_nothing_is_changed() -> None:
    played = stream()
    played.feed(*tell(f"A {HIGH}", f"{LOW}. B"))
    assert played.ask() == ["A 😀."]
    assert played.released == 0
    played.answer()
    assert played.released == 0
    played.end()
    assert {entry.output for entry in played.entries} == {None}


@pytest.mark.parametrize(
    ("texts", "received"),
    [
        ([f"wrong {HIGH}", f"{LOW}. Bee."], f"{NOTICE} Bee."),
        ([f"A {HIGH}", f"{LOW}. It is wrong."], f"A 😀. {NOTICE}"),
        ([f"A.\n{HIGH}", LOW, f"wrong {HIGH}", LOW], f"A.\n{NOTICE}"),
        ([f"wrong\n{HIGH}", f"{LOW}{HIGH}", f"{LOW}\nwrong"], f"{NOTICE}\n😀😀\n{NOTICE}"),
        ([f"wrong.\nA {HIGH}", " B"], f"{NOTICE}\nA \ufffd B"),
        ([f"A.\nB wrong {HIGH}", " B"], f"A.\n{NOTICE}"),
        ([f"A.\nB wrong {HIGH}"], f"A.\n{NOTICE}"),
    ],
)
def test_no_half_of_a_pair_is_left_where_text_is_changed(texts: list[str], received: str) -> None:
    played = stream(WITHHOLD)
    out = played.play(*tell(*texts), *END)
    assert text_of(out) == received


def test_a_torn_pair_under_a_mark_or_a_stop_stays_whole() -> None:
    assert text_of(stream().play(*tell(f"wrong {HIGH}", f"{LOW}\nB"))) == "wrong 😀 [unverified]\nB"
    assert text_of(stream(STOP).play(*tell(f"A.\n{HIGH}", f"{LOW} wrong"))) == f"A.\n{STOPPED}"
    assert text_of(stream(STOP).play(*tell(f"A {HIGH}", f"{LOW}.\nwrong"))) == f"A 😀.\n{STOPPED}"
