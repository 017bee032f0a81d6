"""Chunks of streamed answers: what they add, the text they make, and chunks with another text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types import Completion
from openai.types.chat import ChatCompletionChunk

from truthlens.core.errors import DialectError
from truthlens.core.records import AnswerKind, Endpoint
from truthlens.exchange.chunks import (
    Choice,
    Chunk,
    ChunkKind,
    Delta,
    Transcript,
    content_chunk,
    edit_content,
    final_chunk,
    parse_chunk,
)
from truthlens.exchange.sse import Decoder, Frame, encode

CHAT, COMPLETIONS = Endpoint.CHAT, Endpoint.COMPLETIONS
HEAD = {"id": "c-1", "object": "chat.completion.chunk", "created": 7, "model": "m"}
TEXTS = st.text(st.sampled_from('ab .。真😀𝕏é\n\r\u2028\x00"\\<') | st.characters(codec="utf-8"), max_size=40)


def frame_of(raw: bytes, *, limit: int = 1 << 20) -> Frame:
    decoder = Decoder(max_frame_bytes=limit)
    frames = decoder.feed(raw)
    rest = decoder.finish()
    return frames[0] if frames else rest  # type: ignore[return-value]


def chat_frame(*choices: Mapping[str, object], **top: object) -> Frame:
    return frame_of(encode(json.dumps({**HEAD, "choices": list(choices), **top})))


def content(text: object, index: int = 0, **more: object) -> dict[str, object]:
    return {"index": index, "delta": {"content": text}, "finish_reason": None, **more}


def read(*frames: Frame, endpoint: Endpoint = CHAT) -> Transcript:
    transcript = Transcript(endpoint)
    for frame in frames:
        transcript.add(parse_chunk(frame, endpoint))
    return transcript


def only_delta(frame: Frame, endpoint: Endpoint = CHAT) -> Delta:
    (delta,) = parse_chunk(frame, endpoint).deltas
    return delta


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"data: [DONE]\n\n", ChunkKind.DONE),
        (b"data: [DONE]", ChunkKind.DONE),
        (b"data:  [DONE] \n\n", ChunkKind.DONE),
        (b'data: {"error": {"message": "m", "code": 500}}\n\n', ChunkKind.ERROR),
        (b'data: {"error": "gone", "choices": 7}\n\n', ChunkKind.ERROR),
        (b'data: {"object": "error", "message": "m"}\n\n', ChunkKind.ERROR),
        (b'event: error\ndata: {"message": "m"}\n\n', ChunkKind.ERROR),
        (b'data: {"error": null, "choices": []}\n\n', ChunkKind.CHOICES),
        (b'data: {"choices": [], "usage": {"total_tokens": 3}}\n\n', ChunkKind.USAGE),
        (b'data: {"usage": {"total_tokens": 3}}\n\n', ChunkKind.USAGE),
        (b'data: {"choices": [], "prompt_filter_results": []}\n\n', ChunkKind.CHOICES),
        (b'data: {"choices": [{}], "usage": {"total_tokens": 3}}\n\n', ChunkKind.CHOICES),
        (b": keep-alive\n\n", ChunkKind.BLANK),
        (b"event: ping\n\n", ChunkKind.BLANK),
        (b"\n", ChunkKind.BLANK),
        (b"data\n\n", ChunkKind.OPAQUE),
        (b"data: {\n\n", ChunkKind.OPAQUE),
        (b"data: [1]\n\n", ChunkKind.OPAQUE),
        (b"data: {}\n\n", ChunkKind.OPAQUE),
        (b'data: {"type": "message_start"}\n\n', ChunkKind.OPAQUE),
        (b'data: {"choices": {}}\n\n', ChunkKind.OPAQUE),
        (b'data: {"choices": [1]}\n\n', ChunkKind.OPAQUE),
        (b'data: {"choices": [{"delta": "x"}]}\n\n', ChunkKind.OPAQUE),
        (b'data: {"choices": [{"delta": {"content": 5}}]}\n\n', ChunkKind.OPAQUE),
        (b'data: {"choices": [{"delta": {"content": "caf\xe9"}}]}\n\n', ChunkKind.OPAQUE),
        (b"data: " + b"[" * 100_000 + b"\n\n", ChunkKind.OPAQUE),
        (b"data: " + b"9" * 10_000 + b"\n\n", ChunkKind.OPAQUE),
    ],
)
def test_each_kind_of_frame_is_told_apart(raw: bytes, kind: ChunkKind) -> None:
    """A frame that cannot be read says why and quotes nothing; no frame is an error."""
    chunk = parse_chunk(frame_of(raw), CHAT)
    assert chunk.kind is kind
    assert bool(chunk.problem) == (kind is ChunkKind.OPAQUE)
    assert "caf" not in chunk.problem


def test_a_frame_beyond_the_limit_is_opaque() -> None:
    """Its pieces are counted as what could not be read."""
    assert read(frame_of(b"data: " + b"x" * 100 + b"\n\n", limit=50)).opaque == 1


@given(raw=st.binary(max_size=60).map(lambda data: b"data: " + data) | st.binary(max_size=60))
def test_any_bytes_can_be_read(raw: bytes) -> None:
    """Reading raises nothing."""
    for endpoint in Endpoint:
        for frame in Decoder().feed(raw + b"\n\n"):
            assert parse_chunk(frame, endpoint).kind in ChunkKind


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "text", "refusal", "thinking"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "index",
                    "delta",
                    "content",
                    "text",
                    "type",
                    "role",
                    "finish_reason",
                    "logprobs",
                    "tool_calls",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=600)
@given(choices=JSON, usage=JSON, error=JSON, index=st.integers(-1, 2), new=st.none() | st.text(max_size=3))
def test_any_json_can_be_read_and_edited(
    choices: object, usage: object, error: object, index: int, new: str | None
) -> None:
    """Shapes that the API does not have raise nothing but the refusal to edit; an edit does what it says."""
    frame = frame_of(encode(json.dumps({"choices": choices, "usage": usage, "error": error})))
    for endpoint in Endpoint:
        before = parse_chunk(frame, endpoint)
        try:
            raw = edit_content(frame, index, new, endpoint=endpoint)
        except ValueError:
            assert new is not None
            continue
        after = parse_chunk(frame_of(raw), endpoint)
        assert text_in(after, index) == (new or "")
        assert [delta for delta in after.deltas if delta.index != index] == [
            delta for delta in before.deltas if delta.index != index
        ]


def text_in(chunk: Chunk, index: int) -> str:
    return "".join(delta.text for delta in chunk.deltas if delta.index == index)


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        ({"role": "assistant", "content": ""}, Delta(0, role="assistant")),
        ({"content": "a"}, Delta(0, "a")),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image_url"}, {"text": "b"}]}, Delta(0, "ab")),
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}]},
            Delta(0, reasoning=True),
        ),
        ({"content": [{"type": [], "text": "a"}]}, Delta(0)),
        ({"reasoning_content": "t", "content": None}, Delta(0, reasoning=True)),
        ({"reasoning": "t"}, Delta(0, reasoning=True)),
        ({"reasoning": None, "content": "a"}, Delta(0, "a")),
        ({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}, Delta(0, tool_call=True)),
        ({"function_call": {"name": "f"}}, Delta(0, tool_call=True)),
        ({"tool_calls": []}, Delta(0)),
        ({"refusal": "No."}, Delta(0, refusal=True)),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, Delta(0, refusal=True)),
        ({}, Delta(0)),
        (None, Delta(0)),
    ],
)
def test_each_kind_of_delta_is_told_apart(delta: object, expected: Delta) -> None:
    """Answer text alone is text; reasoning, calls and refusals are flags."""
    assert only_delta(chat_frame({"index": 0, "delta": delta})) == expected


def test_what_stands_beside_a_delta_is_read() -> None:
    """Index, finish reason, log probabilities, identity and usage."""
    frame = chat_frame(
        content("a", 3, logprobs={"content": []}),
        {"delta": {}, "finish_reason": "stop"},
        usage={"n": 2, "x": None},
    )
    chunk = parse_chunk(frame, CHAT)
    assert chunk.deltas == (Delta(3, "a", logprobs=True), Delta(1, finish_reason="stop"))
    assert (chunk.id, chunk.object, chunk.created, chunk.model) == ("c-1", "chat.completion.chunk", 7, "m")
    assert chunk.usage == {"n": 2}


def test_a_completions_chunk_is_read_from_its_text() -> None:
    """The other API has no deltas."""
    frame = chat_frame({"index": 1, "text": "a", "logprobs": {}, "finish_reason": "length"})
    assert only_delta(frame, COMPLETIONS) == Delta(1, "a", finish_reason="length", logprobs=True)
    assert only_delta(frame, CHAT) == Delta(1, finish_reason="length", logprobs=True)
    assert read(frame, endpoint=COMPLETIONS).choices[1].kind is AnswerKind.TEXT


def test_an_error_keeps_the_text_that_came_with_it() -> None:
    """Some clients show it, so it counts as text."""
    transcript = read(chat_frame(content("a")), chat_frame(content("b"), error={"code": 502}))
    assert transcript.failed
    assert transcript.choices[0].text == "ab"


def test_a_choice_says_what_it_holds() -> None:
    """The kinds are those of answers that do not stream."""
    transcript = read(
        chat_frame(content(" ", 0), content("x", 1), content("x", 2), content("", 3)),
        chat_frame(
            {"index": 1, "delta": {"role": "assistant", "tool_calls": [{}]}, "finish_reason": "tool_calls"},
            {"index": 3, "delta": {"refusal": "No."}},
            {"index": 2, "delta": {"reasoning": "t"}},
        ),
    )
    kinds = {index: choice.kind for index, choice in transcript.choices.items()}
    assert kinds == {
        0: AnswerKind.EMPTY,
        1: AnswerKind.TOOL_CALL,
        2: AnswerKind.TEXT,
        3: AnswerKind.REFUSAL,
    }
    assert [choice.finished for choice in transcript.choices.values()] == [False, True, False, False]
    assert transcript.choices[1].finish_reason == "tool_calls"
    assert transcript.choices[1].role == "assistant"
    assert transcript.choices[2].reasoning


def test_a_surrogate_pair_may_be_cut_over_two_deltas() -> None:
    """The character counts once, when it is whole, and belongs to both frames."""
    transcript = Transcript(CHAT)
    halves = [r"a\ud83d", "", r"\ude00b"]
    seen = []
    for half in halves:
        raw = encode(f'{{"choices": [{{"delta": {{"content": "{half}"}}}}]}}')
        transcript.add(parse_chunk(frame_of(raw), CHAT))
        seen.append(transcript.choices[0].text)
    choice = transcript.choices[0]
    assert seen == ["a", "a", "a😀b"]
    assert [(piece.frame, piece.start, piece.end, piece.joined) for piece in choice.pieces] == [
        (0, 0, 2, False),
        (2, 1, 3, True),
    ]
    assert [choice.locate(end) for end in (1, 2, 3)] == [(0, 1), (2, 1), (2, 2)]
    assert [piece.frame for piece in choice.pieces_in(1, 2)] == [0, 2]
    assert [piece.frame for piece in choice.pieces_in(0, 1)] == [0]


@pytest.mark.parametrize(
    ("deltas", "text", "pieces"),
    [
        ([r"\ud83d", "x"], "\ufffdx", [(0, 0, 1), (1, 1, 2)]),
        ([r"\ud83d", r"\ud83d", r"\ude00"], "\ufffd😀", [(0, 0, 1), (1, 1, 2), (2, 1, 2)]),
        ([r"\ud83d", r"\ude00\ud83d", r"\ude00"], "😀😀", [(0, 0, 1), (1, 0, 2), (2, 1, 2)]),
        ([r"\ude00\ud83d"], "\ufffd\ufffd", [(0, 0, 2)]),
        ([r"a\ud83d", "[DONE]"], "a\ufffd", [(0, 0, 2)]),
    ],
)
def test_half_a_pair_without_the_other_is_shown_as_such(
    deltas: list[str], text: str, pieces: list[tuple[int, int, int]]
) -> None:
    """It becomes U+FFFD once the other half cannot come any more."""
    choice = Choice(0, CHAT)
    for number, delta in enumerate(deltas):
        if delta != "[DONE]":
            choice.add(Delta(0, json.loads(f'"{delta}"')), number)
    choice.end()
    assert choice.text == text
    assert choice.length == len(text)
    assert [(piece.frame, piece.start, piece.end) for piece in choice.pieces] == pieces


def test_a_stream_that_is_done_waits_for_no_half() -> None:
    """The done marker and a finish reason both end a choice's text."""
    half = frame_of(encode('{"choices": [{"delta": {"content": "\\ud83d"}}]}'))
    done = read(half, frame_of(b"data: [DONE]\n\n"))
    assert done.done
    assert done.choices[0].text == "\ufffd"
    assert read(half, chat_frame({"delta": {}, "finish_reason": "stop"})).choices[0].text == "\ufffd"


