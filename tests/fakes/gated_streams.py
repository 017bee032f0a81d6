"""A gated stream played frame by frame: the gate on its own, with a detector that the test scripts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from truthlens.api.sse.chunks import Transcript, parse_chunk
from truthlens.api.sse.frames import Decoder, Frame, encode
from truthlens.core.records.enums import Endpoint, Reason, Status, Streaming
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import StreamSettings
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.streaming.gate import Gate
from truthlens.streaming.types import ScoringRequest, StreamEntry

GOOD = Verdict(Status.CHECKED, score=0.1, threshold=0.6)
BAD = Verdict(Status.CHECKED, score=0.9, threshold=0.6)
HALF_GOOD = Verdict(Status.PARTIAL, Reason.TIMEOUT, score=0.1, threshold=0.6)
HALF_BAD = Verdict(Status.PARTIAL, Reason.TIMEOUT, score=0.9, threshold=0.6)
UNCHECKED = unchecked(Reason.TIMEOUT, threshold=0.6)

Scorer = Callable[[int, str], Verdict]


def plan(**settings: object) -> Plan:
    """A gated plan; names of ``StreamSettings`` go there, others to the plan."""
    stream = {name: value for name, value in settings.items() if name in StreamSettings.model_fields}
    rest = {name: value for name, value in settings.items() if name not in stream}
    return Plan("d", streaming=Streaming.GATE, stream=StreamSettings(**stream), **rest)  # type: ignore[arg-type]


def exchange(endpoint: Endpoint = Endpoint.CHAT, **fields: object) -> Exchange:
    """A request half without evidence."""
    return replace(
        Exchange(endpoint=endpoint, model="m", query="q", passages=(), stream=True),
        **fields,  # type: ignore[arg-type]
    )


def frames_of(raw: bytes) -> list[Frame]:
    """The frames of a stream."""
    decoder = Decoder()
    rest = decoder.feed(raw), decoder.finish()
    return rest[0] + ([rest[1]] if rest[1] is not None else [])


def frame(*choices: Mapping[str, object], newline: bytes = b"\n", **top: object) -> bytes:
    """A chunk with these choices."""
    head = {"id": "c-1", "object": "chat.completion.chunk", "created": 7, "model": "m"}
    return encode(json.dumps({**head, "choices": list(choices), **top}), newline=newline)


def said(text: str, index: int = 0, **more: object) -> dict[str, object]:
    """A choice that adds ``text``; ``more`` goes beside its delta."""
    return {"index": index, "delta": {"content": text}, "finish_reason": None, **more}


def finish(index: int = 0, reason: str = "stop") -> dict[str, object]:
    """A choice that finishes."""
    return {"index": index, "delta": {}, "finish_reason": reason}


def tell(*texts: str, index: int = 0) -> list[bytes]:
    """A chunk for each text."""
    return [frame(said(text, index)) for text in texts]


def read_back(stream: bytes, endpoint: Endpoint = Endpoint.CHAT) -> Transcript:
    """What a client reads."""
    transcript = Transcript(endpoint)
    for found in frames_of(stream):
        transcript.add(parse_chunk(found, endpoint))
    transcript.end()
    return transcript


def text_of(stream: bytes, index: int = 0, endpoint: Endpoint = Endpoint.CHAT) -> str:
    """A choice's text as a client reads it."""
    choice = read_back(stream, endpoint).choices.get(index)
    return choice.text if choice is not None else ""


class GatedStream:
    """One stream under a gate.

    ``asks`` are all that the gate gave, in order. Every step makes sure that entries are decided in order and finally.
    """

    def __init__(self, used: Plan, request: Exchange, scorer: Scorer = lambda _choice, _text: GOOD) -> None:
        self.transcript = Transcript(request.endpoint)
        self.gate = Gate(used, request, self.transcript)
        self.entries: list[StreamEntry] = []
        self.asks: list[ScoringRequest] = []
        self.verdicts: dict[tuple[int, int, int], Verdict] = {}
        self._scorer = scorer
        self._out: list[ScoringRequest] = []
        self._final: list[bytes | None] = []

    def feed(self, *frames: bytes, now: float = 0.0) -> None:
        """Frames that come in one message: the gate takes each as soon as the transcript has it."""
        for found in (found for raw in frames for found in frames_of(raw)):
            entry = self._read(found)
            self.entries.append(entry)
            self.gate.take(entry, now=now)
        self._check()

    def ask(self, now: float = 0.0, *, ended: bool = False, pressed: bool = False) -> list[str]:
        """The texts of the ranges that the gate asks for."""
        asks = self.gate.ask(now=now, ended=ended, pressed=pressed)
        self.asks += asks
        self._out += asks
        self._check()
        return [ask.text[start:end] for ask in asks for start, end in ask.ranges]

    def answer(self) -> None:
        """Decide what was asked."""
        out, self._out = self._out, []
        self.gate.decide(out, [self._scored(ask) for ask in out])
        self._check()

    def step(self, *frames: bytes, now: float = 0.0) -> None:
        """Feed, ask and answer."""
        self.feed(*frames, now=now)
        self.ask(now)
        self.answer()

    def end(self, now: float = 0.0) -> bytes:
        """Ask for the rest and answer; all that leaves."""
        if self._out:
            self.answer()
        self.ask(now, ended=True)
        self.answer()
        assert self.ask(now, ended=True) == []
        assert all(entry.decided for entry in self.entries)
        return self.out

    def play(self, *frames: bytes) -> bytes:
        """Feed the frames one by one, each with its questions answered, and end; all that leaves."""
        for raw in frames:
            self.step(raw)
        return self.end()

    @property
    def released(self) -> int:
        """How many entries are decided."""
        return len(self._final)

    @property
    def out(self) -> bytes:
        """What has left."""
        own = [entry.frame.raw for entry in self.entries]
        return b"".join(raw if new is None else new for raw, new in zip(own, self._final, strict=False))

    def _read(self, found: Frame) -> StreamEntry:
        chunk = parse_chunk(found, self.transcript.endpoint)
        before = {index: choice.length for index, choice in self.transcript.choices.items()}
        self.transcript.add(chunk)
        texts = {
            delta.index: (before.get(delta.index, 0), self.transcript.choices[delta.index].length)
            for delta in chunk.deltas
        }
        return StreamEntry(found, chunk, {index: span for index, span in texts.items() if span[0] < span[1]})

    def _scored(self, ask: ScoringRequest) -> Sequence[Verdict]:
        verdicts = [self._scorer(ask.choice, ask.text[start:end]) for start, end in ask.ranges]
        for (start, end), verdict in zip(ask.ranges, verdicts, strict=True):
            place = ask.choice, start + ask.skipped, end + ask.skipped
            assert place not in self.verdicts
            self.verdicts[place] = verdict
        return verdicts

    def _check(self) -> None:
        decided = [entry.decided for entry in self.entries]
        count = decided.count(True)
        assert decided == [True] * count + [False] * (len(decided) - count)
        outputs = [entry.output for entry in self.entries[:count]]
        assert outputs[: len(self._final)] == self._final
        self._final = outputs
