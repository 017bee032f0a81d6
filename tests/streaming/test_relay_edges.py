"""Frames that leave in parts: a backend that stalls within one, a stream given up in its middle, a body that is torn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.streaming.test_relay import DONE, VERDICT, chunk, relay, texts
from truthlens.api.sse.frames import Decoder
from truthlens.streaming.relay import Relay

FINISH = chunk(finish="stop")
USAGE = b'data: {"id": "c", "choices": [], "usage": {"total_tokens": 3}}\n\n'


class Passing:
    """A relay whose entries are all decided as they come; ``received`` is what a client has."""

    def __init__(self, body: Relay) -> None:
        self.body = body
        self.received = b""
        self._sent: list[bytes] = []

    @property
    def held(self) -> int:
        """Messages that have not left."""
        return len(self._sent)

    def send(self, *messages: bytes, end: bool = False) -> None:
        """Messages that come one after the other; with ``end`` the last ends the body."""
        for place, data in enumerate(messages, start=1):
            self._sent.append(data)
            for entry in self.body.feed(data, end=end and place == len(messages)):
                entry.decided = True
            self.go()

    def go(self) -> None:
        """What may leave does."""
        for ack in self.body.acks():
            data = self._sent.pop(0)
            self.received += data if ack.body is None else ack.body

    def stall(self) -> None:
        """The backend falls silent: what waits for nothing but the rest of a frame leaves."""
        self.body.unwait()
        self.body.carry()
        self.go()

    def close(self, *, warning: str = "", over: bool = True) -> None:
        """The verdict is known; unless the stream is ``over``, it was given up."""
        self.body.close({0: warning} if warning else {}, VERDICT)
        if not over:
            self.body.open()
        self.go()


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("opened", [False, True])
def test_a_frame_whose_beginning_was_kept_back_leaves_once_and_whole(gated: bool, opened: bool) -> None:
    passing = Passing(relay(gated=gated))
    frame = chunk("free.")
    # As much as may be the marker: of other frames an observed stream keeps nothing back.
    passing.send(chunk("It is ") + frame[:6])
    passing.stall()
    assert passing.received == chunk("It is ")
    if opened:
        passing.body.open()
    passing.send(frame[6:30], frame[30:60])
    passing.send(frame[60:])
    assert passing.received == chunk("It is ") + frame


def test_of_what_has_begun_to_leave_nothing_is_taken_back() -> None:
    """A frame that speaks in our name is only changed as long as none of it has left."""
    passing = Passing(relay())
    forged = chunk("free.", truthlens={"score": 0.0})
    passing.send(forged[:-20])
    passing.send(forged[-20:])
    assert passing.received == forged


def test_a_marker_that_comes_in_two_parts_follows_the_verdict_of_a_stream_that_was_given_up() -> None:
    passing = Passing(relay())
    passing.send(chunk("It is free."))
    passing.close(over=False)
    passing.send(DONE[:10], DONE[10:])
    passing.send(b"", end=True)
    assert passing.received == chunk("It is free.") + VERDICT + DONE


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("early", [False, True])
def test_a_marker_that_was_kept_back_follows_the_verdict(gated: bool, early: bool) -> None:
    passing = Passing(relay(gated=gated))
    passing.send(chunk("It is free.") + DONE[:10])
    passing.stall()
    if early:
        passing.close()
    passing.send(DONE[10:])
    if not early:
        passing.close()
    passing.send(b"", end=True)
    assert passing.received == chunk("It is free.") + VERDICT + DONE


@pytest.mark.parametrize("gated", [False, True])
def test_a_sign_of_life_on_the_markers_own_frame_leaves_before_the_verdict(gated: bool) -> None:
    passing = Passing(relay(gated=gated))
    passing.send(chunk("It is free."), b": alive\n")
    assert passing.received.endswith(b": alive\n")
    passing.send(DONE)
    passing.close(warning=" Beware.")
    passing.send(b"", end=True)
    assert passing.received.endswith(VERDICT + DONE)
    assert texts(passing.received.replace(VERDICT, b"")) == "It is free. Beware."


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize(
    "last",
    [chunk(" free."), chunk(finish="stop"), b"data: [DONE]\n\n", b": bye\n\n"],
    ids=["text", "finish", "marker", "comment"],
)
def test_a_last_frame_without_its_blank_line_gets_it_before_what_is_put_behind_it(
    last: bytes, kept: int, newline: bytes
) -> None:
    """The frame says all that it has to say: nobody who asked for a verdict goes without."""
    passing = Passing(relay())
    first, final = (raw.replace(b"\n", newline) for raw in (chunk("It is"), last))
    passing.send(first)
    passing.send(final.rstrip(b"\r\n") + newline * kept, end=True)
    passing.close(warning=" Beware.")
    said = [frame for frame in Decoder().feed(passing.received) if frame.data is not None]
    assert "truthlens" in str(said[-1].data)
    assert all(frame.whole for frame in said)
    assert " Beware." in passing.received.decode()
    assert passing.received.replace(b"\r", b"").replace(b"\n", b"").startswith(first.rstrip(b"\r\n"))


@pytest.mark.parametrize("lost", [4, 8])
def test_nothing_is_put_behind_a_text_that_was_torn(lost: int) -> None:
    """It would make one event of both, which nobody can read."""
    passing = Passing(relay())
    torn = chunk(" free.")[:-lost]
    passing.send(chunk("It is"))
    passing.send(torn, end=True)
    passing.close(warning=" Beware.")
    assert passing.received == chunk("It is") + torn


def test_a_count_in_the_middle_is_not_the_end_of_a_stream_that_was_given_up() -> None:
    passing = Passing(relay(gated=True))
    passing.send(chunk("It is") + USAGE + chunk(" f")[:10])
    passing.close(over=False)
    passing.send(chunk(" f")[10:], FINISH + DONE, b"", end=True)
    assert passing.received == chunk("It is") + USAGE + chunk(" f") + FINISH + VERDICT + DONE


@given(data=st.data())
def test_whoever_stalls_and_wherever_it_is_cut_the_verdict_stands_once_before_the_end(
    data: st.DataObject,
) -> None:
    middle = data.draw(
        st.lists(st.sampled_from([chunk("a"), chunk("b."), USAGE, b": ka\n\n", b"\n"]), max_size=5)
    )
    ending = data.draw(st.sampled_from([(FINISH,), (FINISH, USAGE), (USAGE,), (USAGE, b": ka\n\n"), ()]))
    marker = data.draw(st.sampled_from([(DONE,), ()]))
    stream = b"".join([*middle, *ending, *marker])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    messages = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    passing = Passing(relay(gated=data.draw(st.booleans())))
    closed = False
    for place, message in enumerate(messages, start=1):
        passing.send(message, end=place == len(messages))
        if data.draw(st.booleans()):
            passing.stall()
        if not closed and passing.body.ended and data.draw(st.booleans()):
            closed = True
            passing.close()
    if not closed:
        passing.close()
    assert passing.held == 0
    assert passing.received.replace(VERDICT, b"") == stream
    assert passing.received.count(VERDICT) == 1
    if marker:
        assert passing.received.index(VERDICT) < passing.received.index(DONE)
