"""What the parts of a stream hand to each other: frames on their way, acknowledgements, and what is to be scored.

Envoy sends the body of a streamed answer in messages, each to be acknowledged in order, changed or not. A message that
is not acknowledged yet is held by Envoy as well, and passes unchanged if this process dies: so no byte of a message may
leave with the acknowledgement of an earlier one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from truthlens.api.sse.chunks import Chunk
from truthlens.api.sse.frames import Frame
from truthlens.api.sse.skeletons import Skeleton
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import Verdict

Search = Callable[[Exchange, Sequence[Answer], Sequence[Verdict], float], Awaitable[Exchange]]
"""Gives the exchange with what was retrieved for its question and for the flagged claims of these verdicts,
one on each answer, within so many seconds."""

_NOTHING: Mapping[int, tuple[int, int]] = MappingProxyType({})


@dataclass(slots=True)
class StreamEntry:
    """One frame on its way to the client; decided once, then it may leave.

    ``texts`` says per choice which characters of the choice's text the frame completes: start inclusive, end exclusive,
    never empty. ``output`` is what leaves in the frame's place, ``None`` where its own bytes do. ``skeleton`` is what the frame
    shares with frames before it, all of it but its text.
    """

    frame: Frame
    chunk: Chunk
    texts: Mapping[int, tuple[int, int]] = field(default_factory=lambda: _NOTHING)
    output: bytes | None = None
    decided: bool = False
    skeleton: Skeleton | None = None


@dataclass(frozen=True, slots=True)
class Ack:
    """The acknowledgement of one message, in the order of the messages.

    ``body`` is what leaves in the message's place, ``None`` where its own bytes do. ``end`` marks the message that ended
    the stream.
    """

    body: bytes | None = None
    end: bool = False


@dataclass(frozen=True, slots=True)
class ScoringRequest:
    """Text of one choice that is to be scored.

    ``text`` is the answer so far, up to the end of the last range, without its first ``skipped`` characters where it is long;
    ``ranges`` are characters of ``text``, in order, not overlapping. Each is scored by itself, with the text before it as
    its context. ``offset`` is where ``text`` begins in the choice's text.
    """

    choice: int
    text: str
    ranges: tuple[tuple[int, int], ...]
    offset: int = field(default=0, compare=False)
    skipped: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ScoredParts:
    """Parts of answers, ``ranges`` of each, with the verdicts on them by the request's own evidence."""

    answers: Sequence[Answer]
    ranges: Sequence[Sequence[tuple[int, int]]]
    verdicts: Sequence[Sequence[Verdict]]
