"""Generated gated streams: whatever is cut, delayed or flagged, nothing is lost, doubled, reordered or let through."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.chunk_streams import units
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
    text_of,
)
from truthlens.core.records.enums import OnFlagged
from truthlens.core.records.verdict import Verdict
from truthlens.text.sentences import sentences

MARK, NOTICE = "<mark>", "<notice>"
PIECES = st.sampled_from(
    [
        "Yes. ",
        "no",
        " more words",
        "3.5 ",
        "e.g. ",
        ".",
        "! ",
        "\n",
        "\n\n",
        "---\n",
        "  ",
        "真的。",
        "”",
        "😀",
        "𝕏",
        '"',
        "- item\n",
    ]
)
TEXTS = st.lists(PIECES, max_size=14).map("".join)
OTHERS = st.sampled_from(
    [b": keep-alive\n\n", frame({"index": 0, "delta": {"reasoning": "Hm. Hm."}}), frame(), b"event: ping\n\n"]
)


@dataclass(frozen=True)
class Made:
    """Texts by choice, the frames that say them, and how many frames come in each message."""

    texts: list[str]
    frames: list[bytes]
    sizes: list[int]


@st.composite
def made_streams(draw: st.DrawFn) -> Made:
    texts = draw(st.lists(TEXTS, min_size=1, max_size=3))
    queues = []
    for text in texts:
        parts = units(text)
        cuts = [0, *sorted(draw(st.lists(st.integers(0, len(parts)), max_size=12))), len(parts)]
        queues.append(["".join(parts[start:end]) for start, end in pairwise(cuts)])
    frames = [frame(*(said("", index) for index in range(len(texts))))]
    while any(queues):
        ready = [index for index, queue in enumerate(queues) if queue]
        chosen = draw(st.lists(st.sampled_from(ready), min_size=1, unique=True))
        choices = [said(queues[index].pop(0), index) for index in chosen]
        if draw(st.integers(0, 4)) == 0 and not queues[chosen[-1]]:
            choices[-1]["finish_reason"] = "length"
        frames.append(frame(*choices))
        if draw(st.integers(0, 4)) == 0:
            frames.append(draw(OTHERS))
    frames += [frame(finish(index)) for index in draw(st.permutations(range(len(texts))))]
    frames.append(frame(usage={"total_tokens": 9}))
    if draw(st.booleans()):
        frames.append(b"data: [DONE]\n\n")
    sizes = draw(st.lists(st.integers(1, 4), min_size=len(frames), max_size=len(frames)))
    return Made(texts, frames, sizes)


@dataclass(frozen=True)
class Course:
    """What happens beside the frames: for each message, whether it is asked and answered, and when it comes."""

    asked: list[bool]
    answered: list[bool]
    pressed: list[bool]
    times: list[float]
    flags: list[bool]


def courses(*, forced: bool) -> st.SearchStrategy[Course]:
    """With ``forced``, text is also asked for by time and under pressure, in the middle of sentences."""
    some = st.lists(st.booleans(), min_size=8, max_size=8)
    never = st.just([False] * 8)
    gaps = st.lists(st.sampled_from([0.0, 0.5, 2.0]), min_size=8, max_size=8)
    return st.builds(
        Course, some, some, some if forced else never, gaps if forced else st.just([0.0] * 8), some
    )


def play(made: Made, course: Course, on_flagged: OnFlagged, *, checked: bool = True) -> GatedStream:
    """The stream, gated to its end; of each released text, all words are decided."""
    flags = iter(course.flags * 1000)

    def scorer(_choice: int, _text: str) -> Verdict:
        if not next(flags):
            return GOOD
        return BAD if checked else UNCHECKED

    used = plan(on_flagged=on_flagged, mark_template=MARK, notice_template=NOTICE, max_hold_s=3.0)
    played = GatedStream(used, exchange(choices=len(made.texts)), scorer)
    now, frames, turn = 0.0, made.frames, 0
    waiting = False
    while frames:
        size, place = made.sizes[turn], turn % 8
        now += course.times[place]
        played.feed(*frames[:size], now=now)
        frames = frames[size:]
        if course.asked[place] and not waiting:
            played.ask(now, pressed=course.pressed[place])
            waiting = True
        if course.answered[place] and waiting:
            played.answer()
            waiting = False
        if not waiting and played.gate.next_expiry is not None and played.gate.next_expiry <= now:
            played.ask(now)
            waiting = True
            assert played.gate.next_expiry is None or played.gate.next_expiry > now
        assert_released_is_decided(played, made)
        turn += 1
    played.end(now)
    return played


def assert_released_is_decided(played: GatedStream, made: Made) -> None:
    """No word has left that was not decided before."""
    client = read_back(played.out)
    for index, text in enumerate(made.texts):
        got = client.choices[index].text if index in client.choices else ""
        got = got.replace(MARK, "").replace(NOTICE, "")
        decided = [text[start:end] for choice, start, end in played.verdicts if choice == index]
        words = "".join(filter(str.isalnum, "".join(decided)))
        left = "".join(filter(str.isalnum, got))
        assert len(left) <= len(words)


def ranges_of(played: GatedStream, index: int) -> list[tuple[int, int, bool]]:
    """The scored ranges of a choice, in order, and whether they were flagged."""
    return sorted(
        (start, end, verdict.flagged)
        for (choice, start, end), verdict in played.verdicts.items()
        if choice == index
    )


def withheld_text(text: str, ranges: list[tuple[int, int, bool]]) -> str:
    """What a reader gets: each run of withheld sentences, with the white space within it, is one notice."""
    pieces, place, last = [], 0, None
    for start, end, flagged in ranges:
        between = text[place:start]
        if flagged and last is True and not between.strip():
            between = ""
        elif flagged:
            between += NOTICE
        pieces += [between, "" if flagged else text[start:end]]
        place, last = end, flagged
    return "".join([*pieces, text[place:]])


@given(made_streams(), courses(forced=True))
def test_with_nothing_flagged_every_frame_leaves_as_its_own_bytes(made: Made, course: Course) -> None:
    played = play(
        made, Course(course.asked, course.answered, course.pressed, course.times, [False]), OnFlagged.STOP
    )
    assert {entry.output for entry in played.entries} == {None}
    assert played.out == b"".join(made.frames)
    for index, text in enumerate(made.texts):
        assert played.gate.delivered(index) == text


@given(made_streams(), courses(forced=True))
def test_every_word_is_asked_for_once_and_each_ask_holds_the_text_so_far(made: Made, course: Course) -> None:
    played = play(made, course, OnFlagged.WITHHOLD)
    for ask in played.asks:
        assert made.texts[ask.choice].startswith(ask.text)
        assert ask.ranges[-1][1] == len(ask.text)
    for index, text in enumerate(made.texts):
        ranges = ranges_of(played, index)
        assert all(first[1] <= second[0] for first, second in pairwise(ranges))
        assert all(text[start:end] == text[start:end].strip() != "" for start, end, _ in ranges)
        asked = "".join(text[start:end] for start, end, _ in ranges)
        assert [*filter(str.isalnum, asked)] == [*filter(str.isalnum, text)]


@given(made_streams(), courses(forced=False))
def test_without_haste_the_ranges_are_the_sentences_of_the_answer(made: Made, course: Course) -> None:
    played = play(made, course, OnFlagged.MARK)
    for index, text in enumerate(made.texts):
        ranges = [(start, end) for start, end, _ in ranges_of(played, index)]
        assert ranges == [
            (a, b) for a, b in sentences(text) if any(sign.isalnum() or sign == "😀" for sign in text[a:b])
        ]


@given(made_streams(), courses(forced=True))
def test_each_flagged_range_has_its_mark_and_nothing_else_changes(made: Made, course: Course) -> None:
    played = play(made, course, OnFlagged.MARK)
    for index, text in enumerate(made.texts):
        marked = text
        for _start, end, flagged in reversed(ranges_of(played, index)):
            marked = marked[:end] + MARK * flagged + marked[end:]
        assert text_of(played.out, index) == marked
        assert played.gate.delivered(index) == text
    assert read_back(played.out).usage == {"total_tokens": 9}


@given(made_streams(), courses(forced=False))
def test_withheld_ranges_are_gone_and_notices_stand_in_their_place(made: Made, course: Course) -> None:
    played = play(made, course, OnFlagged.WITHHOLD)
    for index, text in enumerate(made.texts):
        assert text_of(played.out, index) == withheld_text(text, ranges_of(played, index))


@given(made_streams(), courses(forced=True))
def test_what_leaves_is_what_is_delivered_with_the_insertions(made: Made, course: Course) -> None:
    for on_flagged in OnFlagged:
        played = play(made, course, on_flagged)
        for index, text in enumerate(made.texts):
            delivered, kept = played.gate.delivered(index), played.gate.delivered(index)
            for place, inserted in reversed(played.gate.insertions(index)):
                delivered = delivered[:place] + inserted + delivered[place:]
            assert text_of(played.out, index) == delivered
            ranges = ranges_of(played, index)
            if on_flagged is OnFlagged.WITHHOLD:
                good = "".join(text[start:end] for start, end, flagged in ranges if not flagged)
                assert [*filter(str.isalnum, kept)] == [*filter(str.isalnum, good)]


@given(made_streams(), courses(forced=True))
def test_a_stopped_choice_ends_at_its_first_flagged_range(made: Made, course: Course) -> None:
    played = play(made, course, OnFlagged.STOP)
    client = read_back(played.out)
    for index, text in enumerate(made.texts):
        flagged = [start for start, _end, bad in ranges_of(played, index) if bad]
        choice = client.choices[index]
        if flagged:
            assert choice.text == text[: flagged[0]] + NOTICE
            assert choice.finish_reason == "content_filter"
        else:
            assert choice.text == text
            assert choice.finish_reason in {"stop", "length"}
    stopped = any(verdict.flagged for verdict in played.verdicts.values())
    assert played.gate.stopped is stopped
    assert client.done is (not stopped and made.frames[-1] == b"data: [DONE]\n\n")
    assert bool(client.usage) is not stopped
    if played.gate.stop_entry is not None:
        place = played.entries.index(played.gate.stop_entry)
        assert all(entry.output == b"" for entry in played.entries[place + 1 :])


@given(made_streams(), courses(forced=True))
def test_every_frame_that_leaves_can_be_read(made: Made, course: Course) -> None:
    for on_flagged in OnFlagged:
        for line in play(made, course, on_flagged).out.splitlines():
            if line.startswith(b"data: {"):
                choices = json.loads(line[6:].decode())["choices"]
                assert len({choice["index"] for choice in choices}) == len(choices)


@given(made_streams(), courses(forced=True))
def test_the_results_count_each_decided_range_once(made: Made, course: Course) -> None:
    played = play(made, course, OnFlagged.WITHHOLD, checked=False)
    unchecked = [verdict for verdict in played.verdicts.values() if verdict.score is None]
    assert played.gate.results == {
        "passed": len(played.verdicts) - len(unchecked),
        "flagged": 0,
        "unchecked": len(unchecked),
    }
    assert played.out == b"".join(made.frames)
