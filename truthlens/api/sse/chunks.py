"""Chunks of streamed chat and completions answers: what each adds to which choice, and the text so far.

Texts are Python strings whose surrogate pairs are joined also where a pair is cut over two chunks.
Deliberately not here: how frames are cut (``frames``), chunks with another text (``chunk_edits``), when text
is released.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from truthlens.api.answer_citations import split_citations
from truthlens.api.members.bookkeeping import is_identifier
from truthlens.api.reasoning import AnswerStart, ReasoningPlace
from truthlens.api.responses import OWN_MEMBER, answer_of, usage_counts
from truthlens.api.sse.frames import Frame
from truthlens.api.visible_text import load_shown, show_delta, unread_of, without_copies
from truthlens.core.errors import DialectError
from truthlens.core.records.enums import AnswerKind, Endpoint
from truthlens.core.records.exchange import Answer
from truthlens.llm.token_estimate import text_tokens
from truthlens.text import json_edit

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HIGH = re.compile("[\ud800-\udbff]\\Z")

_MOST_SECONDS = 1 << 53

MOST_CHOICES = 1024
"""More than any API gives at once; each costs memory for as long as the stream lasts."""


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

    ``text`` is answer text, that of refusals and transcripts included; half a surrogate pair at its ends is
    kept. ``elsewhere``: some of it is outside of the content, where it cannot be edited; ``only_refused``:
    all of it is a refusal. ``beside`` is what else a client can show: the answer once more, or text that
    nobody reads. ``call_tokens`` estimates what is in tool calls. ``citations`` is evidence that comes with the
    answer. The flags say what else is there.
    """

    index: int
    text: str = field(default="", repr=False)
    role: str = ""
    finish_reason: str | None = None
    reasoning: str = field(default="", repr=False)
    tool_call: bool = False
    refusal: bool = False
    logprobs: bool = False
    elsewhere: bool = False
    only_refused: bool = False
    beside: tuple[str, ...] = field(default=(), repr=False)
    call_tokens: int = 0
    citations: tuple[object, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One frame read.

    ``id``, ``object`` and ``model`` are empty where they are no identifiers. ``usage`` holds whole numbers only. ``problem`` says why a chunk is opaque, without its text. ``forged``: it has a
    ``truthlens`` member, as only we give. ``unread_tokens`` estimates the text in it that nothing here reads: that of an
    opaque frame, and what stands beside the choices.
    """

    kind: ChunkKind
    deltas: tuple[Delta, ...] = ()
    id: str = ""
    object: str = ""
    created: int = 0
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""
    forged: bool = False
    unread_tokens: int = 0

    @property
    def readable(self) -> bool:
        """Whether the frame says something that a client of the API reads."""
        return self.kind not in (ChunkKind.BLANK, ChunkKind.OPAQUE)


def parse_chunk(frame: Frame, endpoint: Endpoint, *, cites: bool = False) -> Chunk:
    """Parse what ``frame`` says; never an error, since a stream that has begun cannot be refused.

    ``Delta.index`` is the choice's own ``index``, else its place. An error object's deltas are given where
    it has some, because there are clients that show them. ``cites``: evidence may come with the answer.
    """
    data = frame.data
    if data is None or not data.startswith("{"):
        found = _without_object(frame)
        if found is not None:
            return found
    assert data is not None
    try:
        body, repeated = load_shown(data)
    except DialectError as error:
        return _opaque(frame, str(error))
    forged = OWN_MEMBER in body
    is_error = _is_error(frame, body)
    try:
        deltas = _deltas(body.get("choices"), endpoint, cites=cites)
    except DialectError as error:
        if not is_error:
            return _opaque(frame, str(error), forged=forged)
        deltas = ()
    usage = usage_counts(body.get("usage"))
    if is_error:
        kind = ChunkKind.ERROR
    elif not deltas and usage:
        kind = ChunkKind.USAGE
    elif "choices" not in body:
        return _opaque(frame, "chunk has no choices; expected a list", forged=forged)
    else:
        kind = ChunkKind.CHOICES
    created = body.get("created")
    return Chunk(
        kind,
        deltas,
        _identifier("id", body.get("id")),
        _identifier("object", body.get("object")),
        created if type(created) is int and 0 < created < _MOST_SECONDS else 0,
        _identifier("model", body.get("model")),
        usage,
        forged=forged,
        # What an error says alone is no answer; beside choices there are clients that show it with them.
        unread_tokens=0 if is_error and not deltas else _unread_tokens(body, repeated, deltas),
    )


def is_torn(frame: Frame, chunk: Chunk) -> bool:
    """Whether a last frame was cut in its middle, so that nothing may follow it; it may lack its blank line alone."""
    return not frame.whole and chunk.kind is ChunkKind.OPAQUE and not is_object(frame.data or "")


def is_object(data: str) -> bool:
    """Whether ``data`` is a JSON object, of any API."""
    try:
        json_edit.load_object(data)
    except DialectError:
        return False
    return True


def skimmed(frame: Frame, endpoint: Endpoint) -> Chunk:
    """Parse only whether ``frame`` is the end marker or has a member in our name."""
    data = frame.data
    if data is not None and data.startswith("{") and OWN_MEMBER not in data and "\\u" not in data:
        return Chunk(ChunkKind.CHOICES)
    return parse_chunk(frame, endpoint)


class Choice:
    """One choice of a stream so far.

    Text only grows: the first half of a surrogate pair at the end is counted once the second has come, or as
    U+FFFD once it cannot come any more.
    """

    def __init__(self, index: int, endpoint: Endpoint) -> None:
        self.index = index
        self.role = ""
        self.finish_reason: str | None = None
        self.tool_call = False
        self.refusal = False
        self.elsewhere = False
        """Whether some of the text stands in another place than the content: nothing can be put in beside it."""
        self.length = 0
        self.unread_tokens = 0
        """An estimate of what else a client can show, and nobody reads."""
        self.call_tokens = 0
        self._reasoning: list[str] = []
        self._only_refused = True
        self._endpoint = endpoint
        self._texts: list[str] = []
        self._half = ""
        self._blank = True
        self._start = AnswerStart()

    @property
    def answer_start(self) -> int:
        """Where the answer begins in the text, behind reasoning between marks; 0 where there is none."""
        return self._start.of(lambda: self.text)

    @property
    def begins(self) -> bool:
        """Whether the text so far may still turn out to be an opening mark of reasoning."""
        return self._start.place is ReasoningPlace.BEFORE

    @property
    def text(self) -> str:
        """The answer text so far."""
        return _joined(self._texts)

    @property
    def reasoning(self) -> str:
        """The reasoning so far that came in fields of its own."""
        return _joined(self._reasoning)

    @property
    def finished(self) -> bool:
        """Whether a finish reason was seen."""
        return self.finish_reason is not None

    @property
    def torn(self) -> bool:
        """Whether the text ends within a surrogate pair, whose first half is not counted yet."""
        return bool(self._half)

    @property
    def kind(self) -> AnswerKind:
        """What the choice holds so far, by the rules of answers that do not stream."""
        if self.tool_call:
            return AnswerKind.TOOL_CALL
        if self._blank:
            return AnswerKind.REFUSAL if self.refusal else AnswerKind.EMPTY
        if not self.elsewhere:
            return AnswerKind.TEXT
        return AnswerKind.REFUSAL if self._only_refused else AnswerKind.OTHER

    def piece(self, start: int, end: int) -> str:
        """Return the characters ``start`` to ``end`` of the text.

        The cost is that of the pieces from ``start`` on, not of their length.
        """
        found: list[str] = []
        begin = self.length
        for text in reversed(self._texts):
            if begin <= start:
                break
            begin -= len(text)
            if begin < end:
                found.append(text[max(0, start - begin) : end - begin])
        return "".join(reversed(found))

    def add(self, delta: Delta) -> None:
        """Add what a frame says of this choice."""
        self.role = self.role or delta.role
        self.tool_call = self.tool_call or delta.tool_call
        self.refusal = self.refusal or delta.refusal
        self.elsewhere = self.elsewhere or delta.elsewhere
        self.call_tokens += delta.call_tokens
        if delta.reasoning:
            self._reasoning.append(delta.reasoning)
        if delta.text:
            self._only_refused = self._only_refused and delta.only_refused
            self._add_text(delta.text)
        if delta.beside:
            self._note_beside(delta)
        if delta.finish_reason is not None:
            self.finish_reason = delta.finish_reason
            self.end()

    def end(self) -> None:
        """Note that no more text comes: half a surrogate pair at the end is U+FFFD."""
        if self._half:
            self._half = ""
            self._append("\ufffd")

    def _note_beside(self, delta: Delta) -> None:
        """Count the text outside of the content, unless it repeats this chunk or all that was said so far."""
        for text in without_copies(delta.beside, [delta.text, delta.reasoning]):
            bare = text.strip()
            # A server that repeats all of the text in every chunk must not cost its square.
            grown = len(text) <= self.length + 1 and bare == self.text.strip()
            if not grown:
                self.unread_tokens += text_tokens(text)

    def _add_text(self, text: str) -> None:
        if self._half:
            if _PAIR.match(self._half + text[0]):
                text = self._half + text
                self._half = ""
            else:
                self.end()
        text = join_pairs(text)
        if _HIGH.search(text):
            self._half = text[-1]
            text = text[:-1]
        self._append(json_edit.show(text))

    def _append(self, text: str) -> None:
        if text:
            self._texts.append(text)
            self._start.feed(text)
            self.length += len(text)
            self._blank = self._blank and not text.strip()


class Transcript:
    """A stream so far: its choices by index in the order they came, and what further chunks must repeat.

    ``id``, ``object``, ``created`` and ``model`` are the first that were not empty; ``usage`` is the last.
    ``done``: the marker was seen; ``failed``: an error object was; ``opaque`` counts the frames that could
    not be read. ``unread_tokens`` estimates the text that nothing here reads, and that belongs to no choice. ``citations`` is
    the evidence that came with the answers.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.choices: dict[int, Choice] = {}
        self.id = ""
        self.object = ""
        self.created = 0
        self.model = ""
        self.usage: Mapping[str, int] = {}
        self.done = False
        self.failed = False
        self.opaque = 0
        self.unread_tokens = 0
        self.citations: list[object] = []

    @property
    def unread(self) -> bool:
        """Whether a client can show something of the stream that nothing here reads."""
        return bool(self.opaque or self.unread_tokens) or any(
            choice.unread_tokens for choice in self.choices.values()
        )

    def add(self, chunk: Chunk) -> None:
        """Add one chunk; callers pass every chunk of the stream, in order."""
        self.id = self.id or chunk.id
        self.object = self.object or chunk.object
        self.created = self.created or chunk.created
        self.model = self.model or chunk.model
        self.usage = chunk.usage or self.usage
        self.failed = self.failed or chunk.kind is ChunkKind.ERROR
        self.opaque += chunk.kind is ChunkKind.OPAQUE
        self.unread_tokens += chunk.unread_tokens
        for delta in chunk.deltas:
            choice = self.choices.get(delta.index)
            if choice is None:
                choice = self.choices[delta.index] = Choice(delta.index, self.endpoint)
            choice.add(delta)
            self.citations += delta.citations
        if chunk.kind is ChunkKind.DONE:
            self.done = True
            self.end()

    def end(self) -> None:
        """Note that the stream is over, with a done marker or without."""
        for choice in self.choices.values():
            choice.end()


def _joined(pieces: list[str]) -> str:
    """Return the text of ``pieces``, which become one: it is asked for again."""
    if len(pieces) > 1:
        pieces[:] = ["".join(pieces)]
    return pieces[0] if pieces else ""


def choice_answer(choice: Choice, transcript: Transcript, *, echoed: str = "") -> tuple[Answer, str]:
    """Return the answer of a choice that has ended, and the echo before it; see ``answer_of``."""
    answer = Answer(
        choice.index,
        choice.kind,
        choice.text,
        reasoning=choice.reasoning,
        # What belongs to no choice may be any one's.
        unread_tokens=choice.unread_tokens + transcript.unread_tokens,
        call_tokens=choice.call_tokens,
    )
    return answer_of(answer, echoed=echoed)


def end_of(kinds: Sequence[ChunkKind]) -> int:
    """Return where the end of a stream begins among its frames: the marker, and the token count before it.

    Clients that keep the last chunk's count would lose it to a chunk behind it. Without an end: the number of
    frames.
    """
    end = kinds.index(ChunkKind.DONE) if ChunkKind.DONE in kinds else len(kinds)
    for place in reversed(range(end)):
        if kinds[place] is ChunkKind.USAGE:
            end = place
        elif kinds[place] is not ChunkKind.BLANK:
            break
    return end


def _without_object(frame: Frame) -> Chunk | None:
    """Return what a frame says whose data does not begin an object; ``None`` if its data must be parsed."""
    if frame.data is not None:
        bare = frame.data.strip()
        if bare.startswith("[DONE]"):
            # What stands behind the marker in its frame.
            return Chunk(ChunkKind.DONE, unread_tokens=text_tokens(bare.removeprefix("[DONE]").strip()))
        return None if bare else Chunk(ChunkKind.BLANK)
    if frame.oversize:
        return _opaque(frame, "frame is larger than its limit")
    if frame.invalid:
        return _opaque(frame, "frame is not UTF-8")
    if frame.foreign:
        return _opaque(frame, "frame has a field that is not of the format, and no data")
    return Chunk(ChunkKind.BLANK)


def _opaque(frame: Frame, problem: str, *, forged: bool = False) -> Chunk:
    # Nobody knows how much of it is text.
    size = text_tokens(frame.data) if frame.data is not None else len(frame.raw) // 4 + 1
    return Chunk(ChunkKind.OPAQUE, problem=problem, forged=forged, unread_tokens=size)


def _is_error(frame: Frame, body: Mapping[str, object]) -> bool:
    named = body.get("object") == "error" or (frame.event == "error" and body.get("choices") is None)
    return named or bool(body.get("error"))


def _unread_tokens(body: Mapping[str, object], repeated: Sequence[str], deltas: Sequence[Delta]) -> int:
    unread = without_copies([*unread_of(body), *repeated], [delta.text for delta in deltas])
    return sum(map(text_tokens, unread))


def _deltas(choices: object, endpoint: Endpoint, *, cites: bool) -> tuple[Delta, ...]:
    if choices is None:
        return ()
    if not isinstance(choices, list):
        raise DialectError(f"choices is {json_edit.describe(choices)}; expected a list of objects")
    if len(choices) > MOST_CHOICES:
        raise DialectError(f"choices has {len(choices)} entries; expected {MOST_CHOICES} or fewer")
    return tuple([_delta(choice, place, endpoint, cites=cites) for place, choice in enumerate(choices)])


def _delta(choice: object, place: int, endpoint: Endpoint, *, cites: bool) -> Delta:
    if not isinstance(choice, dict):
        raise DialectError(f"a choice is {json_edit.describe(choice)}; expected an object")
    index = index_of(choice, place)
    finish = choice.get("finish_reason")
    # There are servers that write an empty one until the end.
    finish_reason = finish if isinstance(finish, str) and finish else None
    logprobs = choice.get("logprobs") is not None
    citations, told = split_citations(choice, holder="delta") if cites else ((), choice)
    shown = show_delta(told, endpoint)
    others = ("delta", "message") if endpoint is Endpoint.COMPLETIONS else ("message", "text")
    spoken = [each for each in shown.spoken if each != shown.text]
    text = shown.text + "".join(spoken)
    if not text and any(choice.get(name) for name in others):
        raise DialectError(
            "a choice's text stands where another API has it; expected delta, or text in completions"
        )
    delta = choice.get("delta")
    return Delta(
        index,
        join_pairs(text),
        _string(delta.get("role")) if isinstance(delta, dict) else "",
        finish_reason,
        reasoning="".join(dict.fromkeys(shown.reasoning)),
        tool_call=shown.tool_call,
        refusal=shown.refused,
        logprobs=logprobs,
        elsewhere=bool(spoken),
        only_refused=bool(text) and shown.only_refused,
        beside=tuple(other for other in (*shown.others, *shown.unread) if other.strip()),
        call_tokens=sum(map(text_tokens, shown.calls)),
        citations=citations,
    )


def index_of(choice: Mapping[str, object], place: int) -> int:
    """Return which choice of the stream ``choice`` is: its own ``index``, else its place in the chunk."""
    index = choice.get("index")
    return index if isinstance(index, int) and not isinstance(index, bool) else place


def _identifier(name: str, value: object) -> str:
    """What our own chunks may repeat of an id or a name; ``""`` where it may be a text."""
    return value if isinstance(value, str) and is_identifier(name, value) else ""


def _string(value: object) -> str:
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else json_edit.show(value)


def join_pairs(text: str) -> str:
    """Return ``text`` with each surrogate pair joined into one character."""
    if text.isascii() or not _PAIR.search(text):
        return text
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
