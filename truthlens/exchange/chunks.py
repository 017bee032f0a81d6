"""Chunks of streamed chat and completions answers: what each adds to which choice, and the text so far.

Texts are Python strings whose surrogate pairs are joined also where a pair is cut over two chunks. Deliberately
not here: how frames are cut (``sse``), when text is released, what a withheld sentence becomes.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from truthlens.core.errors import DialectError
from truthlens.core.records import AnswerKind, Endpoint
from truthlens.exchange import jsontext
from truthlens.exchange.content import text_of_part
from truthlens.exchange.response import usage_counts
from truthlens.exchange.sse import Frame, set_data

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HIGH = re.compile("[\ud800-\udbff]\\Z")
_REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks")
_OBJECTS = {Endpoint.CHAT: "chat.completion.chunk", Endpoint.COMPLETIONS: "text_completion"}


class ChunkKind(StrEnum):
    """What one frame of a stream is.

    ``CHOICES`` has a list of choices, possibly empty; ``USAGE`` has a count and no choice; ``BLANK`` has no
    data (comments, keep-alives); ``OPAQUE`` has data that cannot be read as the API's.
    """

    CHOICES = "choices"
    USAGE = "usage"
    ERROR = "error"
    DONE = "done"
    BLANK = "blank"
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True)
class Delta:
    """What one chunk adds to one choice.

    ``text`` is answer text alone; half a surrogate pair at its ends is kept. The flags say what else is there:
    reasoning, a tool or function call, a refusal, log probabilities.
    """

    index: int
    text: str = field(default="", repr=False)
    role: str = ""
    finish_reason: str | None = None
    reasoning: bool = False
    tool_call: bool = False
    refusal: bool = False
    logprobs: bool = False


@dataclass(frozen=True, slots=True)
class Chunk:
    """One frame read. ``usage`` holds whole numbers only; ``problem`` says why a chunk is opaque, without its text."""

    kind: ChunkKind
    deltas: tuple[Delta, ...] = ()
    id: str = ""
    object: str = ""
    created: int = 0
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""


def parse_chunk(frame: Frame, endpoint: Endpoint) -> Chunk:
    """What ``frame`` says; never an error, since a stream that has begun cannot be refused.

    ``Delta.index`` is the choice's own ``index``, else its place. An error object's deltas are given where
    it has some, because there are clients that show them.
    """
    if frame.data is None:
        if frame.oversize:
            return Chunk(ChunkKind.OPAQUE, problem="frame is larger than its limit")
        if frame.invalid:
            return Chunk(ChunkKind.OPAQUE, problem="frame is not UTF-8")
        return Chunk(ChunkKind.BLANK)
    if frame.data.strip().startswith("[DONE]"):
        return Chunk(ChunkKind.DONE)
    try:
        body = jsontext.load_object(frame.data)
    except DialectError as error:
        return Chunk(ChunkKind.OPAQUE, problem=str(error))
    is_error = bool(body.get("error")) or body.get("object") == "error"
    choices = body.get("choices")
    is_error = is_error or (frame.event == "error" and choices is None)
    usage = usage_counts(body.get("usage"))
    try:
        deltas = _deltas(choices, endpoint)
    except DialectError as error:
        if not is_error:
            return Chunk(ChunkKind.OPAQUE, problem=str(error))
        deltas = ()
    if is_error:
        kind = ChunkKind.ERROR
    elif not deltas and usage:
        kind = ChunkKind.USAGE
    elif choices is None:
        return Chunk(ChunkKind.OPAQUE, problem="chunk has no choices; expected a list")
    else:
        kind = ChunkKind.CHOICES
    created = body.get("created")
    return Chunk(
        kind=kind,
        deltas=deltas,
        id=_string(body.get("id")),
        object=_string(body.get("object")),
        created=created if isinstance(created, int) and not isinstance(created, bool) else 0,
        model=_string(body.get("model")),
        usage=usage,
    )


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters ``start`` (inclusive) to ``end`` (exclusive) of a choice's text that frame ``frame`` carries.

    Character ``start + n`` of the text is character ``n`` of what the frame adds. ``joined``: the first
    character is a surrogate pair whose first half the piece before carries; it counts in both.
    """

    frame: int
    start: int
    end: int
    joined: bool = False