def test_a_place_outside_the_text_is_refused() -> None:
    """The message says the range."""
    choice = read(chat_frame(content("ab"))).choices[0]
    for end in (0, 3):
        with pytest.raises(ValueError, match="expected 1 to 2"):
            choice.locate(end)
    assert list(choice.pieces_in(1, 1)) == []


def units(text: str) -> list[str]:
    """UTF-16 code units, by which JavaScript servers cut."""
    data = text.encode("utf-16-be")
    return [data[place : place + 2].decode("utf-16-be", "surrogatepass") for place in range(0, len(data), 2)]


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[str], list[bytes], Endpoint]:
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


@settings(max_examples=500, deadline=None)
@given(stream=streams(), data=st.data())
def test_texts_of_a_stream_are_rebuilt(
    stream: tuple[list[str], list[bytes], Endpoint], data: st.DataObject
) -> None:
    """However cut and interleaved: nothing lost, doubled or reordered, and the frames are the same bytes."""
    texts, frames, endpoint = stream
    wire = b"".join(frames)
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=20))), len(wire)]
    decoder = Decoder()
    decoded = [frame for start, end in pairwise(cuts) for frame in decoder.feed(wire[start:end])]
    assert [frame.raw for frame in decoded] == frames
    assert decoder.finish() is None
    transcript = Transcript(endpoint)
    seen = dict.fromkeys(range(len(texts)), "")
    deltas: dict[tuple[int, int], str] = {}
    for number, frame in enumerate(decoded):
        chunk = parse_chunk(frame, endpoint)
        assert transcript.add(chunk) == number
        for delta in chunk.deltas:
            deltas[number, delta.index] = delta.text
            text = transcript.choices[delta.index].text
            assert text.startswith(seen[delta.index])
            seen[delta.index] = text
    assert transcript.frames == len(frames)
    assert transcript.usage == {"total_tokens": 9}
    assert {index: choice.text for index, choice in transcript.choices.items()} == dict(enumerate(texts))
    for index, choice in transcript.choices.items():
        check_map(choice, {frame: text for (frame, of), text in deltas.items() if of == index}, data)


