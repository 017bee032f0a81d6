"""Tests of ``truthlens.detection.detectors.encoder.session``: an answer that grows is scored like the whole answer at once."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.context_model import WORDS, ContextModel, PartedContextModel, context_encoder
from truthlens.core.cancellation import never
from truthlens.core.errors import DetectorError
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Reason
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.detectors.encoder.detector import EncoderDetector
from truthlens.detection.detectors.encoder.session import EncoderFollower
from truthlens.detection.detectors.encoder.views import excerpt_of
from truthlens.detection.models.inputs.windows import Window
from truthlens.detection.models.runtime import State
from truthlens.text.sentences import sentences

FORMATS: list[Mapping[str, Any]] = [
    {},
    {"features": "lexical-v1", "ranking": "context", "selected_tokens": 16},
    {"evidence_windows": 2, "merge": "nearest"},
    {"evidence": "windows", "merge": "mean"},
    {"features": "lexical-v1", "features_over": "read"},
]
PASSAGES = (
    "red lamp in the hall . nine boats on the river . ",
    "the fee is nine euros . maps of the gate . ",
)
SHORT, LONG = 1, 6


def exchange(repeats: int = LONG, *, query: str = "where is the lamp") -> Exchange:
    """Two passages; with ``SHORT`` they fit beside any chunk, with ``LONG`` they have to be selected from."""
    texts = tuple(Passage(text * repeats, Provenance.DOCUMENTS) for text in PASSAGES)
    return Exchange(Endpoint.CHAT, "m", query, texts)


def answer(text: str, index: int = 0) -> Answer:
    return Answer(index, AnswerKind.TEXT, text)


def prose(count: int) -> str:
    """``count`` sentences of five words; those of fewer sentences are the beginning of those of more."""
    dice = random.Random(5)
    return " ".join(" ".join(dice.choices(WORDS, k=5)) + "." for _ in range(count))


def detect(follower: EncoderFollower, text: str, *ranges: tuple[int, int]) -> list[DetectorResult]:
    """The result of the answer so far, and those of its parts."""
    return follower.detect_all([answer(text)], [ranges], aggregation=None, stop=never)


def ranges_of(follower: EncoderFollower, text: str, *ranges: tuple[int, int]) -> list[DetectorResult]:
    """The results of parts of the answer so far, out of the text near them."""
    return follower.detect_ranges([answer(text)], [ranges], aggregation=None, stop=never)


def content(result: DetectorResult) -> tuple[object, ...]:
    """All of a result but how long it took."""
    return (
        result.score,
        result.spans,
        result.coverage,
        result.reason,
        result.explanation,
        dict(result.details),
    )


@st.composite
def answers(draw: st.DrawFn) -> str:
    """Sentences of a few words, some of them without an end, a heading or an unknown word."""
    ends = st.sampled_from([".", ".", ". ", "!", "\n", ":", ""])
    words = st.lists(st.sampled_from([*WORDS, "Zorblax", "3.5", "Mr."]), min_size=1, max_size=9)
    parts = draw(st.lists(st.tuples(words, ends), min_size=1, max_size=14))
    return " ".join(" ".join(listed) + end for listed, end in parts)


@st.composite
def json_answers(draw: st.DrawFn) -> str:
    """Records of a few words and numbers, bare, in a fence or behind a sentence."""
    value = st.lists(st.sampled_from([*WORDS, "Zorblax", "3.5 euros."]), min_size=1, max_size=6).map(" ".join)
    record = st.dictionaries(
        st.sampled_from(["lamp", "price", "id", "some note"]), value | st.integers(0, 99) | st.none()
    )
    text = json.dumps(draw(st.lists(record, max_size=6) | record), indent=draw(st.sampled_from([None, 1])))
    return draw(st.sampled_from(["{}", "```json\n{}\n```", "The red lamp.\n{}\nNine boats."])).replace(
        "{}", text
    )


@given(text=answers() | json_answers(), data=st.data())
def test_a_followed_answer_gets_the_result_of_the_whole_at_once(text: str, data: st.DataObject) -> None:
    """Wherever the text was cut, whatever was scored before: same score, spans and coverage, to the bit."""
    fmt = data.draw(st.sampled_from(FORMATS))
    model = data.draw(st.sampled_from([ContextModel, PartedContextModel]))()
    encoder = context_encoder(model, fmt=fmt)
    asked = exchange(data.draw(st.sampled_from([SHORT, LONG])))
    follower = encoder.follow(asked)
    for cut in sorted(data.draw(st.lists(st.integers(1, len(text)), max_size=6))):
        if data.draw(st.booleans()):
            follower.ahead([answer(text[:cut])], stop=never)
        else:
            detect(follower, text[:cut], *sentences(text[:cut])[-1:])
    assert content(detect(follower, text)[0]) == content(encoder.detect(asked, answer(text)))


@given(text=answers() | json_answers(), data=st.data())
def test_a_part_has_the_score_of_its_text_so_far(text: str, data: st.DataObject) -> None:
    """A sentence that was scored while it was the last one scores the same for whoever asks afresh at that point."""
    encoder = context_encoder(PartedContextModel(), fmt=data.draw(st.sampled_from(FORMATS)))
    asked = exchange()
    follower = encoder.follow(asked)
    for start, end in sentences(text):
        followed = detect(follower, text[:end], (start, end))
        afresh = detect(encoder.follow(asked), text[:end], (start, end))
        assert list(map(content, followed)) == list(map(content, afresh))


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_part_that_is_all_of_the_answer_scores_like_it(fmt: Mapping[str, Any]) -> None:
    """Nothing is special about parts: the whole text as a part gets the whole's result."""
    text = prose(9)
    whole, part = detect(context_encoder(ContextModel(), fmt=fmt).follow(exchange()), text, (0, len(text)))
    assert content(whole) == content(part)
    assert whole.spans


