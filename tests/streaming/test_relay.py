"""Messages of a streamed body: what waits for what, and what leaves in whose place."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.api.sse.frames import Decoder
from truthlens.core.records.enums import Endpoint
from truthlens.streaming import reading
from truthlens.streaming.relay import Relay
from truthlens.streaming.types import Ack, StreamEntry

DONE = b"data: [DONE]\n\n"
VERDICT = b'data: {"choices": [], "truthlens": {}}\n\n'


def chunk(text: str | None = None, *, index: int = 0, finish: str | None = None, **fields: object) -> bytes:
    delta = {} if text is None else {"content": text}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": index, "delta": delta, "finish_reason": finish}], **fields}  # fmt: skip
    return f"data: {json.dumps(body)}\n\n".encode()


def relay(*, gated: bool = False, choices: int = 1, max_bytes: int = 1 << 20) -> Relay:
    return Relay(Endpoint.CHAT, choices=choices, gated=gated, max_bytes=max_bytes)


def leaving(messages: Sequence[bytes], acks: Sequence[Ack]) -> bytes:
    """What a client receives of the first messages, as many as were acknowledged."""
    return b"".join(data if ack.body is None else ack.body for data, ack in zip(messages, acks, strict=False))


def texts(stream: bytes, index: int = 0) -> str:
    chunks = [
        json.loads(frame.data) for frame in Decoder().feed(stream) if frame.data not in (None, "[DONE]")
    ]
    choices = [choice for chunk in chunks for choice in chunk["choices"] if choice["index"] == index]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def test_observed_messages_leave_at_once_as_they_came_until_the_answer_has_ended() -> None:
    watched = relay()
    for data in (chunk("A "), b": keep-alive\n\n", chunk("b.")[:10], chunk("b.")[10:]):
        watched.feed(data, end=False)
        assert watched.acks() == [Ack()]
    watched.feed(chunk(finish="stop"), end=False)
    watched.feed(DONE, end=False)
    watched.feed(b"", end=True)
    assert (watched.ended, watched.acks()) == (True, [])
    watched.open()
    assert watched.acks() == [Ack(), Ack(), Ack(end=True)]


@pytest.mark.parametrize("behind", [chunk("Wrong."), b"data: Wrong.\n\n", b"data: [DONE] Wrong.\n\n"])
def test_text_behind_the_marker_is_unread_where_it_leaves(behind: bytes) -> None:
    """Nobody scores it; comments there say nothing."""
    for data, unread in ((behind, True), (b": bye\n\n", False), (DONE, False)):
        watched = relay()
        watched.feed(chunk("Right.", finish="stop") + DONE + data, end=False)
        assert watched.transcript.unread is unread


def test_a_message_whose_end_may_become_the_marker_waits_for_it() -> None:
    watched = relay()
    messages = [chunk("A.") + b"data: [DO", b"NE]\n\n", b""]
    for number, data in enumerate(messages):
        watched.feed(data, end=number == 2)
        assert watched.acks() == []
    watched.close({}, VERDICT)
    assert leaving(messages, watched.acks()) == chunk("A.") + VERDICT + DONE


def test_the_closing_stands_before_the_finish_and_the_verdict_before_the_marker() -> None:
    watched = relay()
    messages = [chunk("A."), chunk(finish="stop") + chunk(usage={"total_tokens": 3}), DONE, b""]
    for number, data in enumerate(messages):
        watched.feed(data, end=number == 3)
    watched.close({0: " Beware."}, VERDICT)
    out = leaving(messages, watched.acks())
    assert texts(out) == "A. Beware."
    assert out.index(b"Beware") < out.index(b'"stop"') < out.index(VERDICT) < out.index(DONE)
    assert out.replace(VERDICT, b"").count(b"data:") == 5


def test_a_finish_that_carries_text_gets_the_closing_behind_it() -> None:
    watched = relay()
    messages = [chunk("A."), chunk(" B.", finish="stop"), DONE, b""]
    for number, data in enumerate(messages):
        watched.feed(data, end=number == 3)
    watched.close({0: " Beware."}, b"")
    out = leaving(messages, watched.acks())
    assert texts(out) == "A. B. Beware."
    assert out.count(b"data:") == 3


def test_a_finish_that_was_changed_already_keeps_its_change() -> None:
    """The frame holds another choice's text, too, which a gate has changed."""
    gate = relay(gated=True, choices=2)
    both = {"choices": [{"index": 0, "delta": {"content": "A."}, "finish_reason": "stop"},
                        {"index": 1, "delta": {"content": "B."}, "finish_reason": "stop"}]}  # fmt: skip
    messages = [f"data: {json.dumps(both)}\n\n".encode(), DONE, b""]
    (entry,) = gate.feed(messages[0], end=False)
    entry.output, entry.decided = messages[0].replace(b"B.", b"[gone]"), True
    (done,) = gate.feed(DONE, end=False)
    done.decided = True
    gate.feed(b"", end=True)
    gate.close({0: " Beware."}, b"")
    out = leaving(messages, gate.acks())
    assert (texts(out, 0), texts(out, 1)) == ("A. Beware.", "[gone]")