def check_map(choice: Choice, deltas: Mapping[int, str], data: st.DataObject) -> None:
    """The map says of each character which frames carry it."""
    text = choice.text
    assert choice.finished
    assert "".join(text[piece.start + piece.joined : piece.end] for piece in choice.pieces) == text
    for piece in choice.pieces:
        added, shown = deltas[piece.frame], text[piece.start : piece.end]
        assert len(added) == len(shown)
        assert all(a == b or 0xD800 <= ord(a) < 0xE000 for a, b in zip(added, shown, strict=True))
    assert [piece.frame for piece in choice.pieces] == [frame for frame, added in deltas.items() if added]
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    expected = (
        [piece for piece in choice.pieces if piece.start < end and piece.end > start] if start < end else []
    )
    assert list(choice.pieces_in(start, end)) == expected
    assert choice.tail(start) == text[start:]
    if end:
        frame, count = choice.locate(end)
        last = [piece for piece in choice.pieces if piece.start < end][-1]
        assert (frame, count) == (last.frame, end - last.start)
        assert 1 <= count <= len(deltas[frame])


@settings(max_examples=300, deadline=None)
@given(stream=streams(), new=st.none() | TEXTS, data=st.data())
def test_an_edit_changes_one_text_and_no_other_byte(
    stream: tuple[list[str], list[bytes], Endpoint], new: str | None, data: st.DataObject
) -> None:
    """The choice has the new text and no log probabilities; all else means and reads the same."""
    _texts, frames, endpoint = stream
    frame = frame_of(data.draw(st.sampled_from(frames)))
    chunk = parse_chunk(frame, endpoint)
    index = data.draw(st.sampled_from([delta.index for delta in chunk.deltas] or [0]))
    old = text_in(chunk, index)
    try:
        raw = edit_content(frame, index, new, endpoint=endpoint)
    except ValueError:
        assert not old
        assert new is not None
        return
    if old == new or (new is None and raw == frame.raw):
        assert raw == frame.raw
        assert old == (new or "")
        return
    back = frame_of(raw)
    assert back.newline == frame.newline
    assert text_in(parse_chunk(back, endpoint), index) == (new or "")
    assert frame.data is not None
    assert back.data is not None
    was, now = json.loads(frame.data), json.loads(back.data)
    for body in (was, now):
        choice = next(choice for choice in body["choices"] if choice["index"] == index)
        holder = choice if endpoint is COMPLETIONS else choice["delta"]
        holder.pop("content", None)
        choice.pop("text", None)
        if choice.get("logprobs") is not None or body is now:
            choice.pop("logprobs", None)
    if endpoint is COMPLETIONS:
        was["choices"] = [{k: v for k, v in choice.items() if k != "logprobs"} for choice in was["choices"]]
        now["choices"] = [{k: v for k, v in choice.items() if k != "logprobs"} for choice in now["choices"]]
    assert now == was
    assert '"kept": 1.1' in back.data


