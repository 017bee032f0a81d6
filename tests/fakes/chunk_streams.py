"""Streams of chat and completions chunks made for tests: frames, and whole streams that Hypothesis draws."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise

from hypothesis import strategies as st

from truthlens.api.sse.chunks import Chunk, Delta, Transcript, parse_chunk
from truthlens.api.sse.frames import Decoder, Frame, encode
from truthlens.core.records.enums import Endpoint

CHAT, COMPLETIONS = Endpoint.CHAT, Endpoint.COMPLETIONS
HEAD = {"id": "c-1", "object": "chat.completion.chunk", "created": 7, "model": "m"}
TEXTS = st.text(st.sampled_from('ab .。真😀𝕏é\n\r\u2028\x00"\\<') | st.characters(codec="utf-8"), max_size=40)


def frame_of(raw: bytes, *, limit: int = 1 << 20) -> Frame:
    """The first frame of ``raw``."""
    decoder = Decoder(max_frame_bytes=limit)
    frames = decoder.feed(raw)
    rest = decoder.finish()
    return frames[0] if frames else rest  # type: ignore[return-value]


def chat_frame(*choices: Mapping[str, object], **top: object) -> Frame:
    """A frame with these choices."""
    return frame_of(encode(json.dumps({**HEAD, "choices": list(choices), **top})))


def content(text: object, index: int = 0, **more: object) -> dict[str, object]:
    """A choice of a chat chunk that adds ``text``."""
    return {"index": index, "delta": {"content": text}, "finish_reason": None, **more}


def read(*frames: Frame, endpoint: Endpoint = CHAT) -> Transcript:
    """The transcript of a stream of these frames."""
    transcript = Transcript(endpoint)
    for frame in frames:
        transcript.add(parse_chunk(frame, endpoint))
    return transcript


def only_delta(frame: Frame, endpoint: Endpoint = CHAT) -> Delta:
    """The one delta of a frame."""
    (delta,) = parse_chunk(frame, endpoint).deltas
    return delta


def text_in(chunk: Chunk, index: int) -> str:
    """What a chunk adds to a choice's text."""
    return "".join(delta.text for delta in chunk.deltas if delta.index == index)


def units(text: str) -> list[str]:
    """UTF-16 code units, by which JavaScript servers cut."""
    data = text.encode("utf-16-be")
    return [data[place : place + 2].decode("utf-16-be", "surrogatepass") for place in range(0, len(data), 2)]


@st.composite
def chunk_streams(draw: st.DrawFn) -> tuple[list[str], list[bytes], Endpoint]:
    """Texts by choice, and the frames of a stream that says them."""
    texts = draw(st.lists(TEXTS, min_size=1, max_size=4))
    endpoint = draw(st.sampled_from(list(Endpoint)))
    newline = draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    indent = draw(st.sampled_from([None, None, 1]))
    ascii_only = draw(st.booleans())
    queues = []
    for text in texts:
        parts = units(text)
        cuts = [0, *sorted(draw(st.lists(st.integers(0, len(parts)), max_size=12))), len(parts)]
        queues.append(["".join(parts[start:end]) for start, end in pairwise(cuts)])
    frames = [encode("", event="ping", newline=newline), b": hello" + newline * 2]

    def put(choices: list[dict[str, object]], **top: object) -> None:
        body = {**HEAD, "choices": choices, "extra": {"kept": 1.10}, **top}
        # Half a pair can only be written as an escape.
        text = json.dumps(body, indent=indent, ensure_ascii=True)
        if not ascii_only and not any(
            0xD800 <= ord(unit) < 0xE000 for unit in json.dumps(body, ensure_ascii=False)
        ):
            text = json.dumps(body, indent=indent, ensure_ascii=False)
        frames.append(encode(text, newline=newline))

    def choice(index: int, text: str) -> dict[str, object]:
        if endpoint is COMPLETIONS:
            return {"index": index, "text": text, "logprobs": None}
        if draw(st.booleans()):
            return {"index": index, "delta": {"content": text, "x": 1}, "logprobs": {"content": []}}
        return {"index": index, "delta": {"content": [{"type": "text", "text": text}]}}

    while any(queues):
        ready = [index for index, queue in enumerate(queues) if queue]
        chosen = draw(st.lists(st.sampled_from(ready), min_size=1, unique=True))
        put([choice(index, queues[index].pop(0)) for index in chosen])
        if draw(st.integers(0, 5)) == 0:
            frames.append(b": keep-alive" + newline * 2)
        if draw(st.integers(0, 5)) == 0:
            put([{"index": draw(st.sampled_from(ready)), "delta": {"reasoning": "think", "content": None}}])
    for index in draw(st.permutations(range(len(texts)))):
        put([{"index": index, "delta": {}, "text": "", "finish_reason": "stop"}])
    put([], usage={"total_tokens": 9})
    if draw(st.booleans()):
        frames.append(encode("[DONE]", newline=newline))
    return texts, frames, endpoint