def test_a_stream_without_marker_gets_the_verdict_at_its_end() -> None:
    watched = relay()
    messages = [chunk("A."), b""]
    watched.feed(messages[0], end=False)
    assert watched.acks() == [Ack()]
    watched.feed(b"", end=True)
    assert watched.acks() == []
    watched.close({0: " Beware."}, VERDICT)
    (ack,) = watched.acks()
    assert ack.end
    assert ack.body is not None
    assert texts(ack.body) == " Beware."
    assert ack.body.endswith(VERDICT)


def test_nothing_is_put_behind_a_frame_that_was_cut_off() -> None:
    """It would make the frame whole, with half of its JSON."""
    watched = relay()
    watched.feed(chunk("A.") + b'data: {"choi', end=False)
    watched.acks()
    watched.feed(b"", end=True)
    watched.close({0: " Beware."}, VERDICT)
    assert watched.acks() == [Ack(end=True)]


def test_every_choice_must_finish_before_the_end_is_held() -> None:
    watched = relay(choices=2)
    watched.feed(chunk("A.", index=0) + chunk(finish="stop", index=0), end=False)
    assert watched.acks() == [Ack()]
    watched.feed(chunk("B.", index=1), end=False)
    assert (watched.ended, watched.acks()) == (False, [Ack()])
    watched.feed(chunk(finish="stop", index=1), end=False)
    assert (watched.finished, watched.acks()) == (True, [])


def test_a_gated_message_waits_until_every_frame_that_touches_it_is_decided() -> None:
    gate = relay(gated=True)
    first, second = chunk("One. "), chunk("Two. ")
    messages = [first + second[:20], second[20:]]
    (one,) = gate.feed(messages[0], end=False)
    (two,) = gate.feed(messages[1], end=False)
    one.decided = True
    assert gate.acks() == []
    two.decided = True
    assert gate.acks() == [Ack(), Ack()]


def test_a_changed_frame_takes_all_messages_that_it_touches_with_it() -> None:
    """The first message must not leave alone: its part of the frame would be lost if we died then."""
    gate = relay(gated=True)
    first, second, third = chunk("One. "), chunk("Two. "), chunk("Three. ")
    messages = [first + second[:20], second[20:] + third[:9], third[9:]]
    entries: list[StreamEntry] = []
    for data in messages:
        entries += gate.feed(data, end=False)
    entries[0].decided = entries[1].decided = True
    entries[1].output = chunk("2. ")
    assert gate.acks() == []
    entries[2].decided = True
    acks = gate.acks()
    assert [ack.body for ack in acks] == [first, chunk("2. ") + third[:9], None]
    assert leaving(messages, acks) == first + chunk("2. ") + third


def test_a_stopped_stream_says_its_last_and_nothing_more() -> None:
    gate = relay(gated=True)
    messages = [chunk("One. "), chunk("Two. "), chunk(" Three") + b"data: {", b'"x": 1}\n\n', b""]
    entries = [*gate.feed(messages[0], end=False), *gate.feed(messages[1], end=False)]
    entries += gate.feed(messages[2], end=False)
    entries[0].decided = True
    entries[1].decided, entries[1].output = True, chunk("[stopped]") + chunk(finish="content_filter")
    gate.stop(entries[1], VERDICT + DONE)
    acks = gate.acks()
    gate.feed(messages[3], end=False)
    gate.feed(messages[4], end=True)
    acks += gate.acks()
    assert len(acks) == 5
    expected = chunk("One. ") + chunk("[stopped]") + chunk(finish="content_filter") + VERDICT + DONE
    assert leaving(messages, acks) == expected


@pytest.mark.parametrize("undecided", [True, False])
def test_a_cut_ends_the_stream_before_what_is_undecided(undecided: bool) -> None:
    gate = relay(gated=True)
    messages = [chunk("One. "), chunk("Two. "), b""]
    (one,) = gate.feed(messages[0], end=False)
    one.decided = True
    acks = gate.acks()
    if undecided:
        gate.feed(messages[1], end=False)
        gate.cut(DONE)
    else:
        gate.cut(DONE)
        gate.feed(messages[1], end=False)
    gate.feed(messages[2], end=True)
    assert leaving(messages, acks + gate.acks()) == chunk("One. ") + DONE


