"""What has to hold of a stream that went through the gateway, whatever its backend did and whoever died on the way."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from tests.integration.support.chaos.stream_backend import Written
from tests.integration.support.chaos.stream_rounds import Got
from tests.integration.support.streams.gateway import MARK, NOTICE, WARNING
from tests.integration.support.streams.stage import read_back
from tests.integration.support.streams.streams import DONE

_EVENT_END = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)")


def faults_of(
    number: int, got: Got, written: Written, *, killed: bool = False, closed: bool = False
) -> list[str]:
    """What is wrong with one stream; nothing where all that is promised holds.

    Args:
        number: of the case.
        got: what its client got.
        written: what the backend wrote, or would have written.
        killed: whether a sidecar may have died on the way.
        closed: whether Envoy fails closed.
    """
    faults: list[str] = []

    def expect(holds: bool, what: str) -> None:
        if not holds:
            faults.append(f"case {number}, {got.plan}, {written.behaviour}: {what}; body {got.body[-400:]!r}")

    if got.status != 200:
        down = killed and closed and got.status in (503, 504)
        # A busy machine has no room for one more stream; the plan that must check then answers so.
        held = got.plan == "block" and got.status == 424 and b'"code": "overloaded"' in got.body
        expect(down or held or (written.breaks and got.status == 502), f"status {got.status}")
        expect(got.broken is False, "an error that is cut off")
        return faults
    expect(got.broken is False or written.breaks or (killed and closed), "broken off")
    if got.plan == "observe":
        _expect_bytes(got, written, expect)
    _expect_texts(got, written, expect, killed=killed)
    return faults


Expect = Callable[[bool, str], None]


def _expect_bytes(got: Got, written: Written, expect: Expect) -> None:
    """The backend's frames in order, with nothing between them but frames of ours; up to where it broke off."""
    ours = 0
    body = written.body
    for event in _events(got.body):
        if body.startswith(event):
            body = body[len(event) :]
        elif event.startswith(b"data:") and (b'"truthlens"' in event or WARNING.encode() in event):
            ours += 1
        else:
            # Half an event, where one of the two ended.
            expect(
                got.broken or body.startswith(event.rstrip(b"\r\n")), f"not the backend's: {event[:200]!r}"
            )
            return
    expect(ours <= 3, f"{ours} frames put in")
    expect(got.broken or written.breaks or not body, f"{len(body)} bytes lost")


def _expect_texts(got: Got, written: Written, expect: Expect, *, killed: bool) -> None:
    sent, read = read_back(_readable(written.body)), read_back(_readable(got.body))
    expect(len(read.verdicts) <= 1, "two verdicts")
    expect(killed or read.done <= max(1, sent.done), "two markers")
    if read.verdicts and not killed:
        expect(read.verdict_is_last, "chunks behind the verdict")
    stopped = {index for index, reason in read.finish.items() if reason == "content_filter"}
    expect(not stopped or got.plan in ("stop", "block"), "stopped")
    ended = not got.broken and not written.breaks
    for index in set(sent.texts) | set(read.texts):
        first, last = sent.texts.get(index, ""), read.texts.get(index, "")
        expect(
            _holds(got.plan, first, last, ended=ended, stopped=index in stopped), f"{first!r} became {last!r}"
        )
    if ended and not stopped:
        expect(killed or read.done == sent.done, f"{read.done} markers of {sent.done}")
        expect({**sent.finish, **read.finish} == sent.finish, f"finish {read.finish} of {sent.finish}")
        expect(read.finish.keys() == sent.finish.keys(), "a finish is missing")
        expect(read.usage == sent.usage, "usage is missing")


def _holds(plan: str, first: str, last: str, *, ended: bool, stopped: bool) -> bool:
    """Whether ``last`` is ``first`` as the plan may have changed it: in order, nothing twice, nothing of nobody."""
    bare = last.removesuffix(f"\n\n{WARNING}").removeprefix(f"{WARNING}\n\n")
    if plan == "buffer" and ended:
        return bare == first
    bare = bare.replace(MARK, "")
    place = 0
    gaps = NOTICE in bare
    for piece in bare.split(NOTICE):
        found = first.find(piece.strip(), place)
        if found < 0 or (not gaps and found != place and piece.strip()):
            return False
        place = found + len(piece.strip())
    if plan in ("observe", "mark", "hasty", "narrow") or not gaps:
        return bare == first if ended and not stopped else first.startswith(bare)
    return True


def _readable(body: bytes) -> bytes:
    """The whole events of a body that say something by the API."""
    return b"".join(event for event in _events(body) if _says_something(event))


def _says_something(event: bytes) -> bool:
    if not event.endswith((b"\n\n", b"\r\n\r\n")):
        return False
    if event.strip() == DONE.strip():
        return True
    try:
        chunk = json.loads(event.removeprefix(b"data:"))
        return all("text" in choice or choice["delta"] is not None for choice in chunk["choices"])
    except (ValueError, TypeError, KeyError):
        return False


def _events(body: bytes) -> Sequence[bytes]:
    """The body cut behind each blank line; two blank lines in a row are two events."""
    return [event for event in _EVENT_END.split(body) if event]