def test_parts_share_the_tokens_and_spans_of_the_answer_among_them() -> None:
    """Adjoining parts hold each token once; their spans lie within them, in positions of the whole text."""
    text = prose(9)
    ranges = sentences(text)
    whole, *parts = detect(context_encoder(ContextModel()).follow(exchange()), text, *ranges)
    assert whole.coverage is not None
    assert sum(part.coverage.answer_tokens for part in parts if part.coverage) == whole.coverage.answer_tokens
    for part, (start, end) in zip(parts, ranges, strict=True):
        assert all(start <= span.start < span.end <= end for span in part.spans)
    for span in whole.spans:
        inside = [
            own for part in parts for own in part.spans if span.start <= own.start and own.end <= span.end
        ]
        assert max(own.score for own in inside) == span.score
    assert len({span.start for part in parts for span in part.spans}) >= len(whole.spans) > 1


def test_each_window_runs_once_and_the_end_costs_what_is_open() -> None:
    """What was run ahead is not run again; when the last word has come, only the last window is left."""
    model = PartedContextModel()
    encoder = context_encoder(model, fmt=FORMATS[1])
    text = prose(20)
    encoder.detect(exchange(), answer(text))
    at_once = len(model.windows)
    follower = encoder.follow(exchange())
    model.windows.clear()
    for start, _ in sentences(text)[1:]:
        if follower.due([answer(text[:start])]):
            follower.ahead([answer(text[:start])], stop=never)
    ahead = len(model.windows)
    assert 1 < ahead < at_once
    detect(follower, text)
    assert len(model.windows) == at_once
    detect(follower, text)
    assert len(model.windows) == at_once


def test_with_features_a_model_in_one_part_runs_nothing_ahead() -> None:
    """Features of an answer change with each word, so that without two parts running ahead would be in vain."""
    model = ContextModel()
    follower = context_encoder(model, fmt=FORMATS[1]).follow(exchange())
    follower.ahead([answer(prose(20))], stop=never)
    follower.ahead([answer(prose(20))], stop=never)
    assert not model.windows
    assert not follower.due([answer(prose(40))])


def test_looking_ahead_is_due_when_a_further_window_may_be_full() -> None:
    """At first, for the evidence; then when a chunk and the sentence in it may be over; never for a blank exchange."""
    follower = context_encoder(ContextModel()).follow(exchange())
    assert follower.due([answer("red")])
    follower.ahead([answer("red")], stop=never)
    assert not follower.due([answer(prose(1))])
    text = prose(8)
    assert follower.due([answer(text)])
    follower.ahead([answer(text)], stop=never)
    assert not follower.due([answer(text)])
    assert follower.due([answer(prose(16))])
    assert not follower.due([])


def test_nothing_is_due_where_nothing_can_be_scored() -> None:
    """Evidence in a script that the model does not read stays unread however long the answer gets."""
    asked = Exchange(Endpoint.CHAT, "m", "", (Passage("水泵的转速是每分钟九百转。", Provenance.TOOL),))
    follower = context_encoder(ContextModel()).follow(asked)
    follower.ahead([answer("red")], stop=never)
    assert not follower.due([answer(prose(30))])
    assert detect(follower, prose(2))[0].reason is Reason.LANGUAGE


def test_a_memory_without_room_costs_time_and_no_figure() -> None:
    """What is beyond the bound is run again, and nothing is run ahead that would not be kept."""
    model = PartedContextModel()
    encoder = context_encoder(model, remembered_bytes=600)
    follower = encoder.follow(exchange())
    text = prose(30)
    follower.ahead([answer(text)], stop=never)
    ahead = len(model.windows)
    assert 0 < ahead < 4
    assert not follower.due([answer(text + text)])
    assert content(detect(follower, text)[0]) == content(encoder.detect(exchange(), answer(text)))