RAW = (
    b": note\r\nid: 4\r\n"
    b'data:{ "id" : "\\u0063", "x":1.10,"choices":[ {"index":1 , "delta":{"content" :"old","r":1e400}, '
    b'"logprobs":{"content":[]},"finish_reason":null},{"index":0,"delta":{"content":"other"},"logprobs":{}} ],'
    b'"service_tier": null}\r\n\r\n'
)


def test_an_edited_frame_keeps_its_spacing_and_what_python_cannot_hold() -> None:
    """Comments, ids, line ends, escapes, odd numbers and the other choice stay byte for byte."""
    frame = frame_of(RAW)
    gone = b'"logprobs":{"content":[]},'
    expected = (
        RAW.replace(b'"old"', '"néw"'.encode()).replace(b" \r\n" + gone, b" ").replace(b" " + gone, b"")
    )
    edited = edit_content(frame, 1, "néw", endpoint=CHAT)
    assert edited.replace(b" ", b"") == expected.replace(b" ", b"")
    assert edited.startswith(RAW[: RAW.index(b'"old"')])
    assert edited.endswith(RAW[RAW.index(b'"finish_reason"') :])
    assert edit_content(frame, 1, None, endpoint=CHAT) == edited.replace('"content" :"néw",'.encode(), b"")
    assert edit_content(frame, 1, "old", endpoint=CHAT) == RAW
    assert edit_content(frame, 1, "", endpoint=CHAT) == edited.replace("néw".encode(), b"")