class Choice:
    """One choice of a stream so far.

    Text only grows: the first half of a surrogate pair at the end is counted once the second has come, or as
    U+FFFD once it cannot come any more. ``Piece`` says how frames and text belong together.
    """

    def __init__(self, index: int, endpoint: Endpoint) -> None:
        self.index = index
        self.role = ""
        self.finish_reason: str | None = None
        self.reasoning = False
        self.tool_call = False
        self.refusal = False
        self.length = 0
        self._endpoint = endpoint
        self._texts: list[str] = []
        self._pieces: list[Piece] = []
        self._half = ""
        self._blank = True

    @property
    def text(self) -> str:
        """The answer text so far."""
        if len(self._texts) > 1:
            self._texts = ["".join(self._texts)]
        return self._texts[0] if self._texts else ""

    @property
    def pieces(self) -> Sequence[Piece]:
        """Which frame carries what, in order; without gaps, from 0 to ``length``."""
        return self._pieces

    @property
    def finished(self) -> bool:
        """Whether a finish reason was seen."""
        return self.finish_reason is not None

    @property
    def kind(self) -> AnswerKind:
        """What the choice holds so far, by the rules of answers that do not stream."""
        if self.tool_call:
            return AnswerKind.TOOL_CALL
        if not self._blank:
            return AnswerKind.TEXT
        return AnswerKind.REFUSAL if self.refusal else AnswerKind.EMPTY

    def tail(self, start: int) -> str:
        """The text from character ``start`` on, at the cost of the tail's length alone."""
        found: list[str] = []
        begin = self.length
        for text in reversed(self._texts):
            if begin <= start:
                break
            begin -= len(text)
            found.append(text)
        return "".join(reversed(found))[start - begin :]

    def pieces_in(self, start: int, end: int) -> Sequence[Piece]:
        """The pieces that carry any of the characters ``start`` (inclusive) to ``end`` (exclusive)."""
        if start >= end:
            return ()
        first = bisect_right(self._pieces, start, key=lambda piece: piece.end)
        last = bisect_left(self._pieces, end, key=lambda piece: piece.start)
        return self._pieces[first:last]

    def locate(self, end: int) -> tuple[int, int]:
        """Where the first ``end`` characters end: a frame, and how many characters of its delta they take.

        All frames before that one carry text up to ``end`` only, all after it carry none.

        Raises:
            ValueError: ``end`` is not in 1..``length``.
        """
        if not 1 <= end <= self.length:
            raise ValueError(f"end is {end}; expected 1 to {self.length}")
        piece = self._pieces[bisect_left(self._pieces, end, key=lambda piece: piece.start) - 1]
        return piece.frame, end - piece.start

    def add(self, delta: Delta, frame: int) -> None:
        """Take in what frame number ``frame`` adds to this choice."""
        self.role = self.role or delta.role
        self.reasoning = self.reasoning or delta.reasoning
        self.tool_call = self.tool_call or delta.tool_call
        self.refusal = self.refusal or delta.refusal
        if delta.text:
            self._add_text(delta.text, frame)
        if delta.finish_reason is not None:
            self.finish_reason = delta.finish_reason
            self.end()

    def end(self) -> None:
        """No more text comes: half a surrogate pair at the end is U+FFFD."""
        if self._half:
            self._half = ""
            self._grow_last_piece()
            self._append("\ufffd")

    def _add_text(self, text: str, frame: int) -> None:
        joined = False
        if self._half:
            joined = _PAIR.match(self._half + text[0]) is not None
            if joined:
                text = self._half + text
                self._half = ""
                self._grow_last_piece()
            else:
                self.end()
        text = _join_pairs(text)
        begin = self.length
        if _HIGH.search(text):
            self._half = text[-1]
            text = text[:-1]
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.frame == frame:
            self._pieces[-1] = replace(last, end=begin + len(text))
        else:
            self._pieces.append(Piece(frame, begin, begin + len(text), joined))
        self._append(jsontext.show(text))

    def _grow_last_piece(self) -> None:
        self._pieces[-1] = replace(self._pieces[-1], end=self.length + 1)

    def _append(self, text: str) -> None:
        if text:
            self._texts.append(text)
            self.length += len(text)
            self._blank = self._blank and not text.strip()