def test_what_ran_before_a_stop_is_not_lost() -> None:
    """A run ahead that gives way leaves its windows to the next call."""
    model = PartedContextModel()
    encoder = context_encoder(model)
    follower = encoder.follow(exchange())
    text = prose(20)
    with pytest.raises(DetectorError, match="given up"):
        follower.ahead([answer(text)], stop=lambda: len(model.windows) >= 3)
    assert len(model.windows) == 3
    encoder.detect(exchange(), answer(text))
    at_once = len(model.windows) - 3
    detect(follower, text)
    assert len(model.windows) == 3 + at_once + (at_once - 3)


def test_choices_are_remembered_apart() -> None:
    """A call for one choice forgets nothing of another."""
    model = PartedContextModel()
    follower = context_encoder(model).follow(exchange())
    first, second = answer(prose(20), 0), answer(prose(21)[6:], 1)
    follower.ahead([first, second], stop=never)
    follower.detect_all([second], [()], aggregation=None, stop=never)
    before = len(model.windows)
    follower.detect_all([first], [()], aggregation=None, stop=never)
    assert len(model.windows) - before <= 1


@pytest.mark.parametrize(
    "text", ['{"Zorblax": null}', '{"id": "Zorblax"}', '{"meta": {"Zorblax": {}}}', "{\n Zorblax: true}"]
)
def test_every_member_of_json_is_scored(text: str) -> None:
    """A key, a null, an id and an empty object may each say something."""
    (whole,) = detect(context_encoder(ContextModel()).follow(exchange()), text)
    assert float(whole.details["max_token"]) > 0.7
    assert whole.coverage is not None
    assert not whole.coverage.left_out


def test_a_sentence_that_claims_nothing_has_no_score() -> None:
    """Thanks are no claims, whatever the model thinks of the words."""
    encoder = context_encoder(ContextModel())
    text = prose(3) + " Thank you for asking!"
    start = len(prose(3)) + 1
    _, part = detect(encoder.follow(exchange()), text, (start, len(text)))
    assert (part.score, part.spans, part.reason) == (None, (), Reason.EMPTY_ANSWER)
    assert part.coverage is not None
    assert part.coverage.complete


@given(text=answers(), data=st.data())
def test_a_part_of_a_growing_answer_is_scored_in_its_excerpt(text: str, data: st.DataObject) -> None:
    """As if the excerpt were the answer, with spans where they stand in the whole; whatever was scored before."""
    encoder = context_encoder(PartedContextModel(), fmt=data.draw(st.sampled_from(FORMATS)))
    asked, text = exchange(), prose(9) + " " + text
    follower = encoder.follow(asked)
    found = sentences(text)
    ranges = found[data.draw(st.integers(0, len(found) - 1)) :][: data.draw(st.integers(1, 4))]
    if data.draw(st.booleans()):
        follower.ahead([answer(text)], stop=never)
    excerpt = excerpt_of(answer(text), ranges)
    _, *expected = detect(encoder.follow(asked), excerpt.answer.text, *excerpt.ranges)
    parts = ranges_of(follower, text, *ranges)
    for part, alone, (start, end) in zip(parts, expected, ranges, strict=True):
        assert all(start <= span.start < span.end <= end for span in part.spans)
        moved = tuple(
            replace(span, start=span.start + excerpt.start, end=span.end + excerpt.start)
            for span in alone.spans
        )
        assert content(part) == content(replace(alone, spans=moved))


def test_a_part_costs_no_more_however_long_the_answer_has_become() -> None:
    """One window each, and the text far before it is not in it; nothing is remembered of it, and nothing forgotten."""
    model = PartedContextModel()
    encoder = context_encoder(model, fmt={"max_tokens": 256, "answer_tokens": 96})
    follower = encoder.follow(exchange(1))
    text = prose(120)
    follower.ahead([answer(text)], stop=never)
    ahead = len(model.windows)
    for start, end in sentences(text):
        ranges_of(follower, text[:end], (start, end))
    narrow = model.windows[ahead:]
    assert len(narrow) == 120
    assert max(window.end for window in narrow) < 60
    detect(follower, text)
    assert len(model.windows) - ahead - len(narrow) == 1


def test_parts_of_several_answers_come_answer_by_answer() -> None:
    """An answer of which nothing is asked has no result, and costs nothing."""
    model = PartedContextModel()
    follower = context_encoder(model).follow(exchange())
    texts = [prose(2), prose(3), "  "]
    results = follower.detect_ranges(
        [answer(text, place) for place, text in enumerate(texts)],
        [sentences(texts[0]), (), [(0, 2)]],
        aggregation=None,
        stop=never,
    )
    assert [result.reason for result in results] == [None, None, Reason.EMPTY_ANSWER]
    assert len(model.windows) == 1