def test_chunks_in_several_data_lines_are_edited() -> None:
    """Lines stay lines; those inside a value that was replaced go."""
    raw = b'data: {"choices": [\ndata:{"delta": {"content": "old"},\n: note\ndata: "logprobs": null}]}\n\n'
    assert edit_content(frame_of(raw), 0, "new", endpoint=CHAT) == raw.replace(b"old", b"new")
    raw = b'data: {"choices": [{"delta": {"content": [\ndata: {"text": "old"},\ndata: {"text": "x"}]}}]}\n\n'
    edited = frame_of(edit_content(frame_of(raw), 0, "new", endpoint=CHAT))
    assert text_in(parse_chunk(edited, CHAT), 0) == "new"


def test_content_in_parts_takes_the_new_text_in_its_first() -> None:
    """Parts that are no text stay."""
    parts = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": "a", "k": 1},
        "b",
        {"type": "image"},
    ]
    frame = chat_frame(content(parts))

    def edited(new: str | None) -> object:
        body = json.loads(frame_of(edit_content(frame, 0, new, endpoint=CHAT)).data or "")
        return body["choices"][0]["delta"]["content"]

    assert edited("new") == [parts[0], {"type": "text", "text": "new", "k": 1}, parts[3]]
    assert edited(None) == [parts[0], parts[3]]


def test_a_choice_that_a_frame_repeats_says_the_new_text_once() -> None:
    """The first takes it, the others are emptied."""
    frame = chat_frame(content("a", 1), content("z", 0), content("b", 1))
    body = json.loads(frame_of(edit_content(frame, 1, "new", endpoint=CHAT)).data or "")
    assert [choice["delta"]["content"] for choice in body["choices"]] == ["new", "z", ""]
    assert edit_content(frame, 1, "ab", endpoint=CHAT) == frame.raw
    choice = read(frame).choices[1]
    assert choice.text == "ab"
    assert [(piece.frame, piece.start, piece.end) for piece in choice.pieces] == [(0, 0, 2)]


def test_repeated_keys_are_all_replaced() -> None:
    """Whichever a reader takes, it takes the new text; an earlier member may be of any shape."""
    choices = b'[{"delta": {"content": "a", "content": "b"}}]'
    raw = b'data: {"choices": 1, "choices": %b, "choices": %b}\n\n' % (choices, choices)
    edited = raw.replace(b'"a"', b'"c"').replace(b'"b"', b'"c"')
    assert edit_content(frame_of(raw), 0, "c", endpoint=CHAT) == edited


