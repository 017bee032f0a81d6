"""Whole streams of the OpenAI chat and completions APIs: their answers, and their bytes with new answers.

The counterpart of ``responses`` for bodies of server-sent events. Deliberately not here: deciding what an
answer's new text is (``delivery``), streams that are passed on while they come (``streaming``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from truthlens.api.answer_citations import awaits_citations
from truthlens.api.responses import check_answers, known_texts, with_notes
from truthlens.api.sse.chunk_edits import final_chunk
from truthlens.api.sse.chunks import Chunk, ChunkKind, Transcript, choice_answer, parse_chunk
from truthlens.api.sse.frames import MAX_FRAME_BYTES, Decoder, Frame, encode
from truthlens.api.sse.rewriter import StreamRewriter
from truthlens.api.sse.text_replace import retell
from truthlens.core.cancellation import checkpoint
from truthlens.core.errors import DialectError, check
from truthlens.core.json_size import check_values
from truthlens.core.limits import Limits
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.exchange import Answer, Exchange

_DEFAULTS = Limits()
_FED_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class StreamedResponse:
    """One response that came as a stream of chunks.

    ``answers`` has one entry per choice, in the order in which the choices began, ``finish_reasons`` likewise
    (``None`` where a choice was cut off). ``id`` and ``usage`` are the backend's own, the count in whole numbers only.
    ``failed`` says that the stream holds an error object, ``opaque`` counts the frames that could not be
    read. ``forged``: the backend sent a ``truthlens`` member, which must not leave. ``citations`` is the evidence
    that came with the answers. ``frames``, ``chunks``, ``transcript`` and ``echoes`` are what ``rewrite_stream`` edits.
    """

    endpoint: Endpoint
    answers: tuple[Answer, ...]
    finish_reasons: tuple[str | None, ...] = ()
    id: str = ""
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    failed: bool = False
    opaque: int = 0
    forged: bool = False
    citations: tuple[object, ...] = ()
    echoes: tuple[str, ...] = field(default=(), repr=False)
    frames: tuple[Frame, ...] = field(default=(), repr=False)
    chunks: tuple[Chunk, ...] = field(default=(), repr=False)
    transcript: Transcript = field(default_factory=lambda: Transcript(Endpoint.CHAT), repr=False)


def parse_stream(body: bytes, exchange: Exchange, limits: Limits = _DEFAULTS) -> StreamedResponse:
    """Parse the answers of a stream.

    Chunks of one ``index`` are one choice; a choice without one is known by its place in its chunk. Text is
    taken to its last byte, also out of a last frame without a blank line: there are clients that show it.

    Args:
        body: Decoded response body.
        exchange: The request half. Where an answer starts with ``echoed``, the answer is what follows.
        limits: Bounds on what is read; those of a JSON text count for each frame.

    Raises:
        BodyTooLargeError: There are more frames, JSON values, choices or characters of answers than
            ``limits`` allow.
        StoppedError: Nobody waits for it any more.
        DialectError: There are frames with data, and none is a chunk of the API.
    """
    frames = _frames(body, limits)
    chunks: list[Chunk] = []
    transcript = Transcript(exchange.endpoint)
    cites = awaits_citations(exchange)
    for frame in frames:
        checkpoint()
        check_values(frame.data or "", limits.max_json_values)
        chunk = parse_chunk(frame, exchange.endpoint, cites=cites)
        chunks.append(chunk)
        transcript.add(chunk)
        check(len(transcript.choices), limits.max_choices, key="max_choices")
    transcript.end()
    kinds = {chunk.kind for chunk in chunks}
    # Streams of other APIs have errors and counts that look alike, but no choices.
    if ChunkKind.CHOICES not in kinds and ChunkKind.OPAQUE in kinds:
        raise DialectError(
            f"none of {len(frames)} frames is a chunk of the API; expected chunks with choices"
        )
    if transcript.unread_tokens and not transcript.choices:
        raise DialectError("no chunk has choices, and text stands beside them; expected it in a choice")
    choices = transcript.choices.values()
    found = [choice_answer(choice, transcript, echoed=exchange.echoed) for choice in choices]
    answers = tuple(answer for answer, _ in found)
    check_answers(answers, limits)
    return StreamedResponse(
        endpoint=exchange.endpoint,
        answers=answers,
        finish_reasons=tuple(choice.finish_reason for choice in choices),
        id=transcript.id,
        model=transcript.model,
        usage=transcript.usage,
        failed=transcript.failed,
        opaque=transcript.opaque,
        forged=any(chunk.forged for chunk in chunks),
        citations=tuple(transcript.citations),
        echoes=tuple(echo + answer.lead for answer, echo in found),
        frames=frames,
        chunks=tuple(chunks),
        transcript=transcript,
    )


def rewrite_stream(
    response: StreamedResponse, texts: Mapping[int, str], truthlens: Mapping[str, object] | None
) -> bytes:
    """Return the stream with new answers and, if given, one more chunk with the ``truthlens`` object.

    Every frame that needs no change leaves as its own bytes, in its place. Text before or after an unchanged
    answer comes in a chunk of its own; an answer that is new itself takes the places of the old one's text,
    sentence by sentence. The frames whose text changed lose their ``logprobs``, and all frames of an answer
    that is new itself whatever may repeat the old one; ``truthlens.notes`` says so, also where no object was
    asked for. The ``truthlens`` chunk is before the marker of the end and the count of tokens before it,
    or last where there is none. A ``truthlens`` member that the backend sent is removed.

    Args:
        response: What ``parse_stream`` gave.
        texts: New text by ``Answer.index``; other choices are not touched. Text that the backend echoed
            stays in front of it.
        truthlens: The object to add, or ``None``.

    Raises:
        DialectError: A chunk that is to be changed nests too deeply.
        ValueError: ``texts`` names a choice that the response lacks or that holds no text.
    """
    known = known_texts(response.answers, texts)
    changed = {index: text for index, text in texts.items() if text != known[index]}
    if not changed and truthlens is None and not response.forged:
        return b"".join(frame.raw for frame in response.frames)
    if not response.frames:
        # A body without a byte: there is nothing to change, and nothing to insert text before.
        return b"" if truthlens is None else encode(final_chunk(response.transcript, truthlens))
    draft = StreamRewriter(response.frames, response.chunks, response.transcript)
    for answer, echo in zip(response.answers, response.echoes, strict=True):
        if answer.index in changed:
            retell(draft, answer, changed[answer.index], echo=echo)
    if truthlens is not None or draft.notes:
        draft.put_verdict(with_notes(truthlens, draft.notes))
    return draft.written()


def _frames(body: bytes, limits: Limits) -> tuple[Frame, ...]:
    """Return all frames, however long: the body is held already."""
    decoder = Decoder(max_frame_bytes=max(len(body), MAX_FRAME_BYTES))
    frames: list[Frame] = []
    for start in range(0, len(body), _FED_BYTES):
        checkpoint()
        frames += decoder.feed(body[start : start + _FED_BYTES])
        check(len(frames), limits.max_frames, key="max_frames")
    rest = decoder.finish()
    return (*frames, rest) if rest is not None else tuple(frames)