@pytest.mark.parametrize("end_has_come", [False, True])
def test_a_cut_with_nothing_left_to_decide_is_said_at_the_end_of_the_body(end_has_come: bool) -> None:
    gate = relay(gated=True)
    (entry,) = gate.feed(chunk("A."), end=False)
    entry.decided = True
    assert gate.acks() == [Ack()]
    if end_has_come:
        gate.feed(b"", end=True)
        assert gate.acks() == []
    gate.cut(VERDICT + DONE)
    if not end_has_come:
        gate.feed(b"", end=True)
    assert gate.acks() == [Ack(VERDICT + DONE, end=True)]


def test_a_stop_behind_a_frame_that_has_left_is_said_in_the_place_of_the_next() -> None:
    gate = relay(gated=True)
    (entry,) = gate.feed(chunk("A."), end=False)
    entry.decided = True
    assert gate.acks() == [Ack()]
    gate.feed(chunk("B.")[:9], end=False)
    gate.stop(entry, VERDICT + DONE)
    assert gate.acks() == [Ack(b"")]
    gate.feed(chunk("B.")[9:] + chunk("C."), end=False)
    gate.feed(DONE, end=False)
    assert gate.acks() == [Ack(VERDICT + DONE), Ack(b"")]


def test_beyond_its_bound_text_is_no_longer_collected() -> None:
    watched = relay(max_bytes=300)
    for _ in range(5):
        watched.feed(chunk("Word. "), end=False)
    assert watched.overflowed
    assert len(watched.transcript.choices[0].text) < 30
    watched.feed(DONE, end=False)
    assert watched.ended


def test_a_message_that_is_read_in_steps_leaves_whole_once_it_was_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "STEP_BYTES", 100)
    watched = relay()
    message = b"".join(chunk(word) for word in ["one", "two", "three"])
    steps = watched.reading([message], end=False)
    assert len(next(steps)) == 0
    for found in steps:
        assert len(found) <= 1
        last = watched.acks()
    assert last == [Ack()]
    assert watched.transcript.choices[0].text == "onetwothree"


@pytest.mark.parametrize("marker", [DONE, b""], ids=["marked", "unmarked"])
def test_what_is_said_at_the_end_while_the_last_message_is_read_is_said_once(
    monkeypatch: pytest.MonkeyPatch, marker: bytes
) -> None:
    monkeypatch.setattr(reading, "STEP_BYTES", 10)
    watched = relay()
    message = chunk("A.") + chunk(finish="stop") + marker
    steps = watched.reading([message], end=True)
    next(steps)
    watched.close({0: " Beware."}, VERDICT)
    assert watched.acks() == []
    for _ in steps:
        pass
    received = leaving([message], watched.acks())
    assert received.count(VERDICT) == 1
    assert received.endswith(VERDICT + marker)


@given(data=st.data())
def test_however_a_stream_is_cut_nothing_is_lost_doubled_or_reordered(data: st.DataObject) -> None:
    """Frames decided in any order, at any time; changed frames leave once, all others as their bytes."""
    words = data.draw(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=8))
    frames = [chunk(word, index=number % 2) for number, word in enumerate(words)]
    frames += [chunk(finish="stop", index=0), chunk(finish="stop", index=1), DONE]
    stream = b"".join(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    messages = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)] + [b""]
    step = data.draw(st.sampled_from((7, 64, 1 << 16)))
    gated = data.draw(st.booleans())
    changed = data.draw(st.sets(st.integers(0, len(words) - 1))) if gated else set()
    body = relay(gated=gated, choices=2)
    entries: list[StreamEntry] = []
    acks: list[Ack] = []
    given_out = 0
    while given_out < len(messages):
        batch = messages[given_out : given_out + data.draw(st.integers(1, 4))]
        given_out += len(batch)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reading, "STEP_BYTES", step)
            for found in body.reading(batch, end=given_out == len(messages)):
                entries += found
                for place, entry in enumerate(entries):
                    if gated and not entry.decided and data.draw(st.booleans()):
                        entry.output = b"data: 1\n\n" if place in changed else None
                        entry.decided = True
                acks += body.acks()
                assert len(acks) <= given_out
    for place, entry in enumerate(entries):
        if not entry.decided:
            entry.output = b"data: 1\n\n" if place in changed else None
            entry.decided = True
    acks += body.acks()
    assert len(acks) < len(messages)  # the end waits
    body.close({}, VERDICT)
    acks += body.acks()
    expected = [b"data: 1\n\n" if place in changed else frame for place, frame in enumerate(frames)]
    assert len(acks) == len(messages)
    assert [ack.end for ack in acks] == [False] * (len(messages) - 1) + [True]
    assert leaving(messages, acks) == b"".join([*expected[:-1], VERDICT, DONE])
    assert body.held_bytes == 0