@pytest.mark.parametrize(
    "frame",
    [
        chat_frame(content(None)),
        chat_frame({"delta": {}}),
        chat_frame(content("x", 1)),
        chat_frame(),
        frame_of(b": ping\n\n"),
        frame_of(b"data: [DONE]\n\n"),
        frame_of(b"data: {\n\n"),
    ],
)
def test_a_frame_without_text_takes_none(frame: Frame) -> None:
    """There is nothing to replace; taking text out leaves the same bytes."""
    with pytest.raises(ValueError, match="no text of choice 0"):
        edit_content(frame, 0, "new", endpoint=CHAT)
    assert edit_content(frame, 0, None, endpoint=CHAT) == frame.raw


def test_json_that_nests_too_deeply_is_refused_as_such() -> None:
    """At every depth a frame is edited, opaque, or refused with an error of ours."""
    told = set()
    for depth in range(500, 1100):
        deep = "[" * depth + "]" * depth
        frame = frame_of(encode(f'{{"choices": [{{"delta": {{"content": "old", "x": {deep}}}}}]}}'))
        if parse_chunk(frame, CHAT).kind is ChunkKind.OPAQUE:
            told.add("opaque")
            continue
        try:
            assert b'"new"' in edit_content(frame, 0, "new", endpoint=CHAT)
            told.add("edited")
        except DialectError:
            told.add("refused")
        except ValueError:
            # One call deeper than this test's own reading.
            told.add("opaque")
    assert {"edited", "opaque"} <= told


@pytest.mark.parametrize("seen", [True, False])
def test_chunks_of_ours_are_valid_by_the_schema(seen: bool) -> None:
    """The official client's types accept them, as a part of the stream they join."""
    transcript = read(*([chat_frame({}), chat_frame(content("a"))] if seen else []))
    added = ChatCompletionChunk.model_validate_json(
        content_chunk(transcript, 2, "é\ud83d", role="assistant"), strict=True
    )
    assert (added.id, added.model, added.created) == (("c-1", "m", 7) if seen else ("truthlens", "", 0))
    assert added.object == "chat.completion.chunk"
    assert (added.choices[0].index, added.choices[0].delta.content) == (2, "é\ufffd")
    assert added.choices[0].delta.role == "assistant"
    end = ChatCompletionChunk.model_validate_json(
        content_chunk(transcript, 0, "", finish_reason="stop"), strict=True
    )
    assert end.choices[0].finish_reason == "stop"
    assert end.choices[0].delta.content is None
    final = ChatCompletionChunk.model_validate_json(
        final_chunk(transcript, {"status": "checked"}), strict=True
    )
    assert final.choices == []
    assert final.model_extra == {"truthlens": {"status": "checked"}}
    again = parse_chunk(frame_of(encode(content_chunk(transcript, 2, "x"))), CHAT)
    assert again.deltas == (Delta(2, "x"),)


def test_completions_chunks_of_ours_are_valid_by_the_schema() -> None:
    """Text in the place where that API has it; the finish reason is null until the end, as on the wire."""
    transcript = Transcript(COMPLETIONS)
    raw = content_chunk(transcript, 1, "a", finish_reason="stop")
    added = Completion.model_validate_json(raw, strict=True)
    assert (added.object, added.choices[0].index, added.choices[0].text) == ("text_completion", 1, "a")
    assert parse_chunk(frame_of(encode(raw)), COMPLETIONS).deltas == (Delta(1, "a", finish_reason="stop"),)
    assert Completion.model_validate_json(final_chunk(transcript, {}), strict=True).choices == []


def test_identity_is_the_first_that_was_not_empty() -> None:
    """Some servers send a first chunk with empty fields, or with fields of another type."""
    empty = {"id": "", "object": "", "created": 0, "model": ""}
    odd = {"id": 5, "object": None, "created": True, "model": []}
    transcript = read(chat_frame(**empty), chat_frame(**odd), chat_frame(), chat_frame(id="c-2"))
    assert (transcript.id, transcript.object, transcript.created, transcript.model) == tuple(HEAD.values())


def test_reprs_hold_no_text_of_the_answer() -> None:
    """What is logged by mistake says nothing that a user or model wrote."""
    frame = chat_frame(content("secret"))
    assert "secret" not in repr((frame, parse_chunk(frame, CHAT)))