class Transcript:
    """A stream so far: its choices by index in the order they came, and what further chunks must repeat.

    ``frames`` counts what was added. ``id``, ``object``, ``created`` and ``model`` are the first that were not
    empty; ``usage`` is the last. ``done``: the marker was seen; ``failed``: an error object was; ``opaque``
    counts the frames that could not be read.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.choices: dict[int, Choice] = {}
        self.frames = 0
        self.id = ""
        self.object = ""
        self.created = 0
        self.model = ""
        self.usage: Mapping[str, int] = {}
        self.done = False
        self.failed = False
        self.opaque = 0

    def add(self, chunk: Chunk) -> int:
        """The number, from 0, of the frame that ``chunk`` was read from; give every frame of the stream."""
        frame = self.frames
        self.frames += 1
        self.id = self.id or chunk.id
        self.object = self.object or chunk.object
        self.created = self.created or chunk.created
        self.model = self.model or chunk.model
        self.usage = chunk.usage or self.usage
        self.failed = self.failed or chunk.kind is ChunkKind.ERROR
        self.opaque += chunk.kind is ChunkKind.OPAQUE
        for delta in chunk.deltas:
            choice = self.choices.get(delta.index)
            if choice is None:
                choice = self.choices[delta.index] = Choice(delta.index, self.endpoint)
            choice.add(delta, frame)
        if chunk.kind is ChunkKind.DONE:
            self.done = True
            self.end()
        return frame

    def end(self) -> None:
        """The stream is over, with a done marker or without."""
        for choice in self.choices.values():
            choice.end()


def content_chunk(
    transcript: Transcript, index: int, text: str, *, role: str = "", finish_reason: str | None = None
) -> str:
    """JSON of a chunk, valid by the API's schema, that adds ``text`` to choice ``index``."""
    choice: dict[str, object] = {"index": index}
    if transcript.endpoint is Endpoint.COMPLETIONS:
        choice["text"] = text
    else:
        choice["delta"] = ({"role": role} if role else {}) | ({"content": text} if text else {})
    choice |= {"logprobs": None, "finish_reason": finish_reason}
    return jsontext.dump(_envelope(transcript, [choice]))


def final_chunk(transcript: Transcript, extra: Mapping[str, object]) -> str:
    """JSON of a chunk without choices that carries ``extra`` as its ``truthlens`` object."""
    return jsontext.dump(_envelope(transcript, []) | {"truthlens": dict(extra)})


def edit_content(frame: Frame, choice_index: int, new_text: str | None, *, endpoint: Endpoint) -> bytes:
    """The frame's bytes with another text for one choice; every other byte stays.

    The choice loses its ``logprobs``, which describe a text that is gone. Content in parts has the new text
    in its first text part, and its other text parts go. A frame that says the same already is not changed.

    Args:
        frame: A frame that ``parse_chunk`` could read.
        choice_index: ``Delta.index``; where a frame repeats it, the first takes the text and the others none.
        new_text: The text, or ``None`` to take the choice's text out.
        endpoint: The API of the stream.

    Raises:
        DialectError: The chunk's JSON nests too deeply to be edited.
        ValueError: There is a new text, and the frame holds no text of that choice to put it in the place of.
    """
    chunk = parse_chunk(frame, endpoint)
    old = "".join(delta.text for delta in chunk.deltas if delta.index == choice_index)
    edit = _ContentEdit(choice_index, new_text, endpoint)
    text = ""
    if frame.data is not None and chunk.deltas:
        try:
            text = jsontext.edit_object(frame.data, edit.top)
        except RecursionError:
            raise DialectError("chunk nests too deeply to be edited") from None
    if new_text is not None and not edit.places:
        raise ValueError(f"the frame holds no text of choice {choice_index}; add a chunk instead")
    if not edit.places or _join_pairs(old) == new_text:
        return frame.raw
    return set_data(frame, text)