def test_a_part_does_not_wait_for_a_run_ahead() -> None:
    """While a window is being run ahead in another thread, a part is scored."""

    class Held(PartedContextModel):
        entered, release = threading.Event(), threading.Event()

        def states(self, window: Window) -> State:
            if not self.entered.is_set():
                self.entered.set()
                assert self.release.wait(timeout=30)
            return super().states(window)

    model = Held()
    follower = context_encoder(model).follow(exchange())
    text = prose(20)
    ahead = threading.Thread(target=follower.ahead, args=([answer(text)],), kwargs={"stop": never})
    ahead.start()
    try:
        assert model.entered.wait(timeout=30)
        (part,) = ranges_of(follower, text, sentences(text)[-1])
        assert part.score is not None
        assert ahead.is_alive()
    finally:
        model.release.set()
        ahead.join(timeout=30)


def test_a_part_far_beyond_the_bound_on_windows_is_scored() -> None:
    """While the answer goes on, each sentence has a window of its own."""
    text = prose(40)
    encoder = context_encoder(ContextModel(), max_windows=2, fmt={"max_tokens": 256, "answer_tokens": 96})
    (part,) = ranges_of(encoder.follow(exchange()), text, sentences(text)[-1])
    assert part.score is not None
    assert part.coverage is not None
    assert part.coverage.complete


def test_scoring_parts_can_be_given_up() -> None:
    """Once nobody waits, nothing is begun."""
    model = ContextModel()
    follower = context_encoder(model).follow(exchange())
    with pytest.raises(DetectorError, match="given up"):
        follower.detect_ranges([answer(prose(2))], [[(0, 9)]], aggregation=None, stop=lambda: True)
    assert not model.windows


def in_latin(text: str) -> bool:
    return text.isascii()


@pytest.mark.parametrize("mainly", ["latin", "han"])
def test_sentences_in_a_script_that_is_not_read_have_no_score(mainly: str) -> None:
    """Each sentence by itself: the English ones are scored although most of the answer is not read, and the reverse."""
    english, chinese = "The lamp is red.", "水泵的转速很高。"
    text = " ".join([english, chinese] + [english if mainly == "latin" else chinese] * 4)
    ranges = sentences(text)
    whole, *parts = detect(context_encoder(ContextModel()).follow(exchange()), text, *ranges)
    assert whole.reason is Reason.LANGUAGE
    assert (whole.score is None) == (mainly == "han")
    growing = ranges_of(context_encoder(ContextModel()).follow(exchange()), text, *ranges)
    for found in (parts, growing):
        for part, (start, end) in zip(found, ranges, strict=True):
            readable = in_latin(text[start:end])
            assert (part.score is not None, part.reason) == (readable, None if readable else Reason.LANGUAGE)


def test_a_sentence_beyond_the_bound_on_windows_is_not_scored() -> None:
    """What no window holds is too large, and what one window holds in part is partial."""
    text = prose(9)
    encoder = context_encoder(ContextModel(), max_windows=1)
    _, *parts = detect(encoder.follow(exchange()), text, *sentences(text))
    assert (parts[0].reason, parts[-1].reason, parts[-1].score) == (None, Reason.TOO_LARGE, None)
    cut = [part for part in parts if part.coverage and not part.coverage.complete]
    assert sum(part.score is not None for part in cut) == 1


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda encoder: encoder.follow(exchange()), Reason.EMPTY_ANSWER),
        (lambda encoder: encoder.follow(Exchange(Endpoint.CHAT, "m", "", ())), Reason.NO_CONTEXT),
    ],
)
def test_where_an_answer_has_no_score_its_parts_have_none(
    make: Callable[[EncoderDetector], EncoderFollower], reason: Reason
) -> None:
    """The reason is the same for all of them."""
    text = "  " if reason is Reason.EMPTY_ANSWER else "red lamp."
    follower = make(context_encoder(ContextModel()))
    results = [*detect(follower, text, (0, 2)), *ranges_of(follower, text, (0, 2))]
    assert [(result.score, result.reason) for result in results] == [(None, reason)] * 3


def test_scoring_a_growing_answer_can_be_given_up() -> None:
    """Once nobody waits, no further window is run."""
    model = ContextModel()
    follower = context_encoder(model).follow(exchange())
    with pytest.raises(DetectorError, match="given up"):
        follower.detect_all([answer(prose(20))], [()], aggregation=None, stop=lambda: len(model.windows) > 1)
    assert len(model.windows) == 2