class _ContentEdit:
    """One pass over a chunk's JSON; ``places`` counts the choices whose text was replaced."""

    def __init__(self, index: int, text: str | None, endpoint: Endpoint) -> None:
        self.places = 0
        self._index = index
        self._text = text
        self._endpoint = endpoint
        self._new = text
        self._found = False

    def top(self, key: str, raw: str) -> str:
        # A chunk that repeats ``choices`` was read by its last; an earlier one may be of any shape.
        if key != "choices" or not raw.startswith("["):
            return raw
        self.places = 0
        return jsontext.edit_array(raw, self._choice)

    def _choice(self, place: int, raw: str) -> str:
        if not raw.startswith("{"):
            return raw
        choice = json.loads(raw)
        if _index(choice, place) != self._index:
            return raw
        first = self.places == 0
        self._new = self._text if first or self._text is None else ""
        self._found = False
        edited = jsontext.edit_object(raw, self._member)
        if not self._found:
            return raw
        self.places += 1
        if choice.get("logprobs") is None:
            return edited
        return jsontext.edit_object(edited, lambda key, value: None if key == "logprobs" else value)

    def _member(self, key: str, raw: str) -> str:
        if self._endpoint is Endpoint.COMPLETIONS:
            return self._replaced(raw) or '""' if key == "text" else raw
        if key == "delta" and raw.startswith("{"):
            return jsontext.edit_object(
                raw, lambda name, value: self._replaced(value) if name == "content" else value
            )
        return raw

    def _replaced(self, raw: str) -> str | None:
        """The new content; ``None`` where the member goes."""
        new = self._new
        if raw.startswith('"'):
            self._found = True
            return None if new is None else jsontext.dump(new)
        if not raw.startswith("["):
            return raw
        parts = json.loads(raw)
        places = [place for place, part in enumerate(parts) if text_of_part(part) is not None]
        if not places:
            return raw
        self._found = True

        def edit_part(place: int, part: str) -> str | None:
            if place not in places:
                return part
            if new is None or place != places[0]:
                return None
            value = jsontext.dump(new)
            if part.startswith('"'):
                return value
            return jsontext.edit_object(part, lambda key, member: value if key == "text" else member)

        return jsontext.edit_array(raw, edit_part)


def _envelope(transcript: Transcript, choices: list[object]) -> dict[str, object]:
    return {
        "id": transcript.id or "truthlens",
        "object": transcript.object or _OBJECTS[transcript.endpoint],
        "created": transcript.created,
        "model": transcript.model,
        "choices": choices,
    }


def _deltas(choices: object, endpoint: Endpoint) -> tuple[Delta, ...]:
    if choices is None:
        return ()
    if not isinstance(choices, list):
        raise DialectError(f"choices is {jsontext.describe(choices)}; expected a list of objects")
    return tuple(_delta(choice, place, endpoint) for place, choice in enumerate(choices))


def _delta(choice: object, place: int, endpoint: Endpoint) -> Delta:
    if not isinstance(choice, dict):
        raise DialectError(f"a choice is {jsontext.describe(choice)}; expected an object")
    index = _index(choice, place)
    finish = choice.get("finish_reason")
    finish_reason = finish if isinstance(finish, str) else None
    logprobs = choice.get("logprobs") is not None
    if endpoint is Endpoint.COMPLETIONS:
        text = choice.get("text")
        if text is not None and not isinstance(text, str):
            raise DialectError(f"a choice's text is {jsontext.describe(text)}; expected a string")
        return Delta(index=index, text=text or "", finish_reason=finish_reason, logprobs=logprobs)
    delta = choice.get("delta")
    if delta is None:
        delta = {}
    if not isinstance(delta, dict):
        raise DialectError(f"a choice's delta is {jsontext.describe(delta)}; expected an object")
    content = delta.get("content")
    if content is not None and not isinstance(content, str | list):
        raise DialectError(
            f"a delta's content is {jsontext.describe(content)}; expected a string, a list of parts or null"
        )
    parts = content if isinstance(content, list) else [content or ""]
    types = {_string(part.get("type")) for part in parts if isinstance(part, dict)}
    return Delta(
        index=index,
        text=_join_pairs("".join(text_of_part(part) or "" for part in parts)),
        role=_string(delta.get("role")),
        finish_reason=finish_reason,
        reasoning=any(delta.get(name) for name in _REASONING)
        or not types.isdisjoint(("thinking", "reasoning")),
        tool_call=bool(delta.get("tool_calls") or delta.get("function_call")),
        refusal=bool(delta.get("refusal")) or "refusal" in types,
        logprobs=logprobs,
    )


def _index(choice: Mapping[str, object], place: int) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) and not isinstance(index, bool) else place


def _string(value: object) -> str:
    return jsontext.show(value) if isinstance(value, str) else ""


def _join_pairs(text: str) -> str:
    """``text`` with each surrogate pair as the one character it stands for."""
    if text.isascii() or not _PAIR.search(text):
        return text
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
